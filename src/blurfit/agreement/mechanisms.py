"""The two mechanisms: from terms to a contract, from a record to numbers, and the check of both.

| | `moment` | `input` |
| --- | --- | --- |
| a record becomes | products of its columns, or what a later wave's map makes of them | q and p |
| what fixes that | public weights of the columns, or the map | the objective of one model |
| what is published | the blurred sums, and any number of models | one model; its sums never are |
| proved by | `blurfit.theory.moments` | `blurfit.theory.input_calibration` |

Everything in a contract is a function of public facts: the schema, the terms, and for a later wave
the map that follows from published releases. What is proposed is rounded to the safe side
(`blurfit.theory.moments`); `require` checks by inequality that what is stated is enough.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from blurfit.agreement.numbers import (
    DISCRETE_SHARE,
    LATTICE_SHARE,
    ROUNDING,
    Grid,
    NumberRun,
    Objective,
    PublicWeights,
    enlarged,
    multiplied,
)
from blurfit.agreement.terms import (
    LaterTerms,
    Mechanism,
    Terms,
    refuse_unless_shareable,
    require_together,
)
from blurfit.agreement.waves import Wave
from blurfit.data import FloatArray, IntArray
from blurfit.errors import InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.schema.columns import Numeric, TimeToEvent
from blurfit.schema.derived import Curve
from blurfit.schema.schema import Categorical, Schema, joint_form, values
from blurfit.schema.table import listed
from blurfit.theory.coded import ONE, Code, CodedForm, Weighting
from blurfit.theory.forms import Form, JointForm, TargetForm
from blurfit.theory.hazards import EventForm
from blurfit.theory.input_calibration import InputCalibration, calibrate
from blurfit.theory.moments import MomentCalibration, calibrate_moment, rounded_up

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement

Stated = tuple[PublicWeights, MomentCalibration, Grid]


class MomentPerturbation:
    """Products of the columns are blurred, and published as sums."""

    calibration: ClassVar = MomentCalibration

    def contract(
        self,
        schema: Schema,
        terms: Terms,
        wave: Wave | None = None,
        stated: Stated | None = None,
        *,
        followed: bool = False,
    ) -> dict[str, Any]:
        """Return public weights or a later wave's map, the noise for how far records reach, and its
        grid: all of them found here, unless a plan states them already.
        """
        require_together(terms, target=schema.target)
        weights: PublicWeights | None = None
        if stated is not None:
            weights = stated[0]
        elif wave is None or wave.chart is None:
            weights = PublicWeights.chosen(
                schema, terms, kept_promise(terms), alone=wave is None, followed=followed
            )
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
            grid = Grid.of(calibration, size=form.size, shared=shared, proofs=proofs)
        else:
            _, calibration, grid = stated
        if shared:
            refuse_unless_shareable(calibration, grid, largest_scale(form), proofs=proofs)
        return {
            "schema": schema,
            "calibration": calibration,
            "grid": grid,
            "weights": weights,
            "databases": terms.databases,
            "wave": wave,
            "public_rows": terms.public_rows,
            **LaterTerms.of(terms),
            "proofs": proofs,
        }

    def require(self, agreement: "Agreement") -> None:
        """Refuse less noise than the reach of the form needs, which is computed from it."""
        weights, form, proofs = agreement.weights, agreement.form, agreement.proofs
        if agreement.objective is not None or (weights is None) != agreement.is_later_wave:
            raise NotCertifiedError(
                "Expected weights and no objective with 'moment', or a later wave's map."
            )
        if weights is not None:
            weights.verify()
        noise, shared = cast(MomentCalibration, agreement.calibration), bool(agreement.databases)
        noise.verify(enlarged(form.reach(noise.model.neighbours), proofs=proofs))
        agreement.grid.verify(noise, size=form.size, shared=shared, proofs=proofs)
        if shared:
            refuse_unless_shareable(noise, agreement.grid, largest_scale(form), proofs=proofs)

    def parts(self, agreement: "Agreement") -> tuple[NumberRun, ...]:
        """Return the form's numbers, with noise that is alike in all directions of its norm."""
        form, step = agreement.form, agreement.grid.quadratic
        noise = cast(MomentCalibration, agreement.calibration).noise
        run = NumberRun(
            numbers=slice(0, form.width),
            step=step,
            fine=step,
            toward_zero=False,
            deviations=noise / np.sqrt(form.counts),
            counts=form.counts,
            bound=form.bound,
            at_random=agreement.proofs,
        )
        return (run,)

    def exact(self, agreement: "Agreement", records: Any, people: IntArray | None) -> FloatArray:
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


class InputPerturbation:
    """q and p of the paper are blurred, and one model is published."""

    calibration: ClassVar = InputCalibration

    def contract(self, schema: Schema, terms: Terms) -> dict[str, Any]:
        """Return the objective of the one model, the noise that the theorem asks for, its grid."""
        require_together(terms, target=schema.target)
        if derived := [one.name for one in schema.features if one.of]:
            raise InfeasibleError(
                f"Expected no derived columns with mechanism='input', and got {listed(derived)}: "
                "its one model is of all columns as they are, and its weight bound is for these. "
                "Use mechanism='moment'."
            )
        if isinstance(schema.target, Categorical):
            raise InfeasibleError(
                "Expected a number or a label as the target with mechanism='input', and "
                f"{schema.target.name!r} has classes: use mechanism='moment', or one label for "
                "each."
            )
        loss = terms.loss or ("logistic" if schema.is_label else "squared")
        objective = Objective(loss, terms.approximation, float(terms.l1), float(terms.l2))
        objective.verify(schema)
        function = objective.function(terms.weight_bound)
        calibration = calibrate(
            float(terms.epsilon) * (1 - LATTICE_SHARE["input"]),
            float(terms.delta) * (1 - DISCRETE_SHARE),
            dimension=schema.dimension,
            quorum=terms.quorum,
            q_bound=rounded_up(function.q_bound * (1 + ROUNDING)),
            p_bound=rounded_up(function.p_bound * (1 + ROUNDING)),
            weight_bound=terms.weight_bound,
            rule=terms.rule,
            neighbours=terms.neighbours,
            split=terms.split,
            local_epsilon=terms.local_epsilon,
            local_delta=local_delta(terms),
            local_share=terms.local_share,
            debias=terms.debias,
        )
        if objective.penalised:  # the bound is for the model that fits best
            calibration = replace(calibration, excess_risk=None)
        return {
            "schema": schema,
            "calibration": calibration,
            "grid": Grid.of(calibration, size=schema.dimension),
            "objective": objective,
            "admission": terms.admission,
            "signing_keys": terms.signing_keys,
        }

    def require(self, agreement: "Agreement") -> None:
        """Refuse noise for shorter records than those of the schema are."""
        noise = cast(InputCalibration, agreement.calibration)
        objective, schema = agreement.objective, agreement.schema
        if agreement.weights is not None or objective is None:
            raise NotCertifiedError("Expected an objective and no weights with 'input'.")
        objective.verify(schema)
        if schema.dimension != noise.setting.dimension:
            raise NotCertifiedError(
                f"Expected dimension={noise.setting.dimension} to be {schema.dimension}, the "
                "number of columns that the schema encodes."
            )
        for name in ("q_bound", "p_bound"):
            stated = getattr(noise.setting, name)
            needed = getattr(agreement.loss, name) * (1 + ROUNDING)
            if not stated >= needed:
                raise NotCertifiedError(
                    f"Expected {name}={stated!r} to be at least {needed!r}, as far as records of "
                    "this schema reach: the noise is calibrated for less."
                )
        noise.verify(penalised=objective.penalised)
        agreement.grid.verify(noise, size=schema.dimension)

    def parts(self, agreement: "Agreement") -> tuple[NumberRun, ...]:
        """Return q and p."""
        noise, grid = cast(InputCalibration, agreement.calibration), agreement.grid
        d, setting = noise.setting.dimension, noise.setting
        one = np.ones(d)

        def run(at: int, step: float, fine: float, deviation: float, bound: float) -> NumberRun:
            numbers = slice(at, at + d)
            return NumberRun(numbers, step, fine, True, deviation * one, one, bound)

        return (
            run(0, grid.quadratic, grid.quadratic, noise.q_noise, setting.q_bound),
            run(d, grid.linear, grid.dither, noise.p_noise, setting.p_bound),
        )

    def exact(self, agreement: "Agreement", records: Any, people: IntArray | None) -> FloatArray:
        """Return q and p."""
        if people is not None:
            raise InvalidValueError("Expected one row for each person with mechanism='input'.")
        q, p, _ = agreement.loss.terms(*agreement.schema.encode(records))
        return np.concatenate([q, p], axis=-1)


Perturbation = MomentPerturbation | InputPerturbation
INPUT, MOMENT = InputPerturbation(), MomentPerturbation()
PERTURBATIONS: dict[Mechanism, Perturbation] = {"moment": MOMENT, "input": INPUT}


def form_of(schema: Schema, weights: PublicWeights | None, wave: Wave | None, agreed: Any) -> Form:
    """Return the form of an agreement, or of the terms of one: decided here and nowhere else.

    The products of all columns or of the target's; those of each group, or times a weight; or what
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
    if agreed.sends == "targets":
        return TargetForm(whole.constant, whole.columns, len(target.columns))
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
                f"Expected groups={agreed.groups!r} to be a question with levels: of a yes/no "
                "declare a categorical one, of a number Bands."
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
                f"Expected weighting={agreed.weighting!r} to be a number with lower bound 0 that "
                "everybody says, which is divided by its upper bound; or factors for its levels."
            )
        return Weighting((at[one.name],))
    given, named = dict(agreed.factors), [level for level, _ in agreed.factors]
    levels = () if isinstance(one, Curve) else getattr(one, "answers", ())
    if not levels or sorted(named) != sorted(levels):
        raise InvalidValueError(
            f"Expected one factor for each level of weighting={agreed.weighting!r}, and got some "
            f"for {listed(named)}."
        )
    places = tuple(at[name] for name in one.columns)
    return Weighting(places, tuple(float(given[level]) for level in levels))


def _asked(schema: Schema, name: str, term: str) -> Any:
    """Return the feature that a term names."""
    found = next((one for one in schema.features if one.name == name), None)
    if found is None:
        raise InvalidValueError(
            f"Expected {term}={name!r} to be one of the features "
            f"{listed(one.name for one in schema.features)}."
        )
    return found


def largest_scale(form: Form) -> float:
    """Return how much larger than on the diagonal the noise on a number can be."""
    return float(max(1.0, (form.counts**-0.5).max()))


def kept_promise(terms: Terms) -> tuple[float, float]:
    """Return (ε, δ) that the noise of `moment` has to keep: a thousandth of δ is kept back."""
    return terms.epsilon, terms.delta * (1 - DISCRETE_SHARE)


def local_delta(terms: Terms) -> float | None:
    """Return δ for what is said of a submission: the agreement's own, unless there is a target."""
    if terms.local_delta is None and terms.local_epsilon is None:
        return terms.delta
    return terms.local_delta
