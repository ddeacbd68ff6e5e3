"""A plan fixes everything but the maps, and an agreement says which wave of which plan it is."""

import json
from dataclasses import replace

import numpy as np
import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan, read_agreed
from blurfit.agreement.waves import Wave, kept_columns
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


@pytest.mark.parametrize("task", TARGETS)
def test_a_plan_survives_its_file(tmp_path, task: str) -> None:
    made = plan(task, waves=3)
    made.save(tmp_path / "plan.json")
    read = Plan.load(tmp_path / "plan.json")
    assert read == made
    assert read.fingerprint == made.fingerprint
    assert read.first().fingerprint == made.first().fingerprint


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
    assert (made.first().once, made.once, made.release) == (
        made.fingerprint,
        made.fingerprint,
        "at quorum",
    )
    assert {alone.lot.group_of(bytes([byte]) * 32) for byte in range(40)} == {1}
    for wrong in (made.first(), replace(alone, admission="anyone")):
        with pytest.raises(NotCertifiedError, match="Send nothing under it"):
            alone.require(wrong)
    with pytest.raises(InvalidValueError, match="the only one"):
        alone.following((MARK,), charts()["label"])
    for text in ("", "[]", "{}", "7"):
        with pytest.raises(InvalidValueError, match="an agreement"):
            read_agreed(text)


def test_auto_is_one_wave_where_few_people_are_expected() -> None:
    assert len(plan("number", quorum=200)) == 1
    assert len(plan("number")) == 5
    assert plan("label").kinds == ("joint", "residual", "newton", "newton")


def test_the_quorums_of_all_waves_add_up() -> None:
    for task in TARGETS:
        made = plan(task, waves=3)
        assert sum(made.quorums) == 40_000
        assert made.first().quorum == made.quorums[0]


def test_a_changed_text_is_refused() -> None:
    document = json.loads(plan().to_json())
    for change in (
        {"epsilon": 2.0},
        {"waves": document["waves"][:1]},
        {"rule": 2},
        {"task": "label"},
        {"more": 1},
        {"fingerprint": MARK},
    ):
        with pytest.raises(BlurfitError):
            Plan.from_json(json.dumps(document | change))


def test_classes_and_numbers_below_zero_have_no_plan() -> None:
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
        made = Plan.propose(
            plan(task).schema,
            waves=2,
            counts=task == "count",
            epsilon=1,
            delta=1e-6,
            quorum=40_000,
            databases=databases,
        )
        assert Plan.from_json(made.to_json()) == made
        later = made.following((MARK,), charts()[task])
        later.verify()
        assert later.trust == "shared"
        (part,) = later.parts
        assert (part.deviations >= 2**10 * part.step).all()


def test_last_levels_are_not_in_a_map() -> None:
    assert kept_columns(plan().schema) == (0, 1, 2, 3, 5)


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
        ("grid", "quadratic", 0),
        ("grid", "quadratic", None),
    ],
)
def test_a_plan_that_states_what_cannot_be_is_refused_when_it_is_read(part, name, value) -> None:
    """With a reason, and before anybody takes its first wave for granted."""
    document = plan().to_dict()
    assert name in document[part]
    stated = document[part][name]
    if isinstance(value, dict):
        value = stated | value
    with pytest.raises(BlurfitError):
        Plan.from_dict(document | {part: document[part] | {name: value}})
