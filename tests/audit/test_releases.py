"""What attackers see is what contributors send and databases sum, by whichever way it is drawn."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from blurfit import Agreement, InfeasibleError, Numeric, Schema, learn
from blurfit.audit import agreements as module
from blurfit.audit.agreements import Crowd, models, noise_scales, submissions, sums
from blurfit.learning.sums import Totals

SCHEMA = Schema([Numeric("a", -1, 1), Numeric("b", -1, 1)], Numeric("y", -1, 1), intercept=False)
ANSWERS = {"a": 0.6, "b": -0.8, "y": 0.5}
MECHANISMS = pytest.mark.parametrize("mechanism", ["moment", "input"])


def agreement(mechanism, quorum: int = 12) -> Agreement:
    bound = {"weight_bound": 1.0} if mechanism == "input" else {}
    return Agreement.propose(
        SCHEMA, epsilon=1, delta=1e-5, quorum=quorum, mechanism=mechanism, **bound
    )


def still(made: Agreement, honest: int = 11) -> Crowd:
    return Crowd(honest, np.zeros(made.width))


@MECHANISMS
def test_submissions_are_the_record_and_noise_of_the_stated_scale(mechanism) -> None:
    made = agreement(mechanism)
    record = made.exact(ANSWERS)
    seen = (submissions(made, record, 20_000) - record) / noise_scales(made)
    assert np.abs(seen.mean(axis=0)).max() < 7 / np.sqrt(20_000)
    assert seen.std(axis=0) == pytest.approx(1, abs=0.04)


@pytest.mark.statistical
@MECHANISMS
def test_both_ways_of_drawing_the_crowd_agree(mechanism, monkeypatch) -> None:
    made = agreement(mechanism)
    crowd, record = Crowd(11, np.full(made.width, 0.5)), made.exact(ANSWERS)
    seen = []
    for affordable in (1e9, 0):
        monkeypatch.setattr(module, "NUMBERS_AFFORDABLE", affordable)
        found = sums(made, record, crowd, 3000, np.random.default_rng(1))
        seen.append((*found.T, found.sum(axis=1), found[:, 0] * found[:, 2] - found[:, 1] ** 2))
    for one, other in zip(*seen, strict=True):
        assert ks_2samp(one, other, method="asymp").pvalue > 1e-8


@pytest.mark.parametrize("affordable", [1e9, 0])
def test_sums_are_multiples_of_the_grid(affordable: float, monkeypatch) -> None:
    monkeypatch.setattr(module, "NUMBERS_AFFORDABLE", affordable)
    made = agreement("moment")
    seen = sums(made, made.exact(ANSWERS), still(made), 50, np.random.default_rng(1))
    assert not (seen % made.grid.quadratic).any()


@pytest.mark.parametrize(("mechanism", "quorum"), [("moment", 4000), ("input", 12)])
def test_models_are_what_the_database_publishes(mechanism, quorum: int, monkeypatch) -> None:
    """For `moment`, where it publishes the reading of linear Bayes."""
    made = agreement(mechanism, quorum)
    kept = {}
    inner = module.sums

    def remember(*arguments):
        kept["sums"] = inner(*arguments)
        return kept["sums"]

    monkeypatch.setattr(module, "sums", remember)
    crowd = still(made, quorum - 1)
    found = models(made, made.exact(ANSWERS), crowd, 10, np.random.default_rng(1))
    for weights, one in zip(found, kept["sums"], strict=True):
        model = learn(made, Totals(quorum, one, made.fingerprint))
        assert (weights == model.weights.ravel()).all()


def test_a_refusal_is_told_by_zeros(monkeypatch) -> None:
    made = agreement("input")

    def refuse(*_arguments, **_named):
        raise InfeasibleError("no curvature")

    monkeypatch.setattr(module, "weights_of", refuse)
    found = models(made, made.exact(ANSWERS), still(made), 5, np.random.default_rng(1))
    assert not found.any()
