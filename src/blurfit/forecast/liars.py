"""What contributors who lie could do to a model, before anyone is asked.

The sums that a public population would send without any noise stand for the published ones, and
`blurfit.learning.inference` says how far a push moves each coefficient. For a plan of waves, some
courses are simulated with such people, noise included, and their models say it themselves.
"""

import math

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.radius import LIARS, push_of_liars
from blurfit.errors import InfeasibleError
from blurfit.forecast.population import Population
from blurfit.learning.inference import Pull
from blurfit.learning.sums import JointSums
from blurfit.schema.vectors import units
from blurfit.simulation.whole_plan import fit_in_waves
from blurfit.theory.forms import JointForm, TargetForm
from blurfit.validate import inside_unit_interval

COURSES = 8  # that are simulated of a plan


def moved_by_liars(
    agreement: Agreement, population: Population, share: float = LIARS
) -> dict[str, float]:
    """By how much each coefficient could be moved, in the user's units, by this share of liars;
    infinite where there is no bound.
    """
    inside_unit_interval(share=share)
    form = agreement.form if agreement.mechanism == "moment" else None
    if not isinstance(form, JointForm) or isinstance(form, TargetForm) or population.outputs > 1:
        raise InfeasibleError(
            "Expected an agreement by moment that sends everything, with one number or label as "
            "the target, and no later wave: for others this is not forecast. A plan is forecast as "
            "a whole."
        )
    count, schema = agreement.quorum, agreement.schema
    matrix = count * form.scale[:, None] * population.products * form.scale
    told = units(schema, schema.target.name, [one.name for one in schema.features])
    sums = JointSums(form.columns, form.constant, count, (matrix + matrix.T) / 2, 0.0)
    try:
        pull = Pull.of_line(sums.submodel(schema.target.name, told.names[1:]))
    except np.linalg.LinAlgError:  # some columns are always the same
        return dict.fromkeys(told.names, math.inf)
    found = pull.through(told.matrix[:, told.places]).moved(push_of_liars(agreement, count, share))
    return dict(zip(told.names, found.tolist(), strict=True))


def moved_in_waves(plan: Plan, population: Population, seed: int = 0) -> dict[str, float]:
    """The same for the model of a plan, its quorum met exactly: the median of some courses."""
    generator = np.random.default_rng(seed)
    each: list[dict[str, float | None]] = []
    for _ in range(COURSES):
        drawn = generator.integers(0, len(population.rows), plan.terms.quorum)
        try:
            model = fit_in_waves(plan, population.rows[drawn, 1:], generator).model
        except InfeasibleError:
            continue
        each += [dict(one) for one in model.liars]
    if not each:
        raise InfeasibleError(
            "None of the simulated courses of this plan gave standard errors, without which this "
            "is not forecast: raise the quorum or epsilon."
        )
    values = {
        name: [math.inf if (v := one[name]) is None else v for one in each] for name in each[0]
    }
    return {name: float(np.median(ones)) for name, ones in values.items()}
