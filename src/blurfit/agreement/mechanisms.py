"""From terms to a contract, and from a record to numbers; and the waves of a plan.

Everything in a contract is a function of public facts: the schema, the terms, and for a later wave
the map that follows from published releases. What is proposed is rounded to the safe side;
`require` checks by inequality that what is stated is enough (`docs/theory/stated-numbers.md`).

*A wave* is an agreement's place in a plan. A later one submits what its map makes of a record
(`blurfit.theory.forms`). The map is public, and part of the agreement's fingerprint, which every
submission carries: so no submission of a wave can come before its map. That the noise satisfies the
guarantee whatever map is announced is checked here and in `Agreement.verify`, before a record is
read; what else a wave states, by `blurfit.agreement.plan.Plan.require`.

*The lot* (`Lot`; `docs/theory/waves.md`) decides which wave a person is in, before anything is
known of them: by SHA-256 of their invitation and of the plan's fingerprint, or, if the plan is open
to anyone, by a draw of their own program, which cannot be checked. Wave k waits for m_k people, and
its noise is sized for n_k = ⌊(1 − c)·m_k⌋ honest ones. If a fraction a < c of the invited collude,
more than c·m_k of m_k people drawn by chance do so with a probability of at most exp(−2m_k(c − a)²)
(Hoeffding 1963). People who make or hand out invitations are trusted not to look at the wave.

Tests: `tests/agreement/test_plan.py`.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from blurfit.agreement.numbers import (
    DISCRETE_SHARE,
    NumberRun,
    PublicWeights,
    coarsest_step,
    enlarged,
    multiplied,
    require_step,
)
from blurfit.agreement.terms import (
    LaterTerms,
    Terms,
    refuse_unless_shareable,
    require_together,
)
from blurfit.data import FloatArray, IntArray
from blurfit.errors import (
    InvalidValueError,
    NotCertifiedError,
    OtherGroupError,
    one_of,
    whole,
)
from blurfit.schema.columns import Categorical, Numeric, TimeToEvent
from blurfit.schema.derived import Curve
from blurfit.schema.schema import Schema, independent, joint_form, values
from blurfit.schema.table import listed
from blurfit.theory import maps
from blurfit.theory.coded import ONE, Code, CodedForm, Weighting
from blurfit.theory.forms import Form, JointForm, WaveForm
from blurfit.theory.hazards import EventForm
from blurfit.theory.moments import MomentCalibration, calibrate_moment
from blurfit.theory.planning import StageKind, Task

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement

_BITS = 64  # of u: a group's probability is right to within 2⁻⁶⁴


@dataclass(frozen=True)
class Lot:
    """The lot of the plan with this fingerprint, whose waves wait for so many people each."""

    plan: str
    people: tuple[int, ...]

    def group_of(self, invitation: bytes) -> int:
        """Return the number of the wave that an invitation, of which this is the SHA-256, is for.

        >>> lot = Lot("00" * 32, (3000, 7000))
        >>> [lot.group_of(bytes([one]) * 32) for one in range(10, 16)]
        [2, 2, 2, 1, 2, 2]
        """
        text = f"blurfit lot {self.plan} {invitation.hex()}"
        drawn = int(hashlib.sha256(text.encode()).hexdigest()[: _BITS // 4], 16)
        ends = accumulate(self.people)
        return 1 + sum(drawn * sum(self.people) >= end << _BITS for end in ends)

    def shares(self, count: int, offset: int, first: int = 1) -> list[int]:
        """Return how many of `count` people are for each wave, from wave `first` on, in proportion.

        `offset` is drawn at random from 0, 1, …, people in these waves − 1. Then each person of a
        random order has the probability m_k/m of being in wave k, and the numbers are as close to
        proportion as whole numbers are: exact, if `count` is what all of the waves wait for.

        >>> lot = Lot("00" * 32, (3000, 7000))
        >>> lot.shares(20_000, 4711), lot.shares(1, 0), lot.shares(1, 9999), lot.shares(5, 0, 2)
        ([6000, 14000], [0, 1], [1, 0], [0, 5])
        """
        open_ones = [0] * (first - 1) + list(self.people[first - 1 :])
        ends = [0, *accumulate(open_ones)]
        cuts = [(count * end + offset) // ends[-1] for end in ends]
        return [after - before for before, after in pairwise(cuts)]

    def in_all(self, first: int = 1) -> int:
        """Return how many people the waves from `first` on wait for."""
        return sum(self.people[first - 1 :])


def honest_among(people: Sequence[int], colluders: float) -> tuple[int, ...]:
    """⌊(1 − c)·m_k⌋: how many of each wave's people are honest, if at most the share c colludes.

    The share is the decimal number that is stated, so that everybody finds the same.

    >>> honest_among([4000, 6000, 10_000], 0.1)
    (3600, 5400, 9000)
    """
    rest = 1 - Fraction(str(colluders))
    return tuple(int(rest * one) for one in people)


@dataclass(frozen=True, eq=False)
class Wave:
    """Wave `number` of the plan with this fingerprint, from 1 on.

    `people` is how many people each of the plan's waves waits for, by which the lot falls;
    `follows` the SHA-256 of each earlier wave's release; `chart` the public map from a record to
    what is blurred, None in the first wave.
    """

    plan: str
    number: int
    people: tuple[int, ...]
    follows: tuple[str, ...] = ()
    chart: maps.WaveMap | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wave) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash((self.plan, self.number, self.follows))

    @property
    def quorum(self) -> int:
        """How many people this wave waits for."""
        return self.people[self.number - 1]

    @property
    def kind(self) -> StageKind:
        """What is sent: all products in the first wave, then what the map makes of a record."""
        if self.chart is None:
            return "joint"
        return "newton" if isinstance(self.chart, maps.NewtonMap) else "residual"

    @property
    def lot(self) -> Lot:
        """By which it is decided who is in which wave."""
        return Lot(self.plan, self.people)

    def form(self, schema: Schema) -> WaveForm:
        """Return what is sent in a later wave; a map that does not fit the schema is refused."""
        if self.chart is None:
            raise InvalidValueError("Expected a map: the first wave has none, and sends products.")
        _refuse_other_targets(self.chart, schema)
        names = tuple(name for one in schema.questions for name in one.columns)
        return WaveForm(self.chart, names, kept_columns(schema))

    def verify(self) -> None:
        """Refuse what no plan announces, before any record is read; the map is read afresh."""
        whole(number=self.number, **{f"people[{at}]": one for at, one in enumerate(self.people)})
        if self.number > len(self.people):
            raise InvalidValueError(
                "Expected wave {number} to be one of the {people_count} of its plan.",
                number=self.number,
                people_count=len(self.people),
            )
        for mark in (self.plan, *self.follows):
            if not isinstance(mark, str) or not re.fullmatch("[0-9a-f]{64}", mark):
                raise InvalidValueError("Expected {mark!r} to be 64 hexadecimal digits.", mark=mark)
        if len(self.follows) != self.number - 1 or (self.chart is None) != (self.number == 1):
            raise InvalidValueError(
                "Expected wave {number} to follow {number_2} releases, with a map "
                "unless it is the first, and got "
                "{follows_count} releases and {words} map.",
                number=self.number,
                number_2=self.number - 1,
                follows_count=len(self.follows),
                words="no" if self.chart is None else "a",
            )
        if self.chart is not None:
            map_from_dict(self.chart.to_dict())

    def document(self) -> "WaveDocument":
        """Return it as part of an agreement's document."""
        chart = None if self.chart is None else self.chart.to_dict()
        return WaveDocument(self.plan, self.number, self.people, self.follows, chart)

    @classmethod
    def read(cls, document: "WaveDocument") -> "Wave":
        """Return the inverse of `document`; the map is checked."""
        chart = None if document.map is None else map_from_dict(document.map)
        return cls(document.plan, document.number, document.people, document.follows, chart)


class WaveDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """A wave in the document of an agreement."""

    plan: str
    number: int
    people: tuple[int, ...]
    follows: tuple[str, ...]
    map: dict[str, Any] | None


def require_group(wave: Wave, groups: Sequence[int]) -> None:
    """Refuse people whom the lot has put into another group than the wave that collects."""
    other = next((one for one in groups if one != wave.number), wave.number)
    if other > wave.number:
        raise OtherGroupError(
            "Group {wave_number} of {people_count} is asked now, and the lot has put you into "
            "group {other}, which comes later. Nothing was kept. Come back with the same "
            "invitation when group {other} is asked.",
            wave_number=wave.number,
            people_count=len(wave.people),
            other=other,
        )
    if other < wave.number:
        raise OtherGroupError(
            "Group {wave_number} of {people_count} is asked now, and the lot had put you into "
            "group {other}, which is complete. Nothing was kept, and nobody can change groups. "
            "Thank you for coming.",
            wave_number=wave.number,
            people_count=len(wave.people),
            other=other,
        )


def model_columns(schema: Schema) -> tuple[int, ...]:
    """Return the places among all columns of those that the schema's own model is of."""
    places = {name: at for at, name in enumerate(schema.columns)}
    names = schema.columns_of(schema.default_predictors(schema.target.name))
    return tuple(places[name] for name in names)


def refuse_repeats(schema: Schema) -> None:
    """Refuse columns that follow from others, but for the last level of each categorical."""
    names = schema.default_predictors(schema.target.name)
    levels = [name for name in names if isinstance(schema.question(name), Categorical)]
    if len(model_columns(schema)) - len(kept_columns(schema)) > len(levels):
        raise InvalidValueError(
            "Expected features in waves that do not follow from each other: put a question whose "
            "curve, pairs or slopes are features among the `sources`, as these contain it."
        )


@lru_cache(maxsize=64)  # each wave of a fit, and each reader of it, asks for the same columns
def kept_columns(schema: Schema) -> tuple[int, ...]:
    """Return the places of the columns that maps speak of: all of the model's, but those that
    follow from others, such as a categorical's last level.
    """
    names = schema.default_predictors(schema.target.name)
    choices = [one for one in map(schema.question, names) if isinstance(one, Categorical)]
    last = {one.name: one.columns[-1].removeprefix(f"{one.name}=") for one in choices}
    _, left_out, _ = independent(schema, names, last)
    places = enumerate(model_columns(schema), start=1)
    return tuple(place for at, place in places if at not in left_out)


def task_of(schema: Schema, *, counts: bool = False) -> Task:
    """Return what a plan for the schema's target learns; `counts` says that a number is a count."""
    target = schema.target
    if isinstance(target, TimeToEvent):
        raise InvalidValueError(
            "Expected a number or a label as the target of waves, and {target_name!r} is a time "
            "to an event: collect it in one wave.",
            target_name=target.name,
        )
    if isinstance(target, Categorical):
        raise InvalidValueError(
            "Expected a number or a label as the target of waves, and {target_name!r} has "
            "classes: collect them in one wave, or plan a label for each.",
            target_name=target.name,
        )
    if not counts:
        return "number" if isinstance(target, Numeric) else "label"
    if not isinstance(target, Numeric) or target.lower != 0:
        raise InvalidValueError(
            "Expected a number with lower bound 0 as a target of counts, and got {target_name!r}: "
            "state lower=0, and the largest count as upper.",
            target_name=target.name,
        )
    return "count"


def _refuse_other_targets(chart: maps.WaveMap, schema: Schema) -> None:
    """Refuse Newton's quadratic of a loss that is not the target's: labels, or counts."""
    target, loss = schema.target, chart.loss if isinstance(chart, maps.NewtonMap) else None
    if isinstance(loss, maps.PoissonNewton):
        task_of(schema, counts=True)
        if isinstance(target, Numeric) and loss.count_bound != target.upper:
            raise InvalidValueError(
                "Expected count_bound={count_bound!r} to be {upper!r}, the schema's "
                "largest {target_name!r}.",
                count_bound=loss.count_bound,
                upper=target.upper,
                target_name=target.name,
            )
    elif task_of(schema) != "label" and loss is not None:
        raise InvalidValueError(
            "Expected a label as the target of a logistic map, and got {target_name!r}.",
            target_name=target.name,
        )


# ---- the maps that a wave can announce, read from an agreement, and the form of each

_COMMON = {"kind", "mean", "whitening", "coefficients", "intercept"}
_NEWTON = {"constant", "radius", "robust", "stride", "balance"}
_OWN = {
    "residual": {"radius", "scale", "bound", "weights", "robust", "stride"},
    "logistic": _NEWTON,
    "poisson": {*_NEWTON, "count_bound", "curvature_bound", "gradient_bound"},
}


def map_from_dict(entry: Mapping[str, Any]) -> maps.WaveMap:
    """Read the map of an agreement, and check it before any record is read."""
    if not isinstance(entry, Mapping):
        raise InvalidValueError(
            "Expected a map to be a dict, got {name}.", name=type(entry).__name__
        )
    kind = entry.get("kind")
    one_of(tuple(_OWN), kind=kind)
    expected = _COMMON | _OWN[str(kind)]
    if set(entry) != expected:
        raise InvalidValueError(
            "Expected a {kind} map to have {expected}, got {entry}.",
            kind=kind,
            expected=sorted(expected),
            entry=sorted(entry),
        )
    whitening = maps.Whitening.from_dict(entry)
    if kind == "residual":
        weights = entry["weights"]
        if not isinstance(weights, list) or len(weights) != 3:
            raise InvalidValueError(
                "Expected weights={weights!r} to be [c, a, b].", weights=weights
            )
        c, a, b = weights
        reach = entry["radius"], entry["scale"], entry["bound"]
        return maps.ResidualMap(whitening, *reach, c, a, b, entry["robust"], entry["stride"])
    loss: maps.LogisticNewton | maps.PoissonNewton
    if kind == "logistic":
        loss = maps.LogisticNewton(entry["balance"])
    else:
        bounds = entry["count_bound"], entry["curvature_bound"], entry["gradient_bound"]
        loss = maps.PoissonNewton(*bounds, entry["balance"])
    own = (entry[name] for name in maps.NewtonMap.written)
    return maps.NewtonMap(whitening, loss, *own)


# ---- a contract, and what is sent under it

Stated = tuple[PublicWeights, MomentCalibration, float]  # and the step


def contract(
    schema: Schema,
    terms: Terms,
    wave: Wave | None = None,
    stated: Stated | None = None,
) -> dict[str, Any]:
    """Return public weights or a later wave's map, the noise for how far records reach, and its
    step: all of them found here, unless a plan states them already.
    """
    require_together(terms, target=schema.target)
    weights: PublicWeights | None = None
    if stated is not None:
        weights = stated[0]
    elif wave is None or wave.chart is None:
        weights = PublicWeights.chosen(schema, terms, kept_promise(terms), alone=wave is None)
    form = form_of(schema, weights, wave, terms)
    proofs = terms.proved and wave is None and not isinstance(form, EventForm)
    shared = bool(terms.databases)
    if stated is None:
        calibration = calibrate_moment(
            *kept_promise(terms),
            reach=enlarged(form.reach(terms.neighbours), proofs=proofs),
            quorum=terms.quorum,
            neighbours=terms.neighbours,
            local_epsilon=terms.local_epsilon,
            local_delta=local_delta(terms),
        )
        step = coarsest_step(calibration, size=form.size, shared=shared, proofs=proofs)
    else:
        _, calibration, step = stated
    if shared:
        refuse_unless_shareable(calibration, step, largest_scale(form), proofs=proofs)
    return {
        "schema": schema,
        "calibration": calibration,
        "step": step,
        "weights": weights,
        "databases": terms.databases,
        "wave": wave,
        **LaterTerms.of(terms),
        "proofs": proofs,
    }


def require_enough(agreement: "Agreement") -> None:
    """Refuse less noise than the reach of the form needs, which is computed from it."""
    weights, form, proofs = agreement.weights, agreement.form, agreement.proofs
    if (weights is None) != agreement.is_later_wave:
        raise NotCertifiedError("Expected weights, or a later wave's map.")
    if weights is not None:
        weights.verify()
    noise, shared = agreement.calibration, bool(agreement.databases)
    noise.verify(enlarged(form.reach(noise.model.neighbours), proofs=proofs))
    require_step(agreement.step, noise, size=form.size, shared=shared, proofs=proofs)
    if shared:
        refuse_unless_shareable(noise, agreement.step, largest_scale(form), proofs=proofs)


def number_runs(agreement: "Agreement") -> tuple[NumberRun, ...]:
    """Return the form's numbers, with noise that is alike in all directions of its norm."""
    form, step = agreement.form, agreement.step
    noise = agreement.calibration.noise
    run = NumberRun(
        numbers=slice(0, form.width),
        step=step,
        deviations=noise / np.sqrt(form.counts),
        counts=form.counts,
        bound=form.bound,
        at_random=agreement.proofs,
    )
    return (run,)


def exact_numbers(agreement: "Agreement", records: Any, people: IntArray | None) -> FloatArray:
    """Return the form's products, of records or of people with several rows."""
    found = values(agreement.schema, records)
    if people is None:
        return agreement.form.products(found)
    if not agreement.diaries:
        raise InvalidValueError(
            "Expected one row for each person: the agreement does not speak of several "
            "(diaries=True)."
        )
    found = np.atleast_2d(found)
    whose = np.broadcast_to(people, len(found))
    order = np.argsort(whose, kind="stable")
    ends = np.cumsum(np.bincount(whose))[:-1]
    return np.array([agreement.form.pooled(found[one]) for one in np.split(order, ends)])


def form_of(schema: Schema, weights: PublicWeights | None, wave: Wave | None, agreed: Any) -> Form:
    """Return the form of an agreement, or of the terms of one: decided here and nowhere else.

    The products of all columns; those of each group, or times a weight; or what
    a later wave's map makes of a record.
    """
    if weights is None:
        if wave is None:
            raise InvalidValueError("Expected weights, or a wave with a map.")
        return wave.form(schema)
    coded, target = agreed.groups is not None or agreed.weighting is not None, schema.target
    asked = multiplied(schema, agreed)
    whole = joint_form(asked, weights.constant, weights.columns, counted=not coded)
    columns = schema.columns_of(one.name for one in schema.questions)
    at = {name: place for place, name in enumerate(columns)}
    if coded:
        return _coded(schema, whole, agreed, at)
    if isinstance(target, TimeToEvent):
        *features, last = whole.columns  # the target's weight is that of its code
        if not features:
            raise InvalidValueError("Expected a feature beside the time and the event.")
        kept = tuple(at[column.name] for column in features)
        inner = JointForm(whole.constant, tuple(features))
        return EventForm(inner, kept, at[target.time], at[target.name], target.bands, last.weight)
    return whole


def _coded(schema: Schema, inner: JointForm, agreed: Any, at: dict[str, int]) -> CodedForm:
    """Return the form with groups, weights or both; refuse a question that cannot say them."""
    places: tuple[int, ...] = ()
    labels: tuple[str, ...] = ("weight",)
    code = ONE
    if agreed.groups is not None:
        one = _asked(schema, agreed.groups, "groups")
        if not isinstance(one, Categorical) or isinstance(one, Curve):
            raise InvalidValueError(
                "Expected groups={groups!r} to be a question with levels: of a yes/no "
                "declare a categorical one, of a number Bands.",
                groups=agreed.groups,
            )
        places, labels = tuple(at[name] for name in one.columns), one.columns
        code = Code.overlapping(len(places), agreed.overlap)
    kept = tuple(at[column.name] for column in inner.columns)
    return CodedForm(inner, kept, code, places, _weighting(schema, agreed, at), labels=labels)


def _weighting(schema: Schema, agreed: Any, at: dict[str, int]) -> Weighting | None:
    if agreed.weighting is None:
        return None
    one = _asked(schema, agreed.weighting, "weighting")
    if not agreed.factors:
        if not isinstance(one, Numeric) or one.optional or one.lower != 0:
            raise InvalidValueError(
                "Expected weighting={weighting!r} to be a number with lower bound 0 that "
                "everybody says, which is divided by its upper bound; or factors for its levels.",
                weighting=agreed.weighting,
            )
        return Weighting((at[one.name],))
    given, named = dict(agreed.factors), [level for level, _ in agreed.factors]
    levels = () if isinstance(one, Curve) else getattr(one, "answers", ())
    if not levels or sorted(named) != sorted(levels):
        raise InvalidValueError(
            "Expected one factor for each level of weighting={weighting!r}, and got some "
            "for {listed}.",
            weighting=agreed.weighting,
            listed=listed(named),
        )
    places = tuple(at[name] for name in one.columns)
    return Weighting(places, tuple(float(given[level]) for level in levels))


def _asked(schema: Schema, name: str, term: str) -> Any:
    """Return the feature that a term names."""
    found = next((one for one in schema.features if one.name == name), None)
    if found is None:
        raise InvalidValueError(
            "Expected {term}={name!r} to be one of the features {listed}.",
            term=term,
            name=name,
            listed=listed(one.name for one in schema.features),
        )
    return found


def largest_scale(form: Form) -> float:
    """Return how much larger than on the diagonal the noise on a number can be."""
    return float(max(1.0, (form.counts**-0.5).max()))


def kept_promise(terms: Terms) -> tuple[float, float]:
    """Return (ε, δ) that the noise has to keep: a thousandth of δ is reserved."""
    return terms.epsilon, terms.delta * (1 - DISCRETE_SHARE)


def local_delta(terms: Terms) -> float | None:
    """Return δ for what is said of a submission: the agreement's own, unless there is a target."""
    if terms.local_delta is None and terms.local_epsilon is None:
        return terms.delta
    return terms.local_delta
