"""From a promise to noise, and from noise to a promise: `calibrate` and its inverse `guarantee`.

Both take public facts only. What `calibrate` returns is rounded to the safe side, and has been
verified as whoever reads it will.
"""

from dataclasses import astuple, dataclass
from typing import Any

from blurfit.errors import InvalidValueError
from blurfit.theory import excess_risk, gaussian, paper, search
from blurfit.theory.certified import DeltaShares, Scales
from blurfit.theory.input_calibration import InputCalibration, kept_by_input
from blurfit.theory.moment_calibration import FOR_ROUNDING
from blurfit.theory.setting import RULES, ModelGuarantee, Neighbours, Rule, Setting
from blurfit.theory.stated import local_guarantee, rounded_down, rounded_up
from blurfit.validate import (
    inside_unit_interval,
    nonnegative,
    one_of,
    positive,
    within_floating_point,
)


@within_floating_point()
def calibrate(
    epsilon: float,
    delta: float,
    *,
    dimension: int,
    quorum: int,
    q_bound: float,
    p_bound: float,
    weight_bound: float | None = None,
    rule: Rule = "certified",
    neighbours: Neighbours = "replace",
    split: float | None = None,
    local_epsilon: float | None = None,
    local_delta: float | None = None,
    local_share: float | None = None,
    alpha: float = 1.0,
    debias: bool = True,
) -> InputCalibration:
    """The least noise that keeps the promise, from public facts alone.

    Args:
        epsilon: ε of the published model (times `alpha`).
        delta: δ of the published model, at least 1e-290.
        dimension: d, the length of q and p.
        quorum: n, the least number of honest records; no model may be published below it.
        q_bound: R_q ≥ ‖q‖ for every record.
        p_bound: R_p ≥ ‖p‖ for every record.
        weight_bound: η; the model is sought in ‖w‖ ≤ η.
        rule: "certified" is proved; "published" is what the paper prints.
        neighbours: what one person may change: "replace" her record by any other, or "zero-out" (by
            q = 0, p = 0).
        split: J's share of ε, between 0 and 1; None minimises `excess_risk`.
        local_epsilon: a target for a single submission too; raises the noise until it is kept
            exactly.
        local_delta: δ of the submission's guarantee; defaults to `delta`, but must be said with
            `local_epsilon`.
        local_share: with a local target, the share of a submission's μ² = μ_q² + μ_p² that the
            noise on q may spend; None minimises `excess_risk`.
        alpha: the paper's balance between model and submission: ε ← αε, in (0, 1].
        debias: let a negative ridge take back what the noise adds to the curvature, as far as it is
            certain.

    Raises:
        InvalidValueError: a value that its parameter cannot have.
        InfeasibleError: values that do not go together; the message has the remedy, such as the
            least quorum that works.
        NotCertifiedError: values so extreme that floating point cannot hold what follows.

    >>> found = calibrate(1, 1e-6, dimension=14, quorum=2**21, q_bound=1, p_bound=1, weight_bound=1)
    >>> found.sigma_b < 15, found.model.releases
    (True, 1)
    """
    positive(epsilon=epsilon, alpha=alpha)
    inside_unit_interval(delta=delta)
    one_of(RULES, rule=rule)
    if alpha > 1:
        raise InvalidValueError(
            f"Expected alpha={alpha!r} <= 1: it only ever strengthens the promise."
        )
    setting = Setting(dimension, quorum, q_bound, p_bound, weight_bound, neighbours)
    target = ModelGuarantee(alpha * epsilon, delta, neighbours, 1)
    local = _LocalTarget.of(local_epsilon, local_delta, delta)
    if rule == "published":
        _refuse_for("rule='published'", split=split, local_epsilon=local_epsilon)
        _refuse_for("rule='published'", local_share=local_share)
        return _calibrate_published(setting, target, local)
    if split is not None:
        inside_unit_interval(split=split)
    if local_share is not None:
        inside_unit_interval(local_share=local_share)
        if local_epsilon is None:
            raise InvalidValueError(
                f"Expected local_epsilon with local_share={local_share!r}: without a local target "
                "there is nothing to share."
            )
    certified = _calibrate_certified(setting, target, local, split, local_share, debias)
    certified.verify()  # the last line of defence: what a search returned is evaluated again
    return certified


def guarantee(
    *,
    dimension: int,
    quorum: int,
    q_bound: float,
    p_bound: float,
    weight_bound: float | None = None,
    neighbours: Neighbours = "replace",
    sigma_u: float,
    sigma_b: float,
    ridge: float = 0.0,
    count: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
) -> ModelGuarantee:
    """The inverse of `calibrate`: what given noise keeps. Give δ to learn ε, or ε to learn δ.

    `quorum` is what each record was blurred for (variance σ²/quorum), `count` how many honest
    records there are (default: the quorum).
    """
    setting = Setting(dimension, quorum, q_bound, p_bound, weight_bound, neighbours)
    nonnegative(sigma_u=sigma_u)
    positive(sigma_b=sigma_b)
    return kept_by_input(setting, Scales(sigma_u, sigma_b, ridge), count, epsilon, delta)


@dataclass(frozen=True)
class _LocalTarget:
    """δ for the statement about a submission, and the μ that it must not exceed, if there is a
    target.
    """

    delta: float
    mu: float | None

    @classmethod
    def of(cls, epsilon: float | None, delta: float | None, model_delta: float) -> "_LocalTarget":
        if delta is not None:
            inside_unit_interval(local_delta=delta)
        if epsilon is None:
            return cls(model_delta if delta is None else delta, None)
        positive(local_epsilon=epsilon)
        if delta is None:
            raise InvalidValueError(
                f"Expected local_delta with local_epsilon={epsilon!r}: a submission's promise has "
                "two numbers. Give local_delta=1e-6, say."
            )
        return cls(delta, gaussian.mu_of(epsilon, delta) / FOR_ROUNDING)


def _calibrate_certified(
    setting: Setting,
    target: ModelGuarantee,
    local: _LocalTarget,
    split: float | None,
    local_share: float | None,
    debias: bool,
) -> InputCalibration:
    choice = search.choose(
        setting,
        target.epsilon,
        target.delta,
        split=split,
        local_mu=local.mu,
        local_share=local_share,
        debias=debias,
    )
    scales = choice.scales
    model = ModelGuarantee(target.epsilon, target.delta, target.neighbours, releases=1)
    return InputCalibration(
        rule="certified",
        setting=setting,
        model=model,
        local=local_guarantee(search.local_mu(setting, scales), local.delta),
        excess_risk=rounded_up(excess_risk.input_excess_risk(setting, scales)),
        sigma_u=scales.sigma_u,
        sigma_b=scales.sigma_b,
        ridge=scales.ridge,
        split=choice.split,
        shares=choice.shares,
        loss=choice.loss,
        kept=model,
        local_claim=None,
    )


def _calibrate_published(
    setting: Setting, target: ModelGuarantee, local: _LocalTarget
) -> InputCalibration:
    scales = paper.scales(setting, target.epsilon, target.delta)
    _, shares = search.least_kept_epsilon(setting, scales, target.delta)
    shares = DeltaShares(*map(rounded_down, astuple(shares)))
    kept = rounded_up(search.kept_epsilon(setting, scales, shares))
    return InputCalibration(
        rule="published",
        setting=setting,
        model=ModelGuarantee(
            target.epsilon, target.delta, target.neighbours, releases=1, proved=False
        ),
        local=local_guarantee(search.local_mu(setting, scales), local.delta),
        excess_risk=rounded_up(excess_risk.input_excess_risk(setting, scales)),
        sigma_u=scales.sigma_u,
        sigma_b=scales.sigma_b,
        ridge=scales.ridge,
        split=None,
        shares=shares,
        loss=None,
        kept=ModelGuarantee(kept, target.delta, target.neighbours, releases=1),
        local_claim=paper.local_claim(setting, scales, target.delta),
    )


def _refuse_for(what: str, **values: Any) -> None:
    for name, value in values.items():
        if value is not None:
            raise InvalidValueError(
                f"Expected no {name}={value!r} with {what}: it has no such parameter."
            )
