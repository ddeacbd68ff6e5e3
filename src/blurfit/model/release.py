"""What a set of submissions comes to, once and for ever: learned, released, and examined.

    moments = PublishedMoments.load("moments.json")
    print(moments.fit("income ~ age + education + C(region)").summary())

The blurred sums of all products of two columns are themselves the release, and the model of the
agreed target is the first of many that anyone may fit to them.

**One agreement, one set.** The guarantee is for what the release of one set S shows, its blurred
sums, and whatever anyone computes from it. It does not hold for the releases of two sets: their
noise cancels. So a second release is allowed only if it shows what the first one showed, by
`Release.mark`, its SHA-256. There is at most one set for each store and everything exported from
it, as long as all of them are used with one record (`blurfit.release_record`). **A copy is enough
to break this** under another account, on another machine, or with the rows of a file in a new one;
where the database adds noise of its own, a copy of the same set is enough. If the sums allow no
model, that is the outcome, for ever. Proofs, and who may release when:
`docs/theory/one-release.md`. Tests: `server/tests/files/test_one_set.py`.

**What a signed file shows.** A file is signed by the keys that its agreement names
(`blurfit.messages.signing`), one of each database. So whoever has the agreement from somewhere
else can tell whether this is what those services published. Whoever has the file alone can tell
that nobody changed it since, unless he changed the key as well.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from blurfit import errors
from blurfit.agreement.agreement import Agreement
from blurfit.data import FloatArray, fixed, read_json, software
from blurfit.learning.sums import JointSums, Totals
from blurfit.messages.signing import Signature, about_release, is_signed
from blurfit.model.effects import standardised
from blurfit.model.fitting import CoefficientPath, coefficient_path, fit_formula
from blurfit.model.groups import ByGroup, fit_common
from blurfit.model.model import PublishedDocument, PublishedFile, PublishedModel, as_text
from blurfit.model.summary import plot_moments
from blurfit.model.survival import SurvivalModel
from blurfit.model.tables import Answers, Asked
from blurfit.schema.formulas import Formula, parsed
from blurfit.theory.coded import CodedForm
from blurfit.theory.forms import JointForm
from blurfit.theory.hazards import EventForm
from blurfit.wording import Message, join_messages

LITTLE_WEIGHT = 0.1  # on average, below which it is said what it costs

OF_EXITS = (
    "These are sums of who left when: moments.survival(), or `blurfit fit moments.json`, tells "
    "hazards, curves and tests from them."
)


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
        self._require_quorum()
        sums = np.array(self.sums, dtype=np.float64)
        (part,) = self.agreement.parts
        largest = self.count * _MOST_STEPS * part.step
        if sums.shape != (self.agreement.form.width,) or not (np.abs(sums) <= largest).all():
            raise errors.InvalidValueError(
                "Expected {width} sums up to {largest:g}, which is more than {count:,} people can "
                "send, and got shape {shape}.",
                width=self.agreement.form.width,
                largest=largest,
                count=self.count,
                shape=sums.shape,
            )
        object.__setattr__(self, "sums", fixed(sums))

    def __repr__(self) -> str:
        names = ", ".join(one.name for one in self.agreement.schema.questions)
        return f"<PublishedMoments of {names}; count={self.count:,}, {self.guarantee.numbers}>"

    def _repr_html_(self) -> str:
        below = self.correlations()._repr_html_() if self.has_all_products else ""
        return f"<p>{self.guarantee.counted}, {self.guarantee.numbers}</p>{below}"

    plot = plot_moments

    @cached_property
    def mark(self) -> str:
        """SHA-256 of its own text, whoever signed it: what a later wave says that it follows."""
        return hashlib.sha256(replace(self, signatures=()).to_json().encode()).hexdigest()

    @property
    def has_all_products(self) -> bool:
        """Whether products of all columns were sent, from which correlations follow."""
        return self.agreement.form.joint is not None

    @property
    def deviation(self) -> float:
        """s, the standard deviation of the noise in the sums on the diagonal; off it, s/√2."""
        return self.agreement.calibration.total_noise(self.count, self.agreement.database_draws)

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
        if isinstance(form, EventForm):
            raise errors.InfeasibleError(OF_EXITS)
        if form.joint is None:
            raise errors.InfeasibleError(
                "These are the sums of a later wave, under the map that it announced: learn from "
                "all releases of its plan together, with blurfit.model.course.learn_plan."
            )
        matrix = form.matrix(self.sums, self.count) / self.worth
        return self._joint(form.joint, matrix, form.gain / self.worth)

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
        if text is not None:
            return parsed(text, schema, targets)
        aim = schema.target.name if target is None else target
        if aim not in targets:
            raise errors.InvalidValueError(
                "Expected target={aim!r} to be one of {targets}: the agreement says "
                "that only these may be predicted.",
                aim=aim,
                targets=list(targets),
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
    ) -> PublishedModel:
        """Return a model of any column by any others; by default of the agreement's own target.

        Args:
            formula: as in R: "income ~ age + C(region)"; needs the extra [formulas].
            target: the column to predict, instead of a formula.
            features: the columns that predict it (default: all others).
            ridge: ½·ridge·‖w‖² on the weights of the encoded columns, per person, instead of the
                shrinkage that the noise suggests. 0 is plain least squares.
            lasso: lasso·‖w‖₁, which leaves weak features out.
            uneven: allow for people who spread unevenly around the model: errors √3 times as large
                in their sampling part.
        """
        asked, grouped = self.formula(formula, target, features), self.agreement.groups
        if grouped in asked.features:
            if ridge is not None or lasso is not None or uneven:
                raise errors.InvalidValueError(
                    "Expected no ridge, lasso or uneven with the group {grouped!r} as a feature: "
                    "what is shrunk there, and the errors, follow from the noise.",
                    grouped=grouped,
                )
            return fit_common(self, asked)
        return self.modelled(
            asked, **fit_formula(self, asked, ridge=ridge, lasso=lasso, uneven=uneven)
        )

    def modelled(self, asked: Formula, **told: Any) -> PublishedModel:
        """Return a model that was found from these sums, under their promise."""
        kept = ("agreement", "count", "software", "caveats", "held")
        return PublishedModel(
            **{name: getattr(self, name) for name in kept},
            **{name: getattr(asked, name) for name in ("target", "features", "references")},
            **told,
        )

    def survival(self) -> SurvivalModel:
        """Return hazards, survival curves and tests, where exits were sent."""
        return SurvivalModel.of(self)

    def ridge_path(self, formula: str | None = None, **options: Any) -> CoefficientPath:
        """Coefficients over a grid of ridges: see `blurfit.model.fitting.coefficient_path`."""
        return coefficient_path(self, self.formula(formula), "ridge", **options)

    def lasso_path(self, formula: str | None = None, **options: Any) -> CoefficientPath:
        """Coefficients over a grid of lassos: see `blurfit.model.fitting.coefficient_path`."""
        return coefficient_path(self, self.formula(formula), "lasso", **options)

    def by_group(self) -> ByGroup:
        """Return what is told of each group, where the agreement has groups: a model in each, and
        differences between them (`blurfit.model.groups`).
        """
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


_MOST_STEPS = 2.0**52  # of the grid, for each person: numbers have 2⁵¹ at most, the noise fewer


def learn(agreement: Agreement, totals: Totals, *, held: bool = False) -> PublishedModel:
    """Return the shrunk model of the agreed target, refused below the quorum; `held` as in
    `PublishedModel`.
    """
    agreement.verify()
    return moments_of(agreement, totals, held=held).fit()


def moments_of(agreement: Agreement, totals: Totals, *, held: bool = False) -> PublishedMoments:
    """Return the release of a collection."""
    refuse_unless_ready(agreement, totals)
    return PublishedMoments(agreement, totals.count, totals.sums, held=held)


def refuse_unless_ready(agreement: Agreement, totals: Totals) -> None:
    """Refuse sums of another agreement, and of fewer people than its quorum."""
    if totals.fingerprint != agreement.fingerprint:
        raise errors.InvalidValueError(
            "Expected sums under {agreement_fingerprint}, and got some that were blurred under "
            "{totals_fingerprint}: another agreement promises something else.",
            agreement_fingerprint=agreement.fingerprint,
            totals_fingerprint=totals.fingerprint,
        )
    if totals.draws != agreement.database_draws:
        raise errors.InvalidValueError(
            "Expected sums with the noise of {database_draws} databases, as agreed, and "
            "these have that of {draws}: add it with blurfit.randomness.",
            database_draws=agreement.database_draws,
            draws=totals.draws,
        )
    refuse_below_quorum(agreement, totals.count)


def refuse_below_quorum(agreement: Agreement, count: int) -> None:
    """Refuse to release anything of fewer people than the quorum."""
    missing = agreement.quorum - count
    if missing > 0:
        raise errors.BelowQuorumError(
            "Expected count={count} to be at least the quorum {quorum}: "
            "{missing} more contributors are needed. With fewer, the noise is too small to "
            "protect anyone.",
            count=count,
            quorum=agreement.quorum,
            missing=missing,
        )


ALIKE = 1e-6  # how far two machines may be apart in one model's numbers

WITHOUT_A_MODEL = (
    "A wave is published as its sums, and has no model of its own: learn from all releases of its "
    "plan together, with blurfit.model.course.learn_plan."
)


@dataclass(frozen=True)
class Release:
    """The text of a model and that of its sums; or why there will never be one."""

    model: str | None = None
    moments: str | None = None
    refusal: str | None = None

    @classmethod
    def of(cls, agreement: Agreement, totals: Totals, *, held: bool = False) -> "Release":
        """Learn, or find that there is no model; below the quorum an error is raised.

        A later wave's sums have no model of their own: `blurfit.model.course` learns from all
        releases of the plan. Nor have exits.
        """
        if agreement.is_later_wave or agreement.sums_alone:
            agreement.verify()
            moments = moments_of(agreement, totals, held=held).to_json()
            reason = OF_EXITS if agreement.sums_alone else WITHOUT_A_MODEL
            return cls(moments=moments, refusal=reason)
        try:
            model = learn(agreement, totals, held=held).to_json()
        except errors.BelowQuorumError:
            raise
        except errors.BlurfitError as error:
            return cls(refusal=str(error))
        return cls(model, moments_of(agreement, totals, held=held).to_json())

    def text(self) -> str:
        """Return the model's text, always the same bytes; an error where there is none."""
        if self.model is None:
            reason = Message(self.refusal or "There is no model.")
            if self.moments:
                shown = Message("The sums are published, and are not a model.")
                reason = join_messages([shown, reason])
            raise errors.InfeasibleError(reason)
        return self.model

    def shown(self) -> str:
        """Return what whoever publishes gets: the model's text, or that of sums without one."""
        return self.moments if self.model is None and self.moments is not None else self.text()

    def mark(self) -> str:
        """Return a digest of everything that is shown: releases with one mark show the same."""
        return hashlib.sha256((self.moments or self.text()).encode()).hexdigest()

    def follows(self, agreement: Agreement, count: int) -> bool:
        """Return whether these are moments of so many people under an agreement, and their model if
        they have one of their own, up to rounding (`alike`).
        """
        if self.moments is None or (self.model is None) != agreement.sums_alone:
            return False
        shown = PublishedMoments.from_json(self.moments)
        whose = shown.fingerprint, shown.count, shown.to_json()
        if whose != (agreement.fingerprint, count, self.moments):
            return False
        if self.model is None:
            return True
        draws = agreement.database_draws
        again = learn(agreement, Totals(count, shown.sums, shown.fingerprint, draws))
        return is_model(self.model, again)


def is_model(text: str, again: PublishedModel) -> bool:
    """Tell whether a text is that of a model which was learned again, but for rounding."""
    found, document = PublishedModel.from_json(text), json.loads(text)
    is_plain = as_text(document) == text and _alike(document, json.loads(found.to_json()))
    return is_plain and alike(found, again)


def alike(stated: PublishedModel, again: PublishedModel) -> bool:
    """Return whether a model is the one that was learned again from the same sums.

    Machines round differently, so numbers may differ by `ALIKE` of themselves. No promise depends
    on it.
    """
    one, other = stated.to_dict(), again.to_dict()
    return _alike(one | {"software": None}, other | {"software": None})


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=ALIKE, abs_tol=1e-9)
    return bool(one == other)


KINDS: tuple[type[PublishedModel | PublishedMoments], ...] = (PublishedModel, PublishedMoments)


@dataclass(frozen=True)
class Examination:
    """What was found of a file: what that shows, what is wrong, and what nobody can see."""

    called: str
    fingerprint: str | None
    shown: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


def examine(text: str | bytes, agreement: Agreement | None = None) -> Examination:
    """Look at a model or a release of moments; `agreement` is the one that it should be under."""
    try:
        document = read_json(text)
        stated = document.get("format") if isinstance(document, dict) else None
    except ValueError as error:
        raise errors.InvalidValueError("Expected a file in JSON: {error}.", error=error) from error
    kind = next((one for one in KINDS if stated == one.FORMAT), None)
    if kind is None:
        raise errors.InvalidValueError(
            "Expected a model or moments that a service published, and got format={stated!r}.",
            stated=stated,
        )
    try:
        found = kind.from_dict(document)
        message = about_release(document)
    except (errors.BlurfitError, ValueError) as error:  # or numbers that have no canonical text
        return Examination(kind.CALLED, None, wrong=(str(error),))
    named, promise = found.agreement, found.guarantee
    shown: list[str] = []
    wrong: list[str] = []
    if promise.private:
        shown.append(
            f"Its promise, {promise.numbers}, follows from the noise of the agreement that it "
            f"carries, {named.fingerprint}."
        )
    else:
        wrong.append(str(promise.in_words))
    if agreement is not None and agreement.fingerprint != named.fingerprint:
        wrong.append(
            f"It belongs to another agreement: you gave {agreement.fingerprint}, and it carries "
            f"{named.fingerprint}."
        )
    elif agreement is not None:
        shown.append("That is the agreement that you gave.")
    signed = {one.key: one.signature for one in found.signatures}
    for key, name in zip(named.signing_keys, signers(named), strict=False):  # or no key at all
        if is_signed(message, key, signed.get(key)):
            shown.append(f"{name} signed this very file with the key of the agreement, {key}.")
        elif key in signed:
            wrong.append(
                f"The signature of {name} does not match this file: one of them was changed."
            )
        else:
            wrong.append(f"{name} has not signed it with the key of the agreement, {key}.")
    if not named.signing_keys:
        wrong.append(
            "The agreement names no key, so nobody's signature could be told from another's. Agree "
            "with --signing-key, where it matters."
        )
    return Examination(
        kind.CALLED,
        named.fingerprint,
        tuple(shown),
        tuple(wrong),
        _not_shown(found, given=agreement is not None),
    )


def signers(agreement: Agreement) -> tuple[str, ...]:
    """Whose key is whose, in words: the names of two databases, or the service."""
    return tuple(one.name for one in agreement.databases) or ("The service",)


def _not_shown(found: PublishedModel | PublishedMoments, *, given: bool) -> tuple[str, ...]:
    told = []
    if not given:
        told.append(
            "Whose key it is: it stands in the agreement that the file carries itself. Give the "
            "agreement that you have from elsewhere (--agreement), or compare its fingerprint."
        )
    if found.held:
        told.append(
            "That whoever held the rows was honest: the noise was added, and nothing more of the "
            "rows was published."
        )
    else:
        told += [
            "That whoever holds a key counted everyone who sent something, and nobody else; a "
            "receipt says that a submission was stored, and not that it is in the sums.",
            "That the contributors were honest, or as many people as there are submissions.",
        ]
    if isinstance(found, PublishedModel) and len(found.waves) > 1:
        told.append(
            "That earlier waves had as much noise: the agreement is the last one's. Verify the "
            "release of each."
        )
    if found.agreement.database_noise:
        told.append("That noise of the database itself was added.")
    return tuple(told)
