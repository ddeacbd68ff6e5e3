"""blurfit: blur your own record, then fit together.

Contributors perturb their records themselves; a database that nobody has to trust learns a linear
or logistic model from what they send; the published model is (ε, δ)-differentially private.
"""

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.schema import Binary, Categorical, Numeric, Schema
from blurfit.agreement.submission import Submission, Submissions
from blurfit.contributor.perturb import perturb, perturb_table
from blurfit.database.learner import learn
from blurfit.database.statistics import Statistics
from blurfit.database.store import Store
from blurfit.errors import (
    BelowQuorumError,
    BlurfitError,
    ClosedError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    NotInvitedError,
    NotPublishedError,
    ServiceError,
    StorageError,
    UnknownCollectionError,
)
from blurfit.model.published import PublishedModel
from blurfit.theory.calibrated import Calibration, InputCalibration, MomentCalibration
from blurfit.theory.calibration import calibrate, guarantee
from blurfit.theory.setting import LocalGuarantee, ModelGuarantee, Setting

__version__ = "0.1.0"

__all__ = [
    "Agreement",
    "BelowQuorumError",
    "Binary",
    "BlurfitError",
    "Calibration",
    "Categorical",
    "ClosedError",
    "ConflictError",
    "InfeasibleError",
    "InputCalibration",
    "InvalidValueError",
    "LocalGuarantee",
    "ModelGuarantee",
    "MomentCalibration",
    "NotCertifiedError",
    "NotInvitedError",
    "NotPublishedError",
    "Numeric",
    "PublishedModel",
    "Schema",
    "ServiceError",
    "Setting",
    "Statistics",
    "StorageError",
    "Store",
    "Submission",
    "Submissions",
    "UnknownCollectionError",
    "calibrate",
    "guarantee",
    "learn",
    "perturb",
    "perturb_table",
]
