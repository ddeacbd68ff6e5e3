"""Later waves in the page: the map and its noise are Python's, and no map makes it more lenient."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from blurfit import Agreement, Bands, BlurfitError, Curve
from blurfit.agreement.mechanisms import Wave, kept_columns
from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import Terms
from blurfit.model.course import follows, learn_plan
from blurfit.model.release import PublishedMoments
from blurfit.schema.schema import Schema
from blurfit.theory.maps import (
    LogisticNewton,
    NewtonMap,
    PoissonNewton,
    ResidualMap,
    WaveMap,
    Whitening,
    logistic_sensitivity,
)
from support.contracts import mutations, on_grid, records, steps, table_of
from support.fair import DEVIATIONS
from support.plans import FEATURES, TARGETS, plan, releases

DATABASES = [("Office", "https://first.example"), ("University", "https://second.example")]


def hostile(schema: Schema, kind: str) -> WaveMap:
    """A map at the edge of what is allowed: huge and tiny numbers, far from any record."""
    size = len(kept_columns(schema))
    generator = np.random.default_rng(3)
    matrix = np.tril(
        generator.normal(size=(size, size)) * 10.0 ** generator.integers(-12, 12, size)
    )
    np.fill_diagonal(matrix, 10.0 ** generator.uniform(-300, 12, size))
    white = Whitening(generator.normal(size=size) * 1e5, matrix, generator.normal(size=size) * 2e5)
    if kind == "residual":
        return ResidualMap(white, 1000.0, 1e-6, 0.01, 1.0, 0.01, 0.99, robust=True)
    if kind == "logistic":
        return NewtonMap(white, LogisticNewton(5.2), 0.01, 1000.0)
    return NewtonMap(white, PoissonNewton(12.0, 1800.0, 5900.0, 3.25), 100.0, 1.0, robust=True)


def wave(schema: Schema, chart: WaveMap, **choices: Any) -> Agreement:
    """The second wave of some plan."""
    terms = Terms.of(**({"epsilon": 1, "delta": 1e-6, "quorum": 3000} | choices))
    return Agreement.propose_wave(
        schema, terms, Wave("a1" * 32, 2, (1500, 3500), ("b2" * 32,), chart)
    )


@pytest.fixture(scope="module")
def agreements() -> dict[str, Agreement]:
    """All later waves of three plans, and maps that nobody would announce."""
    found = {}
    for task in TARGETS:
        chosen = plan(task, waves="auto" if task == "number" else 3, quorum=60_000)
        for release in releases(chosen)[1:]:
            one = release.agreement
            found[f"{task} {one.wave.number}"] = one
    for task, kind in (("number", "residual"), ("label", "logistic"), ("count", "poisson")):
        schema = Schema(FEATURES, TARGETS[task])
        found[f"hostile {kind}"] = wave(schema, hostile(schema, kind), neighbours="zero-out")
        found[f"shared {kind}"] = wave(schema, hostile(schema, kind), databases=DATABASES)
    bent = Schema(
        [Curve("age", knots=[18, 33.3, 80]), *FEATURES[1:], Bands("income", edges=[1e4])],
        TARGETS["number"],
        sources=FEATURES[:1],
    )
    found["derived"] = wave(bent, hostile(bent, "residual"))
    return found


def test_the_page_computes_the_same_promise_for_every_map(run, agreements) -> None:
    body = """
        return Promise.all(given.map(async (text) => {
          const agreement = JSON.parse(text);
          const mu = await verify.verify(agreement, agreement.fingerprint);
          const reach = ["replace", "zero-out"].map((one) => forms.formOf(agreement).reach(one));
          return [mu, reach, words.agreementInWords(agreement, mu).length];
        }));"""
    given = list(agreements.values())
    answers = run("verify forms words", body, [one.to_json() for one in given])
    for (mu, reach, _), agreement in zip(answers, given, strict=True):
        stated = agreement.calibration.local.mu
        assert mu < stated < mu * (1 + 2**-24)
        expected = [agreement.form.reach(one).sums for one in ("replace", "zero-out")]
        assert reach == pytest.approx(expected, rel=1e-13)


def test_logistic_reach_for_any_balance(run) -> None:
    """Up to τ* and beyond, where two cubics decide."""
    balances = [1.0, 2.5, 2.83, 4.96, 4.9679, 4.968, 5.2, 5.452, 6.0, 8.0, 30.0, 1e3, 1e6]
    body = """return given.map((one) =>
        [false, true].flatMap((robust) => ["replace", "zero-out"].map((relation) =>
          waveform.logisticSensitivity(robust ? Math.min(one, 4.5) : one, relation, robust))));"""
    expected = [
        [
            logistic_sensitivity(min(one, 4.5) if robust else one, relation, robust=robust)
            for robust in (False, True)
            for relation in ("replace", "zero-out")
        ]
        for one in balances
    ]
    assert np.allclose(run("waveform", body, balances), expected, rtol=1e-12, atol=0)


def test_what_is_blurred_is_pythons_to_the_last_bit(run, agreements) -> None:
    """On the grid, from which it leaves; before, sums may round differently in their last bits."""
    body = """
        const agreement = JSON.parse(given.agreement);
        await verify.verify(agreement, agreement.fingerprint);
        const blurred = given.records.map((one) =>
          [perturb.exactly(agreement)(one), perturb.onGrid(agreement, one)]);
        return [blurred, grid.noiseFor(agreement)];"""
    for name, agreement in agreements.items():
        given = records(agreement.schema, 60)
        asked = {"agreement": agreement.to_json(), "records": given}
        answers, shown = run("verify perturb grid", body, asked)
        (part,) = agreement.parts
        assert shown["deviations"] == pytest.approx(part.deviations.tolist(), rel=1e-15)
        assert (shown["step"], len(shown["deviations"])) == (part.step, agreement.width)
        assert shown["bound"] == pytest.approx(part.bound, rel=1e-13)
        exact, whole = map(list, zip(*answers, strict=True))
        bound, table = agreement.form.bound, table_of(given)
        assert np.allclose(exact, agreement.exact(table), rtol=1e-9, atol=1e-12 * bound), name
        assert whole == (on_grid(agreement, table) / steps(agreement)).tolist(), name
        assert whole[0] == (on_grid(agreement, given[0]) / steps(agreement)).tolist(), name
        norms = np.sqrt(np.square(exact) @ agreement.form.counts)
        assert norms.max() <= bound * (1 + 1e-12), name


def test_the_map_is_total(run, agreements) -> None:
    """What is not a number is mapped too: nothing is thrown, and the ball is kept."""
    strange = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 0.0, 1.0]
    body = """
        const agreement = JSON.parse(given.agreement);
        await verify.verify(agreement, agreement.fingerprint);
        const number = (text) => ({ nan: NaN, inf: Infinity, "-inf": -Infinity })[text] ?? +text;
        return given.rows.map((row) => forms.formOf(agreement).products(row.map(number)));"""
    generator = np.random.default_rng(5)
    for name, agreement in agreements.items():
        rows = generator.choice(strange, (40, len(agreement.form.columns)))
        given = {
            "agreement": agreement.to_json(),
            "rows": [[repr(float(x)) for x in row] for row in rows],
        }
        found = np.array(run("verify forms", body, given))
        assert np.isfinite(found).all(), name
        norms = np.sqrt(np.square(found) @ agreement.form.counts)
        assert norms.max() <= agreement.form.bound * (1 + 1e-12), name


def test_what_the_page_accepts_of_waves_python_accepts(verdicts, agreements) -> None:
    """Mutated contracts of later waves: the page is never the more lenient of the two."""
    given: list[dict[str, Any]] = []
    for name in ("number 2", "label 3", "count 3", "hostile logistic", "shared poisson"):
        given += mutations(agreements[name], 100)
    answers = verdicts(given)
    assert set(answers) <= {"accepted", "refused"}
    accepted = [one for one, verdict in zip(given, answers, strict=True) if verdict == "accepted"]
    for document in accepted:
        Agreement.from_dict(document).verify()
    print(f"waves: {len(accepted)} of {len(given)} accepted")
    assert 20 < len(accepted) < 400  # many numbers of a map may be any


def test_forged_waves_are_refused_by_both(verdicts, agreements) -> None:
    forged = []

    def forge(name: str, change: Any) -> None:
        document = agreements[name].to_dict()
        change(document)
        with pytest.raises(BlurfitError):
            Agreement.from_dict(document).verify()
        forged.append(document)

    def less_noise(document: dict[str, Any]) -> None:
        fields = document["calibration"]
        fields["sigma"] *= 1 - 1e-6
        fields["mu"] /= 1 - 1e-6

    for name in agreements:
        forge(name, less_noise)
        forge(name, lambda one: one["calibration"]["reach"].update(sums=0.01))
        forge(name, lambda one: one["wave"].update(follows=[]))
        forge(name, lambda one: one["wave"].update(map=None))
        forge(name, lambda one: one["wave"].update(number=1))
        forge(name, lambda one: one["wave"]["map"]["mean"].append(0.0))
        forge(name, lambda one: one["wave"]["map"]["whitening"][0].__setitem__(0, 0.0))
        forge(name, lambda one: one["wave"]["map"]["whitening"][1].append(0.0))
        forge(name, lambda one: one["wave"]["map"].update(surprise=1))
    forge("number 2", lambda one: one["wave"]["map"].update(weights=[0.25, 0.9, 0.6]))
    forge("number 2", lambda one: one["wave"]["map"].update(weights=[0.26, 0.8, 0.6]))
    forge("label 3", lambda one: one["wave"]["map"].update(balance=4.0))
    forge("label 3", lambda one: one["wave"]["map"].update(balance=0.9))
    forge("count 3", lambda one: one["wave"]["map"].update(count_bound=11.0))
    forge("count 3", lambda one: one["wave"]["map"].update(gradient_bound=1e6))
    forge("count 3", lambda one: one["wave"]["map"].update(curvature_bound=-1.0))
    for name in ("label 3", "count 3"):
        forge(name, lambda one: one["wave"]["map"].update(radius=0.9))
        forge(name, lambda one: one["wave"]["map"].update(robust=1))
    forge("label 3", lambda one: one["wave"]["map"].update(balance=4.6))
    assert set(verdicts(forged)) == {"refused"}


@pytest.mark.statistical
def test_noise_of_a_newton_wave_is_larger_on_its_slopes(run, agreements) -> None:
    """2,000 times the same record: mean and deviation of each number, 10⁻⁸ for a false alarm."""
    agreement = agreements["label 3"]
    record = records(agreement.schema, 1)[0]
    body = """
        const agreement = JSON.parse(given.agreement);
        await verify.verify(agreement, agreement.fingerprint);
        return Array.from({length: 2000},
          () => perturb.perturb(agreement, given.record).numbers);"""
    given = {"agreement": agreement.to_json(), "record": record}
    drawn = np.array(run("verify perturb", body, given))
    (part,) = agreement.parts
    found = (drawn - on_grid(agreement, record)) / part.deviations
    assert np.abs(found.mean(axis=0)).max() < DEVIATIONS / math.sqrt(2000)
    assert np.abs(found.var(axis=0) - 1).max() < DEVIATIONS * math.sqrt(2 / 2000)
    slope = agreement.form.names.index("slope·1")
    assert part.deviations[slope] == pytest.approx(4.5 * part.deviations[0])
    assert part.deviations[-1] == part.deviations[0]


FOLLOWS = """
    return Promise.all(given.map(async ({ plan: text, releases, agreement }) => {
      try {
        const wave = JSON.parse(agreement);
        await verify.verify(wave, wave.fingerprint);
        await waves.follows(JSON.parse(text), releases, wave);
        return "follows";
      } catch (error) { return error instanceof verify.NotCertified ? "refused" : error.stack; }
    }));"""


def given_to(chosen: Plan, before: Sequence[PublishedMoments], agreement: Agreement) -> dict:
    texts = [one.to_json() for one in before]
    return {"plan": chosen.to_json(), "releases": texts, "agreement": agreement.to_json()}


def planned(task: str) -> tuple[Plan, tuple[PublishedMoments, ...]]:
    chosen = plan(task, waves="auto" if task == "number" else 3, quorum=60_000)
    return chosen, releases(chosen)


@pytest.mark.parametrize("task", list(TARGETS))
def test_every_wave_follows_and_its_map_is_taken_as_announced(run, task) -> None:
    """From the plan and the releases' own texts; another map is another map, and no less safe."""
    chosen, found = planned(task)
    body = """
        const agreement = JSON.parse(given.agreement);
        await verify.verify(agreement, agreement.fingerprint);
        return waves.follows(JSON.parse(given.plan), given.releases, agreement);"""
    for place in range(len(chosen)):
        agreement = found[place].agreement
        told = run("verify waves", body, given_to(chosen, found[:place], agreement))
        maps = [one.agreement.wave.chart.to_dict() for one in found[1 : place + 1]]
        assert told == maps
    chart, marks = agreement.wave.chart, agreement.wave.follows
    nudged = replace(chart.whitening, mean=chart.whitening.mean * 1.01)
    other = chosen.following(marks, replace(chart, whitening=nudged))
    follows(chosen, found[:place], other)
    assert run("verify waves", FOLLOWS, [given_to(chosen, found[:place], other)]) == ["follows"]


def test_a_wave_that_does_not_follow_is_refused(run) -> None:
    """By the page as by `follows`: another kind, release, order, quorum, promise or noise."""
    chosen, found = planned("label")
    first, second, third = found
    agreement = third.agreement
    chart = agreement.wave.chart
    lesser = second.agreement.wave.chart
    forged = [
        chosen.following(agreement.wave.follows[::-1], chart),
        chosen.following(agreement.wave.follows, replace(lesser, radius=2.0)),
        Agreement.propose_wave(
            chosen.schema,
            msgspec.structs.replace(chosen.terms, quorum=chosen.quorums[2] - 1),
            agreement.wave,
        ),
        Agreement.propose_wave(
            chosen.schema,
            msgspec.structs.replace(chosen.terms, quorum=chosen.quorums[2], epsilon=2.0),
            agreement.wave,
        ),
        Agreement.propose_wave(
            chosen.schema,
            msgspec.structs.replace(
                chosen.terms, quorum=chosen.quorums[2], local_epsilon=0.5, local_delta=1e-6
            ),
            agreement.wave,
        ),
        Agreement.propose_wave(
            chosen.schema,
            msgspec.structs.replace(chosen.terms, quorum=chosen.quorums[2], admission="anyone"),
            agreement.wave,
        ),
    ]
    given = [given_to(chosen, (first, second), agreement)]
    for one in forged:
        with pytest.raises(BlurfitError):
            follows(chosen, [first, second], one)
        given.append(given_to(chosen, (first, second), one))
    given += [
        given_to(chosen, (first,), agreement),
        given_to(chosen, (first, first), agreement),
        given_to(chosen, (), agreement),
        given_to(plan("label", waves=3, quorum=50_000), (first, second), agreement),
    ]
    changed = given_to(chosen, (first, second), agreement)
    changed["releases"][1] = changed["releases"][1].replace('"count": ', '"count": 1')
    given.append(changed)
    verdicts = run("verify waves", FOLLOWS, given)
    assert verdicts == ["follows"] + ["refused"] * (len(given) - 1)


@pytest.mark.parametrize("task", list(TARGETS))
def test_models_of_waves_predict_as_python_does(run, task) -> None:
    chosen, found = planned(task)
    model = learn_plan(chosen, found)
    given = records(chosen.schema, 20)
    body = """
        const model = JSON.parse(given.model);
        return given.records.map((one) => published.predict(model, one));"""
    answers = run("published", body, {"model": model.to_json(), "records": given})
    for record, answer in zip(given, answers, strict=True):
        ((what, value),) = answer.items()
        expected = model.predict_proba(record)[1] if what == "likely" else model.predict(record)
        assert value == pytest.approx(float(expected), rel=1e-9)
    assert {"number": "number", "label": "likely", "count": "number"}[task] == what
    words = run(
        "published",
        "return published.qualityOf(...given);",
        [json.loads(model.to_json()), model.target],
    )
    assert (words is None) == (task != "number")  # a share is told of lines alone
    if words is not None:
        assert f"R² = {model.inference[0].r_squared:.3f}" in words["facts"][0][1]
