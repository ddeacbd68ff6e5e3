"""Algorithm 1, the contributor, and Algorithm 2, the database: what really runs.

    record ─ loss ─► q, p ─ grid, noise ─► q̃, p̃ ─ add_up ─► A = Σq̃q̃ᵀ, c = Σp̃ ─ solve ─► w

| the paper | here |
| --- | --- |
| Algorithm 1, step 1: σ_u, σ_b | `PublicInput.agree` |
| Algorithm 1, steps 2 and 3: r_i, u_i; q̃_i = q_i + u_i, p̃_i = p_i − r_i | `blur_record` |
| Algorithm 2, step 2: collect | `add_up`; `blur_sums` for a party that has all records |
| Algorithm 2, step 3: argmin of J^in, Eq. (4) | `solve` |

**One release.** The guarantee is for one w of one set of contributors. Publish nothing else of A
and c, and no second w of nearly the same contributors.

**How far w is from exact** (`enclose`). The theorem is about the exact minimiser. So floating point
proposes corrections, and Python's integers, which do not round, say what is left to correct. Let w*
be the minimiser for H = A + ridge·I ⪰ λ > 0. A point v of the ball that is the minimiser for c + e
instead has ‖v − w*‖ ≤ ‖e‖/λ: both satisfy a variational inequality, and adding the two gives
λ‖v − w*‖² ≤ e·(v − w*). Given w and a multiplier ν ≥ 0, v = w is such a point for
e = Hw + νw − c if ‖w‖ = η, or ν = 0 and ‖w‖ ≤ η. Where that fails by t, v is w, shortened or
lengthened by t, and then ‖w − w*‖ ≤ t + (‖e‖ + (‖H‖ + ν)t)/λ. H, c and η are whole multiples of a
power of two, and so is w: nothing here is rounded but the bound, upwards.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from blurfit import randomness
from blurfit.agreement.numbers import MOST_RATIO, power_of_two_below
from blurfit.data import FloatArray, fixed
from blurfit.errors import (
    BelowQuorumError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    whole_from_zero,
)
from blurfit.input_perturbation.calibration import PublicInput
from blurfit.learning.solver import Minimiser, minimise
from blurfit.learning.sums import conforming, symmetrised
from blurfit.simulation import operating_system_generator

ROWS_AT_ONCE = 8192  # that are added up: a few megabytes
EXACT = 2.0**53  # steps below which whole numbers add exactly in float64
SOLVER_SHARE = 2.0**-40  # of b: how far the weights may be from exact
UPWARDS = 1 + 2.0**-20  # more than what floating point takes from a bound
CORRECTIONS = 40  # on the sphere, or inside of it; three or four are the rule
PLACES_TRIED = 10

WholeArray = npt.NDArray[np.object_]  # of Python's integers


# ---- Algorithm 1


def blur_record(
    public: PublicInput,
    features: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    allow_unproved: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Blur one record, or a table of them, for the database: Algorithm 1.

    q̃ = ⌊q⌋ + u, p̃ = ⌊p⌋ − r + dither: rounded towards zero to the public grid, with discrete
    Gaussian noise of the operating system's randomness.

    Args:
        public: what all stakeholders agreed on; it is verified before the record is read.
        features: x, (d,), or (n, d).
        target: y, one number, or (n,).
        allow_unproved: accept rule="published"; for experiments.

    Returns:
        q̃ and p̃, of the shape of `features`.

    Raises:
        NotCertifiedError: the noise keeps less than is stated.
        InvalidValueError: a record outside the bounds of the loss.
    """
    public.verify(allow_unproved=allow_unproved)
    q, p, _ = public.loss.terms(features, target)
    return blur_terms(public, q, p)


def blur_terms(public: PublicInput, q: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Blur q and p of a record, under a public input that was verified: steps 2 and 3."""
    noise, grid = public.calibration, public.grid
    q = randomness.to_grid(q, grid.q, toward_zero=True)
    p = randomness.to_grid(p, grid.p, toward_zero=True)
    q = randomness.add(q, noise.q_noise, grid.q)  # + u_i
    p = randomness.add(p, noise.p_noise, grid.p)  # − r_i, whose law is that of r_i
    return q, randomness.dither(p, grid.p, grid.dither)


# ---- Algorithm 2, step 2: the sums


@dataclass(frozen=True, eq=False)
class Sums:
    """N, A = Σ q̃q̃ᵀ and c = Σ p̃: all of a collection that the model depends on.

    The arrays are copied and cannot be written to; A is symmetric to the last bit.
    """

    count: int
    gram: FloatArray
    moment: FloatArray

    def __post_init__(self) -> None:
        whole_from_zero(count=self.count)
        gram = symmetrised(gram=self.gram)
        object.__setattr__(self, "gram", fixed(gram))
        object.__setattr__(self, "moment", fixed(conforming(gram, moment=self.moment)))

    @property
    def dimension(self) -> int:
        """d."""
        return len(self.moment)


def add_up(public: PublicInput, q: npt.ArrayLike, p: npt.ArrayLike) -> Sums:
    """Add up submissions q̃ and p̃, (n, d) each; reject what no honest contributor sends.

    The sums are exact, and rounded once at the end, whatever the order: q̃ = h + l is cut in the
    middle of its digits, so that hhᵀ, hlᵀ + lhᵀ and llᵀ have few enough of their own steps, and p̃
    into the noise's grid and the dither within it.
    """
    q, p = np.atleast_2d(np.asarray(q, dtype=float)), np.atleast_2d(np.asarray(p, dtype=float))
    grid, (r_q, r_p), d = public.grid, public.radii, public.calibration.setting.dimension
    if q.shape != p.shape or q.shape[1:] != (d,):
        raise InvalidValueError(f"`q` and `p` must have shape (n, {d}), got {q.shape}, {p.shape}.")
    for name, sent, radius, step in (("q", q, r_q, grid.q), ("p", p, r_p, grid.dither)):
        with np.errstate(invalid="ignore", over="ignore"):  # a NaN passes no comparison
            fits = np.einsum("ij,ij->i", sent, sent) <= radius**2
            fits &= (np.rint(sent / step) == sent / step).all(axis=1)
        if not fits.all():
            raise InvalidValueError(
                f"`{name}` of submission {int(fits.argmin())} must be a multiple of {step:g} of "
                f"norm at most {radius:.6g}: an honest contributor's is. Blur the record with "
                "blur_record under this very public input."
            )
    cut = 2.0 ** math.ceil(math.log2(r_q / grid.q) / 2)
    high = r_q / grid.q / cut + 0.5  # |h| in its own steps; |l| is at most cut/2
    steps = max(high**2, high * cut, cut**2 / 4, r_p / grid.p + 0.5, grid.p / grid.dither)
    rows = max(1, min(ROWS_AT_ONCE, int(EXACT / steps)))
    parts = []
    for start in range(0, len(q), rows):
        h, l = _split(q[start : start + rows], grid.q * cut)  # noqa: E741
        coarse, fine = _split(p[start : start + rows], grid.p)
        mixed = h.T @ l
        squares = [h.T @ h, mixed + mixed.T, l.T @ l]
        parts += [
            np.vstack([square, line.sum(axis=0)[None]])
            for square, line in zip(squares, (coarse, fine, 0 * fine), strict=True)
        ]
    total = np.array([math.fsum(column) for column in np.reshape(parts, (len(parts), -1)).T])
    total = total.reshape(d + 1, d)
    return Sums(len(q), total[:d], total[d])


def _split(numbers: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Return the nearest multiples of a step, which is a power of two, and the rest."""
    coarse = np.rint(numbers / step) * step
    return coarse, numbers - coarse


@dataclass(frozen=True, eq=False)
class Sampler:
    """(Q + U)ᵀ(Q + U) ~ (R + Z)ᵀ(R + Z) + W and Σp̃ ~ Σp + N(0, (N/n)σ_b²·I).

    Let RᵀR = QᵀQ with R of k = min(N, d) rows. An orthogonal O takes Q to (R, 0), and U is as
    likely as OU, so the first k rows of OU are Z, with entries N(0, s²), s² = σ_u²/n, and the N − k
    others add their own Gram matrix W ~ Wishart_d(s²I, N − k). For N ≥ 2d, Bartlett's decomposition
    draws W = s²·LLᵀ with L lower triangular, L_jj² ~ χ²_{N−k−j} (j from 0) and N(0, 1) below the
    diagonal; for fewer, the N − k rows are drawn themselves.
    """

    count: int
    factor: FloatArray  # R
    moment: FloatArray  # Σp
    q_noise: float  # s
    p_noise: float  # σ_b·√(N/n)

    @classmethod
    def of(cls, clean: Sums, *, q_noise: float, p_noise: float) -> Self:
        """From sums without noise, and the noise of one contributor on each number."""
        if clean.count < 1:
            raise InvalidValueError(f"`count` must be at least 1, got {clean.count}.")
        growth = math.sqrt(clean.count)
        return cls(clean.count, _factor(clean), clean.moment, q_noise, p_noise * growth)

    def draw(self, generator: np.random.Generator) -> Sums:
        """Draw the sums of one collection."""
        k, d = self.factor.shape
        others = self.count - k
        if others >= d:
            pure = np.tril(generator.standard_normal((d, d)), -1)
            np.fill_diagonal(pure, np.sqrt(generator.chisquare(others - np.arange(d))))
            pure = pure.T
        else:
            pure = generator.standard_normal((others, d))
        blurred = self.factor + self.q_noise * generator.standard_normal((k, d))
        rows = np.vstack([blurred, self.q_noise * pure])
        noise = self.p_noise * generator.standard_normal(d)
        return Sums(self.count, rows.T @ rows, self.moment + noise)


def _factor(clean: Sums) -> FloatArray:
    """R with RᵀR = G and min(N, d) rows: √Λ·Vᵀ of the eigendecomposition, for a singular G too."""
    d = len(clean.moment)
    rows = min(clean.count, d)
    values, vectors = np.linalg.eigh(clean.gram)
    rounding = 1e-10 * max(float(values[-1]), 0.0)
    if values[0] < -rounding or (values[: d - rows] > rounding).any():
        raise InvalidValueError(
            f"`gram` must be the sum of {clean.count} products qqᵀ: positive semidefinite, of rank "
            f"at most {rows}. Are these blurred sums?"
        )
    kept = slice(d - rows, None)
    return np.asarray(np.sqrt(np.maximum(values[kept], 0.0))[:, None] * vectors[:, kept].T)


def blur_sums(
    public: PublicInput, clean: Sums, generator: np.random.Generator | None = None
) -> Sums:
    """Blur the sums of all records at once, for a party that has them: the law of Algorithm 1.

    Only Σp̃ is drawn on a grid, with a step that moves it by at most 2⁻¹⁴ of the bound on p (ξ =
    2⁻¹¹ is paid for), and dithered within it. The noise on q has to be Gaussian for the curvature's
    sake, and the weights' last noise hides its bits. A `generator` is for experiments.
    """
    noise, grid = public.calibration, public.grid
    sampler = Sampler.of(clean, q_noise=noise.q_noise, p_noise=noise.p_noise)
    if generator is not None:
        return sampler.draw(generator)
    drawn, step = sampler.draw(operating_system_generator()), sum_step(public)
    moment = randomness.to_grid(clean.moment, step, toward_zero=False)
    moment = randomness.add(moment, sampler.p_noise, step)
    fine = max(grid.dither, step * 2.0**-52)
    moment = moment + randomness.dither(np.zeros(len(moment)), step, fine)
    return Sums(clean.count, drawn.gram, moment)


def sum_step(public: PublicInput) -> float:
    """The grid on which `blur_sums` draws the noise of Σp̃."""
    setting, grid = public.calibration.setting, public.grid
    rounding = power_of_two_below(setting.p_bound * 2.0**-14 / math.sqrt(setting.dimension))
    return max(grid.dither, min(grid.p, rounding))


def require_room(public: PublicInput, rows: int) -> None:
    """Raise InfeasibleError for so many rows that Σp or its noise could leave exact noise's range.

    From public facts alone: whether that happens must not depend on the rows.
    """
    bound, step = public.calibration.setting.p_bound, sum_step(public)
    if rows * bound >= randomness.MOST_STEPS / 2 * step:
        raise InfeasibleError(
            f"Expected fewer than {rows:,} rows with epsilon={public.epsilon:g}: their sums could "
            "exceed 2**51 steps of the noise, beyond which it is not exact. Take a smaller "
            "epsilon, or per_record=True."
        )
    if public.calibration.p_noise * math.sqrt(rows) > MOST_RATIO * step:
        raise InfeasibleError(
            f"`epsilon` must be larger for {rows:,} rows, got {public.epsilon:g}: the noise on "
            "their sums exceeds 2**45 steps, beyond which it is not exact."
        )


# ---- Algorithm 2, step 3: the exact minimiser


def solve(public: PublicInput, sums: Sums) -> FloatArray:
    """Learn w^in = argmin over ‖w‖ ≤ η of n·J^in(w) + Ω(w), Eq. (4): Algorithm 2.

    The last noise, Laplace of scale b ≈ 2⁻²⁰η, hides grids, sums and solver. It is drawn from the
    sums, so the same sums give the same weights to the last bit.

    Args:
        public: what all stakeholders agreed on.
        sums: of at least n contributors.

    Returns:
        w, (d,): the one thing that may be published, once.

    Raises:
        BelowQuorumError: fewer than n contributors.
        InfeasibleError: an event that the guarantee excludes; nothing can be published.
    """
    noise = public.calibration
    if sums.count < noise.quorum:
        raise BelowQuorumError(
            f"`count` must be at least the quorum {noise.quorum}, got {sums.count}. With fewer "
            "contributors the noise is too small to protect anyone."
        )
    ridge, radius = noise.ridge + public.l2, noise.setting.ball
    scale = public.weight_scale(sums.count)
    try:
        start = minimise(sums.gram, sums.moment, ridge=ridge, weight_bound=radius)
        enclosure = enclose(sums, start, ridge=ridge, radius=radius, allowed=SOLVER_SHARE * scale)
    except (InfeasibleError, NotCertifiedError):
        # whose own words would tell eigenvalues, which nothing covers
        raise InfeasibleError(
            "The blurred sums leave a direction without curvature, an event that the guarantee "
            "excludes. No model can be published from this collection."
        ) from None
    return enclosure.plus(scale * _standard_laplace(public, sums), scale)


def _standard_laplace(public: PublicInput, sums: Sums) -> FloatArray:
    """Laplace noise of scale 1, drawn from the sums themselves by SHAKE-256.

    Fresh noise would average out over repeated learning. Only whoever holds the sums knows them:
    they contain the noise of all contributors, some seventy bits of it even for d = 1 and many
    hundreds as a rule, so their hash serves as fresh randomness (SHAKE-256 as a random oracle).
    """
    numbers = np.concatenate([sums.gram.ravel(), sums.moment]) + 0.0  # no −0.0
    secret = hashlib.shake_256(b"blurfit input perturbation\0" + repr(public).encode() + b"\0")
    secret.update(int(sums.count).to_bytes(8, "little") + numbers.astype("<f8").tobytes())
    d = len(sums.moment)
    words = np.frombuffer(secret.digest(17 * d), dtype=np.uint8).reshape(d, 17)
    uniform = [(int.from_bytes(word[1:], "little") + 0.5) / 2.0**128 for word in words.tolist()]
    return np.where(words[:, 0] & 1, 1.0, -1.0) * -np.log(uniform)


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Weights `multiples`·2^−`bits`, and how far the exact minimiser is from them at most."""

    multiples: WholeArray
    bits: int
    error: float

    def plus(self, shift: FloatArray, step: float) -> FloatArray:
        """Round (w + shift)/step to the nearest whole number, times the step, a power of two."""
        unit = _units(step, self.bits)
        moved = self.multiples + _whole(shift, self.bits, exact=False)
        return np.array([float((2 * one + unit) // (2 * unit)) for one in moved]) * step


def enclose(
    sums: Sums, start: Minimiser, *, ridge: float, radius: float, allowed: float
) -> Enclosure:
    """Find the minimiser of ½wᵀ(A + ridge·I)w − cᵀw over ‖w‖ ≤ η, to within `allowed`.

    `start` is what floating point found, with a lower bound on the curvature. Raises
    NotCertifiedError where no weights are shown to be so near.
    """
    search = _Search(sums, start, ridge, radius, allowed)
    for _ in range(PLACES_TRIED):
        for _ in range(CORRECTIONS):
            error, slack = search.error()
            if error <= allowed:
                return Enclosure(search.weights, search.bits, error)
            if slack <= allowed:
                break  # exact on the sphere, or for the whole space, which is the wrong one
            try:
                search.correct()
            except LinAlgError:
                break
        if not search.change_place():
            break
    raise NotCertifiedError(
        f"The weights are known to within {error:.3g}, and {allowed:.3g} is what the privacy proof "
        "needs."
    )


class _Search:
    """Where the search is: H and ν in units of 2^−`fine`, w of 2^−`bits`, c of both."""

    def __init__(
        self, sums: Sums, start: Minimiser, ridge: float, radius: float, allowed: float
    ) -> None:
        gram, moment, d = sums.gram, sums.moment, len(sums.moment)
        self.floats = gram + ridge * np.eye(d)
        self.largest = float(np.linalg.norm(self.floats)) * UPWARDS
        self.smallest = start.smallest_eigenvalue - d * 2.0**-50 * self.largest
        if not self.smallest > 0:
            raise NotCertifiedError("There is a direction without curvature.")
        scale = (self.largest + start.multiplier + 1) * (radius + 1) * d
        bits = 16 + _log2(scale / allowed) + max(0, _log2(scale / self.smallest))
        self.bits = bits = max(bits, _places(moment), _places(np.array([radius, allowed])))
        self.fine = fine = max(bits, _places(gram), _places(np.array([ridge])))
        self.hessian = _whole(gram, fine)
        self.hessian[np.diag_indices(d)] += _units(ridge, fine)
        self.moment = _whole(moment, bits) << fine
        self.radius = _units(radius, bits)
        self.weights = _whole(start.weights, bits, exact=False)
        self.multiplier = _units(start.multiplier, fine, exact=False)
        self.on_sphere = start.multiplier > 0

    def residual(self) -> WholeArray:
        """Return c − Hw − νw."""
        product = self.hessian @ self.weights + self.multiplier * self.weights
        return np.asarray(self.moment - product)

    def error(self) -> tuple[float, float]:
        """Bound how far w is from exact: for the whole problem, and on this sphere or off it."""
        excess, gap = self.residual(), self.gap()
        beyond = abs(gap) if self.on_sphere else max(-gap, 0)
        here = self._bound(excess, abs(gap) if self.on_sphere else 0)
        if self.multiplier < 0:
            excess = abs(excess) - self.multiplier * abs(self.weights)
        return self._bound(excess, beyond), here

    def gap(self) -> int:
        """Return η² − ‖w‖²."""
        return int(self.radius**2 - (self.weights @ self.weights))

    def _bound(self, excess: WholeArray, gap: int) -> float:
        nu = max(self.multiplier, 0) / (1 << self.fine)
        e = math.hypot(*(int(one) / (1 << self.bits + self.fine) for one in excess), 0.0)
        t = abs(gap) / (self.radius << self.bits)  # |η − ‖w‖| ≤ |η² − ‖w‖²|/η
        return UPWARDS * (t + (e + (self.largest + nu) * t) / self.smallest)

    def correct(self) -> None:
        """Take a Newton step on (H + ν)w = c and, on the sphere, ‖w‖ = η."""
        residual = np.array([one / (1 << self.bits + self.fine) for one in self.residual()])
        nu = self.multiplier / (1 << self.fine)
        w = np.array([one / (1 << self.bits) for one in self.weights])
        factor = cho_factor(self.floats + nu * np.eye(len(w)))
        step = cho_solve(factor, residual)
        if self.on_sphere:
            across = cho_solve(factor, w)
            wanted = self.gap() / (1 << 2 * self.bits) / 2
            rise = (float(w @ step) - wanted) / float(w @ across)
            step = step - rise * across
            self.multiplier += _units(rise, self.fine, exact=False)
        self.weights = self.weights + _whole(step, self.bits, exact=False)

    def change_place(self) -> bool:
        """Leave a sphere that pushes outwards, or return to it; False if neither is called for."""
        if self.on_sphere and self.multiplier < 0:
            self.on_sphere, self.multiplier = False, 0
        elif not self.on_sphere and self.gap() < 0:
            self.on_sphere = True
        else:
            return False
        return True


def _units(number: float, bits: int, *, exact: bool = True) -> int:
    """Write a number in units of 2^−bits, rounded down unless it has to be `exact`."""
    above, below = number.as_integer_ratio()  # in lowest terms, over a power of two
    shift = bits + 1 - below.bit_length()
    assert not exact or shift >= 0
    return above << shift if shift >= 0 else above >> -shift


def _whole(numbers: FloatArray, bits: int, *, exact: bool = True) -> WholeArray:
    found = [_units(number, bits, exact=exact) for number in numbers.ravel().tolist()]
    return np.array(found, dtype=object).reshape(numbers.shape)


def _places(numbers: FloatArray) -> int:
    """Count the binary places that the numbers have at most."""
    return max(number.as_integer_ratio()[1].bit_length() - 1 for number in numbers.ravel().tolist())


def _log2(value: float) -> int:
    return math.frexp(value)[1]
