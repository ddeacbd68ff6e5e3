"""The public map of a later wave: from an encoded record (v, y) to what is blurred.

A map is made of numbers that earlier waves taught, and is announced before its wave opens. It has a
mean m, a whitening matrix W (lower triangular, W = L⁻¹ with LLᵀ the covariance as far as it is
known), and the last model, coefficients β and intercept β₀:

    f = W(v − m),      t = β·v + β₀.

* `ResidualMap`, for numbers: g = (y − t)/scale, cut to ±`bound`; f cut to the ball ‖f‖ ≤ r√p;
  z = (c, a·f/(r√p), b·g/bound) with a² + b² ≤ 1. So ‖(z₁, …)‖ ≤ 1, and the sums of zzᵀ are those of
  `theory.joint` with ρ = 1.
* `NewtonMap`, for labels and counts: x = (f/√p, κ)/√(1 + κ²), whose norm is 1 for a typical record,
  and the quadratic (h·xxᵀ, −g·x)/max(1, ‖x‖²) of `theory.newton` at the score t.

**A map needs no trust.** What a record can move is bounded by the ball alone, whoever chose m, W, β
and r, and for whatever reason. But that must be so in floating point as well, and an error that
appears for some records and not for others would tell something about them. Therefore:

1. Everything public is checked when the map is made or read, *before* any record is seen: finite,
   sizes at most 10⁶ (W: 10¹²), W triangular with a nonzero diagonal, radii in range.
2. From then on the map is total: defined for every array of floats, NaN and infinities included. It
   multiplies by W and never solves with L (for L = diag(1, 10⁻³²⁰) whether a solver fails depends
   on the record). What is not a number becomes 0; scores are clipped; nothing is raised for a
   value.
3. The ball is kept with a scaled norm: with k = max|f_i| and w = f/k, ‖w‖ lies between 1 and √p,
   and nothing overflows or vanishes. Each entry of z carries at most 4 roundings besides those of
   ‖w‖, so ‖u‖ ≤ 1 + (p + 8)·2⁻⁵² as computed, far below the 2⁻¹¹ by which an agreement's grid
   widens Δ.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.theory import joint
from blurfit.theory.newton import LogisticNewton, PoissonNewton
from blurfit.theory.setting import Neighbours
from blurfit.theory.whitening import LARGEST_NUMBER, Whitening, into_ball, norms, within
from blurfit.validate import one_of

SMALLEST_RADIUS, LARGEST_RADIUS = 0.01, 1000.0
KINDS = ("residual", "logistic", "poisson")


@dataclass(frozen=True, eq=False)
class ResidualMap:
    """z = (c, a·f/(r√p), b·g/bound), for numbers: ‖(z₁, …)‖ ≤ 1 for every record.

    Args:
        whitening: m, W and the last model.
        radius: r; f is cut to ‖f‖ ≤ r√p.
        scale: The residuals' spread as far as it is known.
        bound: g = (y − t)/scale is cut to ±bound.
        constant: c, the first entry of z.
        feature_weight: a.
        target_weight: b; a² + b² ≤ 1.
    """

    whitening: Whitening
    radius: float
    scale: float
    bound: float
    constant: float = 0.25
    feature_weight: float = 0.8
    target_weight: float = 0.6

    def __post_init__(self) -> None:
        within(SMALLEST_RADIUS, LARGEST_RADIUS, radius=self.radius, bound=self.bound)
        within(1 / LARGEST_NUMBER, LARGEST_NUMBER, scale=self.scale)
        within(0.01, 1.0, constant=self.constant, feature_weight=self.feature_weight)
        within(0.01, 1.0, target_weight=self.target_weight)
        if self.feature_weight**2 + self.target_weight**2 > 1:
            raise InvalidValueError(
                f"Expected feature_weight={self.feature_weight!r} and "
                f"target_weight={self.target_weight!r} to have squares that sum to at most 1."
            )

    @property
    def feature_scale(self) -> float:
        """a/(r√p): the weight of each whitened feature in z."""
        return self.feature_weight / (self.radius * math.sqrt(self.whitening.dimension))

    @property
    def target_scale(self) -> float:
        """b/bound: the weight of the residual in z."""
        return self.target_weight / self.bound

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ of Σzzᵀ, whatever the map is: the joint form's, with ρ = 1."""
        return joint.sensitivity(self.constant, 1.0, neighbours)

    def vectors(self, v: ArrayLike, y: ArrayLike) -> FloatArray:
        """z of each record."""
        f = self.whitening.features(v)
        reach = self.radius * math.sqrt(self.whitening.dimension)
        with np.errstate(all="ignore"):
            g = (np.asarray(y, dtype=np.float64) - self.whitening.score(v)) / self.scale
        g = np.clip(np.where(np.isnan(g), 0.0, g), -self.bound, self.bound) / self.bound
        z = np.empty((*f.shape[:-1], f.shape[-1] + 2))
        z[..., 0] = self.constant
        z[..., 1:-1] = self.feature_weight * into_ball(f, reach)
        z[..., -1] = self.target_weight * g
        return z

    def to_dict(self) -> dict[str, Any]:
        """As part of an agreement."""
        return {
            "kind": "residual",
            **self.whitening.to_dict(),
            "radius": self.radius,
            "scale": self.scale,
            "bound": self.bound,
            "weights": [self.constant, self.feature_weight, self.target_weight],
        }


@dataclass(frozen=True, eq=False)
class NewtonMap:
    """(h·xxᵀ, −g·x)/max(1, ‖x‖²) at the score t, with x = (f/√p, κ)/√(1 + κ²)."""

    whitening: Whitening
    loss: LogisticNewton | PoissonNewton
    constant: float = 0.3

    def __post_init__(self) -> None:
        within(0.01, 100.0, constant=self.constant)

    @property
    def scale(self) -> tuple[float, float]:
        """What f and the constant 1 are multiplied by in x."""
        length = math.hypot(1.0, self.constant)
        return 1 / (math.sqrt(self.whitening.dimension) * length), self.constant / length

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ of (ΣM, Σp), whatever the map is: the loss's own."""
        return self.loss.sensitivity(neighbours)

    def vectors(self, v: ArrayLike) -> FloatArray:
        """x of each record, divided by max(1, ‖x‖): inside the unit ball."""
        f = self.whitening.features(v)
        of_features, constant = self.scale
        x = np.empty((*f.shape[:-1], f.shape[-1] + 1))
        x[..., :-1] = of_features * f
        x[..., -1] = constant
        return into_ball(x, 1.0)

    def slopes(self, v: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """(g, h), with g divided by max(1, ‖x‖): so that (h·uuᵀ, −g·u), u = `vectors`, is sent."""
        f = self.whitening.features(v)
        of_features, constant = self.scale
        length = np.hypot(of_features * norms(f), constant)
        g, h = self.loss.slopes(self.whitening.score(v), y)
        return g / np.maximum(1.0, length), h

    def sums(self, v: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(ΣM, Σp) of many."""
        u, (g, h) = self.vectors(v), self.slopes(v, y)
        return (u * h[:, None]).T @ u, -(g @ u)

    def to_dict(self) -> dict[str, Any]:
        """As part of an agreement."""
        entry: dict[str, Any] = {**self.whitening.to_dict(), "constant": self.constant}
        if isinstance(self.loss, LogisticNewton):
            return {"kind": "logistic", **entry, "balance": self.loss.balance}
        return {
            "kind": "poisson",
            **entry,
            "balance": self.loss.balance,
            "count_bound": self.loss.count_bound,
            "score_bound": self.loss.reach,
        }


WaveMap = ResidualMap | NewtonMap


def map_from_dict(entry: Mapping[str, Any]) -> WaveMap:
    """The map that an agreement contains, checked before any record is read."""
    if not isinstance(entry, Mapping):
        raise InvalidValueError(f"Expected a map to be a dict, got {type(entry).__name__}.")
    kind = entry.get("kind")
    one_of(KINDS, kind=kind)
    common = {"kind", "mean", "whitening", "coefficients", "intercept"}
    own = {
        "residual": {"radius", "scale", "bound", "weights"},
        "logistic": {"constant", "balance"},
        "poisson": {"constant", "balance", "count_bound", "score_bound"},
    }[str(kind)]
    if set(entry) != common | own:
        raise InvalidValueError(
            f"Expected a {kind} map to have {sorted(common | own)}, got {sorted(entry)}."
        )
    whitening = Whitening.from_dict(entry)
    if kind == "residual":
        weights = entry["weights"]
        if not isinstance(weights, list) or len(weights) != 3:
            raise InvalidValueError(f"Expected weights={weights!r} to be [c, a, b].")
        return ResidualMap(whitening, entry["radius"], entry["scale"], entry["bound"], *weights)
    loss: LogisticNewton | PoissonNewton
    if kind == "logistic":
        loss = LogisticNewton(entry["balance"])
    else:
        loss = PoissonNewton(entry["count_bound"], entry["score_bound"], entry["balance"])
    return NewtonMap(whitening, loss, entry["constant"])
