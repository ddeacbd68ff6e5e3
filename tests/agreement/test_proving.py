"""What is proved of a submission follows from its agreement, and honest noise is within it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from blurfit import Agreement, InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.agreement.numbers import PROVED_ROUNDING, Proving, _rounded, radii
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import blur
from blurfit.proofs.field import MODULUS
from blurfit.theory.gaussian import delta_of
from support.sharing import SCHEMA, TWO, propose

AGREEMENT = propose(proofs=True, quorum=400)


def test_an_agreement_without_proofs_is_as_it_was() -> None:
    plain = propose(quorum=400)
    assert "proofs" not in plain.to_dict()
    assert plain.fingerprint == Agreement.from_json(plain.to_json()).fingerprint
    assert not plain.parts[0].at_random


def test_an_agreement_with_proofs_can_be_handed_round() -> None:
    again = Agreement.from_json(AGREEMENT.to_json())
    assert again == AGREEMENT
    assert again.to_dict()["proofs"] is True
    again.verify()
    first, second = again.share_layout("masked"), again.share_layout("seed")
    assert (first.width, second.width) == again.proving.widths


def test_two_databases_ask_for_proofs_unless_it_is_said_otherwise() -> None:
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 400}
    usual = Agreement.propose(SCHEMA, **promise, databases=TWO, admission="anyone")
    assert usual.proofs
    assert usual == AGREEMENT
    usual.verify()
    assert Agreement.propose(SCHEMA, **promise, databases=TWO).proofs, "invited people can lie too"
    for terms in ({"databases": TWO, "proofs": False}, {"admission": "anyone"}):
        assert not Agreement.propose(SCHEMA, **promise, **terms).proofs
    plan = Plan.propose(SCHEMA, **promise, waves=2, admission="anyone")
    assert plan.terms.proofs is False
    with pytest.raises(InvalidValueError, match=r"\$\.proofs"):  # a second text of it
        Plan.from_dict(plan.to_dict() | {"proofs": None})
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("wrong", [1, "yes", False, None])
def test_other_values_are_refused(wrong) -> None:
    document = AGREEMENT.to_dict() | {"proofs": wrong}
    with pytest.raises(InvalidValueError):
        Agreement.from_dict(document).verify()


def test_proofs_need_an_epsilon_that_lets_something_be_refused() -> None:
    with pytest.raises(InfeasibleError, match="so large an epsilon"):
        propose(proofs=True, epsilon=700)


def test_the_grid_of_other_agreements_is_refused() -> None:
    """A coarse grid without the noise that pays for it, and the reverse."""
    plain = propose(quorum=400)
    for agreement, other in ((plain, AGREEMENT), (AGREEMENT, plain)):
        with pytest.raises(NotCertifiedError):
            replace(agreement, grid=other.grid).verify()
        with pytest.raises(NotCertifiedError):
            replace(agreement, calibration=other.calibration, grid=other.grid).verify()


@pytest.mark.parametrize("quorum", [3, 100, 5000, 10**6])
def test_rounding_and_discrete_noise_are_paid_for(quorum) -> None:
    agreement = propose(proofs=True, quorum=quorum)
    calibration, step, size = agreement.calibration, agreement.grid.quadratic, agreement.form.size
    reach = agreement.form.reach("replace").sums
    assert calibration.reach.sums == pytest.approx(reach * (1 + PROVED_ROUNDING))
    assert step * size <= reach * PROVED_ROUNDING / 2 * (1 + 1e-12)
    off_the_diagonal = calibration.noise / math.sqrt(2)
    assert step <= off_the_diagonal / 2**4.5 * (1 + 1e-12)
    assert step <= off_the_diagonal * math.sqrt(quorum) / 2**10
    # what discrete noise is worth less, against the half of ξ that rounding does not use
    assert (step / off_the_diagonal) ** 2 / 24 < PROVED_ROUNDING / 2 / 40


@pytest.mark.parametrize("ratio", [2**4.5, 31.7])
@pytest.mark.parametrize("mu", [0.5, 2.0, 8.0])
def test_discrete_noise_on_the_coarsest_grid_keeps_what_normal_noise_would(ratio, mu) -> None:
    """δ(ε) of one submission by the exact probabilities, along one axis and along a diagonal of
    two, with everything that rounding may add, against the promise for normal noise.
    """
    reach = mu * ratio  # in steps: what the noise was calibrated for
    moved = math.floor(reach / (1 + PROVED_ROUNDING) * (1 + PROVED_ROUNDING / 2))
    most = round(12 * ratio) + moved
    law = np.exp(-(np.arange(-most, most + 1) ** 2) / (2 * ratio**2))
    law /= law.sum()

    def delta(epsilon: float, shift: int, axes: int) -> float:
        """With the same shift along each axis, the loss is linear in the sum of the noise."""
        mass = law if axes == 1 else np.convolve(law, law)
        steps = np.arange(-axes * most, axes * most + 1)
        loss = (axes * shift**2 - 2 * shift * steps) / (2 * ratio**2)
        return float((mass * -np.expm1(-np.maximum(loss - epsilon, 0))).sum())

    part = math.floor(moved / math.sqrt(2))
    for epsilon in (0.2 * mu, mu, 2 * mu + mu**2 / 2, 4 * mu + mu**2 / 2):
        promised = delta_of(mu, epsilon)
        assert delta(epsilon, moved, 1) <= promised
        assert delta(epsilon, part, 2) <= promised


def test_the_circuit_takes_every_vector_within_the_radius_and_none_beyond() -> None:
    circuit, (part,) = AGREEMENT.proving.circuit, AGREEMENT.parts
    (radius,) = radii(AGREEMENT)
    reach = math.isqrt(circuit.ceiling)
    assert radius / part.step <= reach <= radius / part.step * (1 + 2**-7)
    for place in range(circuit.length):
        longest = math.floor(reach / math.sqrt(part.counts[place]))
        vector = np.zeros((2, circuit.length), dtype=np.int64)
        vector[:, place] = longest, -longest
        circuit.encode(vector)
        vector[0, place] = longest + 1
        with pytest.raises(InvalidValueError, match="Expected vectors"):
            circuit.encode(vector)
    assert circuit.weights == tuple(part.counts.astype(int))
    assert sum(circuit.weights) * circuit.half**2 < MODULUS
    assert circuit.ceiling < MODULUS


def test_weights_that_are_no_whole_numbers_are_rounded_down_and_hardly() -> None:
    counts = np.array([1.0, 2.0, 0.3, 0.011])
    (part,) = AGREEMENT.parts

    class Uneven:
        parts = (replace(part, counts=counts, deviations=part.deviations[0] / np.sqrt(counts)),)
        epsilon, delta, honest = AGREEMENT.epsilon, AGREEMENT.delta, AGREEMENT.honest
        fingerprint = AGREEMENT.fingerprint

    circuit = Proving.of(Uneven()).circuit
    scale = circuit.weights[0]
    ratios = np.array(circuit.weights) / scale / counts
    assert (ratios <= 1).all()
    assert (ratios > 1 - 2**-8).all()


def test_blurred_records_are_short_and_rounded_without_bias() -> None:
    agreement = propose(proofs=True, quorum=10**6)  # the coarsest grid, against the noise
    count, (part,) = 40_000, agreement.parts
    exact = agreement.exact({"age": np.full(count, 41.7), "income": np.full(count, 13.3)})
    table = blur(agreement, exact)
    steps = table.numbers / part.step
    assert np.array_equal(steps, np.rint(steps))
    agreement.proving.circuit.encode(steps[:200].astype(np.int64))
    error = (table.numbers.mean(axis=0) - exact[0]) / (part.deviations / math.sqrt(count))
    assert np.abs(error).max() < 5  # rounded to the nearest it would be up to 3 more


def test_soundness_is_far_below_what_is_asked_for() -> None:
    assert AGREEMENT.proving.soundness < -76


@pytest.mark.parametrize("reach", [3.7, 1000.3, 87_654.32])
def test_every_computer_proves_with_the_same_ceiling(reach) -> None:
    """Their quantiles differ in the last digits; where that could matter nothing is agreed on."""
    found = _rounded(reach, 1e-6)
    assert reach <= found <= reach * (1 + 2**-7) + 1
    for factor in (1 + 1e-12, 1 - 1e-12):
        assert _rounded(reach * factor, 1e-7) == found
    with pytest.raises(InfeasibleError, match="rounds alike"):
        _rounded(found * (1 - 1e-10), 1e-7)
