"""blurfit: blur your own record, then fit together.

Contributors perturb their records themselves; a database learns a linear or logistic model from
what they send; the published model is (ε, δ)-differentially private. With two databases neither has
to be trusted with a record, as long as they do not collude and follow the protocol.

The public interface is `__all__` of this package and of `blurfit.estimators`, and the command
`blurfit`. All other modules are internal: they may change from one version to the next. Rivals,
real data sets and experiments are a distribution of their own, `blurfit-lab`.
"""

from importlib import import_module
from typing import Any

from blurfit.version import __version__ as __version__

# The public list: where each name lives. It is read when it is first used, so that `import blurfit`
# takes no time; `__init__.pyi` says the same to type checkers.
_HOMES = {
    "blurfit.agreement.agreement": "Agreement",
    "blurfit.agreement.plan": "Plan",
    "blurfit.agreement.terms": "Terms",
    "blurfit.audit.agreements": "audit_agreement",
    "blurfit.audit.estimators": "audit_estimator",
    "blurfit.budget": "Budget BudgetExceededError",
    "blurfit.contributor.blur": "perturb perturb_table",
    "blurfit.contributor.client": "Client",
    "blurfit.errors": (
        "BelowQuorumError BetweenWavesError BlurfitError ClosedError ConflictError "
        "DateClosedError InfeasibleError InvalidValueError NotCertifiedError "
        "NotInvitedError NotPrivateWarning NotPublishedError OtherGroupError PausedError "
        "ServiceError StorageError UnknownCollectionError WaveClosedError"
    ),
    "blurfit.estimators.base": "FitGuarantee",
    "blurfit.estimators.classifiers": "InputPerturbationClassifier MomentPerturbationClassifier",
    "blurfit.estimators.regressors": "InputPerturbationRegressor MomentPerturbationRegressor",
    "blurfit.estimators.survival": "MomentPerturbationSurvival",
    "blurfit.forecast.sweep": "forecast_agreement",
    "blurfit.messages.submissions": "Submission Submissions",
    "blurfit.model.model": "PublishedModel",
    "blurfit.model.moments": "PublishedMoments",
    "blurfit.model.release": "learn",
    "blurfit.schema.derived": "Bands Condition Cross Curve Poly Product",
    "blurfit.schema.schema": "Binary Categorical Numeric Schema",
    "blurfit.schema.columns": "About TimeToEvent Wording",
    "blurfit.store.store": "Store",
    "blurfit.theory.guarantees": "LocalGuarantee ModelGuarantee Setting",
    "blurfit.theory.input_calibration": "InputCalibration calibrate guarantee",
    "blurfit.theory.moments": "MomentCalibration calibrate_moment",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = [*sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
