"""What leaves the database: a model, what it means in the user's units, and what it promises.

**Public files.** A model, and a release of sums, carries its agreement, so whoever has the file can
predict from raw records and can compute again what was promised to whom. Reading verifies the
agreement inside; one text belongs to one release or model, byte by byte.

**Scores.** Weights are those of (1, v), for the encoded target, where v are the encoded columns of
the features. The score of a record is w₀ + Σ wⱼvⱼ:

    a number is (score − b)/a in its own units, with the a and b of its column;
    a label has probability (score + 1)/2, or 1/(1 + e^(−score)) if the link is logistic, or that of
    a + k·score if the model has a `curve` (a, k);
    a class has probability score; a count is expected to be e^score if the link is log.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
import numpy as np
from msgspec import Meta, Struct

from blurfit.agreement.agreement import Agreement, AgreementDocument, Fingerprint
from blurfit.agreement.mechanisms import kept_columns, map_from_dict, model_columns
from blurfit.agreement.statement import Promise, SeenBy, in_each_wave
from blurfit.agreement.terms import Admission
from blurfit.data import AnyArray, FloatArray, fixed, read_json, software
from blurfit.errors import (
    BlurfitError,
    InfeasibleError,
    InvalidValueError,
    finite,
    inside_unit_interval,
    one_of,
    positive,
    whole,
)
from blurfit.learning.beliefs import bounds_of, farthest
from blurfit.learning.inference import Errors, Estimate, Inference, InferenceDocument
from blurfit.learning.wave_inference import estimand
from blurfit.messages.signing import SIGNATURES, Signature
from blurfit.model.effects import ModelQuestions
from blurfit.model.summary import Results, Summary, as_pipeline, number, plot_model
from blurfit.schema.columns import HARMFUL, Categorical, Numeric, Question
from blurfit.schema.schema import INTERCEPT, Coefficients, Schema, Units, units, values
from blurfit.schema.table import listed
from blurfit.theory import maps
from blurfit.theory.moments import LocalGuarantee, require_local
from blurfit.wording import Message

Line = Annotated[str, Meta(pattern=rf"\A[^{HARMFUL}]*\Z")]  # a terminal shows it, and obeys nothing


class PublishedDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all public files say; a subclass has more."""

    version: Literal[1]
    software: Line
    caveats: tuple[Annotated[Line, Meta(min_length=1)], ...]
    seen_by: SeenBy
    fingerprint: Fingerprint
    admission: Admission | None
    condition: Line  # what the promise needs
    count: int
    agreement: AgreementDocument
    signatures: tuple[Signature, ...] = ()


class PublishedFile(ABC):
    """Something that is published under an agreement; a subclass says what else it holds."""

    CALLED: ClassVar[str]  # in errors: "a model"
    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 1
    DOCUMENT: ClassVar[type[PublishedDocument]]

    agreement: Agreement
    count: int
    software: str
    caveats: tuple[str, ...]  # why nothing is promised, where that is so
    held: bool  # whether somebody held the rows that it was made of, as in `fit(X, y)`
    releases: int = 1  # of the same rows, all of which the promise covers
    signatures: tuple[Signature, ...]  # of the file without them, by the agreement's keys

    @abstractmethod
    def _contents(self) -> dict[str, Any]:
        """Return what the file says beside `to_dict`'s own fields, as plain values."""

    @classmethod
    @abstractmethod
    def _read(cls, document: Any, common: Mapping[str, Any]) -> Self:
        """Read a `DOCUMENT`, `common` being the fields that all have; any error may be raised."""

    def _require_quorum(self) -> None:
        if self.held and self.agreement.databases:
            raise InvalidValueError(
                "Expected held=False under an agreement of two databases: no part of a record is "
                "in one hand there."
            )
        whole(count=self.count)
        if self.count < self.agreement.quorum:
            raise InvalidValueError(
                "Expected count={count} to be at least the quorum {quorum}: "
                "{called} is not published below it, where the noise would be too small to "
                "protect anyone.",
                count=self.count,
                quorum=self.agreement.quorum,
                called=self.CALLED,
            )

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the agreement that it was collected under."""
        return self.agreement.fingerprint

    @property
    def origin(self) -> tuple[str, int]:
        """The fingerprint of the fit that it is of, and how many releases of the same rows that fit
        made; of what people sent, or of one release, its own and 1.
        """
        wave = self.agreement.wave
        if self.held and wave is not None:
            return wave.plan, len(wave.people)
        return self.fingerprint, self.releases

    @property
    def admission(self) -> Admission | None:
        """Who could take part; nobody did in rows that somebody held."""
        return None if self.held else self.agreement.admission

    @property
    def quorum_in_words(self) -> Message:
        """How many must have taken part."""
        return in_each_wave([self.agreement.quorum])

    @property
    def honest_in_words(self) -> Message:
        """How many honest people the promise needs."""
        return in_each_wave([self.agreement.honest])

    @property
    def local(self) -> LocalGuarantee:
        """What one submission keeps by itself, where there is one and its noise is real."""
        return self.agreement.calibration.local

    @cached_property
    def guarantee(self) -> Promise:
        """What is promised to everyone in it, and on which conditions: all papers say this."""
        return Promise.of(
            self.agreement,
            self.count,
            self.honest_in_words,
            self.local,
            caveats=self.caveats,
            held=self.held,
        )

    @property
    def condition(self) -> str:
        """What the promise needs, and whether anybody can check it; or why there is none."""
        return self.guarantee.condition

    def to_dict(self) -> dict[str, Any]:
        """Return everything, the agreement included, as plain values."""
        return {
            "format": self.FORMAT,
            "version": self.VERSION,
            "software": self.software,
            "caveats": list(map(str, self.guarantee.caveats)),
            "seen_by": self.guarantee.seen_by,
            "fingerprint": self.fingerprint,
            "admission": self.admission,
            "condition": str(self.condition),
            "count": self.count,
            "agreement": self.agreement.to_document(),
            **self._contents(),
            **_written(self.signatures),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the inverse of `to_dict`; the agreement inside is verified."""
        if not isinstance(document, dict):
            raise InvalidValueError(
                "Expected {called} in JSON: an object with named fields.", called=cls.CALLED
            )
        if document.get("format") != cls.FORMAT or document.get("version") != cls.VERSION:
            raise InvalidValueError(
                "Expected format={format!r}, version={version}, and got "
                "format={document!r}, version={document_2!r}. "
                "Is this {called}, and of this version of blurfit?",
                format=cls.FORMAT,
                version=cls.VERSION,
                document=document.get("format"),
                document_2=document.get("version"),
                called=cls.CALLED,
            )
        try:
            read = msgspec.convert(document, cls.DOCUMENT)
            return cls._read(read, _common(read, document["agreement"]))
        except BlurfitError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            wrong = str(error) if isinstance(error, msgspec.ValidationError) else repr(error)
            raise InvalidValueError(
                "Expected {called} as blurfit writes it: {wrong}.", called=cls.CALLED, wrong=wrong
            ) from error

    def to_json(self) -> str:
        """Return the file's text: equal contents give equal bytes."""
        return as_text(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote."""
        try:
            document = read_json(text)
        except ValueError as error:
            raise InvalidValueError(
                "Expected {called} in JSON: {error}.", called=cls.CALLED, error=error
            ) from error
        return cls.from_dict(document)

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it from a file."""
        return cls.from_json(Path(path).read_bytes())


def with_signatures(text: str, signatures: Sequence[Signature]) -> str:
    """Return the text of a file with signatures of it, instead of those that it may have."""
    document = json.loads(text)
    document.pop(SIGNATURES, None)
    return as_text(document | _written(signatures))


def _common(document: PublishedDocument, agreed: Any) -> dict[str, Any]:
    """Return the fields that all files have, the signatures as they are, right or wrong."""
    agreement = Agreement.from_document(agreed)
    agreement.verify(document.fingerprint)
    seen_by = document.seen_by
    if seen_by not in ("holder", "nobody" if agreement.databases else "collector"):
        raise InvalidValueError(
            "Expected seen_by={seen_by!r} to be 'holder', or what its agreement says: 'nobody' "
            "with two databases, and 'collector' with one.",
            seen_by=seen_by,
        )
    return {
        "agreement": agreement,
        "count": document.count,
        "software": document.software,
        "caveats": document.caveats,
        "held": seen_by == "holder",
        "signatures": document.signatures,
    }


def _written(signatures: Sequence[Signature]) -> dict[str, Any]:
    """Left out where there are none."""
    return {SIGNATURES: [asdict(one) for one in signatures]} if signatures else {}


def as_text(document: Mapping[str, Any]) -> str:
    """Return the one text of a document; an agreement and sums were found to be finite before."""
    # `json` takes ten times as long, but only it refuses NaN, for which there is null otherwise
    try:
        json.dumps({**document, "agreement": None, "sums": None}, allow_nan=False)
    except ValueError as error:
        raise InvalidValueError(
            "Expected finite numbers in a published file, and some are beyond the range of floats. "
            "Choose other units."
        ) from error
    text = msgspec.json.encode(document, enc_hook=float, order="sorted")
    return msgspec.json.format(text, indent=2).decode() + "\n"


Link = Literal["linear", "logistic", "log"]
LINKS: tuple[Link, ...] = ("linear", "logistic", "log")
LARGEST_LOGARITHM = 500.0  # of an expected count: whatever is asked, it is a number
LARGEST_WEIGHT = 1e100  # on encoded columns, which are at most 1: others would overflow
LEAST_SHARE = 1e-12  # of a class, before all are divided by their sum


def predicted(aim: Question, link: Link, score: FloatArray) -> AnyArray:
    """Return a number in its own units, whether a label is likely, or the likeliest class.

    A number is within the target's bounds, as everybody's is.
    """
    if isinstance(aim, Categorical):
        return np.asarray(np.array(aim.levels, dtype=object)[score.argmax(axis=-1)])
    if not isinstance(aim, Numeric):
        return np.asarray(score > 0)
    if link == "log":
        rate = np.exp(np.clip(score, -LARGEST_LOGARITHM, LARGEST_LOGARITHM))
        return np.minimum(rate, aim.upper)
    slope, constant = aim.affine
    return np.asarray(np.clip((score - constant) / slope, aim.lower, aim.upper))


def probabilities(aim: Question, link: Link, score: FloatArray) -> FloatArray:
    """P(label is false), P(label is true); or of each class.

    With the linear link the score is a least-squares reading of E[±1], so (score + 1)/2, cut to
    [0, 1], is as calibrated as a linear function can be. Classes are cut at 0, or follow the
    logistic curve, and are divided by their sum.
    """
    if isinstance(aim, Numeric):
        raise InfeasibleError(
            "Probabilities are for labels; this model predicts a number. Use predict."
        )
    on_curve = 0.5 * (1 + np.tanh(score / 2))
    if isinstance(aim, Categorical):
        positive = np.maximum(on_curve if link == "logistic" else score, LEAST_SHARE)
        return np.asarray(positive / positive.sum(axis=-1, keepdims=True))
    likely = on_curve if link == "logistic" else np.clip((score + 1) / 2, 0.0, 1.0)
    return np.stack([1 - likely, likely], axis=-1)


@dataclass(frozen=True)
class WaveShare:
    """One wave of a plan: how many contributed, how many it waited for, how many of these its noise
    needs to be honest, and what one of its submissions keeps by itself.
    """

    count: int
    quorum: int
    honest: int
    local_mu: float
    local_epsilon: float

    @classmethod
    def of(cls, count: int, agreement: Agreement) -> "WaveShare":
        """Return the share of so many people, with what their wave's agreement states."""
        local = agreement.calibration.local
        return cls(count, agreement.quorum, agreement.honest, local.mu, local.epsilon)

    def __post_init__(self) -> None:
        whole(count=self.count, quorum=self.quorum, honest=self.honest)
        if not self.honest <= self.quorum <= self.count:
            raise InvalidValueError(
                "Expected honest={honest} <= quorum={quorum} <= count={count}: no "
                "wave is released below what it waits for, or with noise for more than that.",
                honest=self.honest,
                quorum=self.quorum,
                count=self.count,
            )


class ModelDocument(PublishedDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model as it is written: `columns` and `coefficients` follow from the rest."""

    format: Literal["blurfit-model"]
    waves: tuple[WaveShare, ...]
    releases: int
    target: str
    features: tuple[str, ...]
    references: dict[Line, Line]
    link: Link
    curve: tuple[float, float] | None
    method: Line
    columns: tuple[str, ...]
    weights: dict[str, tuple[float, ...]]
    coefficients: dict[str, dict[str, float]]
    inference: tuple[InferenceDocument, ...]
    refusal: Line | None
    transform: dict[str, Any] | None
    fixed: tuple[int, ...]
    disagreeing: tuple[int, int] | None
    hidden: tuple[Line, ...]
    crowded: Literal["lower", "upper"] | None


# What a model and its document call alike.
_SAME = (
    *("waves", "releases", "target", "features", "references", "link", "curve"),
    *("method", "refusal", "transform", "fixed", "disagreeing", "hidden", "crowded"),
)


@dataclass(frozen=True, eq=False)
class PublishedModel(PublishedFile, ModelQuestions):
    """A model, once and for all: its weights on the encoded columns, and everything about them.

    An output is the target, or each class of it. `inference` has standard errors and what follows
    from them, in the user's units.
    """

    CALLED = "a model"
    FORMAT = "blurfit-model"
    DOCUMENT = ModelDocument

    agreement: Agreement
    target: str
    features: tuple[str, ...]
    weights: FloatArray  # (outputs, 1 + k), of (1, v)
    count: int
    method: str  # how the weights were found, in words
    link: Link = "linear"  # from a score to a label's probability, or an expected count
    curve: tuple[float, float] | None = None  # from a label's line to its log-odds
    inference: tuple[Inference, ...] = ()  # of each output
    refusal: str | None = None  # why there are no standard errors, where that is so
    references: Mapping[str, str] = field(default_factory=dict)  # levels that others compare with
    software: str = field(default_factory=software)
    caveats: tuple[str, ...] = ()
    held: bool = False
    transform: Mapping[str, Any] | None = None  # of the last wave, if errors are its own
    fixed: tuple[int, ...] = ()  # places of its coefficients that noise hides
    releases: int = 1
    disagreeing: tuple[int, int] | None = None  # waves, by more than chance
    waves: tuple[WaveShare, ...] = ()  # of a plan; each contributor is in one alone
    hidden: tuple[str, ...] = ()  # columns of answers that hardly anybody gave: coefficients of 0
    crowded: Literal["lower", "upper"] | None = None  # the target's bound that clips many people
    signatures: tuple[Signature, ...] = ()

    def __post_init__(self) -> None:
        self._require_quorum()
        whole(releases=self.releases)
        if len(set(self.features)) < len(self.features):
            raise InvalidValueError(
                "Expected features, each of them once, and got {features}.",
                features=listed(self.features),
            )
        one_of(LINKS, link=self.link)
        number = isinstance(self.aim, Numeric)
        if {"logistic": number, "log": not number}.get(self.link):
            raise InvalidValueError(
                "Expected a link that suits {target!r}, and got {link!r}.",
                target=self.target,
                link=self.link,
            )
        if self.curve is not None:
            finite(of_curve=self.curve[0])
            positive(of_curve=self.curve[1])
            if not self.is_label or self.link != "linear":
                raise InvalidValueError("Expected a curve of a label's line alone.")
        self._require_waves()
        weights = np.array(self.weights, dtype=np.float64)
        expected = (len(self.outputs), 1 + len(self.columns))
        if weights.shape != expected or not (np.abs(weights) <= LARGEST_WEIGHT).all():
            raise InvalidValueError(
                "Expected weights to be finite numbers up to {largest:g} of shape {expected}, one "
                "row for each of {outputs} and one column for the intercept and each of {columns}, "
                "and got shape {shape}.",
                largest=LARGEST_WEIGHT,
                expected=expected,
                outputs=self.outputs,
                columns=self.columns,
                shape=weights.shape,
            )
        if len(self.inference) not in (0, len(self.outputs)):
            raise InvalidValueError(
                "Expected standard errors for each of {outputs}, and got {inference_count}.",
                outputs=self.outputs,
                inference_count=len(self.inference),
            )
        if self.transform is not None:
            places = range(map_from_dict(self.transform).whitening.dimension + 1)
            if not set(self.fixed).issubset(places):
                raise InvalidValueError("Expected fixed to be places of the transform's columns.")
        object.__setattr__(self, "weights", fixed(weights))

    def _require_waves(self) -> None:
        """Refuse shares of waves that are not those of the agreement, which is the last one's."""
        wave, local = self.agreement.wave, self.agreement.calibration.local
        if not self.waves and (wave is None or wave.number == 1):
            return
        if sum(one.count for one in self.waves) != self.count:
            raise InvalidValueError(
                "Expected waves={waves} to sum to count={count}.",
                waves=self.waves,
                count=self.count,
            )
        people = () if wave is None else wave.people[: wave.number]
        last = replace(WaveShare.of(self.count, self.agreement), count=self.waves[-1].count)
        if tuple(one.quorum for one in self.waves) != people or self.waves[-1] != last:
            raise InvalidValueError(
                "Expected waves={waves} to wait for {people} people, and the last to state "
                "what the agreement states.",
                waves=self.waves,
                people=people,
            )
        for one in self.waves:
            require_local(
                LocalGuarantee(one.local_mu, one.local_epsilon, local.delta), one.local_mu
            )

    def __repr__(self) -> str:
        formula = f"{self.target} ~ {' + '.join(self.features)}"
        return f"<PublishedModel {formula}, count={self.count:,}, {self.guarantee.numbers}>"

    def _repr_html_(self) -> str:
        return self.summary().to_html()

    @property
    def aim(self) -> Question:
        """The schema's column of the target."""
        return self.agreement.schema.question(self.target)

    @property
    def doubt(self) -> Message | None:
        """Whether contributors may have lied together: two waves disagree by more than chance."""
        if self.disagreeing is None:
            return None
        first, second = self.disagreeing
        return Message(
            "Waves {first} and {second} disagree by more than chance: honest people do so in about "
            "1 of 1,000 plans at most, if who was in which wave has nothing to do with what they "
            "answered. Some contributors may have lied together.",
            first=first,
            second=second,
        )

    @property
    def is_label(self) -> bool:
        """Whether yes or no is predicted."""
        return not isinstance(self.aim, Numeric | Categorical)

    @property
    def outputs(self) -> tuple[str, ...]:
        """What has a score: the target, or each class of a categorical one."""
        return _outputs(self.aim)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the encoded columns v, a level's for each level."""
        return tuple(self.agreement.schema.columns_of(self.features))

    @property
    def quorum_in_words(self) -> Message:
        """How many must have taken part: in each wave, where there are several."""
        return in_each_wave([one.quorum for one in self.waves or (self.agreement,)])

    @property
    def honest_in_words(self) -> Message:
        """How many honest people the promise needs: in each wave, where there are several."""
        return in_each_wave([one.honest for one in self.waves or (self.agreement,)])

    @property
    def local(self) -> LocalGuarantee:
        """What one submission keeps by itself: in the wave where it keeps least."""
        local = self.agreement.calibration.local
        if not self.waves:
            return local
        weakest = max(self.waves, key=lambda one: one.local_mu)
        return LocalGuarantee(weakest.local_mu, weakest.local_epsilon, local.delta)

    @property
    def coefficients(self) -> Coefficients:
        """What predictions are made with, in the user's units."""
        if len(self.outputs) > 1:
            raise InfeasibleError(
                "{target!r} has the classes {outputs}, each with coefficients of "
                "its own: use coefficients_of(level).",
                target=self.target,
                outputs=list(self.outputs),
            )
        return self.coefficients_of(self.target)

    def coefficients_of(self, output: str) -> Coefficients:
        """intercept + Σ effect·value, in the user's units, for one output."""
        one_of(self.outputs, output=output)
        found = self.units
        weights = self.weights[self.outputs.index(output)]
        intercept, *effects = found.apply(weights).tolist()
        return Coefficients(intercept, dict(zip(found.names[1:], effects, strict=True)))

    @property
    def units(self) -> Units:
        """From the weights of an output to the user's units."""
        asked, curved = (self.target, self.features), self.link != "linear"
        return units(self.agreement.schema, *asked, references=self.references, log_odds=curved)

    # ---- errors

    def estimates(
        self, confidence: float = 0.95, output: str | None = None, *, errors: Errors = "robust"
    ) -> list[Estimate]:
        """Return each coefficient in the user's units: unbiased, with its standard error and the
        part of it that is due to privacy, an interval, and a p-value.

        They may differ from `coefficients`, which are shrunk for prediction, by some standard
        errors. "classical" errors assume constant variance, or that the curve is right.
        """
        return list(self._by(errors).inference_of(output).estimates(confidence))

    @property
    def estimand_in_words(self) -> str:
        """What the estimates are of: least squares, or a wave's own clipped version of it."""
        curve = self.link != "linear"
        exact = "maximum likelihood" if curve else "least squares"
        if self.transform is None:
            return exact
        chart = map_from_dict(self.transform)
        limits, far = [], farthest(chart.whitening)
        if chart.radius < far:
            limits.append(
                f"people farther out than {chart.radius:.3g} times the usual distance count less"
            )
        if isinstance(chart, maps.ResidualMap):
            _, error = bounds_of(chart.whitening, chart.scale)
            if chart.bound < error:
                assert isinstance(self.aim, Numeric)
                bound = chart.bound * chart.scale / self.aim.affine[0]
                limits.append(f"errors beyond ±{number(bound)} count as that")
        elif isinstance(chart.loss, maps.PoissonNewton):
            bound = chart.loss.gradient_bound
            if bound < chart.loss.count_bound:
                limits.append(f"errors beyond ±{number(bound)} count as that")
        kind = "weighted" if curve else "bounded-influence"
        return f"{kind} {exact} ({', '.join(limits)})" if limits else exact

    def estimand(self, X: Any, y: Any, output: str | None = None) -> FloatArray:
        """Compute what `estimates` are of, in rows without noise: for tests and simulations.

        **Not private**: what is returned follows from the rows as they are, without noise, and no
        guarantee or budget covers publishing it. The model does not keep it.

        It is what the last update would find in any rows; coefficients that noise hides are held as
        they were announced. Of one wave it is least squares.

        Args:
            X: Records with the model's features, (n, …).
            y: Their targets, as in a record.
            output: A class, of several.

        Returns:
            Coefficients in the user's units, in the order of `estimates`.
        """
        schema, found = self.agreement.schema, self.inference_of(output)
        if self.agreement.diaries:
            raise InfeasibleError("Rows of one person are clipped together: no estimand of rows.")
        v = np.atleast_2d(values(schema, X, self.features))
        target = np.atleast_2d(values(schema, {self.target: y}, [self.target]))
        told = self.units
        if self.transform is None:
            names = found.names
            told = told.without(set(told.names) - set(names))
            rows = np.column_stack([np.ones(len(v)), v])[:, list(told.places)]
            column = self.outputs.index(self.outputs[0] if output is None else output)
            best = np.linalg.lstsq(rows, target[:, column], rcond=None)[0]
            return np.asarray(told.matrix[:, list(told.places)] @ best + told.offset)
        chart = map_from_dict(self.transform)
        places, encoded = coefficient_places(schema), target[:, 0]
        if isinstance(chart, maps.NewtonMap) and isinstance(chart.loss, maps.PoissonNewton):
            encoded = (encoded + 1) / 2 * chart.loss.count_bound
        best = estimand(chart, v[:, [place - 1 for place in places[1:]]], encoded, self.fixed)
        return np.asarray(told.matrix[:, places] @ best + told.offset)

    def _by(self, errors: Errors) -> "PublishedModel":
        return replace(self, inference=tuple(one.by(errors) for one in self.inference))

    def prediction_intervals(self, records: Any, confidence: float = 0.95) -> FloatArray:
        """Lower and upper bound for one more person with these answers, (n, 2), in a number's own
        units: with the spread of people around the model.
        """
        inside_unit_interval(confidence=confidence)
        if not isinstance(self.aim, Numeric):
            raise InfeasibleError(
                "Intervals are for numbers; {target!r} has probabilities. Use predict_proba.",
                target=self.target,
            )
        inference, rows = self.inference_of(), self.rows_of(records)
        found = [inference.prediction(row, confidence) for row in rows[:, 1:]]
        ends = np.array([(one.lower, one.upper) for one in found])
        if np.isnan(ends).any():
            raise InfeasibleError(
                "Expected errors of finite numbers, of more people than coefficients: this model "
                "has none, so there are no intervals."
            )
        return np.asarray(np.clip(ends, self.aim.lower, self.aim.upper))  # where everybody is

    def rows_of(self, records: Any, output: str | None = None) -> FloatArray:
        """Return what the coefficients with errors multiply for each record, the constant first."""
        v = np.atleast_2d(values(self.agreement.schema, records, self.features))
        told = self.units
        return told.without(set(told.names) - set(self.inference_of(output).names)).rows(v)

    def summary(self, confidence: float = 0.95, *, errors: Errors = "robust") -> Summary:
        """Return one table for people: text, Markdown, or HTML in a notebook."""
        return Summary.of(self._by(errors), confidence)

    plot = plot_model

    def results(self, output: str | None = None, *, errors: Errors = "robust") -> Results:
        """Return what statsmodels would give: `params`, `bse`, `pvalues`, `conf_int()`."""
        self.inference_of(output)  # or it is refused
        return Results(self._by(errors), self.outputs[0] if output is None else output)

    def inference_of(self, output: str | None = None) -> Inference:
        """Of one output, the first if none is named; refused where there are no standard errors."""
        if not self.inference:
            raise InfeasibleError(self.refusal or "This model has no standard errors.")
        name = self.outputs[0] if output is None else output
        one_of(self.outputs, output=name)
        return self.inference[self.outputs.index(name)]

    # ---- predictions

    def predict(self, records: Any) -> AnyArray:
        """Return a number in its own units, whether a label is likely, or the likeliest class."""
        return predicted(self.aim, self.link, self.decision_function(records))

    def decision_function(self, records: Any) -> FloatArray:
        """w₀ + w·v of each record, or log-odds by its curve: of a label the sign decides, of
        classes the largest of a row.
        """
        v = values(self.agreement.schema, records, self.features)
        found = v @ self.weights[:, 1:].T + self.weights[:, 0]
        if self.curve is not None:
            found = self.curve[0] + self.curve[1] * found
        return np.asarray(found if len(self.outputs) > 1 else found[..., 0])

    def predict_proba(self, records: Any) -> FloatArray:
        """P(label is false), P(label is true); or of each class."""
        link: Link = "logistic" if self.curve is not None else self.link
        return probabilities(self.aim, link, self.decision_function(records))

    # ---- files

    to_sklearn = as_pipeline

    def _contents(self) -> dict[str, Any]:
        same = msgspec.to_builtins({name: getattr(self, name) for name in _SAME}, enc_hook=float)
        return {
            **same,
            "columns": [INTERCEPT, *self.columns],
            "weights": dict(zip(self.outputs, self.weights.tolist(), strict=True)),
            "coefficients": {one: self.coefficients_of(one).by_name() for one in self.outputs},
            "inference": [one.to_dict() for one in self.inference],
        }

    @classmethod
    def _read(cls, document: ModelDocument, common: Mapping[str, Any]) -> Self:
        outputs = _outputs(common["agreement"].schema.question(document.target))
        if set(document.weights) != set(outputs):  # by name, in any order
            raise InvalidValueError(
                "Expected weights for each of {outputs}, and got {weights}.",
                outputs=list(outputs),
                weights=list(document.weights),
            )
        found = cls(
            **common,
            **{name: getattr(document, name) for name in _SAME},
            weights=np.array([document.weights[name] for name in outputs], dtype=np.float64),
            inference=tuple(map(Inference.from_document, document.inference)),
        )
        names = found.units.names if found.inference else ()
        for inference in found.inference:
            if inference.names != tuple(name for name in names if name in inference.names):
                raise InvalidValueError(
                    "Expected standard errors of some of {names} in this order, and got "
                    "{inference_names}.",
                    names=listed(names),
                    inference_names=listed(inference.names),
                )
        return found


def coefficient_places(schema: Schema) -> list[int]:
    """Return where in (1, v) the coefficients of a wave's transform are: all but last levels."""
    columns = model_columns(schema)
    return [0, *(1 + columns.index(place) for place in kept_columns(schema))]


def _outputs(aim: Question) -> tuple[str, ...]:
    return tuple(aim.levels) if isinstance(aim, Categorical) else (aim.name,)
