"""The three parties in one process, as scikit-learn estimators: `fit`, `predict`, and a guarantee.

| | sums are blurred (the default choice) | records are blurred, as in the paper |
| --- | --- | --- |
| a number | `MomentPerturbationRegressor` | `InputPerturbationRegressor` |
| a class | `MomentPerturbationClassifier` | `InputPerturbationClassifier` |
"""

from blurfit.estimators.base import FitGuarantee
from blurfit.estimators.classifiers import InputPerturbationClassifier, MomentPerturbationClassifier
from blurfit.estimators.regressors import InputPerturbationRegressor, MomentPerturbationRegressor

__all__ = [
    "FitGuarantee",
    "InputPerturbationClassifier",
    "InputPerturbationRegressor",
    "MomentPerturbationClassifier",
    "MomentPerturbationRegressor",
]
