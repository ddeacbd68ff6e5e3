"""What a quadratic loss is, what follows from its bounds, and a check of the bounds on data."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.theory.losses.records import TOLERANCE, numbers, paired, refuse_first, row_norms
from blurfit.validate import nonnegative, positive

_VANISHING = 1e-150  # a norm whose square underflows has no digits left to compare


class Quadratic(NamedTuple):
    """½wᵀqqᵀw − pᵀw + s of one record (q and p of shape (d,)) or of n ((n, d), and s (n,))."""

    q: FloatArray
    p: FloatArray
    s: FloatArray


@runtime_checkable
class QuadraticLoss(Protocol):
    """Whatever turns records into quadratics within public bounds; nothing need inherit it."""

    @property
    def q_bound(self) -> float:
        """R_q ≥ ‖q‖ for every record that may occur."""
        ...

    @property
    def p_bound(self) -> float:
        """R_p ≥ ‖p‖ for every record that may occur."""
        ...

    @property
    def parallel(self) -> bool:
        """Whether p = κq with |κ| ≤ R_p/R_q for every record.

        The ratio is needed, not the direction alone. In (qqᵀ, p/τ) two such records are apart by

            Δ² ≤ a⁴ + b⁴ − 2a²b²c² + (R_p/(τR_q))²·(a² + b² + 2abc)

        where a, b ≤ R_q are the norms of their q and c is the cosine between these, up to its sign;
        the moment mechanism is calibrated to the largest such Δ. Were only ‖p‖ ≤ R_p known, a
        record with q ≈ 0 could have ‖p‖ = R_p, and one with ‖q‖ = R_q the opposite p: they are
        apart by Δ² = R_q⁴ + 4R_p²/τ², which may be more.
        """
        ...

    def terms(self, features: ArrayLike, target: ArrayLike) -> Quadratic:
        """(q, p, s) of one record (x of shape (d,), y a number) or of n (X (n, d), y (n,))."""
        ...


def value(terms: Quadratic, weights: ArrayLike) -> FloatArray:
    """½(q·w)² − p·w + s, which is ½wᵀqqᵀw − pᵀw + s without the d × d matrix."""
    w = numbers(weights=weights)
    if w.shape != terms.q.shape[-1:]:
        raise InvalidValueError(
            f"Expected weights of shape {terms.q.shape[-1:]}, one per feature, and got {w.shape}."
        )
    result: FloatArray = (terms.q @ w) ** 2 / 2 - terms.p @ w + terms.s
    return result


def check_bounds(loss: QuadraticLoss, features: ArrayLike, target: ArrayLike) -> None:
    """Refuse a loss that breaks its own promises on these records, naming the row and the value.

    ‖q‖ ≤ R_q and ‖p‖ ≤ R_p; and, if `parallel`, p = κq with |κ| ≤ R_p/R_q, where κ = p·q/‖q‖² is
    the only candidate. Each may be missed by a rounding error of 10⁻⁹. Data can refute a promise
    and cannot prove one: try records at the edge of what may occur.
    """
    positive(q_bound=loss.q_bound)
    nonnegative(p_bound=loss.p_bound)
    x, _ = paired(features, target)
    q, p, s = (np.asarray(term, dtype=float) for term in loss.terms(features, target))
    for name, term, shape in (("q", q, x.shape), ("p", p, x.shape), ("s", s, x.shape[:-1])):
        if term.shape != shape:
            raise InvalidValueError(
                f"Expected {name} of shape {shape}, and terms() gave {term.shape}."
            )
    q, p = np.atleast_2d(q), np.atleast_2d(p)
    q_norm, p_norm = row_norms(q), row_norms(p)
    slack = 1 + TOLERANCE
    for name, norm, bound in (("q", q_norm, loss.q_bound), ("p", p_norm, loss.p_bound)):
        refuse_first(
            ~(norm <= bound * slack),
            f"a ‖{name}‖",
            f"above {name}_bound={bound:g}; raise the bound, or refuse such records in terms()",
        )
    if not loss.parallel:
        return
    dot = np.einsum("ij,ij->i", q, p)
    kappa = np.divide(dot, q_norm**2, out=np.zeros_like(dot), where=q_norm > 0)
    across = row_norms(p - kappa[:, None] * q)
    refuse_first(
        (across > TOLERANCE * p_norm) & (q_norm > _VANISHING),
        "a part of p across q,",
        "so p is no multiple of q; say parallel=False",
    )
    refuse_first(
        p_norm * loss.q_bound > loss.p_bound * (q_norm * slack + _VANISHING),
        "a ‖p‖/‖q‖",
        f"above p_bound/q_bound={loss.p_bound / loss.q_bound:g}; "
        "say parallel=False, or raise p_bound",
    )
