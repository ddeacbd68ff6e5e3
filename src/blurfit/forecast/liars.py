"""What contributors who lie could do to a model, before anyone is asked.

A submission is refused if it is longer than honest ones are (`blurfit.agreement.radius`), so one
liar moves the sums M = Σzzᵀ by at most the radius r in the Frobenius norm, and L of them by Lr.
With w = A⁻¹c the model of the columns of z, u = (−w, 1) its residual, and a = A⁻¹mᵢ for the
coefficient mᵢ·w, a small change dM of the sums changes it by

    d(mᵢ·w) = aᵀ(dc − dA·w) = aᵀ·dM·u,        at most ‖dM‖·√((‖a‖²‖u‖² + (a·u)²)/2),

which is the Frobenius norm of the symmetric part of auᵀ, attained by a dM along it. It is of first
order in L/N, and says the worst that liars who know everything could do; noise and shrinkage do not
stand in their way.
"""

import math

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.radius import radii
from blurfit.errors import InfeasibleError
from blurfit.forecast.population import Population
from blurfit.schema.vectors import units
from blurfit.theory.joint_form import JointForm
from blurfit.validate import inside_unit_interval

SHARE = 0.01  # of liars


def moved_by_liars(
    agreement: Agreement, population: Population, share: float = SHARE
) -> dict[str, float]:
    """By how much each coefficient could be moved, in the user's units, by this share of liars."""
    inside_unit_interval(share=share)
    form = agreement.form if agreement.mechanism == "moment" else None
    if not isinstance(form, JointForm) or population.outputs > 1:
        raise InfeasibleError(
            "Expected an agreement by moment with one number or label as the target, and no later "
            "wave: for others this is not forecast."
        )
    schema = agreement.schema
    if agreement.databases and not agreement.proofs:
        radius = math.inf  # what shares add up to is seen by nobody
    else:
        (radius,) = radii(agreement)
    sums = form.scale[:, None] * population.products * form.scale  # of one person, on average
    inverse = np.linalg.pinv(sums[:-1, :-1], rcond=1e-10, hermitian=True)
    w = inverse @ sums[:-1, -1]
    told = units(schema, schema.target.name, [one.name for one in schema.features])
    rows = told.matrix * (form.scale[:-1] / form.scale[-1])
    length = 1 + w @ w
    found = {}
    for name, row in zip(told.names, rows, strict=True):
        a = inverse @ row
        worst = math.sqrt((a @ a * length + (a @ w) ** 2) / 2)
        found[name] = float(share * radius * worst)
    return found
