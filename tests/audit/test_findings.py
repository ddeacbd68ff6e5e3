"""The audit's teeth: what is broken is caught, what is certified is not, what is known is met."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from blurfit import Agreement, InfeasibleError, InvalidValueError, Numeric, Schema
from blurfit.audit import CONFIDENCE, agreements
from blurfit.audit import agreements as module
from blurfit.audit.agreements import audit, audit_agreement, collection_pairs
from blurfit.audit.examination import examine
from blurfit.estimators import InputPerturbationRegressor
from blurfit.theory.gaussian import epsilon_of
from support.broken import louder

TARGET = Numeric("y", -1, 1)


def schema(columns: int) -> Schema:
    return Schema([Numeric(f"x{i}", -1, 1) for i in range(columns)], TARGET, intercept=False)


def propose(columns: int = 2, **terms) -> Agreement:
    given = {"epsilon": 1.0, "delta": 1e-5, "quorum": 20} | terms
    if given.get("mechanism", "moment") == "moment":
        given.pop("weight_bound", None)
    return Agreement.propose(schema(columns), **given)


def sums_of(agreement: Agreement, pair):
    generator = np.random.default_rng(0)

    def draw(which: bool, count: int) -> np.ndarray:
        record = pair.second if which else pair.first
        return agreements.sums(agreement, record, pair.crowd, count, generator)

    return draw


# -- what is known exactly is met ------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    "terms",
    [
        {"mechanism": "moment", "quorum": 20},
        {"mechanism": "moment", "quorum": 500, "local_epsilon": 4.0, "local_delta": 1e-6},
        {"mechanism": "input", "quorum": 50, "weight_bound": 1.0},
    ],
)
def test_submissions_are_audited_within_a_tenth_of_the_truth(terms) -> None:
    """What is found is 0.96 of the truth, with a deviation of less than 0.01 over streams."""
    attacks = module._attacks(propose(**terms), 2000, np.random.default_rng(0), liars=False)
    found = next(attacks)(confidence=CONFIDENCE)
    assert found.view == "submission"
    assert found.exact is not None
    assert found.gaussian is not None
    assert 0.9 * found.exact < found.gaussian <= found.exact <= found.promised


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "trials"), [(2.0, 300_000), (4.0, 100_000)])
def test_moments_sums_are_audited_within_a_tenth_of_the_truth(epsilon: float, trials: int) -> None:
    """Every record of every collection is blurred by the contributor's own code.

    What is found is 0.95 of the truth, with a deviation of less than 0.01 over streams of noise.
    """
    agreement = propose(1, epsilon=epsilon, quorum=4, delta=1e-6)
    pair = collection_pairs(agreement)[0]
    known = module.along((pair.first - pair.second) / agreements.noise_scales(agreement) ** 2)
    draw = sums_of(agreement, pair)
    found = examine(
        draw,
        trials=trials,
        confidence=0.9999,
        promise=(agreement.epsilon, agreement.delta),
        labels=("sums", pair.name),
        gaussian=agreement.delta,
        attacks={"known direction": known},
    )
    exact = epsilon_of(module.exact_mu(agreement, pair), agreement.delta)
    assert found.gaussian is not None
    assert 0.9 * exact < found.gaussian <= exact


# -- what is certified is not broken ---------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(6))
def test_random_certified_agreements_are_never_broken(seed: int, monkeypatch) -> None:
    """Any mechanism, dimension, relation and promise; d near n and the quorum met exactly.

    Of ten thousand submissions and sums, noise that is smaller by a third would be seen. Models
    are the only release of `input`; those of `moment` are made of the sums, so that few will do.
    """
    generator = np.random.default_rng(seed)
    mechanism = ("moment", "input")[seed % 2]
    columns = int(generator.integers(1, 5))
    least = columns + 30 if mechanism == "input" else 1
    terms = {
        "mechanism": mechanism,
        "epsilon": float(np.exp(generator.uniform(-1, 2))),
        "delta": float(10 ** generator.uniform(-6, -1.5)),
        "quorum": least + int(generator.integers(0, 3) ** 5),
        "neighbours": ("replace", "zero-out")[int(generator.integers(2))],
        "weight_bound": float(generator.uniform(0.5, 3)),
    }
    if generator.random() < 0.3:
        terms |= {"local_epsilon": 8.0, "local_delta": 1e-5}
    agreement = propose(columns, **terms)
    trials = 200 if mechanism == "input" else 100
    monkeypatch.setattr(module, "CHEAP", 10_000 // trials)
    told: list[tuple[int, int]] = []
    asked = {"trials": trials, "confidence": 0.9999, "seed": seed}
    findings = audit_agreement(agreement, **asked, progress=lambda *one: told.append(one))
    assert told == [(k, len(findings)) for k in range(1, len(findings) + 1)]
    for one in findings:
        assert one.audited <= one.promised, one
        assert not one.broken
        if one.exact is not None:
            assert one.audited <= one.exact


def test_d_near_n_and_the_quorum_met_exactly() -> None:
    """Objective: three columns and no more people than the proof needs for weights on a grid."""
    for quorum in range(4, 60):
        try:
            agreement = propose(3, mechanism="input", quorum=quorum, weight_bound=1.0, delta=0.01)
        except InfeasibleError:
            continue
        break
    assert agreement.quorum < 50
    for one in audit_agreement(agreement, trials=200, confidence=0.9999):
        assert not one.broken, one


# -- what is broken is caught ----------------------------------------------------------------------


@pytest.mark.statistical
def test_noise_over_four_is_caught_in_submissions_sums_and_models() -> None:
    found = audit_agreement(louder(propose(quorum=4), 0.25), trials=400)
    caught = {one.view for one in found if one.broken}
    assert caught == {"submission", "sums", "model"}


# -- any release, through a function ---------------------------------------------------------------


def neighbouring_tables() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    X, y = np.zeros((20, 1)), np.zeros(20)
    X[0], y[0] = 1.0, 1.0
    other = y.copy()
    other[0] = -1.0
    return (X, y), (X, other)


@pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")
def test_an_estimator_is_audited_through_its_public_interface() -> None:
    first, second = neighbouring_tables()

    def private(table, generator: np.random.Generator):
        model = InputPerturbationRegressor(
            epsilon=1.0,
            delta=1e-5,
            bounds=(-1, 1),
            target_bounds=(-1, 1),
            fit_intercept=False,
            random_state=generator,
        )
        return model.fit(*table).coef_

    def naked(table, generator: np.random.Generator):
        return LinearRegression(fit_intercept=False).fit(*table).coef_ + generator.normal(0, 0.01)

    promise = {"epsilon": 1.0, "delta": 1e-5, "trials": 120}
    assert not audit(private, first, second, **promise).broken
    found = audit(naked, first, second, name="naked", **promise)
    assert found.broken
    assert found.view == "naked"
    assert found.to_dict()["broken"] is True


def test_the_same_seed_gives_the_same_finding() -> None:
    def release(dataset: float, generator: np.random.Generator) -> list[float]:
        return [dataset + generator.normal()]

    one, other = (
        audit(release, 0.0, 1.0, epsilon=1, delta=1e-5, trials=500, seed=9) for _ in range(2)
    )
    assert one == other
    assert math.isfinite(one.ratio)


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidValueError, match="trials=50"):
        audit(lambda d, g: [0.0], 0, 1, epsilon=1, delta=0.1, trials=50)
    with pytest.raises(InvalidValueError, match="confidence=1"):
        audit(lambda d, g: [0.0], 0, 1, epsilon=1, delta=0.1, confidence=1)
