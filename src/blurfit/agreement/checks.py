"""What `Agreement.verify` and `propose` refuse, one function for each rule."""

import math

from blurfit.agreement.grid import LEAST_RATIO, MOST_RATIO, ROUNDING
from blurfit.agreement.numbers import NumberRun
from blurfit.errors import InfeasibleError, NotCertifiedError
from blurfit.schema.schema import Schema
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.losses import LogisticLoss, SquaredLoss


def promised_in_all(kept: float, kept_back: float) -> float:
    """What is promised in all, in twelve digits, of which the last is never rounded down."""
    whole = kept / (1 - kept_back)
    rounded = float(f"{whole:.12g}")
    if rounded < whole * (1 - 4e-16):
        rounded = float(f"{rounded + 10.0 ** (math.floor(math.log10(whole)) - 11):.12g}")
    return rounded


def refuse_unless_proved(calibration: InputCalibration) -> None:
    """Refuse a promise that does not follow from its noise: the paper's own rule."""
    promised, kept = calibration.model, calibration.kept
    if not promised.proved:
        raise NotCertifiedError(
            f"Expected rule='certified', and got rule={calibration.rule!r}: epsilon="
            f"{promised.epsilon:g} is what the paper states for this noise, and epsilon="
            f"{kept.epsilon:.4g} is what is proved. Send no real person's record under this "
            "agreement; allow_unproved=True is for experiments."
        )


def refuse_narrow_bounds(
    schema: Schema, calibration: InputCalibration, loss: SquaredLoss | LogisticLoss
) -> None:
    """Refuse noise that is calibrated for shorter records than the schema and the loss give."""
    setting = calibration.setting
    if schema.dimension != setting.dimension:
        raise NotCertifiedError(
            f"Expected dimension={setting.dimension} to be {schema.dimension}, the "
            "number of columns that the schema encodes."
        )
    for name, stated, needed in (
        ("q_bound", setting.q_bound, loss.q_bound),
        ("p_bound", setting.p_bound, loss.p_bound),
    ):
        if not stated >= needed * (1 + ROUNDING):
            raise NotCertifiedError(
                f"Expected {name}={stated!r} to be at least {needed * (1 + ROUNDING)!r}, "
                "as far as records of this schema reach: the noise is calibrated for less."
            )


def refuse_unless_blurrable(parts: tuple[NumberRun, ...]) -> None:
    """Refuse numbers or noise of more steps than can be drawn and added exactly, before any record
    is read: whether one can be sent must not depend on its answers.
    """
    for part in parts:
        if not part.bound < 2.0**51 * part.step:
            raise InfeasibleError(
                f"Expected numbers of fewer than 2**51 steps, and one may have "
                f"{part.bound / part.step:.4g}: the noise is too small for numbers of this size. "
                "Choose a smaller epsilon, or a smaller quorum."
            )
        ratios = part.deviations / part.step
        if not (ratios.min() >= LEAST_RATIO and ratios.max() <= MOST_RATIO):
            raise InfeasibleError(
                f"Expected noise between {LEAST_RATIO:g} and {MOST_RATIO:g} steps, and got "
                f"{ratios.min():.4g} to {ratios.max():.4g}: nobody could draw it exactly. Choose "
                "a less extreme promise."
            )
