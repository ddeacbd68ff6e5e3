from blurfit.agreement.agreement import Agreement as Agreement
from blurfit.agreement.plan import Plan as Plan
from blurfit.agreement.terms import Terms as Terms
from blurfit.budget import Budget as Budget
from blurfit.budget import BudgetExceededError as BudgetExceededError
from blurfit.contributor.blur import perturb as perturb
from blurfit.contributor.blur import perturb_table as perturb_table
from blurfit.contributor.client import Client as Client
from blurfit.errors import AdviceWarning as AdviceWarning
from blurfit.errors import BelowQuorumError as BelowQuorumError
from blurfit.errors import BetweenWavesError as BetweenWavesError
from blurfit.errors import BlurfitError as BlurfitError
from blurfit.errors import ClosedError as ClosedError
from blurfit.errors import ConflictError as ConflictError
from blurfit.errors import DateClosedError as DateClosedError
from blurfit.errors import InfeasibleError as InfeasibleError
from blurfit.errors import InvalidValueError as InvalidValueError
from blurfit.errors import NotCertifiedError as NotCertifiedError
from blurfit.errors import NotInvitedError as NotInvitedError
from blurfit.errors import NotPrivateWarning as NotPrivateWarning
from blurfit.errors import NotPublishedError as NotPublishedError
from blurfit.errors import OtherGroupError as OtherGroupError
from blurfit.errors import PausedError as PausedError
from blurfit.errors import ServiceError as ServiceError
from blurfit.errors import StorageError as StorageError
from blurfit.errors import UnknownCollectionError as UnknownCollectionError
from blurfit.errors import WaveClosedError as WaveClosedError
from blurfit.estimators.base import FitGuarantee as FitGuarantee
from blurfit.estimators.moments import (
    MomentPerturbationClassifier as MomentPerturbationClassifier,
)
from blurfit.estimators.moments import MomentPerturbationRegressor as MomentPerturbationRegressor
from blurfit.estimators.survival import MomentPerturbationSurvival as MomentPerturbationSurvival
from blurfit.forecast.sweep import forecast_agreement as forecast_agreement
from blurfit.input_perturbation.estimators import (
    InputPerturbationClassifier as InputPerturbationClassifier,
)
from blurfit.input_perturbation.estimators import (
    InputPerturbationRegressor as InputPerturbationRegressor,
)
from blurfit.messages.submissions import Submission as Submission
from blurfit.messages.submissions import Submissions as Submissions
from blurfit.model.model import PublishedModel as PublishedModel
from blurfit.model.release import PublishedMoments as PublishedMoments
from blurfit.model.release import learn as learn
from blurfit.schema.columns import About as About
from blurfit.schema.columns import TimeToEvent as TimeToEvent
from blurfit.schema.columns import Wording as Wording
from blurfit.schema.derived import Bands as Bands
from blurfit.schema.derived import Condition as Condition
from blurfit.schema.derived import Cross as Cross
from blurfit.schema.derived import Curve as Curve
from blurfit.schema.derived import Poly as Poly
from blurfit.schema.derived import Product as Product
from blurfit.schema.schema import Binary as Binary
from blurfit.schema.schema import Categorical as Categorical
from blurfit.schema.schema import Numeric as Numeric
from blurfit.schema.schema import Schema as Schema
from blurfit.theory.moments import LocalGuarantee as LocalGuarantee
from blurfit.theory.moments import ModelGuarantee as ModelGuarantee
from blurfit.theory.moments import MomentCalibration as MomentCalibration
from blurfit.theory.moments import calibrate_moment as calibrate_moment
from blurfit.version import __version__ as __version__
