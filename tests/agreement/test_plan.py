"""A plan fixes everything but the maps, and a lot decides who is in which of its waves."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import Lot, Wave, honest_among, largest_scale
from blurfit.agreement.plan import Plan, read_agreed
from blurfit.errors import BlurfitError, InvalidValueError, NotCertifiedError
from blurfit.schema.schema import Categorical, Numeric, Schema
from blurfit.theory.maps import LogisticNewton, NewtonMap, PoissonNewton, ResidualMap, Whitening
from support.plans import FEATURES, TARGETS, plan

MARK = "ab" * 32
PEOPLE = (30, 70)


def charts() -> dict[str, ResidualMap | NewtonMap]:
    """Hostile maps of each kind, for the five columns of the schema."""
    huge = Whitening([1e6] * 5, np.diag([1e12, 1e-320, 1e12, 1.0, 1e12]), [1e6] * 5, -1e6)
    return {
        "number": ResidualMap(huge, 0.01, 1e-6, 1000),
        "label": NewtonMap(huge, LogisticNewton()),
        "count": NewtonMap(huge, PoissonNewton.of(12.0, 9.0, 12.0)),
    }


def test_an_agreement_is_the_course_of_one_wave() -> None:
    """Whoever collects asks an agreement and a plan the same things."""
    made = plan("label", waves=3)
    alone = Agreement.propose(made.schema, epsilon=1, delta=1e-6, quorum=500)
    for one, quorums, kinds in (
        (made, made.quorums, ("joint", "residual", "newton")),
        (alone, (500,), ("joint",)),
        (made.first(), made.quorums[:1], ("joint",)),  # a wave that is collected by itself
    ):
        assert read_agreed(one.to_json()) == one
        assert (len(one), one.quorums, one.kinds) == (len(quorums), quorums, kinds)
        one.verify(one.fingerprint)
        one.require(one.first())
        assert {one.lot.group_of(bytes([byte]) * 32) for byte in range(40)} >= {1}
        with pytest.raises(NotCertifiedError, match="not the one that you were invited to"):
            one.verify(MARK)
    assert (alone.first(), alone.once, alone.release) == (alone, alone.fingerprint, "by hand")
    assert made.first().once == made.once == made.fingerprint
    assert made.release == "at quorum"
    assert {alone.lot.group_of(bytes([byte]) * 32) for byte in range(40)} == {1}
    for wrong in (made.first(), replace(alone, admission="anyone")):
        with pytest.raises(NotCertifiedError, match="Send nothing under it"):
            alone.require(wrong)
    with pytest.raises(InvalidValueError, match="the only one"):
        alone.following((MARK,), charts()["label"])
    for text in ("", "[]", "{}", "7"):
        with pytest.raises(InvalidValueError, match="an agreement"):
            read_agreed(text)


def test_there_are_waves_where_they_pay_and_the_target_allows() -> None:
    assert len(plan("number", quorum=200)) == 1
    assert len(plan("number")) == 3
    assert plan("label").kinds == ("joint", "residual", "newton", "newton")
    classes = Schema(FEATURES, Categorical("job", ["a", "b", "c"]))
    with pytest.raises(InvalidValueError, match="classes"):
        Plan.propose(classes, epsilon=1, delta=1e-6, quorum=40_000)
    with pytest.raises(InvalidValueError, match="counts"):
        Plan.propose(
            Schema(FEATURES, Numeric("y", -1, 1)), counts=True, epsilon=1, delta=1e-6, quorum=40_000
        )


def test_the_first_wave_is_the_agreement_without_a_plan_but_for_its_place() -> None:
    first = plan().first()
    alone = Agreement.propose(plan().schema, epsilon=1.0, delta=1e-6, quorum=plan().honest[0])
    assert replace(first, wave=None).fingerprint == alone.fingerprint != first.fingerprint
    assert json.loads(alone.to_json())["wave"] is None
    assert first.once == plan().fingerprint
    assert alone.once == alone.fingerprint


@pytest.mark.parametrize("task", TARGETS)
def test_the_noise_of_a_wave_keeps_the_promise_whatever_map_is_announced(task: str) -> None:
    """Hostile maps, hostile records: the exact numbers stay within what the noise is sized for."""
    made = plan(task, waves=2)
    agreement = made.following((MARK,), charts()[task])
    agreement.verify()
    read = Agreement.from_json(agreement.to_json())
    assert read == agreement
    assert read.epsilon == 1.0
    generator = np.random.default_rng(3)
    count = 400
    records = {
        "age": generator.choice([18.0, 90.0, 54.0, -1e300, 1e300], count),
        "education": generator.choice([0.0, 20.0, 10.0], count),
        "region": generator.choice(["north", "south", "west"], count),
        "married": generator.integers(0, 2, count),
        made.schema.target.name: generator.choice([0.0, 12.0, 1e5, 6.0], count),
    }
    (part,) = agreement.parts
    exact = agreement.exact(records) * np.sqrt(part.counts)
    assert np.isfinite(exact).all()
    reach = agreement.calibration.reach
    apart = np.linalg.norm(exact[:, None] - exact[None], axis=2).max()
    assert 0 < apart <= reach.sums / (1 + 2.0**-12)  # the rest pays for rounding to the grid
    assert (part.deviations * np.sqrt(part.counts) == agreement.calibration.noise).all()


def test_a_quieter_wave_is_refused() -> None:
    agreement = plan().following((MARK,), charts()["number"])
    quiet = replace(agreement.calibration, sigma=agreement.calibration.sigma * 0.99)
    with pytest.raises(NotCertifiedError):
        replace(agreement, calibration=quiet).verify()


def test_a_map_that_makes_a_solver_fail_is_refused_before_any_record() -> None:
    """Each of these is refused from the document alone; what is accepted is total."""
    agreement = plan().following((MARK,), charts()["number"])
    document = json.loads(agreement.to_json())
    document.pop("fingerprint")
    whitening = document["wave"]["map"]["whitening"]
    for wrong in (
        {"mean": [float("nan")] * 5},
        {"mean": [1e300] * 5},
        {"whitening": [[0.0], *whitening[1:]]},
        {"whitening": whitening[:-1]},
        {"radius": 0.0},
        {"weights": [0.25, 0.8, 0.9]},
        {"kind": "logistic"},
        {"more": 1},
    ):
        changed = document | {"wave": document["wave"] | {"map": document["wave"]["map"] | wrong}}
        with pytest.raises(BlurfitError):
            Agreement.from_dict(changed)


@pytest.mark.parametrize(
    "wave",
    [
        Wave("no fingerprint", 1, PEOPLE),
        Wave(MARK, 0, PEOPLE),
        Wave(MARK, 2, PEOPLE, (MARK,), None),
        Wave(MARK, 1, PEOPLE, (), charts()["number"]),
        Wave(MARK, 3, PEOPLE, (MARK,), charts()["number"]),
        Wave(MARK, 2, PEOPLE, ("x",), charts()["number"]),
    ],
)
def test_a_place_that_no_plan_has_is_refused(wave: Wave) -> None:
    with pytest.raises(BlurfitError):
        replace(plan().following((MARK,), charts()["number"]), wave=wave).verify()


def test_a_map_for_another_target_is_refused() -> None:
    for task, chart in (("number", "label"), ("label", "count"), ("number", "count")):
        with pytest.raises(InvalidValueError):
            plan(task, waves=2).following((MARK,), charts()[chart])
    other = NewtonMap(charts()["count"].whitening, PoissonNewton.of(11.0, 9.0, 11.0))
    with pytest.raises(InvalidValueError, match="count_bound"):
        plan("count", waves=2).following((MARK,), other)


def test_two_databases_share_every_wave() -> None:
    databases = (("One", "https://one.example"), ("Two", "https://two.example"))
    for task in TARGETS:
        promise = {"epsilon": 1, "delta": 1e-6, "quorum": 40_000, "databases": databases}
        made = Plan.propose(plan(task).schema, waves=2, counts=task == "count", **promise)
        assert Plan.from_json(made.to_json()) == made
        later = made.following((MARK,), charts()[task])
        later.verify()
        assert later.trust == "shared"
        (part,) = later.parts
        assert (part.deviations >= 2**10 * part.step).all()
        steepest = 1.0 if task == "number" else charts()[task].loss.balance
        assert largest_scale(later.form) == pytest.approx(max(1.0, steepest))


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("weights", "age", 1e308),
        ("calibration", "quorum", 0),
        ("calibration", "quorum", -3600),
        ("calibration", "quorum", "1"),
        ("calibration", "sigma", None),
        ("calibration", "sigma", 0.1),  # too little noise
        ("calibration", "model", {"epsilon": 9.0, "delta": 1e-3, "neighbours": "replace"}),
        (None, "step", 0),
        (None, "step", None),
        (None, "step", 0.75),
    ],
)
def test_a_plan_that_states_what_cannot_be_is_refused_when_it_is_read(part, name, value) -> None:
    """With a reason, and before anybody takes its first wave for granted."""
    document = plan().to_dict()
    holder = document if part is None else document[part]
    if isinstance(value, dict):
        value = holder[name] | value
    assert name in holder
    holder[name] = value
    with pytest.raises(BlurfitError):
        Plan.from_dict(document)


def test_noise_for_more_people_is_refused_in_words() -> None:
    document = plan(waves=2).first().to_dict()
    document["wave"]["people"] = [10_000, 28_000]
    with pytest.raises(NotCertifiedError, match="sized for 10800"):
        Agreement.from_dict(document).verify()


WHITE = Whitening([0.0] * 5, np.eye(5), [0.0] * 5)
CHART = ResidualMap(WHITE, 1, 1, 1)


def test_a_place_survives_its_document_and_the_first_has_no_map() -> None:
    for wave in (Wave(MARK, 1, PEOPLE), Wave(MARK, 2, PEOPLE, (MARK,), CHART)):
        read = Wave.read(wave.document())
        assert read == wave
        assert hash(read) == hash(wave)
        read.verify()
    assert Wave(MARK, 1, PEOPLE) != Wave(MARK, 2, PEOPLE, (MARK,), CHART)
    with pytest.raises(InvalidValueError, match="first wave"):
        Wave(MARK, 1, PEOPLE).form(plan().schema)
    assert Wave(MARK, 2, PEOPLE, (MARK,), CHART).form(plan().schema).kept == (0, 1, 2, 3, 5)


@pytest.mark.parametrize("entry", [[], {}, {"plan": MARK}, {"follows": MARK}, {"more": 1}])
def test_another_document_is_refused(entry: object) -> None:
    document = plan().first().to_dict()
    if isinstance(entry, dict) and len(entry) == 1 and "plan" not in entry:
        entry = document["wave"] | entry
    with pytest.raises(InvalidValueError, match=r"field|follows|at `\$\.wave"):
        Agreement.from_dict(document | {"wave": entry})


LOT = Lot("ab" * 32, (4000, 6000, 10_000))
TERMS = {"epsilon": 1.0, "delta": 1e-6, "quorum": 20_000, "waves": 3}


def hashes(count: int) -> list[bytes]:
    return [number.to_bytes(32) for number in range(count)]


def test_a_lot_is_fair_and_each_plan_draws_its_own() -> None:
    found = Counter(map(LOT.group_of, hashes(20_000)))
    for group, expected in enumerate(LOT.people, start=1):
        assert abs(found[group] - expected) < 4 * expected**0.5
    assert set(found) == {1, 2, 3}
    other = Lot("cd" * 32, LOT.people)
    same = sum(LOT.group_of(one) == other.group_of(one) for one in hashes(2000))
    assert 600 < same < 900, "0.2² + 0.3² + 0.5² = 0.38 of them by chance"
    small = Lot("ab" * 32, (2, 3, 5))
    drawn = Counter(small.shares(1, offset).index(1) + 1 for offset in range(10))
    assert drawn == {1: 2, 2: 3, 3: 5}


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 3))
def test_shares_are_as_close_to_proportion_as_whole_numbers_are(count, seed, first) -> None:
    open_ones = LOT.in_all(first)
    shares = LOT.shares(count, seed % open_ones, first)
    assert sum(shares) == count
    assert shares[: first - 1] == [0] * (first - 1)
    for one, people in list(zip(shares, LOT.people, strict=True))[first - 1 :]:
        assert abs(one - count * people / open_ones) < 1


@given(st.integers(2, 10**9), st.integers(0, 500))
def test_as_many_are_honest_as_are_left_when_the_stated_share_colludes(people, thousandths) -> None:
    share = thousandths / 1000
    (honest,) = honest_among([people], share)
    colluding = people * thousandths // 1000  # a whole number of people, no more than the share
    assert people - colluding >= honest > (people * (1000 - thousandths)) / 1000 - 1


# ---- the margin
def test_a_wave_waits_for_more_than_its_noise_needs_and_an_agreement_does_not() -> None:
    made = plan(waves=2)
    assert made.terms.colluders == 0.1
    assert (made.quorums, made.honest) == ((12_000, 28_000), (10_800, 25_200))
    first = made.first()
    assert (first.quorum, first.honest) == (12_000, 10_800)
    assert first.calibration.guarantee(count=10_800).epsilon <= 1
    assert first.calibration.guarantee(count=10_700).epsilon > 1
    terms = {name: value for name, value in TERMS.items() if name != "waves"}
    schema = Schema(FEATURES, TARGETS["number"])
    with pytest.raises(InvalidValueError, match="without waves"):
        Agreement.propose(schema, colluders=0.1, **terms)
    made = Agreement.propose(schema, colluders=0.0, **terms)
    assert made.quorum == made.honest == 20_000


@pytest.mark.parametrize("share", [-0.1, 0.51, float("nan")])
def test_no_other_share_is_covered(share: float) -> None:
    schema = Schema(FEATURES, TARGETS["number"])
    with pytest.raises(InvalidValueError, match="colluders"):
        Plan.propose(schema, colluders=share, **TERMS)


def test_colluders_learn_no_more_than_without_waves() -> None:
    """The referee's table: ε of what they can learn, if 10 % of all collude.

    Before, they came first and were in one wave: 2,000 of its 4,000, ε = 1.455. Now the lot spreads
    them, and noise for a tenth fewer covers the mean; the worst that a lot does in 10¹² collections
    (Hoeffding) still is no more than what 10 % of a single wave learn.
    """
    schema = Schema(FEATURES, TARGETS["label"])
    alone = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=20_000)
    one_wave = alone.calibration.guarantee(count=18_000).epsilon
    assert one_wave == pytest.approx(1.058, abs=2e-3)
    first = Plan.propose(schema, **TERMS).first()
    assert first.quorum == 4000
    by_arrival = Plan.propose(schema, colluders=0.0, **TERMS).first()
    assert by_arrival.calibration.guarantee(count=2000).epsilon > 1.45
    assert first.calibration.guarantee(count=3600).epsilon <= 1
    unlucky = 400 + 240  # P ≤ exp(−2·240²/4000) = 3·10⁻¹³
    assert first.calibration.guarantee(count=4000 - unlucky).epsilon <= one_wave
