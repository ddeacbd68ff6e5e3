"""blurfit: blur your own record, then fit together.

Contributors perturb their records themselves; a database that nobody has to trust learns a linear
or logistic model from what they send; the published model is (ε, δ)-differentially private.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.contributor.perturb import perturb, perturb_table
    from blurfit.errors import (
        BelowQuorumError,
        BlurfitError,
        ClosedError,
        ConflictError,
        InfeasibleError,
        InvalidValueError,
        NotCertifiedError,
        NotInvitedError,
        NotPrivateWarning,
        NotPublishedError,
        ServiceError,
        StorageError,
        UnknownCollectionError,
    )
    from blurfit.learning.learner import learn
    from blurfit.learning.statistics import Statistics
    from blurfit.messages.submissions import Submission, Submissions
    from blurfit.model.published import PublishedModel
    from blurfit.schema.schema import Binary, Categorical, Numeric, Schema
    from blurfit.store.store import Store
    from blurfit.theory.calibrate import calibrate, guarantee
    from blurfit.theory.calibration import Calibration, InputCalibration, MomentCalibration
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
    "NotPrivateWarning",
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

# Where each name lives: read when it is first used, so that `import blurfit` takes no time.
_HOMES = {
    "blurfit.agreement.agreement": ("Agreement",),
    "blurfit.schema.schema": ("Binary", "Categorical", "Numeric", "Schema"),
    "blurfit.messages.submissions": ("Submission", "Submissions"),
    "blurfit.contributor.perturb": ("perturb", "perturb_table"),
    "blurfit.learning.learner": ("learn",),
    "blurfit.learning.statistics": ("Statistics",),
    "blurfit.store.store": ("Store",),
    "blurfit.errors": (
        "BelowQuorumError",
        "BlurfitError",
        "ClosedError",
        "ConflictError",
        "InfeasibleError",
        "InvalidValueError",
        "NotCertifiedError",
        "NotInvitedError",
        "NotPrivateWarning",
        "NotPublishedError",
        "ServiceError",
        "StorageError",
        "UnknownCollectionError",
    ),
    "blurfit.model.published": ("PublishedModel",),
    "blurfit.theory.calibration": ("Calibration", "InputCalibration", "MomentCalibration"),
    "blurfit.theory.calibrate": ("calibrate", "guarantee"),
    "blurfit.theory.setting": ("LocalGuarantee", "ModelGuarantee", "Setting"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
