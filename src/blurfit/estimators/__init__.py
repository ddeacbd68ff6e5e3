"""The three parties in one process, as scikit-learn estimators: `fit`, `predict`, and a guarantee.

| | sums are blurred (the default choice) | records are blurred, as in the paper |
| --- | --- | --- |
| a number | `MomentPerturbationRegressor` | `InputPerturbationRegressor` |
| a class | `MomentPerturbationClassifier` | `InputPerturbationClassifier` |
| a time until an event | `MomentPerturbationSurvival` | |

Those of the paper live in `blurfit.input_perturbation`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blurfit.estimators.base import FitGuarantee
    from blurfit.estimators.moments import MomentPerturbationClassifier, MomentPerturbationRegressor
    from blurfit.estimators.survival import MomentPerturbationSurvival
    from blurfit.input_perturbation.estimators import (
        InputPerturbationClassifier,
        InputPerturbationRegressor,
    )

__all__ = [
    "FitGuarantee",
    "InputPerturbationClassifier",
    "InputPerturbationRegressor",
    "MomentPerturbationClassifier",
    "MomentPerturbationRegressor",
    "MomentPerturbationSurvival",
]

_HOMES = {
    "FitGuarantee": "blurfit.estimators.base",
    "InputPerturbationClassifier": "blurfit.input_perturbation.estimators",
    "InputPerturbationRegressor": "blurfit.input_perturbation.estimators",
    "MomentPerturbationClassifier": "blurfit.estimators.moments",
    "MomentPerturbationRegressor": "blurfit.estimators.moments",
    "MomentPerturbationSurvival": "blurfit.estimators.survival",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import an estimator when it is first asked for: scikit-learn takes a second."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
