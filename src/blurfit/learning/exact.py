"""The minimiser with a proved distance to the exact one, in whole numbers.

Floating point leaves the last digits of a minimiser open, and how many depends on the records. The
weights of `input` are published with a promise that is proved for the exact minimiser, so they are
computed to far more digits than are published: floating point proposes corrections, and Python's
integers, which do not round, say what is left to correct.

**How far w is from exact.** Let w* minimise ½wᵀHw − cᵀw + l1·‖w‖₁ over ‖w‖ ≤ η, with H ⪰ λ > 0. A
point v of the ball that is the minimiser for c + e instead has ‖v − w*‖ ≤ ‖e‖/λ: both satisfy a
variational inequality, and adding the two gives λ‖v − w*‖² ≤ e·(v − w*). Given w, with support S
and signs s, and a multiplier ν ≥ 0, v = w is such a point for

    e_j = (Hw + νw − c)_j + l1·s_j                on S
    |e_j| = (|(Hw − c)_j| − l1)₊                  elsewhere

if ‖w‖ = η, or ν = 0 and ‖w‖ ≤ η. Where that fails by t, v is w, shortened or lengthened by t, and
then ‖w − w*‖ ≤ t + (‖e‖ + (‖H‖ + ν)t)/λ. H, c, η and l1 are whole multiples of a power of two, and
so is w: nothing here is rounded but the bound, upwards.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from blurfit.data import FloatArray
from blurfit.errors import NotCertifiedError
from blurfit.learning.solver import Minimiser

WholeArray = npt.NDArray[np.object_]  # of Python's integers

UPWARDS = 1 + 2.0**-20  # more than what floating point takes from a bound
CORRECTIONS = 40  # for one support; three or four are the rule
SUPPORTS_TRIED = 50


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Weights `multiples`·2^−`bits`, and how far the exact minimiser is from them at most."""

    multiples: WholeArray
    bits: int
    error: float

    def plus(self, shift: FloatArray, step: float) -> FloatArray:
        """Round (w + shift)/step to the nearest whole number, times the step, a power of two."""
        unit = _whole(np.array([step]), self.bits)[0]
        moved = self.multiples + _whole(shift, self.bits, exact=False)
        return np.array([float((2 * one + unit) // (2 * unit)) for one in moved]) * step


def enclose(
    gram: FloatArray,
    moment: FloatArray,
    start: Minimiser,
    *,
    ridge: float,
    radius: float,
    l1: float,
    allowed: float,
) -> Enclosure:
    """Find the minimiser of ½wᵀ(A + ridge·I)w − cᵀw + l1·‖w‖₁ over ‖w‖ ≤ η, to within `allowed`.

    `start` is what floating point found, with a lower bound on the curvature. Raises
    NotCertifiedError where no weights are shown to be so near.
    """
    search = _Search.of(gram, moment, start, ridge, radius, l1, allowed)
    for _ in range(SUPPORTS_TRIED):
        for _ in range(CORRECTIONS):
            error, slack = search.error()
            if error <= allowed:
                return Enclosure(search.weights, search.bits, error)
            if slack <= allowed:
                break  # exact for this support, which is the wrong one
            try:
                search.correct()
            except LinAlgError:
                break
        if not search.change_support():
            break
    raise NotCertifiedError(
        f"The weights are known to within {error:.3g}, and {allowed:.3g} is what the privacy proof "
        "needs."
    )


@dataclass(eq=False)
class _Search:
    """Where the search is: H and ν in units of 2^−`fine`, w of 2^−`bits`, c and l1 of both."""

    hessian: WholeArray
    moment: WholeArray
    strength: int
    radius: int
    weights: WholeArray
    multiplier: int
    signs: WholeArray  # 0 where a weight is none
    on_sphere: bool
    bits: int
    fine: int
    floats: FloatArray
    smallest: float
    largest: float

    @classmethod
    def of(
        cls,
        gram: FloatArray,
        moment: FloatArray,
        start: Minimiser,
        ridge: float,
        radius: float,
        l1: float,
        allowed: float,
    ) -> "_Search":
        d = len(moment)
        floats = gram + ridge * np.eye(d)
        largest = float(np.linalg.norm(floats)) * UPWARDS
        smallest = start.smallest_eigenvalue - d * 2.0**-50 * largest
        if not smallest > 0:
            raise NotCertifiedError("There is a direction without curvature.")
        scale = (largest + start.multiplier + 1) * (radius + 1) * d
        bits = 16 + _log2(scale / allowed) + max(0, _log2(scale / smallest))
        bits = max(bits, _places(moment), _places(np.array([radius, l1, allowed])))
        fine = max(bits, _places(gram), _places(np.array([ridge])))
        hessian = _whole(gram, fine)
        hessian[np.diag_indices(d)] += int(_whole(np.array([ridge]), fine)[0])
        weights = _whole(start.weights, bits, exact=False)
        signs = np.array([(one > 0) - (one < 0) for one in weights], dtype=object)
        return cls(
            hessian=hessian,
            moment=_whole(moment, bits) << fine,
            strength=int(_whole(np.array([l1]), bits)[0]) << fine,
            radius=int(_whole(np.array([radius]), bits)[0]),
            weights=weights,
            multiplier=int(_whole(np.array([start.multiplier]), fine, exact=False)[0]),
            signs=signs if l1 > 0 else np.ones(d, dtype=object),
            on_sphere=start.multiplier > 0,
            bits=bits,
            fine=fine,
            floats=floats,
            smallest=smallest,
            largest=largest,
        )

    def residual(self) -> WholeArray:
        """Return c − Hw − νw − l1·s."""
        product = self.hessian @ self.weights + self.multiplier * self.weights
        return np.asarray(self.moment - product - self.strength * self.signs)

    @property
    def support(self) -> npt.NDArray[np.bool_]:
        return self.signs.astype(bool)

    def error(self) -> tuple[float, float]:
        """Bound how far w is from exact: for the whole problem, and for this support and ν."""
        residual, support = self.residual(), self.support
        excess = residual.copy()
        for j in np.flatnonzero(~support):
            excess[j] = max(abs(residual[j]) - self.strength, 0)
        wrong = self.wrong_signs()
        excess[wrong] = abs(excess[wrong]) + 2 * self.strength
        gap = self.gap()
        beyond = abs(gap) if self.on_sphere else max(-gap, 0)
        here = self._bound(residual[support], abs(gap) if self.on_sphere else 0)
        if self.multiplier < 0:
            excess = abs(excess) - self.multiplier * abs(self.weights)
        return self._bound(excess, beyond), here

    def gap(self) -> int:
        """Return η² − ‖w‖²."""
        return int(self.radius**2 - (self.weights @ self.weights))

    def _bound(self, excess: WholeArray, gap: int) -> float:
        nu = max(self.multiplier, 0) / (1 << self.fine)
        e = math.hypot(*(_ratio(one, self.bits + self.fine) for one in excess), 0.0)
        t = abs(gap) / (self.radius << self.bits)  # |η − ‖w‖| ≤ |η² − ‖w‖²|/η
        return UPWARDS * (t + (e + (self.largest + nu) * t) / self.smallest)

    def wrong_signs(self) -> npt.NDArray[np.bool_]:
        """Tell which weights of the support have another sign than it says; none without l1."""
        if not self.strength:
            return np.zeros(len(self.signs), dtype=bool)
        return np.asarray(self.weights * self.signs < 0, dtype=bool)

    def correct(self) -> None:
        """Take a Newton step on (H + ν)w = c − l1·s over the support and, if so, ‖w‖ = η."""
        on = self.support
        residual = np.array([one / (1 << self.bits + self.fine) for one in self.residual()[on]])
        nu = self.multiplier / (1 << self.fine)
        w = np.array([one / (1 << self.bits) for one in self.weights[on]])
        factor = cho_factor(self.floats[np.ix_(on, on)] + nu * np.eye(int(on.sum())))
        step = cho_solve(factor, residual)
        if self.on_sphere:
            across = cho_solve(factor, w)
            wanted = self.gap() / (1 << 2 * self.bits) / 2
            rise = (float(w @ step) - wanted) / float(w @ across)
            step = step - rise * across
            self.multiplier += int(_whole(np.array([rise]), self.fine, exact=False)[0])
        self.weights[on] += _whole(step, self.bits, exact=False)

    def change_support(self) -> bool:
        """Mend what is wrong with a support whose own equations hold; False if nothing is."""
        wrong = self.wrong_signs()
        if wrong.any():
            self.weights[wrong], self.signs[wrong] = 0, 0
        elif self.on_sphere and self.multiplier < 0:
            self.on_sphere, self.multiplier = False, 0
        elif not self.on_sphere and self.gap() < 0:
            self.on_sphere = True
        else:
            residual = np.where(self.support, 0, self.residual())
            worst = max(range(len(residual)), key=lambda j: abs(residual[j]))
            if abs(residual[worst]) <= self.strength:
                return False
            self.signs[worst] = 1 if residual[worst] > 0 else -1
        return True


def _whole(numbers: FloatArray, bits: int, *, exact: bool = True) -> WholeArray:
    """Write the numbers in units of 2^−bits, rounded down unless they have to be `exact`."""
    found = []
    for number in numbers.ravel().tolist():
        above, below = number.as_integer_ratio()  # in lowest terms, over a power of two
        shift = bits + 1 - below.bit_length()
        assert not exact or shift >= 0
        found.append(above << shift if shift >= 0 else above >> -shift)
    return np.array(found, dtype=object).reshape(numbers.shape)


def _places(numbers: FloatArray) -> int:
    """Count the binary places that the numbers have at most."""
    return max(number.as_integer_ratio()[1].bit_length() - 1 for number in numbers.ravel().tolist())


def _ratio(whole: Any, bits: int) -> float:
    """Return |whole|·2^−bits."""
    return abs(int(whole)) / (1 << bits)


def _log2(value: float) -> int:
    return math.frexp(value)[1]
