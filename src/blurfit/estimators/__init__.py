"""The three parties in one process, as scikit-learn estimators: `fit`, `predict`, and a guarantee.

| | sums are blurred (the default choice) | records are blurred, as in the paper |
| --- | --- | --- |
| a number | `MomentPerturbationRegressor` | `InputPerturbationRegressor` |
| a class | `MomentPerturbationClassifier` | `InputPerturbationClassifier` |
| a time until an event | `MomentPerturbationSurvival` | |
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blurfit.estimators.base import FitGuarantee
    from blurfit.estimators.classifiers import (
        InputPerturbationClassifier,
        MomentPerturbationClassifier,
    )
    from blurfit.estimators.regressors import (
        InputPerturbationRegressor,
        MomentPerturbationRegressor,
    )
    from blurfit.estimators.survival import MomentPerturbationSurvival

__all__ = [
    "FitGuarantee",
    "InputPerturbationClassifier",
    "InputPerturbationRegressor",
    "MomentPerturbationClassifier",
    "MomentPerturbationRegressor",
    "MomentPerturbationSurvival",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import an estimator when it is first asked for: scikit-learn takes a second."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = {"Regressor": "regressors", "Classifier": "classifiers", "Survival": "survival"}
    homes["FitGuarantee"] = "base"
    (home,) = (module for ending, module in homes.items() if name.endswith(ending))
    return getattr(import_module(f"{__name__}.{home}"), name)
