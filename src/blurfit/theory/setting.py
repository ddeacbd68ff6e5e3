"""What everyone knows before anything is collected, and the two promises that follow from it."""

from dataclasses import dataclass
from typing import Literal

from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.validate import inside_unit_interval, nonnegative, one_of, positive, whole

Neighbours = Literal["replace", "zero-out"]
NEIGHBOURS: tuple[Neighbours, ...] = ("replace", "zero-out")
Rule = Literal["certified", "published"]
RULES: tuple[Rule, ...] = ("certified", "published")
Approximation = Literal["taylor", "chebyshev", "least-squares"]
APPROXIMATIONS: tuple[Approximation, ...] = ("taylor", "chebyshev", "least-squares")

LEAST_PROBABILITY = 1e-300  # of an event that a proof gives away: quantiles are exact down to here
LEAST_DELTA = 1e-290  # that is stated, so that events of the least probability cost nothing of it


@dataclass(frozen=True)
class Setting:
    """The public facts of a collection.

    | name | paper | meaning |
    | --- | --- | --- |
    | `dimension` | d | length of q, p and the weights |
    | `quorum` | n | least number of honest records; each carries noise of variance σ²/n |
    | `q_bound` | √λ | bound R_q on ‖q‖ |
    | `p_bound` | ≤ ζ | bound R_p on ‖p‖ |
    | `weight_bound` | η | the model is sought in the ball ‖w‖ ≤ η |
    | `neighbours` | – | what one person may change: "replace" her record, or "zero-out" it |
    """

    dimension: int
    quorum: int
    q_bound: float
    p_bound: float
    weight_bound: float | None = None
    neighbours: Neighbours = "replace"

    def __post_init__(self) -> None:
        whole(dimension=self.dimension, quorum=self.quorum)
        positive(q_bound=self.q_bound, p_bound=self.p_bound)
        if self.weight_bound is not None:
            positive(weight_bound=self.weight_bound)
        one_of(NEIGHBOURS, neighbours=self.neighbours)

    @property
    def smoothness(self) -> float:
        """λ = R_q², because ∇²ℓ = qqᵀ."""
        return self.q_bound**2

    @property
    def ball(self) -> float:
        """η, which input perturbation cannot do without: the gradient is bounded only where the
        weights are.
        """
        if self.weight_bound is None:
            raise InfeasibleError(
                "mechanism='input' needs a weight_bound (η): its proof bounds the gradient over "
                "the ball ‖w‖ <= η. Give weight_bound=1.0, say, or use mechanism='moment'."
            )
        return self.weight_bound

    @property
    def gradient_bound(self) -> float:
        """ζ = λη + R_p ≥ ‖qqᵀw − p‖ over the ball."""
        return self.smoothness * self.ball + self.p_bound


@dataclass(frozen=True)
class ModelGuarantee:
    """What the published model promises: (ε, δ)-DP under a neighbouring relation, for so many
    releases.

    `proved` is False for numbers that are printed in the paper but do not follow (docs/errata.md).
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    releases: int | Literal["any"]
    proved: bool = True

    def __post_init__(self) -> None:
        nonnegative(epsilon=self.epsilon)
        positive(delta=self.delta)
        one_of(NEIGHBOURS, neighbours=self.neighbours)
        if self.delta > 1 or type(self.proved) is not bool or self.releases not in (1, "any"):
            raise InvalidValueError(
                f"Expected delta={self.delta!r} <= 1, releases={self.releases!r} to be 1 or 'any', "
                f"and proved={self.proved!r} to be true or false."
            )


@dataclass(frozen=True)
class LocalGuarantee:
    """What one submission tells a database that nobody trusts: μ-GDP, and the exact ε of that at δ.

    It compares any two records ("replace"), whatever relation the model's guarantee uses.
    """

    mu: float
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        nonnegative(mu=self.mu, epsilon=self.epsilon)
        inside_unit_interval(delta=self.delta)
