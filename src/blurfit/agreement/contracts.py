"""From terms to the parts of a contract: weights or objective, calibrated noise, and its grid.

Everything is a function of public facts: the schema, the terms, and for a later wave the map that
follows from published releases. `Agreement.propose` puts the parts together, each number rounded to
the safe side (`blurfit.theory.guarantees`); `Agreement.verify` checks what is stated by inequality.
"""

from dataclasses import replace
from typing import Any

from blurfit.agreement.databases import refuse_unless_shareable
from blurfit.agreement.grid import DISCRETE_SHARE, LATTICE_SHARE, ROUNDING, Grid, enlarged
from blurfit.agreement.numbers import Form, Objective, PublicWeights
from blurfit.agreement.terms import Sends, Terms
from blurfit.agreement.wave import Wave
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.schema.schema import Categorical, Schema
from blurfit.schema.vectors import joint_form
from blurfit.theory.forms import TargetForm
from blurfit.theory.guarantees import rounded_up
from blurfit.theory.input_calibration import calibrate
from blurfit.theory.moments import MomentCalibration, calibrate_moment


def moment_contract(
    schema: Schema,
    terms: Terms,
    wave: Wave | None = None,
    stated: tuple[PublicWeights, MomentCalibration, Grid] | None = None,
) -> dict[str, Any]:
    """Public weights or a later wave's map, the noise for how far records reach, and its grid: all
    of them found here, unless they are stated already.
    """
    promise = kept_promise(terms)
    is_later = wave is not None and wave.chart is not None
    if stated is not None:
        weights: PublicWeights | None = stated[0]
    else:
        weights = None if is_later else PublicWeights.chosen(schema, terms, promise)
    if wave is not None and terms.sends != "everything":
        raise InvalidValueError(
            f"Expected sends='everything' with waves, and got {terms.sends!r}: a wave's map "
            "follows from the features' own products."
        )
    form = form_of(schema, weights, wave, terms.sends)
    proofs = terms.proved if wave is None else False
    shared = bool(terms.databases)
    if stated is None:
        calibration = calibrate_moment(
            *promise,
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
        "admission": terms.admission,
        "database_noise": terms.database_noise,
        "proofs": proofs,
        "sends": terms.sends,
        "signing_keys": terms.signing_keys,
    }


def form_of(
    schema: Schema, weights: PublicWeights | None, wave: Wave | None, sends: Sends = "everything"
) -> Form:
    """The products of all columns or of the target's, or what a later wave's map makes of them."""
    if weights is not None:
        whole = joint_form(schema, weights.constant, weights.columns)
        if sends == "everything":
            return whole
        return TargetForm(whole.constant, whole.columns, len(schema.target.columns))
    if wave is None:
        raise InvalidValueError("Expected weights, or a wave with a map.")
    return wave.form(schema)


def largest_scale(form: Form) -> float:
    """How much larger than on the diagonal the noise on a number can be."""
    return float(max(1.0, (form.counts**-0.5).max()))


def input_contract(schema: Schema, terms: Terms) -> dict[str, Any]:
    """The objective of the one model, the noise that the theorem asks for, and its grid."""
    if isinstance(schema.target, Categorical):
        raise InfeasibleError(
            f"Expected a number or a label as the target with mechanism='input', and "
            f"{schema.target.name!r} has classes: use mechanism='moment', or one label for each."
        )
    if terms.databases:
        raise InfeasibleError(
            "Expected mechanism='moment' with two databases: only what adds can be shared."
        )
    objective = Objective(
        terms.loss or ("logistic" if schema.is_label else "squared"),
        terms.approximation,
        float(terms.l1),
        float(terms.l2),
    )
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
    grid = Grid.of(calibration, size=schema.dimension)
    return {
        "schema": schema,
        "calibration": calibration,
        "grid": grid,
        "objective": objective,
        "admission": terms.admission,
        "signing_keys": terms.signing_keys,
    }


def kept_promise(terms: Terms) -> tuple[float, float]:
    """(ε, δ) that the noise of `moment` has to keep: a thousandth of δ is kept back."""
    return terms.epsilon, terms.delta * (1 - DISCRETE_SHARE)


def local_delta(terms: Terms) -> float | None:
    """The agreement's own δ for what is said of a submission, unless there is a target for it."""
    if terms.local_delta is None and terms.local_epsilon is None:
        return terms.delta
    return terms.local_delta
