"""The exact minimiser of Huber's loss with a ridge and a linear term, by Newton's steps.

    argmin Σh(y − w·x) + ½·ridge·‖w‖² + linear·w
    h(r) = ½r² for |r| ≤ clip, and clip·|r| − ½clip² beyond

Each step solves for the parabola of the records that are not clipped; it is halved until the
objective falls. The objective is piecewise quadratic and strictly convex, so the steps end at the
minimum.
"""

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import NotCertifiedError

RESIDUAL_ALLOWED = 1e-10  # of ‖gradient‖, relative to the size of what it adds up
MOST_STEPS = 500


def huber_minimiser(
    x: FloatArray, y: FloatArray, *, clip: float, ridge: float, linear: FloatArray
) -> FloatArray:
    """w, with a gradient of zero but for rounding."""
    weights = np.zeros(x.shape[1])
    size = clip * len(y) + float(np.linalg.norm(linear)) + ridge

    def objective(w: FloatArray) -> float:
        r = np.abs(y - x @ w)
        losses = np.where(r <= clip, r * r / 2, clip * r - clip * clip / 2)
        return float(losses.sum() + ridge * (w @ w) / 2 + linear @ w)

    value = objective(weights)
    for _ in range(MOST_STEPS):
        residuals = y - x @ weights
        gradient = ridge * weights + linear - np.clip(residuals, -clip, clip) @ x
        if np.linalg.norm(gradient) <= RESIDUAL_ALLOWED * (size + ridge * np.linalg.norm(weights)):
            return weights
        inside = x[np.abs(residuals) <= clip]
        step = np.linalg.solve(inside.T @ inside + ridge * np.eye(len(weights)), gradient)
        share, slope = 1.0, float(gradient @ step)
        while True:
            further = weights - share * step
            lower = objective(further)
            if lower <= value - 1e-4 * share * slope + 1e-14 * abs(value) or share < 1e-9:
                break
            share /= 2
        weights, value = further, lower
    raise NotCertifiedError(
        f"The minimiser of {len(y)} clipped losses with ridge={ridge:.3g} was not found to "
        f"{RESIDUAL_ALLOWED}. Give a larger clip, so that fewer records are cut."
    )
