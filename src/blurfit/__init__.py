"""blurfit: blur your own record, then fit together.

Contributors perturb their records themselves; a database learns a linear or logistic model from
what they send; the published model is (ε, δ)-differentially private. With two databases neither has
to be trusted with a record, as long as they do not collude and follow the protocol.

The public interface is `__all__` of this package and of `blurfit.estimators`, and the command
`blurfit`. All other modules are internal: they may change from one version to the next. Rivals,
real data sets and experiments are a distribution of their own, `blurfit-lab`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from blurfit.version import __version__ as __version__

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.plan import Plan
    from blurfit.agreement.terms import Terms
    from blurfit.audit.agreements import audit_agreement
    from blurfit.audit.estimators import audit_estimator
    from blurfit.budget import Budget, BudgetExceededError
    from blurfit.contributor.blur import perturb, perturb_table
    from blurfit.contributor.client import Client
    from blurfit.errors import (
        BelowQuorumError,
        BetweenWavesError,
        BlurfitError,
        ClosedError,
        ConflictError,
        DateClosedError,
        InfeasibleError,
        InvalidValueError,
        NotCertifiedError,
        NotInvitedError,
        NotPrivateWarning,
        NotPublishedError,
        OtherGroupError,
        PausedError,
        ServiceError,
        StorageError,
        UnknownCollectionError,
        WaveClosedError,
    )
    from blurfit.estimators.base import FitGuarantee
    from blurfit.estimators.classifiers import (
        InputPerturbationClassifier,
        MomentPerturbationClassifier,
    )
    from blurfit.estimators.regressors import (
        InputPerturbationRegressor,
        MomentPerturbationRegressor,
    )
    from blurfit.forecast.sweep import forecast_agreement
    from blurfit.messages.submissions import Submission, Submissions
    from blurfit.model.model import PublishedModel
    from blurfit.model.moments import PublishedMoments
    from blurfit.model.release import learn
    from blurfit.schema.schema import Binary, Categorical, Numeric, Schema
    from blurfit.schema.wording import About, Wording
    from blurfit.store.store import Store
    from blurfit.theory.guarantees import LocalGuarantee, ModelGuarantee, Setting
    from blurfit.theory.input_calibration import InputCalibration, calibrate, guarantee
    from blurfit.theory.moments import MomentCalibration, calibrate_moment

__all__ = [
    "About",
    "Agreement",
    "BelowQuorumError",
    "BetweenWavesError",
    "Binary",
    "BlurfitError",
    "Budget",
    "BudgetExceededError",
    "Categorical",
    "Client",
    "ClosedError",
    "ConflictError",
    "DateClosedError",
    "FitGuarantee",
    "InfeasibleError",
    "InputCalibration",
    "InputPerturbationClassifier",
    "InputPerturbationRegressor",
    "InvalidValueError",
    "LocalGuarantee",
    "ModelGuarantee",
    "MomentCalibration",
    "MomentPerturbationClassifier",
    "MomentPerturbationRegressor",
    "NotCertifiedError",
    "NotInvitedError",
    "NotPrivateWarning",
    "NotPublishedError",
    "Numeric",
    "OtherGroupError",
    "PausedError",
    "Plan",
    "PublishedModel",
    "PublishedMoments",
    "Schema",
    "ServiceError",
    "Setting",
    "StorageError",
    "Store",
    "Submission",
    "Submissions",
    "Terms",
    "UnknownCollectionError",
    "WaveClosedError",
    "Wording",
    "audit_agreement",
    "audit_estimator",
    "calibrate",
    "calibrate_moment",
    "forecast_agreement",
    "guarantee",
    "learn",
    "perturb",
    "perturb_table",
]

# Where each name lives that is not an error: read when it is first used, so that `import blurfit`
# takes no time.
_HOMES = {
    "blurfit.agreement.agreement": ("Agreement",),
    "blurfit.agreement.plan": ("Plan",),
    "blurfit.audit.estimators": ("audit_estimator",),
    "blurfit.audit.agreements": ("audit_agreement",),
    "blurfit.contributor.client": ("Client",),
    "blurfit.estimators": (
        "FitGuarantee",
        "InputPerturbationClassifier",
        "InputPerturbationRegressor",
        "MomentPerturbationClassifier",
        "MomentPerturbationRegressor",
    ),
    "blurfit.forecast.sweep": ("forecast_agreement",),
    "blurfit.schema.wording": ("About", "Wording"),
    "blurfit.schema.schema": ("Binary", "Categorical", "Numeric", "Schema"),
    "blurfit.messages.submissions": ("Submission", "Submissions"),
    "blurfit.contributor.blur": ("perturb", "perturb_table"),
    "blurfit.agreement.terms": ("Terms",),
    "blurfit.budget": ("Budget", "BudgetExceededError"),
    "blurfit.model.release": ("learn",),
    "blurfit.model.moments": ("PublishedMoments",),
    "blurfit.store.store": ("Store",),
    "blurfit.model.model": ("PublishedModel",),
    "blurfit.theory.moments": ("MomentCalibration", "calibrate_moment"),
    "blurfit.theory.input_calibration": ("InputCalibration", "calibrate", "guarantee"),
    "blurfit.theory.guarantees": ("LocalGuarantee", "ModelGuarantee", "Setting"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOME.get(name, "blurfit.errors")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
