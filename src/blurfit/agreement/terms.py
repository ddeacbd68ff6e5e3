"""What is agreed beside the schema: one list of terms, from which every way to state them follows.

Python (`Agreement.propose`), a plan's file, the command line, a proposal over HTTP and its schema
all read the fields below: their names, types, limits, defaults and words are written here only.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from blurfit.agreement.databases import Trust
from blurfit.errors import InvalidValueError
from blurfit.schema.schema import LossName
from blurfit.theory.calibration import Mechanism, Rule
from blurfit.theory.losses import Approximation
from blurfit.theory.setting import Neighbours

Epsilon = Annotated[float, Meta(gt=0, description="ε of the published model.")]
Delta = Annotated[float, Meta(gt=0, lt=1, description="δ of the published model.")]
Quorum = Annotated[int, Meta(ge=1, description="The least number of contributors.")]


class Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a proposer may choose; noise, grid and guarantees follow from it and the schema.

    >>> Terms(epsilon=1, delta=1e-6, quorum=100).mechanism
    'moment'
    """

    epsilon: Epsilon
    delta: Delta
    quorum: Quorum
    loss: Annotated[LossName | None, Meta(description="Default: what suits the target.")] = None
    approximation: Annotated[
        Approximation, Meta(description="Which parabola stands for the logistic loss.")
    ] = "taylor"
    mechanism: Annotated[Mechanism, Meta(description="What is blurred: qqᵀ and p, or q and p.")] = (
        "moment"
    )
    rule: Annotated[
        Rule, Meta(description="Proved, or what the paper prints (for experiments).")
    ] = "certified"
    neighbours: Annotated[Neighbours, Meta(description="What one person may change.")] = "replace"
    weight_bound: Annotated[
        float | None, Meta(description="η, bound on the model's ‖w‖; needed by input.")
    ] = None
    l1: Annotated[float, Meta(ge=0, description="Weight of ‖w‖₁.")] = 0.0
    l2: Annotated[float, Meta(ge=0, description="Weight of ½‖w‖².")] = 0.0
    split: Annotated[
        float | None, Meta(description="Share of ε for the determinant (input); default: chosen.")
    ] = None
    balance: Annotated[
        float | None,
        Meta(description="τ, noise on p over noise on qqᵀ (moment); default: chosen."),
    ] = None
    local_epsilon: Annotated[
        float | None, Meta(description="A target ε for a single submission too.")
    ] = None
    local_delta: Annotated[float | None, Meta(description="δ for a single submission.")] = None
    local_share: Annotated[
        float | None,
        Meta(description="Share of a submission's budget that q may spend (input)."),
    ] = None
    debias: Annotated[bool, Meta(description="Allow a negative ridge (input).")] = True
    trust: Annotated[
        Trust, Meta(description="One database, or two that share every submission.")
    ] = "one"
    databases: Annotated[
        tuple[Any, ...] | None, Meta(description="Who runs each of two databases, and where.")
    ] = None


TERMS: tuple[str, ...] = Terms.__struct_fields__


def terms_of(choices: Mapping[str, Any]) -> Terms:
    """Terms from chosen values by name; refuses a name that is no term, and a promise missing."""
    unknown = sorted(set(choices) - set(TERMS))
    if unknown:
        raise InvalidValueError(f"Expected terms among {', '.join(TERMS)}, and got {unknown}.")
    missing = [name for name in ("epsilon", "delta", "quorum") if name not in choices]
    if missing:
        raise InvalidValueError(f"Expected {', '.join(missing)}: there is no promise without.")
    return Terms(**choices)
