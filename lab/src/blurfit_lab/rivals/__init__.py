"""The rivals, as scikit-learn estimators: what one would use instead, run as fairly as we know how.

| method, as a …Regressor and a …Classifier | promise | published for |
| --- | --- | --- |
| `NonPrivate…`: no privacy, the floor | none | – |
| `Constant…`: the constant model, the ceiling | none | – |
| `OutputPerturbation…` | ε | replace |
| `LaplaceObjectivePerturbation…` | ε | replace |
| `ObjectivePerturbation…`: Gaussian, published or certified | (ε, δ) | zero-out |
| `GradientPerturbation…`: published, or with modern accounting | (ε, δ) | replace |
| `LocalGradient…` | ε, locally | replace |
| `FunctionalMechanism…` | ε | replace |
| `AdaSSPRegressor`: published, or exact | (ε, δ) | zero-out |
| `BoostedAdaSSPRegressor`: exact, or as its code | (ε, δ) | zero-out |
| `GaussMixRegressor`: published, or exact | (ε, δ) | zero-out |
| `IterativeHessianMixingRegressor`: published, or exact | (ε, δ) | zero-out |
| `BinAggRegressor` | (ε, δ) | zero-out |
| `TukeyRegressor` | (ε, δ) | zero-out |
| `PublicMomentRegressor`: beside public rows | (ε, δ) | zero-out |
| `GeneralisedObjectivePerturbation…` | (ε, δ) | zero-out |

All take `neighbours`, so that they can be compared under the same relation; the noise is what that
relation needs.
"""

from blurfit_lab.rivals.adassp import AdaSSPRegressor
from blurfit_lab.rivals.binagg import BinAggRegressor
from blurfit_lab.rivals.boosted import BoostedAdaSSPRegressor
from blurfit_lab.rivals.functional import (
    FunctionalMechanismClassifier,
    FunctionalMechanismRegressor,
)
from blurfit_lab.rivals.gaussmix import GaussMixRegressor
from blurfit_lab.rivals.generalised import (
    GeneralisedObjectivePerturbationClassifier,
    GeneralisedObjectivePerturbationRegressor,
)
from blurfit_lab.rivals.gradient import (
    GradientPerturbationClassifier,
    GradientPerturbationRegressor,
)
from blurfit_lab.rivals.ihm import IterativeHessianMixingRegressor
from blurfit_lab.rivals.local import LocalGradientClassifier, LocalGradientRegressor
from blurfit_lab.rivals.nonprivate import (
    ConstantClassifier,
    ConstantRegressor,
    NonPrivateClassifier,
    NonPrivateRegressor,
)
from blurfit_lab.rivals.objective import (
    LaplaceObjectivePerturbationClassifier,
    LaplaceObjectivePerturbationRegressor,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
)
from blurfit_lab.rivals.output import OutputPerturbationClassifier, OutputPerturbationRegressor
from blurfit_lab.rivals.public_moment import PublicMomentRegressor
from blurfit_lab.rivals.tukey import TukeyRegressor

__all__ = [
    "AdaSSPRegressor",
    "BinAggRegressor",
    "BoostedAdaSSPRegressor",
    "ConstantClassifier",
    "ConstantRegressor",
    "FunctionalMechanismClassifier",
    "FunctionalMechanismRegressor",
    "GaussMixRegressor",
    "GeneralisedObjectivePerturbationClassifier",
    "GeneralisedObjectivePerturbationRegressor",
    "GradientPerturbationClassifier",
    "GradientPerturbationRegressor",
    "IterativeHessianMixingRegressor",
    "LaplaceObjectivePerturbationClassifier",
    "LaplaceObjectivePerturbationRegressor",
    "LocalGradientClassifier",
    "LocalGradientRegressor",
    "NonPrivateClassifier",
    "NonPrivateRegressor",
    "ObjectivePerturbationClassifier",
    "ObjectivePerturbationRegressor",
    "OutputPerturbationClassifier",
    "OutputPerturbationRegressor",
    "PublicMomentRegressor",
    "TukeyRegressor",
]
