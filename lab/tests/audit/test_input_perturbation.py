"""Attacks on the paper's mechanism: what is certified is not broken, and the truth is met."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from blurfit import InfeasibleError
from blurfit.input_perturbation.algorithms import solve
from blurfit.input_perturbation.calibration import PublicInput
from blurfit.input_perturbation.losses import LogisticLoss, SquaredLoss
from blurfit_lab.audit import CONFIDENCE
from blurfit_lab.audit import input_perturbation as module
from blurfit_lab.audit.input_perturbation import audit_public_input, exact_mu, models, pairs


def agree(d: int = 2, loss=None, **terms) -> PublicInput:
    given = {"epsilon": 1.0, "delta": 1e-5, "quorum": 50, "weight_bound": 1.0} | terms
    return PublicInput.agree(loss or SquaredLoss(), dimension=d, **given)


@pytest.mark.parametrize("d", [2, 5])
def test_opposite_records_attain_what_is_promised(d: int) -> None:
    """But for the thousandth that bounds are enlarged by for the grid."""
    public = agree(d)
    found = exact_mu(public, pairs(public)[0])
    assert 0.998 * public.calibration.local.mu < found <= public.calibration.local.mu


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_pairs_are_within_the_bounds_of_the_loss(neighbours) -> None:
    public = agree(3, LogisticLoss(), neighbours=neighbours)
    for pair in pairs(public):
        for q, p in (pair.first, pair.second):
            assert np.linalg.norm(q) <= public.loss.q_bound * (1 + 1e-12)
            assert np.linalg.norm(p) <= public.loss.p_bound * (1 + 1e-12)
        assert neighbours == "replace" or not pair.second.any()


@pytest.mark.statistical
def test_both_ways_of_drawing_the_crowd_agree(monkeypatch) -> None:
    public, record = agree(), np.array([[0.6, -0.8], [0.3, -0.4]])
    seen = []
    for affordable in (1e9, 0):
        monkeypatch.setattr(module, "NUMBERS_AFFORDABLE", affordable)
        generator, pull = np.random.default_rng(1), np.full(2, 0.5)
        drawn = list(module.sums(public, record, pull, 3000, generator))
        gram, moment = (
            np.array([getattr(one, name) for one in drawn]) for name in ("gram", "moment")
        )
        seen.append((*moment.T, gram[:, 0, 0], gram[:, 0, 1], np.linalg.det(gram)))
    for one, other in zip(*seen, strict=True):
        assert ks_2samp(one, other, method="asymp").pvalue > 1e-8


def test_models_are_what_the_database_publishes_and_a_refusal_is_zeros(monkeypatch) -> None:
    public, pair, kept = agree(), pairs(agree())[0], []
    inner = module.sums

    def remember(*arguments):
        kept.extend(inner(*arguments))
        return kept

    monkeypatch.setattr(module, "sums", remember)
    found = models(public, pair.first, pair.pull, 5, np.random.default_rng(1))
    assert (found == [solve(public, one) for one in kept]).all()

    def refuse(*_arguments):
        raise InfeasibleError("no curvature")

    monkeypatch.setattr(module, "solve", refuse)
    assert not models(public, pair.first, pair.pull, 5, np.random.default_rng(1)).any()


@pytest.mark.statistical
def test_submissions_are_audited_within_a_tenth_of_the_truth() -> None:
    found = audit_public_input(agree(), trials=100, confidence=CONFIDENCE)[0]
    assert found.view == "submission"
    assert 0.85 * found.exact < found.gaussian <= found.exact <= found.promised


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(3))
def test_random_certified_public_inputs_are_never_broken(seed: int) -> None:
    """Any dimension, relation and promise; d near n and the quorum met exactly."""
    generator = np.random.default_rng(seed)
    d = int(generator.integers(1, 5))
    public = agree(
        d,
        epsilon=float(np.exp(generator.uniform(-1, 2))),
        delta=float(10 ** generator.uniform(-6, -1.5)),
        quorum=d + 30 + int(generator.integers(0, 3) ** 5),
        neighbours=("replace", "zero-out")[int(generator.integers(2))],
        weight_bound=float(generator.uniform(0.5, 3)),
    )
    for one in audit_public_input(public, trials=200, confidence=0.9999, seed=seed):
        assert one.audited <= one.promised, one


def test_d_near_n_and_the_quorum_met_exactly() -> None:
    """Three columns and no more people than the proof needs for weights on a grid."""
    for quorum in range(4, 60):
        try:
            public = agree(3, quorum=quorum, delta=0.01)
        except InfeasibleError:
            continue
        break
    assert public.calibration.quorum < 50
    for one in audit_public_input(public, trials=200, confidence=0.9999):
        assert not one.broken, one
