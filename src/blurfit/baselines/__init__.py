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
| `AdaSSPRegressor` | (ε, δ) | zero-out |

All take `neighbours`, so that they can be compared under the same relation; the noise is what that
relation needs.
"""

from blurfit.baselines.adassp import AdaSSPRegressor
from blurfit.baselines.functional import (
    FunctionalMechanismClassifier,
    FunctionalMechanismRegressor,
)
from blurfit.baselines.gradient import (
    GradientPerturbationClassifier,
    GradientPerturbationRegressor,
)
from blurfit.baselines.local import LocalGradientClassifier, LocalGradientRegressor
from blurfit.baselines.nonprivate import (
    ConstantClassifier,
    ConstantRegressor,
    NonPrivateClassifier,
    NonPrivateRegressor,
)
from blurfit.baselines.objective import (
    LaplaceObjectivePerturbationClassifier,
    LaplaceObjectivePerturbationRegressor,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
)
from blurfit.baselines.output import OutputPerturbationClassifier, OutputPerturbationRegressor

__all__ = [
    "AdaSSPRegressor",
    "ConstantClassifier",
    "ConstantRegressor",
    "FunctionalMechanismClassifier",
    "FunctionalMechanismRegressor",
    "GradientPerturbationClassifier",
    "GradientPerturbationRegressor",
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
]
