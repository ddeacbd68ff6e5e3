"""What really runs against the reference of the paper's algorithms, by hand and in law."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import ks_2samp, kstest, laplace

from blurfit import (
    BelowQuorumError,
    InfeasibleError,
    InvalidValueError,
    LocalGuarantee,
    NotCertifiedError,
)
from blurfit.input_perturbation import algorithm_1, algorithm_2
from blurfit.input_perturbation.algorithms import (
    Sampler,
    Sums,
    add_up,
    blur_record,
    blur_sums,
    require_room,
    solve,
)
from blurfit.input_perturbation.calibration import PublicInput
from blurfit.input_perturbation.gradient_delta import least_sigma_b
from blurfit.input_perturbation.losses import LogisticLoss, SquaredLoss
from blurfit.input_perturbation.theorem import (
    DeltaShares,
    Scales,
    curvature_loss,
    fixed_sensitivity,
    input_excess_risk,
    local_mu,
)
from blurfit.theory.gaussian import epsilon_of

TRIALS = 3000


def agree(d: int = 3, loss=None, **terms) -> PublicInput:
    given = {"epsilon": 1.0, "delta": 1e-6, "quorum": 300, "weight_bound": 2.0} | terms
    return PublicInput.agree(loss or SquaredLoss(), dimension=d, **given)


def people(count: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (count, d)) / math.sqrt(d)
    return x, np.clip(x @ np.linspace(-1, 1, d) + generator.normal(0, 0.1, count), -1, 1)


# ---- the reference
@pytest.mark.parametrize("rule", ["published", "certified"])
@pytest.mark.parametrize("bound", [0.05, 5.0])
def test_algorithm_2_is_what_runs(rule: str, bound: float) -> None:
    """On the sphere and inside, up to the weights' last noise: some b, of 2⁻²⁰η."""
    public = agree(rule=rule, weight_bound=bound, quorum=4000, epsilon=8.0)
    q, p = blur_record(public, *people(4000), allow_unproved=True)
    expected = algorithm_2(q, p, delta_in=public.calibration.ridge, eta=bound)
    w = solve(public, add_up(public, q, p))
    assert np.abs(w - expected).max() < 40 * public.weight_scale(4000)
    assert (np.linalg.norm(expected) > 0.999 * bound) == (bound < 1)


@pytest.mark.statistical
@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()], ids=["squared", "logistic"])
def test_algorithm_1_is_what_runs(loss) -> None:
    """The same law for q̃ and p̃ of one record, number by number and together."""
    public = agree(loss=loss)
    x, y = np.array([0.6, 0.0, -0.8]), 1.0
    q, p, _ = loss.terms(x, y)
    noise, generator = public.calibration, np.random.default_rng(1)
    real = np.hstack(blur_record(public, np.tile(x, (TRIALS, 1)), np.full(TRIALS, y)))
    scales = {"n": 300, "sigma_u": noise.sigma_u, "sigma_b": noise.sigma_b}
    tables = np.tile(q, (TRIALS, 1)), np.tile(p, (TRIALS, 1))
    plain = np.hstack(algorithm_1(*tables, **scales, generator=generator))
    for one, other in zip((*real.T, real.sum(axis=1)), (*plain.T, plain.sum(axis=1)), strict=True):
        assert ks_2samp(one, other, method="asymp").pvalue > 1e-7
    standard = (real - np.append(q, p)) / np.repeat([noise.q_noise, noise.p_noise], 3)
    assert kstest(standard.ravel(), "norm").pvalue > 1e-7


def test_the_reference_needs_some_twenty_lines() -> None:
    """And no module but NumPy's and Python's."""
    import inspect

    for one in (algorithm_1, algorithm_2):
        assert len(inspect.getsource(one).splitlines()) <= 20


# ---- Algorithm 1
def test_submissions_lie_on_the_public_grid_and_no_record_outside_is_blurred() -> None:
    public = agree()
    q, p = blur_record(public, *people(50))
    assert not (q % public.grid.q).any()
    assert not (p % public.grid.dither).any()
    assert (p % public.grid.p).any()  # dithered within the step of the noise
    single = blur_record(public, [0.6, 0.0, -0.8], 0.5)
    assert [one.shape for one in single] == [(3,), (3,)]
    with pytest.raises(InvalidValueError, match="Row 0 has features whose norm"):
        blur_record(public, [3.0, 0.0, 0.0], 0.5)


def test_an_unproved_rule_and_too_little_noise_are_refused_before_the_record_is_read() -> None:
    with pytest.raises(NotCertifiedError, match="must be 'certified', got 'published'"):
        blur_record(agree(rule="published"), object(), object())
    small = PublicInput(SquaredLoss(2.0), agree().calibration)
    with pytest.raises(NotCertifiedError, match="`q_bound` must be at least"):
        blur_record(small, object(), object())


def test_what_rounding_costs_is_taken_off_the_promise() -> None:
    public = agree(epsilon=1.0, delta=1e-6)
    assert (public.epsilon, public.delta) == (1.0, 1e-6)
    assert public.calibration.model.epsilon == 1 - 2**-10
    assert public.calibration.model.delta == pytest.approx(0.999e-6)
    assert public.calibration.setting.q_bound >= 1 + 2**-11
    for step in public.grid:
        assert math.frexp(step)[0] == 0.5
    assert public.grid.q <= public.calibration.q_noise * 2**-13
    flat = replace(agree(quorum=8).calibration, ridge=0.0)
    with pytest.raises(InfeasibleError, match="`quorum` must be larger, got 8"):
        PublicInput(SquaredLoss(), flat).require_drawable()


# ---- Algorithm 2, step 2
def test_sums_are_exact_in_any_order_and_rounded_once() -> None:
    from fractions import Fraction

    public = agree()
    q, p = blur_record(public, *people(40))
    found = add_up(public, q, p)
    for i in range(3):
        c = sum(Fraction(one) for one in p[:, i].tolist())
        assert found.moment[i] == float(c)
        for j in range(3):
            pairs = zip(q[:, i].tolist(), q[:, j].tolist(), strict=True)
            exact = float(sum(Fraction(a) * Fraction(b) for a, b in pairs))
            assert found.gram[i, j] == pytest.approx(exact, rel=2**-52)
    order = np.random.default_rng(0).permutation(40)
    again = add_up(public, q[order], p[order])
    assert (again.gram == found.gram).all()
    assert (again.moment == found.moment).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [("q", 1e9), ("p", 1e9), ("q", np.nan), ("p", np.inf), ("q", None), ("p", None)],
)
def test_what_no_honest_contributor_sends_is_refused(name: str, value: float | None) -> None:
    public = agree()
    sent = dict(zip("qp", blur_record(public, *people(5)), strict=True))
    step = {"q": public.grid.q, "p": public.grid.dither}[name]
    sent[name][3, 1] = sent[name][3, 1] + step / 2 if value is None else value
    with pytest.raises(InvalidValueError, match=f"`{name}` of submission 3 must be a multiple"):
        add_up(public, **sent)
    with pytest.raises(InvalidValueError, match="must have shape"):
        add_up(public, np.zeros((5, 2)), np.zeros((5, 2)))


@pytest.mark.statistical
@pytest.mark.parametrize(("count", "d"), [(40, 4), (7, 4), (12, 6), (1, 1)])
def test_blurred_sums_have_the_law_of_blurred_records(count: int, d: int) -> None:
    public = agree(d, quorum=300)
    noise, generator = public.calibration, np.random.default_rng(5)
    x, y = people(count, d)
    q, p, _ = public.loss.terms(x, y)
    sampler = Sampler.of(
        Sums(count, q.T @ q, p.sum(axis=0)), q_noise=noise.q_noise, p_noise=noise.p_noise
    )
    drawn = [sampler.draw(generator) for _ in range(TRIALS)]
    sent = blur_record(public, np.tile(x, (TRIALS, 1)), np.tile(y, TRIALS))
    rows, targets = (one.reshape(TRIALS, count, d) for one in sent)
    gram = np.swapaxes(rows, 1, 2) @ rows
    for one, other in (
        (gram[:, 0, 0], [s.gram[0, 0] for s in drawn]),
        (gram[:, 0, -1], [s.gram[0, -1] for s in drawn]),
        (np.linalg.eigvalsh(gram)[:, -1], [np.linalg.eigvalsh(s.gram)[-1] for s in drawn]),
        (targets.sum(axis=1)[:, 0], [s.moment[0] for s in drawn]),
    ):
        assert ks_2samp(one, np.array(other), method="asymp").pvalue > 1e-7


def test_blurred_sums_are_drawn_anew_and_experiments_from_a_seed() -> None:
    public = agree()
    x, y = people(300)
    clean = Sums(300, x.T @ x, y @ x)
    one, other = (blur_sums(public, clean) for _ in range(2))
    assert (one.gram != other.gram).any()
    assert (one.moment != other.moment).all()
    first, again = (blur_sums(public, clean, np.random.default_rng(1)) for _ in range(2))
    assert (first.gram == again.gram).all()
    with pytest.raises(InvalidValueError, match="Are these blurred sums"):
        blur_sums(public, Sums(300, -np.eye(3), np.zeros(3)))
    with pytest.raises(InvalidValueError, match="`count` must be at least 1"):
        blur_sums(public, Sums(0, np.eye(3), np.zeros(3)))
    require_room(public, 10**6)
    with pytest.raises(InfeasibleError, match="their sums could exceed"):
        require_room(public, 10**18)


# ---- Algorithm 2, step 3
def test_below_the_quorum_nothing_is_learned_and_the_same_sums_give_the_same_weights() -> None:
    public = agree()
    q, p = blur_record(public, *people(300))
    with pytest.raises(BelowQuorumError, match="quorum 300, got 299"):
        solve(public, add_up(public, q[1:], p[1:]))
    w = solve(public, add_up(public, q, p))
    assert (w == solve(public, add_up(public, q, p))).all()
    assert not (w % public.weight_scale(300)).any()


def test_a_direction_without_curvature_is_refused_without_its_eigenvalue() -> None:
    public = agree(quorum=5000, local_epsilon=3.0, local_delta=1e-6)
    assert public.calibration.ridge < 0
    with pytest.raises(InfeasibleError, match="without curvature") as refusal:
        solve(public, Sums(5000, np.eye(3), np.ones(3)))
    assert refusal.value.__cause__ is None
    assert not any(letter.isdigit() for letter in str(refusal.value))


def test_the_regulariser_is_used() -> None:
    x, y = people(2000)
    clean, sizes = Sums(2000, x.T @ x, y @ x), []
    for l2 in (0.0, 1e6):
        public = agree(quorum=2000, epsilon=50.0, l2=l2)
        w = solve(public, blur_sums(public, clean, np.random.default_rng(0)))
        sizes.append(np.abs(w).sum())
    assert sizes[1] < 0.01 * sizes[0]


@pytest.mark.parametrize("bound", [0.05, 5.0])
@pytest.mark.parametrize("count", [2**20, 2**23])
def test_published_weights_are_the_exact_ones_and_laplace_noise(count: int, bound: float) -> None:
    """Against minimisers by another route, good to a thousandth of b: the difference, in units of
    b, is a Laplace variable that was rounded, on the sphere and inside.
    """
    public = agree(5, quorum=count, epsilon=0.1, weight_bound=bound)
    scale, generator, differences = public.weight_scale(count), np.random.default_rng(count), []
    for _ in range(40):
        root = generator.standard_normal((5, 5)) * math.sqrt(count / 25)
        clean = Sums(count, root.T @ root, generator.standard_normal(5) * count / 10)
        sums = blur_sums(public, clean, generator)
        w = solve(public, sums)
        H = sums.gram + public.calibration.ridge * np.eye(5)
        exact, error = _in_the_ball(H, sums.moment, bound)
        assert error < 1e-3 * scale
        differences.extend((w - exact) / scale)
    # w + X lies somewhere in the cell around what was published: draw where, for its quantile
    low, high = laplace.cdf(np.array(differences)[:, None] + [-0.5, 0.5]).T
    assert kstest(generator.uniform(low, high), "uniform").pvalue > 1e-4


def _in_the_ball(H: np.ndarray, c: np.ndarray, bound: float) -> tuple[np.ndarray, float]:
    """(H + ν)w = c, with the least ν ≥ 0 for which w is no longer than the bound; and how far w
    may be from exact."""
    values, basis = np.linalg.eigh(H)

    def at(nu: float) -> np.ndarray:
        return basis @ (basis.T @ c / (values + nu))

    def beyond(nu: float) -> float:
        return float(np.linalg.norm(at(nu))) - bound

    nu = brentq(beyond, 0, np.linalg.norm(c) / bound, rtol=1e-15) if beyond(0) > 0 else 0.0
    w = at(nu)
    t = abs(beyond(nu)) if nu else 0.0
    gap = float(np.linalg.norm(H @ w + nu * w - c)) + (values[-1] + nu) * t
    return w, t + gap / values[0]


@pytest.mark.statistical
def test_weights_do_not_betray_the_grid_of_the_noise() -> None:
    """An attacker who knows all q̃ but whether the target's q is 1 or 0 looks for the lattice of
    Σp̃ in w.

    With next to no noise on q the sums A are known: w·(A + Δ_in) is a multiple of the noise's step
    under the right hypothesis, were it not for the dither. (It told the records apart 19 times in
    20.)
    """
    count, sigma_u, ridge = 50, 1e-6, 60.0
    found = agree(1, quorum=count, weight_bound=1.0).calibration
    delta = found.model.delta
    shares = DeltaShares(0.1 * delta, 0.05 * delta, 0.0, 0.8 * delta)
    loss = curvature_loss(found.setting, sigma_u, ridge, shares)
    headroom = found.model.epsilon - loss.determinant_loss
    parts = fixed_sensitivity(found.setting), loss.moving_sensitivity
    sigma_b = least_sigma_b(headroom, shares.gradient, *parts, 1)
    scales = Scales(sigma_u, sigma_b, ridge)
    mu = local_mu(found.setting, scales)
    local = LocalGuarantee(mu, epsilon_of(mu, found.local.delta), found.local.delta)
    risk = input_excess_risk(found.setting, scales)
    noise = {"sigma_u": sigma_u, "sigma_b": sigma_b, "ridge": ridge, "shares": shares}
    public = PublicInput(SquaredLoss(), replace(found, **noise, local=local, excess_risk=risk))
    public.verify()
    step = public.grid.p

    def guesses_one(value: float) -> bool:
        x = np.array([value] + [0.0] * (count - 1))[:, None]
        w = solve(public, add_up(public, *blur_record(public, x, np.zeros(count))))[0]
        misfit = [abs(w * (ridge + A) / step % 1 - 0.5) / (ridge + A) for A in (1.0, 0.0)]
        return bool(misfit[0] > misfit[1])

    trials = 150
    right, wrong = (sum(guesses_one(value) for _ in range(trials)) / trials for value in (1.0, 0.0))
    allowed = (math.e - 1) / (math.e + 1)
    assert abs(right - wrong) < allowed
    assert abs(right - wrong) < 0.35  # in truth they are about the same


LOCAL = {"local_epsilon": 3.0, "local_delta": 1e-6}


@pytest.mark.parametrize("local", [{}, LOCAL])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize(("d", "quorum"), [(1, 2), (3, 200), (14, 2**20), (14, 2**23)])
def test_errors_of_the_weights_are_paid_for(local, epsilon, d, quorum) -> None:
    """2√d·e/b within 2⁻¹⁰·ε, for the curvature and the sums of real draws and not for their bounds:
    lattice, sums as float64 rounds them and the solver's share, at the quorum and well beyond it.
    """
    public = agree(d, quorum=quorum, epsilon=epsilon, **local)
    found, generator = public.calibration, np.random.default_rng(0)
    for count in (quorum, 64 * quorum):
        corner = np.ones((d, d)) / d  # everybody has the same longest q
        clean = Sums(count, count * corner, np.full(d, count / math.sqrt(d)))
        scale = public.weight_scale(count)
        for _ in range(20):
            sums = blur_sums(public, clean, generator)
            smallest = np.linalg.eigvalsh(sums.gram)[0] + found.ridge
            rounded = np.linalg.norm(np.spacing(np.abs(sums.moment))) / 2
            rounded += 2.0 * np.linalg.norm(np.spacing(np.abs(sums.gram))) / math.sqrt(2)
            error = (math.sqrt(d) * public.grid.dither / 2 + rounded) / smallest
            loss = 2 * math.sqrt(d) * (error / scale + 2.0**-40)
            assert loss <= found.model.epsilon * 2.0**-10
            assert math.expm1(loss / 2) <= 3e-4  # of δ


def test_more_people_never_get_a_finer_scale() -> None:
    public = agree(14, quorum=2**15, epsilon=0.1)
    scales = [public.weight_scale(2**k) for k in range(15, 41)]
    assert scales == sorted(scales)
    assert scales[0] < scales[-1]
