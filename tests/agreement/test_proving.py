"""What is proved of a submission follows from its agreement, and honest noise is within it."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import stats

from blurfit import Agreement, InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.agreement.numbers import (
    PROVED_ROUNDING,
    ProofCosts,
    Proving,
    _rounded,
    radii,
    records_worth,
    refusal_probability,
)
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import blur, share
from blurfit.proofs.field import MODULUS
from blurfit.proofs.prio3 import LEADER
from blurfit.theory.gaussian import delta_of
from support.exact import noncentral_tail
from support.sharing import SCHEMA, TWO, propose

AGREEMENT = propose(proofs=True, quorum=400)


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
    with pytest.raises(InfeasibleError, match="so large an epsilon"):
        propose(proofs=True, epsilon=700)


@pytest.mark.parametrize("wrong", [1, "yes", False, None])
def test_other_values_are_refused(wrong) -> None:
    document = AGREEMENT.to_dict() | {"proofs": wrong}
    with pytest.raises(InvalidValueError):
        Agreement.from_dict(document).verify()


def test_the_grid_of_other_agreements_is_refused() -> None:
    """A coarse grid without the noise that pays for it, and the reverse."""
    plain = propose(quorum=400)
    for agreement, other in ((plain, AGREEMENT), (AGREEMENT, plain)):
        with pytest.raises(NotCertifiedError):
            replace(agreement, step=other.step).verify()
        with pytest.raises(NotCertifiedError):
            replace(agreement, calibration=other.calibration, step=other.step).verify()


@pytest.mark.parametrize("quorum", [3, 100, 5000, 10**6])
def test_rounding_and_discrete_noise_are_paid_for(quorum) -> None:
    agreement = propose(proofs=True, quorum=quorum)
    calibration, step, size = agreement.calibration, agreement.step, agreement.form.size
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
    assert AGREEMENT.proving.soundness < -76


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


@pytest.mark.parametrize("reach", [3.7, 1000.3, 87_654.32])
def test_every_computer_proves_with_the_same_ceiling(reach) -> None:
    """Their quantiles differ in the last digits; where that could matter nothing is agreed on."""
    found = _rounded(reach, 1e-6)
    assert reach <= found <= reach * (1 + 2**-7) + 1
    for factor in (1 + 1e-12, 1 - 1e-12):
        assert _rounded(reach * factor, 1e-7) == found
    with pytest.raises(InfeasibleError, match="rounds alike"):
        _rounded(found * (1 - 1e-10), 1e-7)


def test_the_radius_is_that_of_one_database_and_the_steps() -> None:
    (radius,), (part,) = radii(AGREEMENT), AGREEMENT.parts
    gamma = refusal_probability(AGREEMENT)
    scale = AGREEMENT.calibration.noise
    quantile = stats.ncx2.isf(gamma, len(part.counts), (part.bound / scale) ** 2)
    steps = part.step * math.sqrt(part.counts.sum())
    expected = scale * math.sqrt(quantile) + 1.5 * steps
    assert radius == pytest.approx(expected, rel=1e-3)
    assert radius >= expected
    assert 1.5 * steps < 0.05 * radius


@pytest.mark.parametrize("epsilon", [1.0, 300.0, 350.0, 400.0, 600.0])
def test_refusals_cost_no_more_than_their_share_of_delta(epsilon: float) -> None:
    """(1 + e^ε)·nγ ≤ 10⁻⁴·δ, by a closed form of γ: also where it is too small for a library."""
    agreement = Agreement.propose(SCHEMA, epsilon=epsilon, delta=1e-6, quorum=2000)
    refused = mpmath.mpf(0)
    with mpmath.workdps(30):
        for part, radius in zip(agreement.parts, radii(agreement), strict=True):
            scale = mpmath.mpf(part.deviations[0]) * mpmath.sqrt(int(part.counts[0]))
            reach = radius - part.step * math.sqrt(part.counts.sum())
            ratio = (part.bound / scale) ** 2
            refused += noncentral_tail((reach / scale) ** 2, len(part.counts), ratio)
        assert 0 < refused * (1 + mpmath.exp(epsilon)) * 2000 <= 1e-4 * 1e-6


@pytest.mark.parametrize("ratio", [2**4.5, 100.0])
def test_discrete_noise_is_hardly_more_probable_anywhere_than_rounded_normal_noise(ratio) -> None:
    steps = np.arange(-round(30 * ratio), round(30 * ratio) + 1)
    law = np.exp(-(steps**2) / (2 * ratio**2))
    law /= law.sum()
    upper = np.abs(steps) + 0.5  # by the upper tail, which is exact far out
    rounded = stats.norm.sf((upper - 1) / ratio) - stats.norm.sf(upper / ratio)
    assert (law <= rounded * math.exp(1 / (24 * ratio**2)) * (1 + 1e-9)).all()


def test_how_many_records_one_liar_can_stand_for() -> None:
    """Few where the noise is small, many where a single submission is protected."""
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 2000}
    plain = Agreement.propose(SCHEMA, **promise)
    (radius,), (part,) = radii(plain), plain.parts
    assert records_worth(plain) == pytest.approx(radius / part.bound)
    assert 1 < records_worth(plain) < 3
    local = Agreement.propose(SCHEMA, **promise, local_epsilon=1.0, local_delta=1e-6)
    assert records_worth(local) > 20
    two = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))
    blind = Agreement.propose(SCHEMA, **promise, databases=two, proofs=False)
    assert records_worth(blind) == math.inf
    proved = Agreement.propose(SCHEMA, **promise, databases=two)
    assert 1 < records_worth(proved) < 5


def test_bytes_are_those_of_the_messages() -> None:
    found = ProofCosts.of(AGREEMENT)
    shared, prio3 = share(AGREEMENT, {"age": 40, "income": 50}), AGREEMENT.proving.prio3
    assert found.upload == len(shared.first.to_bytes()) > found.without
    halves = prio3.leader_halves(shared.first.words)
    prepared = prio3.prepare(LEADER, halves, shared.first.identifiers, b"k" * 32)
    answer = 32
    assert found.exchanged == 16 + prepared.words().nbytes + answer
    assert found.people == 400
    assert f"{found.upload:,} bytes instead of {found.without:,}" in found.in_words()


@pytest.mark.parametrize(
    ("people", "words"),
    [(1, "about a second"), (10**6, "48 seconds"), (3 * 10**6, "2 minutes"), (10**8, "1 hour ")],
)
def test_the_time_is_said_in_whole_units(people, words) -> None:
    assert words in ProofCosts.of(AGREEMENT, people).in_words()
