"""The release: blurred sums of all products of two columns, from which anything linear follows.

    moments = PublishedMoments.load("moments.json")
    print(moments.fit("income ~ age + education + C(region)").summary())

The sums are private themselves, so whatever is computed from them afterwards costs nothing: any
column as the target of any others, any penalty, correlations, principal components, as often as one
likes, by anyone who has the file. That is post-processing (`blurfit.theory.moments`). It must not
be combined with other sums over almost the same people: one agreement has one set.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.data import FloatArray, fixed, software
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning.public_features import Family
from blurfit.learning.sums import JointSums
from blurfit.messages.signing import Signature
from blurfit.model.answers import Answers
from blurfit.model.effects import standardised
from blurfit.model.fitting import Path as CoefficientPath
from blurfit.model.fitting import fit, fit_public, path
from blurfit.model.model import PublishedDocument, PublishedFile, PublishedModel
from blurfit.model.tables import Asked
from blurfit.schema.formulas import Formula, parsed
from blurfit.theory.coded import CodedForm
from blurfit.theory.events import EventForm
from blurfit.theory.forms import JointForm, TargetForm
from blurfit.theory.hazards import HazardForm
from blurfit.theory.moments import MomentCalibration

LITTLE_WEIGHT = 0.1  # on average, below which it is said what it costs
if TYPE_CHECKING:
    from blurfit.model.groups import ByGroup
    from blurfit.model.survival import SurvivalModel

WITHOUT_PUBLIC_ROWS = (
    "Only products with the target were sent, so nothing is known of how features go together. Fit "
    "with the public rows that the agreement names: moments.fit(public=rows), or `blurfit fit "
    "moments.json --public FILE`."
)


OF_EXITS = (
    "These are sums of who left when: moments.survival(), or `blurfit fit moments.json`, tells "
    "hazards, curves and tests from them."
)


OF_HAZARDS = (
    "These are sums of a later wave of who left when: Course.survival() of the plan and its "
    "releases, or `blurfit fit MOMENTS --plan PLAN --release EARLIER`, tells log-odds from them."
)


def without_a_model(agreement: Agreement) -> str:
    """Return why sums have no model of their own, and what follows from them instead."""
    if isinstance(agreement.form, HazardForm):
        return OF_HAZARDS
    return WITHOUT_PUBLIC_ROWS if agreement.sends != "everything" else OF_EXITS


class MomentsDocument(PublishedDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release of sums as it is written: `products` names them, `deviation` is of their noise."""

    format: Literal["blurfit-moments"]
    deviation: float
    products: tuple[str, ...]
    sums: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class PublishedMoments(PublishedFile, Asked):
    """Count, blurred sums and agreement: a public file, with the promise that it keeps.

    `sums` are the numbers that contributors sent, added up, in the order of `agreement.form`.
    `caveats` and `held` are handed on to every model of it.
    """

    CALLED = "a release of moments"
    FORMAT = "blurfit-moments"
    DOCUMENT = MomentsDocument

    agreement: Agreement
    count: int
    sums: FloatArray
    software: str = field(default_factory=software)
    caveats: tuple[str, ...] = ()
    held: bool = False
    signatures: tuple[Signature, ...] = ()

    def __post_init__(self) -> None:
        if not self.agreement.shows_sums:
            raise InvalidValueError(
                "Expected an agreement with mechanism='moment': the sums of 'input' are never "
                "shown, because its promise is for one model alone."
            )
        self._require_quorum()
        sums = np.array(self.sums, dtype=np.float64)
        if sums.shape != (self.agreement.form.width,) or not np.isfinite(sums).all():
            raise InvalidValueError(
                f"Expected {self.agreement.form.width} finite sums, and got shape {sums.shape}."
            )
        object.__setattr__(self, "sums", fixed(sums))

    def __repr__(self) -> str:
        names = ", ".join(one.name for one in self.agreement.schema.questions)
        return f"<PublishedMoments of {names}; count={self.count:,}, {self.guarantee.numbers}>"

    def _repr_html_(self) -> str:
        head = f"{self.guarantee.counted}, {self.guarantee.numbers}"
        if not self.has_all_products:
            return f"<p>{head}</p>"
        return f"<p>{head}</p>{self.correlations()._repr_html_()}"

    def plot(self, ax: Any = None) -> Any:
        """Return the correlations of all columns, by matplotlib: see `blurfit.model.summary`."""
        from blurfit.model.summary import plot_moments

        return plot_moments(self, ax)

    @cached_property
    def mark(self) -> str:
        """SHA-256 of the release's own text, whoever signed it: what a later wave says that it
        follows.
        """
        return hashlib.sha256(replace(self, signatures=()).to_json().encode()).hexdigest()

    @property
    def has_all_products(self) -> bool:
        """Whether products of all columns were sent, from which correlations follow."""
        return self.agreement.form.joint is not None

    @property
    def deviation(self) -> float:
        """s, the standard deviation of the noise in the sums on the diagonal; off it, s/√2."""
        calibration = self.agreement.calibration
        assert isinstance(calibration, MomentCalibration)
        return calibration.total_noise(self.count, self.agreement.database_draws)

    @cached_property
    def average_weight(self) -> float:
        """How much somebody counts on average, as the blurred sums tell it; 1 without weights."""
        form = self.agreement.form
        if not isinstance(form, CodedForm) or form.weighting is None:
            return 1.0
        whole = form.matrix(self.sums, self.count)[0, 0] / form.inner.constant**2
        return float(np.clip(whole / self.count, 0.0, 1.0))

    @cached_property
    def worth(self) -> float:
        """Σw²/Σw of weights, by which sums are divided before they are read; 1 without weights."""
        form = self.agreement.form
        return form.worth(self.sums)[1] if isinstance(form, CodedForm) else 1.0

    @property
    def weights_in_words(self) -> str:
        """How much people count on average, where they have weights, and what that costs."""
        average = self.average_weight
        if self.agreement.weighting is None:
            return ""
        if average >= LITTLE_WEIGHT:
            return f", weighted ({average:.2g} on average)"
        times = f"{1 / average:.2g}" if average > 0 else "many"
        return (
            f". Weights are {average:.2g} on average, so the noise is {times} times as large as if "
            "everybody counted 1: state a smaller bound or larger factors in the next collection"
        )

    @cached_property
    def joint(self) -> JointSums:
        """The blurred Σzzᵀ, and the law of its noise."""
        form = self.agreement.form
        if isinstance(form, TargetForm | EventForm | HazardForm):
            raise InfeasibleError(without_a_model(self.agreement))
        if form.joint is None:
            raise InfeasibleError(
                "These are the sums of a later wave, under the map that it announced: learn from "
                "all releases of its plan together, with blurfit.model.course.learn_plan."
            )
        matrix = form.matrix(self.sums, self.count) / self.worth
        return self._joint(form.joint, matrix, form.gain / self.worth)

    def beside(self, names: Sequence[str], rows: FloatArray) -> JointSums:
        """Return the sums to read beside public rows of some features, (rows, k): those that were
        sent; where only products with the target were, the rows' own stand in for the features'.
        """
        form = self.agreement.form
        if not isinstance(form, TargetForm):
            return self.joint
        order = [column.name for column in form.columns[: -form.outputs]]
        known = np.zeros((len(order) + 1, len(order) + 1))
        places = [0, *(1 + order.index(name) for name in names)]
        design = np.column_stack([np.ones(len(rows)), rows])
        known[np.ix_(places, places)] = design.T @ design / len(rows)
        return self._joint(form, form.beside(self.sums, known, self.count))

    def _joint(self, form: JointForm, matrix: FloatArray, gain: float = 1.0) -> JointSums:
        deviation = gain * self.deviation
        if form.counted:
            return JointSums(form.columns, form.constant, self.count, matrix, deviation)
        return JointSums.uncounted(form.columns, form.constant, matrix, deviation, self.count)

    def formula(
        self,
        text: str | None = None,
        target: str | None = None,
        features: Sequence[str] | None = None,
    ) -> Formula:
        """Return what a model is asked for: a formula, or names; the agreed target by all others,
        if nothing is said.
        """
        schema, targets = self.agreement.schema, self.agreement.targets
        if self.agreement.sends != "everything":
            targets = schema.targets  # others than the agreed one are refused where it is known why
        if text is not None:
            return parsed(text, schema, targets)
        aim = schema.target.name if target is None else target
        if aim not in targets:
            raise InvalidValueError(
                f"Expected target={aim!r} to be one of {list(targets)}: the agreement says "
                "that only these may be predicted."
            )
        sent = {one.name for one in self.agreement.questions}
        if not self.agreement.factors:
            sent.discard(self.agreement.weighting or "")  # a number that is the weight itself
        others = tuple(name for name in schema.default_predictors(aim) if name in sent)
        return Formula(aim, others if features is None else tuple(features))

    def fit(
        self,
        formula: str | None = None,
        *,
        target: str | None = None,
        features: Sequence[str] | None = None,
        ridge: float | None = None,
        lasso: float | None = None,
        uneven: bool = False,
        public: Any = None,
        family: Family | None = None,
    ) -> PublishedModel:
        """Return a model of any column by any others; the agreement's own target, if nothing is
        said.

        Args:
            formula: as in R: "income ~ age + C(region)"; needs the extra [formulas].
            target: the column to predict, instead of a formula.
            features: the columns that predict it (default: all others).
            ridge: ½·ridge·‖w‖² on the weights of the encoded columns, per person, instead of the
                shrinkage that the noise suggests. 0 is plain least squares.
            lasso: lasso·‖w‖₁, which leaves weak features out.
            uneven: allow for people who spread unevenly around the model: errors √3 times as large
                in their sampling part.
            public: records of the features that are public, and not the contributors' own: with
                them a label is learned by exact logistic regression, a count by Poisson's
                (`blurfit.model.fitting`), and penalties are chosen from the noise.
            family: with `public`: "logistic", "poisson" or "linear"; by the target, if left out.
        """
        asked = self.formula(formula, target, features)
        if public is not None:
            if ridge is not None or lasso is not None or uneven:
                raise InvalidValueError(
                    "Expected no ridge, lasso or uneven with public rows: the shrinkage there "
                    "follows from the noise, and errors from the curve."
                )
            return fit_public(self, public, asked, family=family)[0]
        if family is not None:
            raise InvalidValueError(
                f"Expected public rows with family={family!r}: without them every model of second "
                "moments is linear."
            )
        if self.agreement.groups in asked.features:
            from blurfit.model.groups import fit_common

            if ridge is not None or lasso is not None or uneven:
                raise InvalidValueError(
                    f"Expected no ridge, lasso or uneven with the group {self.agreement.groups!r} "
                    "among the features."
                )
            return fit_common(self, asked)
        return fit(self, asked, ridge=ridge, lasso=lasso, uneven=uneven)

    def survival(self) -> "SurvivalModel":
        """Return hazards, survival curves and tests, where exits were sent."""
        from blurfit.model.survival import SurvivalModel

        if isinstance(self.agreement.form, HazardForm):
            raise InfeasibleError(OF_HAZARDS)
        return SurvivalModel.of(self)

    def ridge_path(self, formula: str | None = None, **options: Any) -> CoefficientPath:
        """Coefficients over a grid of ridges: see `blurfit.model.fitting.path`."""
        return path(self, self.formula(formula), "ridge", **options)

    def lasso_path(self, formula: str | None = None, **options: Any) -> CoefficientPath:
        """Coefficients over a grid of lasso penalties: see `blurfit.model.fitting.path`."""
        return path(self, self.formula(formula), "lasso", **options)

    def by_group(self) -> "ByGroup":
        """Return what is told of each group, where the agreement has groups: a model in each, and
        differences between them (`blurfit.model.groups`).
        """
        from blurfit.model.groups import ByGroup

        return ByGroup.of(self)

    def standardised(self, formula: str | None = None, **options: Any) -> Answers:
        """Return coefficients in units of spread: `blurfit.model.effects.standardised`."""
        return standardised(self, self.formula(formula), **options)

    # ---- files

    def _contents(self) -> dict[str, Any]:
        return {
            "deviation": self.deviation,
            "products": list(self.agreement.form.names),
            "sums": self.sums.tolist(),
        }

    @classmethod
    def _read(cls, document: MomentsDocument, common: Mapping[str, Any]) -> Self:
        return cls(**common, sums=np.array(document.sums, dtype=np.float64))
