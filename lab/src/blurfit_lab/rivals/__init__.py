"""The rivals, as scikit-learn estimators: what one would use instead, run as fairly as we know how.

| method, as a …Regressor and a …Classifier | promise | published for |
| --- | --- | --- |
| `NonPrivate…`: no privacy, the floor | none | – |
| `OutputPerturbation…` | ε | replace |
| `ObjectivePerturbation…`: Gaussian, published or certified | (ε, δ) | zero-out |
| `GradientPerturbation…`: with today's accounting | (ε, δ) | replace |
| `AdaSSPRegressor`: published, or exact | (ε, δ) | zero-out |
| `BoostedAdaSSPRegressor`: exact, or as its code | (ε, δ) | zero-out |
| `GaussMixRegressor`: published, or exact | (ε, δ) | zero-out |
| `IterativeHessianMixingRegressor`: published, or exact | (ε, δ) | zero-out |
| `BinAggRegressor` | (ε, δ) | zero-out |
| `TukeyRegressor` | (ε, δ) | zero-out |
| `GeneralisedObjectivePerturbation…` | (ε, δ) | zero-out |

All take `neighbours`, so that they can be compared under the same relation; the noise is what that
relation needs.
"""

from blurfit_lab.rivals.aggregates import BinAggRegressor, TukeyRegressor
from blurfit_lab.rivals.mixing import GaussMixRegressor, IterativeHessianMixingRegressor
from blurfit_lab.rivals.noisy_sums import AdaSSPRegressor, BoostedAdaSSPRegressor
from blurfit_lab.rivals.perturbation import (
    GeneralisedObjectivePerturbationClassifier,
    GeneralisedObjectivePerturbationRegressor,
    GradientPerturbationClassifier,
    GradientPerturbationRegressor,
    NonPrivateClassifier,
    NonPrivateRegressor,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    OutputPerturbationClassifier,
    OutputPerturbationRegressor,
)

__all__ = [
    "AdaSSPRegressor",
    "BinAggRegressor",
    "BoostedAdaSSPRegressor",
    "GaussMixRegressor",
    "GeneralisedObjectivePerturbationClassifier",
    "GeneralisedObjectivePerturbationRegressor",
    "GradientPerturbationClassifier",
    "GradientPerturbationRegressor",
    "IterativeHessianMixingRegressor",
    "NonPrivateClassifier",
    "NonPrivateRegressor",
    "ObjectivePerturbationClassifier",
    "ObjectivePerturbationRegressor",
    "OutputPerturbationClassifier",
    "OutputPerturbationRegressor",
    "TukeyRegressor",
]
