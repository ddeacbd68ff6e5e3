"""What a model says: tests, comparisons, mean responses, effects of a question, marginal effects.

    model.test("age = 0, hours = 2*education")
    model.effect("age").plot()
    model.marginal_effects(records)

All of it follows from the coefficients β and their covariance C = C_sampling + C_privacy, so the
privacy noise is in every error and in the null distribution of every test:

    Rβ = r, q rows:        W = (Rβ − r)ᵀ(RCRᵀ)⁻¹(Rβ − r),   W/q ~ F(q, N − d)
    AIC, smaller − larger: W − 2q
    BIC, smaller − larger: W − ln det(N·C_s(C_s + C_p)⁻¹),  C_s, C_p the parts of RCRᵀ
    average effect:        mean of Λ'(x_iβ)·(∂x_i/∂a)β, covariance GCGᵀ to first order

The rows x_i of an average effect are taken as the population itself. Derivations, and those of
standardised coefficients: `docs/theory/questions.md`. Tested by `tests/model/test_effects.py`.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning import tables
from blurfit.learning.inference import Inference, infer
from blurfit.learning.tables import Answer, Test, spreads
from blurfit.model.tables import Answers, Asked, Bend, limits_of
from blurfit.schema.columns import Categorical, Numeric, Question
from blurfit.schema.derived import Curve
from blurfit.schema.formulas import Formula
from blurfit.schema.schema import Schema, units
from blurfit.schema.table import listed

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.statement import Promise

POINTS = 41  # at which a number's effect is told, unless it has knots
_PEOPLE = 400  # made-up, to see whether one model is within another
_STEP = 1e-5  # of a number's range, over which a slope is taken
_BENDS: dict[str, Bend] = {"linear": "", "logistic": "logistic", "log": "exponential"}
CURVE = "Errors assume that the model is correct."
THESE_ROWS = "The rows that were given are taken as the population itself."
LINE = "These are of the line of least squares; predict_proba follows a curve."


@dataclass(frozen=True)
class Comparison(Test):
    """A test of a smaller model against a larger one, and how much better the larger one is.

    `aic` and `bic` are those of the smaller model less those of the larger one, both with the noise
    counted: above 0 they speak for the larger model.
    """

    aic: float = 0.0
    bic: float = 0.0

    def __str__(self) -> str:
        sizes = ", ".join(
            f"{name} {abs(value):.1f} better for the {'larger' if value > 0 else 'smaller'} model"
            for name, value in (("AIC", self.aic), ("BIC", self.bic))
        )
        return f"{super().__str__()}\n{sizes}; the noise is counted in both."


class ModelQuestions:
    """What can be asked of a model, once and for all of its kind: see the module."""

    if TYPE_CHECKING:  # of a `PublishedModel`
        agreement: Agreement
        target: str
        features: tuple[str, ...]
        references: Mapping[str, str]
        hidden: tuple[str, ...]
        link: str
        curve: tuple[float, float] | None
        count: int

        @property
        def fingerprint(self) -> str: ...  # noqa: D102
        @property
        def guarantee(self) -> Promise: ...  # noqa: D102
        @property
        def aim(self) -> Question: ...  # noqa: D102
        def inference_of(self, output: str | None = None) -> Inference: ...  # noqa: D102
        def rows_of(self, records: Any, output: str | None = None) -> FloatArray: ...  # noqa: D102

    def test(self, hypotheses: str, output: str | None = None) -> Test:
        """Test linear hypotheses about the coefficients together, by Wald's F with the noise: as in
        "age = 0, hours = 2*education", separated by commas.
        """
        found = self.inference_of(output)
        matrix, values = _equations(hypotheses, found.names)
        if np.linalg.matrix_rank(matrix) < len(matrix):
            raise InvalidValueError(
                "Expected hypotheses that do not follow from each other, and got {hypotheses!r}.",
                hypotheses=hypotheses,
            )
        asked = found.answer.through(matrix)
        moved = replace(asked, values=asked.values - values)
        return tables.wald(moved, np.eye(len(matrix)), hypotheses, found.freedom)

    def compare(self, other: "ModelQuestions", output: str | None = None) -> Comparison:
        """Compare two models of one target of which one is within the other."""
        if not isinstance(other, ModelQuestions):
            raise InvalidValueError(
                "Expected another model, and got a {name}.", name=type(other).__name__
            )
        same = (self.fingerprint, self.target, self.link, self.count)
        if same != (other.fingerprint, other.target, other.link, other.count):
            raise InvalidValueError(
                "Expected two models of one target from the same release, by one kind of curve."
            )
        small, large = sorted((self, other), key=lambda one: len(one.inference_of(output).names))
        found = large.inference_of(output)
        people = _anybody(self.agreement.schema, {*small.features, *large.features})
        x, within = large.rows_of(people, output), small.rows_of(people, output)
        kept = np.linalg.lstsq(x, within, rcond=None)[0]
        left = np.linalg.svd(kept.T)[2][np.linalg.matrix_rank(kept, tol=1e-8) :]
        if not len(left) or np.abs(x @ kept - within).max() > 1e-6 * np.abs(within).max():
            raise InfeasibleError(
                "Expected one model to be within the other, with some columns fewer: nothing is "
                "known of how the errors of others go together. Compare each with a model of both."
            )
        asked = found.answer.through(left)
        names = [f"{large.target} ~ {' + '.join(one.features) or '1'}" for one in (small, large)]
        test = tables.wald(
            asked, np.eye(len(left)), f"{names[0]} is enough, of {names[1]}", found.freedom
        )
        statistic = test.statistic * len(left)
        seen = np.linalg.solve(asked.covariance, asked.sampling * found.count)
        penalty = float(np.linalg.slogdet(seen)[1])
        return Comparison(**vars(test), aic=statistic - 2 * len(left), bic=statistic - penalty)

    def to_answers(self, output: str | None = None, confidence: float = 0.95) -> Answers:
        """Return the unbiased coefficients in the user's units, the constant first."""
        found = self.inference_of(output)
        told = "Coefficients", ("coefficient",), found.names, found.answer
        return self._answers(*told, output, confidence)

    def mean_response(
        self, records: Any, output: str | None = None, confidence: float = 0.95
    ) -> Answers:
        """Return the mean of the target among people like each record, or their probability, with
        intervals for that mean: not for one person, of whom `prediction_intervals` tell.
        """
        rows = self.rows_of(records, output)
        names = [str(place) for place in range(1, len(rows) + 1)]
        return self._responses(rows, "record", names, output, confidence)

    def effect(
        self,
        question: str,
        at: Mapping[str, Any] | None = None,
        output: str | None = None,
        confidence: float = 0.95,
    ) -> Answers:
        """Return the mean response along one question, all others held: a curve, or its levels.

        `at` are the others' answers (default: the middle of a number's range, no, and the level
        that others are compared with).
        """
        schema = self.agreement.schema
        asked = {one.name: one for one in schema.asked_for(self.features)}
        if question not in asked:
            raise InvalidValueError(
                "Expected {question!r} to be one of {listed}.",
                question=question,
                listed=listed(asked),
            )
        held = {name: _middle(one, self.references) for name, one in asked.items()} | dict(at or {})
        one = asked[question]
        points: list[Any] = [1, 0]
        if isinstance(one, Categorical):
            points = [level for level in one.levels if f"{one.name}={level}" not in self.hidden]
        elif isinstance(one, Numeric):
            curves = [each for each in map(schema.question, self.features) if question in each.of]
            knots = {knot for each in curves if isinstance(each, Curve) for knot in each.knots}
            even = np.linspace(one.lower, one.upper, POINTS).tolist()
            straight = self.link == "linear" and all(isinstance(each, Curve) for each in curves)
            points = sorted(knots | {one.lower, one.upper} if straight else {*knots, *even})
        if len(points) < 2 or question in self.hidden:
            raise InfeasibleError(
                "The noise hides how many people answered {question!r} otherwise than most: there "
                "is no effect to show. Collect more records, or leave the question out.",
                question=question,
            )
        rows = self.rows_of(
            {name: [value] * len(points) for name, value in held.items()} | {question: points},
            output,
        )
        found = self.inference_of(output)
        change = rows[1:] - rows[0]
        basis = np.linalg.svd(change)[2][: np.linalg.matrix_rank(change, tol=1e-9)]
        test = tables.wald(found.answer, basis, f"{question} has no effect", found.freedom)
        labels = ("yes", "no") if points == [1, 0] else tuple(_written(point) for point in points)
        told = self._responses(rows, question, labels, output, confidence)
        others = ", ".join(f"{name} = {_written(held[name])}" for name in held if name != question)
        return replace(
            told,
            title=f"{told.title} by {question}",
            assumes=(*told.assumes, *([f"At {others}."] if others else [])),
            hypothesis=test,
            line=np.array(points) if isinstance(one, Numeric) else None,
        )

    def odds_ratios(self, output: str | None = None, confidence: float = 0.95) -> Answers:
        """Return e to each coefficient but the constant: odds ratios of a label, with intervals, or
        ratios of expected counts.
        """
        if self.link == "linear":
            raise InfeasibleError(
                "These coefficients are differences of means or of probabilities, which have no "
                "odds ratios: learn a label in waves for a logistic curve."
            )
        found = self.inference_of(output)
        what = "Odds ratios" if self.link == "logistic" else "Ratios of expected counts"
        ratios = found.answer.taken(np.arange(1, len(found.names)))
        told = what, ("coefficient",), found.names[1:], ratios
        return self._answers(*told, output, confidence, curve="exponential")

    def marginal_effects(
        self, records: Any = None, output: str | None = None, confidence: float = 0.95
    ) -> Answers:
        """Return what one more unit of each number, a yes, or a level changes on average.

        `records` stand for the population and are public, as `predict` takes them; needed
        where the effect is not the same for everybody, as on a curve.
        """
        schema, found = self.agreement.schema, self.inference_of(output)
        asked = schema.asked_for(self.features)
        straight = self.link == "linear" and not any(schema.question(f).of for f in self.features)
        if records is None and not straight:
            raise InvalidValueError(
                "Expected records that stand for the population: on a curve, and where questions "
                "are derived from others, the effect is not the same for everybody."
            )
        people: dict[str, Any] = {one.name: [_middle(one, self.references)] for one in asked}
        if records is not None:
            table = schema.read(records, asked)
            people = {one.name: np.atleast_1d(table.columns[one.name]) for one in asked}
        slopes, keys = [], []
        for one in asked:
            for level, low, high, width in _changes(one, people[one.name], self):
                start, end = (
                    self.rows_of({**people, one.name: value}, output) for value in (low, high)
                )
                slopes.append(_average(self.link, found.coefficients, start, end, width))
                keys.append((one.name, level))
        values, gradients = (np.array(part) for part in zip(*slopes, strict=True))
        answer = replace(found.answer.through(gradients), values=values)
        notes = () if records is None else (THESE_ROWS,)
        what = "Average marginal effects", ("question", "change"), keys, answer
        return self._answers(*what, output, confidence, notes)

    def _responses(
        self, rows: FloatArray, key: str, names: Sequence[str], output: str | None, level: float
    ) -> Answers:
        """Return what is expected of people with these rows, on the model's curve."""
        aim, told = self.aim, self.inference_of(output).answer.through(rows)
        what = "Mean" if isinstance(aim, Numeric) else "Probability", (key,), names, told
        more: dict[str, Any] = {"limits": limits_of(aim), "curve": _BENDS[self.link]}
        notes = () if self.curve is None else (LINE,)
        return self._answers(*what, output, level, notes, **more)

    def _answers(
        self,
        what: str,
        keys: tuple[str, ...],
        rows: Sequence[str | tuple[str, ...]],
        answer: Answer,
        output: str | None,
        confidence: float,
        notes: tuple[str, ...] = (),
        **more: Any,
    ) -> Answers:
        title = f"{what} of {self.target}" + ("" if output is None else f" = {output}")
        promise = f"{self.guarantee.counted}, {self.guarantee.numbers}"
        notes = notes if self.link == "linear" else (CURVE, *notes)
        freedom = self.inference_of(output).freedom
        told = title, keys, rows, answer, promise, confidence
        return Answers(*told, assumes=notes, freedom=freedom, **more)


def standardised(moments: Asked, formula: Formula, confidence: float = 0.95) -> Answers:
    """Return coefficients of columns and target in units of their own spread."""
    schema, sums = moments.agreement.schema, moments.joint
    told = units(schema, formula.target, formula.features, references=formula.references)
    column, *others = schema.question(formula.target).columns
    if others:
        raise InvalidValueError(
            "Expected a target with one column, not {target!r}.", target=formula.target
        )
    found = infer(sums.submodel(column, told.names[1:]))
    variance, of_noise = spreads(sums)
    places = [sums.index(name) - 1 for name in (*told.names[1:], column)]
    spread, relative = variance[places], of_noise[places] / variance[places] ** 2
    if hidden := [name for name, one in zip(told.names[1:], spread, strict=False) if one <= 0]:
        raise InfeasibleError(
            "The noise hides how much {listed} differs between people: leave it out, "
            "collect more records, or allow a larger epsilon.",
            listed=listed(hidden),
        )
    ratio = np.sqrt(spread[:-1] / spread[-1])
    own = found.answer.taken(np.arange(1, len(told.names))).through(np.diag(ratio))
    sampling = own.sampling + np.diag(own.values**2 / found.count)
    more = own.values**2 / 4 * (relative[:-1] + relative[-1])
    return moments.answers(
        f"Standardised coefficients: {formula}",
        ("coefficient",),
        told.names[1:],
        Answer(own.values, sampling, own.privacy + np.diag(more)),
        confidence,
        assumes=("One unit is a standard deviation; those of the sample are taken as normal.",),
        freedom=found.freedom,
    )


def _average(
    link: str, beta: FloatArray, low: FloatArray, high: FloatArray, width: FloatArray | None
) -> tuple[float, FloatArray]:
    """Return the mean change from one end to the other, for each unit if there is a width, and its
    derivative by the coefficients.
    """
    each = np.ones(len(low)) if width is None else width
    (first, one), (last, other) = (_bent(link, rows @ beta) for rows in (low, high))
    value = float(np.mean((last - first) / each))
    gradient = other[:, None] * high - one[:, None] * low
    return value, np.asarray((gradient / each[:, None]).mean(axis=0))


def _bent(link: str, score: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean at each score, and the slope of the curve there."""
    if link == "linear":
        return score, np.ones_like(score)
    mean = np.asarray(expit(score) if link == "logistic" else np.exp(score))
    return mean, mean * (1 - mean) if link == "logistic" else mean


def _changes(one: Question, answers: Any, model: ModelQuestions) -> list[tuple[Any, ...]]:
    """Return what is changed of a question: its name, from what to what, and by how much; of what
    is not hidden.
    """
    count = len(answers)
    if isinstance(one, Categorical):
        base = model.references.get(one.name, one.levels[0])
        others = [level for level in one.levels if level != base]
        others = [level for level in others if f"{one.name}={level}" not in model.hidden]
        return [(f"{level} for {base}", [base] * count, [level] * count, None) for level in others]
    if not isinstance(one, Numeric):
        if one.name in model.hidden:
            return []
        return [("yes for no", [0] * count, [1] * count, None)]
    middle = np.clip(np.asarray(answers, dtype=np.float64), one.lower, one.upper)
    low = np.maximum(middle - _STEP * one.width, one.lower)
    high = np.minimum(middle + _STEP * one.width, one.upper)
    return [("one more", low, high, high - low)]


def _anybody(schema: Schema, features: set[str]) -> dict[str, Any]:
    """Make up people of all kinds, who fill the space of answers evenly (Kronecker's sequence):
    they only tell which columns follow from which.
    """
    found: dict[str, Any] = {"": np.zeros(_PEOPLE)}
    for place, one in enumerate(schema.asked_for(features)):
        even = np.arange(1, _PEOPLE + 1) * math.sqrt(place + 1.7) % 1
        if isinstance(one, Categorical):
            levels = np.array(one.levels, dtype=object)
            answers: Any = levels[(even * len(levels)).astype(np.intp)]
        elif isinstance(one, Numeric):
            answers = one.lower + even * one.width
        else:
            answers = (even < 0.5).astype(np.int64)
        if one.optional:
            answers = answers.astype(object)
            answers[place :: 5 + place] = None
        found[one.name] = answers
    return found


def _middle(one: Question, references: Mapping[str, str]) -> Any:
    if isinstance(one, Categorical):
        return references.get(one.name, one.levels[0])
    return one.centre if isinstance(one, Numeric) else 0


def _written(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}"


def _equations(text: str, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return R and c of the equations Rβ = c; names of levels have = in them, as in "region=south".

    >>> _equations("age = 0, 2*region=south - age = 3", ["(intercept)", "age", "region=south"])
    (array([[ 0.,  1.,  0.],
           [ 0., -1.,  2.]]), array([0., 3.]))
    """
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    number = r"\d+\.?\d*(?:e[-+]?\d+)?"
    term = re.compile(rf"\s*([-+]?)\s*(?:({number})\s*\*\s*)?(?:({known})|({number}))\s*")
    rows = []
    at, side = 0, 1.0
    row = np.zeros(len(names) + 1)
    while True:
        found = term.match(text, at)
        if found is None:
            break
        sign, factor, name, value = found.groups()
        size = side * (-1.0 if sign == "-" else 1.0) * float(factor or 1)
        row[names.index(name) if name else -1] += size if name else -size * float(value)
        at = found.end()
        if text[at : at + 1] == "=" and side > 0:
            at, side = at + 1, -1.0
        elif text[at : at + 1] in (",", "") and side < 0:
            rows.append(row)
            if at == len(text):
                matrix = np.array(rows)
                return matrix[:, :-1], matrix[:, -1]
            at, side, row = at + 1, 1.0, np.zeros(len(names) + 1)
        elif text[at : at + 1] not in ("+", "-"):
            break
    raise InvalidValueError(
        "Expected equations like '2*{names} = 0', separated by commas, with coefficients "
        "among {listed}, and got {text!r}.",
        names=names[-1],
        listed=listed(names),
        text=text,
    )
