"""blurfit: blur your own record, then fit together.

Contributors perturb their records themselves; a database that nobody has to trust learns a linear
or logistic model from what they send; the published model is (ε, δ)-differentially private.
"""

from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.theory.calibrated import Calibration, InputCalibration, MomentCalibration
from blurfit.theory.calibration import calibrate, guarantee
from blurfit.theory.setting import LocalGuarantee, ModelGuarantee, Setting

__version__ = "0.1.0"

__all__ = [
    "BlurfitError",
    "Calibration",
    "InfeasibleError",
    "InputCalibration",
    "InvalidValueError",
    "LocalGuarantee",
    "ModelGuarantee",
    "MomentCalibration",
    "NotCertifiedError",
    "Setting",
    "calibrate",
    "guarantee",
]
