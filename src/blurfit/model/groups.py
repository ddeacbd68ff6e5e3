"""What a release with groups says of each of them, and of what differs between them.

    groups = moments.by_group()
    groups.fit("income ~ age + hours").differences("south")
    groups.decompose("income ~ age + hours", "female", "male")

Each group's sums stand in the release (`blurfit.theory.coded`), so all of this is post-processing,
and costs no privacy. The model of everybody is `moments.fit`, as of any release; with the group
among its features it has common slopes, and an intercept for each group. The mathematics is in
`blurfit.learning.groups`.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.statement import Promise
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning import tables as reading
from blurfit.learning.groups import Fitted, GroupSums, decomposed, fit_groups
from blurfit.learning.inference import Inference
from blurfit.learning.sums import JointSums
from blurfit.learning.tables import Answer
from blurfit.model.model import PublishedModel
from blurfit.model.tables import Answers, Asked, limits_of
from blurfit.schema.columns import Categorical
from blurfit.schema.formulas import Formula
from blurfit.schema.schema import Units, units
from blurfit.schema.table import listed
from blurfit.theory.coded import CodedForm

if TYPE_CHECKING:
    from blurfit.model.release import PublishedMoments

OWN = "Each group has its own spread around its own model, within which people spread evenly."


@dataclass(frozen=True, eq=False)
class OneGroup(Asked):
    """The sums of one group, which tell what a release tells, such as `table("sex")`."""

    name: str
    agreement: Agreement
    guarantee: Promise
    joint: JointSums


@dataclass(frozen=True, eq=False)
class ByGroup:
    """A release by its groups: see the module's docstring."""

    moments: "PublishedMoments"
    question: Categorical
    sums: GroupSums

    @classmethod
    def of(cls, moments: "PublishedMoments") -> "ByGroup":
        """Read the sums of each group."""
        form, agreement = moments.agreement.form, moments.agreement
        if not isinstance(form, CodedForm) or agreement.groups is None:
            raise InfeasibleError(
                "Expected an agreement with groups, such as Agreement.propose(…, groups='region'): "
                "the sums of this one are of everybody together. Levels of a question can be "
                "compared by moments.mean(…, by=…), or as a feature of a model."
            )
        question = agreement.schema.question(agreement.groups)
        assert isinstance(question, Categorical)
        worth, _ = form.worth(moments.sums)
        sums = GroupSums(
            names=question.answers,
            columns=form.inner.columns,
            constant=form.inner.constant,
            matrices=form.blocks(moments.sums) / worth[:, None, None],
            spread=moments.deviation**2 * form.code.noise / np.outer(worth, worth),
            count=None if agreement.weighting is not None else moments.count,
        )
        return cls(moments, question, sums)

    @property
    def names(self) -> tuple[str, ...]:
        """The groups."""
        return self.sums.names

    def __getitem__(self, name: str) -> OneGroup:
        """Return one group, with all the tables of a release."""
        agreement, guarantee = self.moments.agreement, self.moments.guarantee
        return OneGroup(name, agreement, guarantee, self.sums.block(self._place(name)))

    def counts(self, *, confidence: float = 0.95) -> Answers:
        """Return how many people each group has; with weights, how many without it is worth."""
        found = self.sums.counts()
        whole = float(found.values.sum())
        likely = np.clip(found.values / whole, 0.0, 1.0)
        sampling = whole * (np.diag(likely) - np.outer(likely, likely))
        what = "People" if self.sums.count is not None else "Effective number of people"
        answer, by = Answer(found.values, sampling, found.noise), self.question.name
        told = f"{what} by {by}", (by,), self.names, answer, confidence
        return self.moments.answers(*told, limits=(0.0, np.inf))

    def mean(self, name: str, *, confidence: float = 0.95) -> Answers:
        """Return the mean of a number, or the share of a yes, in each group."""
        one, by = self._target(name), self.question.name
        models = self._models(Formula(name, ()), confidence)
        test = None
        if len(models.models) > 1:
            test = reading.equal(models.answer, f"{name} is equal in all groups of {by}")
        return replace(
            models.coefficients,
            title=f"Mean of {name} by {by}",
            keys=(by,),
            rows=tuple(models.models),
            limits=limits_of(one),
            hypothesis=test,
        )

    def fit(self, formula: str | None = None, *, confidence: float = 0.95) -> "GroupModels":
        """Return a model in each group, with the covariance between any two of them.

        Groups of which the noise is too large are left out, and `hidden` says why.
        """
        return self._models(self.moments.formula(formula), confidence)

    def _models(self, asked: Formula, confidence: float) -> "GroupModels":
        fitted, told, places, hidden = self._fitted(asked)
        size, names = len(told.names), tuple(self.names[place] for place in places)
        part = fitted.parts[0]
        one = told.matrix[:, told.places] * (part.scale / part.target.weight)
        every = np.kron(np.eye(len(names)), one)
        answer = fitted.answer.through(np.asarray(every, dtype=np.float64))
        answer = replace(answer, values=answer.values + np.tile(told.offset, len(names)))
        models = {}
        for place, name in enumerate(names):
            own = answer.taken(np.arange(place * size, (place + 1) * size))
            variance = fitted.variances[place] / (part.target.weight * told.scale) ** 2
            models[name] = Inference.of(told.names, fitted.parts[place].count, own, variance)
        return GroupModels(self, asked, told.names, models, hidden, answer, confidence)

    def decompose(
        self, formula: str | None, one: str, other: str, *, confidence: float = 0.95
    ) -> Answers:
        """Return how much of the gap between the means of two groups the other's model explains by
        different answers, by each question and in all, and how much is left (Oaxaca and Blinder).
        """
        asked = self.moments.formula(formula)
        if one == other:
            raise InvalidValueError(
                "Expected two different groups, and got {value!r} twice.", value=one
            )
        fitted, told, places, hidden = self._fitted(asked, (one, other))
        if hidden:
            raise InfeasibleError(
                "{listed}: {next}", listed=listed(hidden), next=next(iter(hidden.values()))
            )
        schema = self.moments.agreement.schema
        questions = [
            [at for at, column in enumerate(told.names) if column in schema.question(name).columns]
            for name in asked.features
        ]
        first, second = (places.index(self._place(name)) for name in (one, other))
        found = decomposed(fitted, first, second, questions)
        answer = found.scaled(1 / (fitted.parts[0].target.weight * told.scale))
        rows = ("gap", "explained", *(f"by {name}" for name in asked.features), "unexplained")
        title = f"{asked.target}: {one} less {other}, explained by {' + '.join(asked.features)}"
        meant = (
            f"Explained: what the model of {other} makes of the difference in answers. "
            f"Unexplained: how far the mean of {one} is from what that model says of them."
        )
        parts = title, ("part",), rows, answer, confidence
        return self.moments.answers(*parts, assumes=(meant, OWN))

    def _fitted(
        self, asked: Formula, chosen: Sequence[str] | None = None, *, common: bool = False
    ) -> tuple[Fitted, Units, list[int], dict[str, str]]:
        """Fit some groups, or all that can be: with their places, and why not the others."""
        schema = self.moments.agreement.schema
        aim = self._target(asked.target)
        if self.question.name in asked.features and not common:
            raise InvalidValueError(
                "Expected a formula without {question_name!r}: it is the same for everybody "
                "in a group.",
                question_name=self.question.name,
            )
        told = units(schema, asked.target, asked.features, references=asked.references)
        own = [name for name in told.names[1:] if name not in self.question.columns]
        parts, hidden = self.sums.parts(aim.columns[0], own, models=not common)
        if chosen is not None:
            wanted = [self._place(name) for name in chosen]
            parts = {place: part for place, part in parts.items() if place in wanted}
            hidden = {name: why for name, why in hidden.items() if name in chosen}
        if not parts or (common and len(parts) < 2):
            raise InfeasibleError(next(iter(hidden.values())))
        places = sorted(parts)
        spread = self.sums.spread[np.ix_(places, places)]
        fitted = fit_groups([parts[place] for place in places], spread, common=common)
        return fitted, told, places, hidden

    def _target(self, name: str) -> Any:
        one = self.moments.agreement.schema.question(name)
        if isinstance(one, Categorical) or len(one.columns) > 1:
            raise InvalidValueError(
                "Expected a number or a yes/no that everybody answers, and {name!r} is none: "
                "declare a Condition of a level before anything is collected, or ask each group "
                "for its table.",
                name=name,
            )
        return one

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise InvalidValueError(
                "Expected one of the groups {listed}, not {name!r}.",
                listed=listed(self.names),
                name=name,
            )
        return self.names.index(name)


@dataclass(frozen=True, eq=False, repr=False)
class GroupModels:
    """A model in each group: it prints as a table, draws itself, and has `to_frame()`."""

    groups: ByGroup
    formula: Formula
    columns: tuple[str, ...]  # the names of the coefficients
    models: dict[str, Inference]  # in the user's units
    hidden: dict[str, str]  # why there is no model of a group, where there is none
    answer: Answer  # the coefficients of all groups, one after the other
    confidence: float = 0.95

    @cached_property
    def pooled(self) -> PublishedModel:
        """The model of everybody together."""
        return self.groups.moments.fit(str(self.formula))

    @property
    def coefficients(self) -> Answers:
        """Every coefficient in every group, with errors; tests whether all slopes are equal."""
        return self._answers(f"{self.formula}", self.answer, tuple(self.models))

    def differences(self, reference: str, *groups: str) -> Answers:
        """Return by how much each coefficient of some groups, or of all others, exceeds the
        reference's.
        """
        names = list(self.models)
        for name in (reference, *groups):
            if name not in names:
                why = self.hidden.get(name, f"Expected one of {listed(names)}, not {name!r}.")
                raise InfeasibleError("{name}: {why}", name=name, why=why)
        chosen = groups or tuple(name for name in names if name != reference)
        ends = np.eye(len(names))
        contrasts = ends[[names.index(name) for name in chosen]] - ends[names.index(reference)]
        found = self.answer.through(np.kron(contrasts, np.eye(len(self.columns))))
        return self._answers(f"{self.formula}: less {reference}", found, chosen)

    def _equal(self) -> reading.Test | None:
        """Return Wald's test that slopes are the same in all groups."""
        count, size = len(self.models), len(self.columns)
        if count < 2 or size < 2:
            return None
        apart = np.kron(np.eye(count)[1:] - np.eye(count)[0], np.eye(size)[1:])
        return reading.wald(self.answer, apart, "all slopes are equal in all groups")

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of all coefficients."""
        return self.coefficients.to_frame()

    def plot(self, ax: Any = None) -> Any:
        """Draw each coefficient with its interval, by matplotlib; return the axes."""
        return self.coefficients.plot(ax)

    def __repr__(self) -> str:
        return str(self.coefficients)

    def _repr_html_(self) -> str:
        return self.coefficients._repr_html_()

    def _answers(self, title: str, answer: Answer, groups: Sequence[str]) -> Answers:
        rows = list(itertools.product(groups, self.columns))
        by = self.groups.question.name
        notes = [f"No model of {name}: {why}" for name, why in self.hidden.items()]
        told = f"{title} by {by}", (by, "coefficient"), rows, answer, self.confidence
        more: dict[str, Any] = {"assumes": (OWN, *notes), "hypothesis": self._equal()}
        return self.groups.moments.answers(*told, **more)


def fit_common(moments: "PublishedMoments", asked: Formula) -> PublishedModel:
    """Return the model with common slopes and an intercept for each group: that of a formula with
    the group among its features. It is not shrunk.
    """
    groups = ByGroup.of(moments)
    schema, question = moments.agreement.schema, groups.question
    fitted, told, places, hidden = groups._fitted(asked, common=True)
    reference = asked.references.get(question.name, question.levels[0])
    if reference in hidden:
        raise InfeasibleError(
            "The noise hides how many people {reference!r} has, with which others are compared: "
            "compare with another group, as C({question_name}, 'south') does.",
            reference=reference,
            question_name=question.name,
        )
    told = told.without([f"{question.name}={name}" for name in hidden])
    part = fitted.parts[0]
    columns = ["", *schema.columns_of(asked.features)]
    own = [column.name for column in part.features]
    full = np.zeros((len(columns), len(fitted.theta)))
    for at, place in enumerate(places):
        name = question.columns[place]
        full[columns.index(name), at] = part.constant / part.target.weight
    for at, column in enumerate(part.features):
        full[columns.index(own[at]), len(places) + at] = column.weight / part.target.weight
    answer = fitted.answer.through(told.matrix @ full)
    answer = replace(answer, values=answer.values + told.offset)
    count = sum(one.count for one in fitted.parts)
    variance = float(fitted.variances[0]) / (part.target.weight * told.scale) ** 2
    inference = Inference.of(told.names, count, answer, variance)
    method = f"least squares with an intercept for each group of {question.name}"
    weights = (full @ fitted.theta)[None]
    return moments.modelled(asked, weights=weights, method=method, inference=(inference,))
