"""From a promise to noise, and from noise to a promise: `calibrate` and its inverse `guarantee`.

Both take public facts only. What `calibrate` returns has been evaluated again from the very numbers
it returns.
"""

from dataclasses import dataclass
from typing import Any

from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.theory import excess_risk, gaussian, moment, paper, search
from blurfit.theory.calibration import (
    MECHANISMS,
    RULES,
    InputCalibration,
    Mechanism,
    MomentCalibration,
    Rule,
    kept_by_input,
    kept_by_moment,
)
from blurfit.theory.certified import Scales
from blurfit.theory.setting import LocalGuarantee, ModelGuarantee, Neighbours, Setting
from blurfit.validate import inside_unit_interval, nonnegative, one_of, positive

# Noise is rounded up by this much, far more than the error of any function here.
_ROUNDING = 1 + 1e-9


def calibrate(
    epsilon: float,
    delta: float,
    *,
    dimension: int,
    quorum: int,
    q_bound: float,
    p_bound: float,
    weight_bound: float | None = None,
    mechanism: Mechanism = "moment",
    rule: Rule = "certified",
    neighbours: Neighbours = "replace",
    parallel: bool = False,
    split: float | None = None,
    balance: float | None = None,
    local_epsilon: float | None = None,
    local_delta: float | None = None,
    local_share: float | None = None,
    alpha: float = 1.0,
    debias: bool = True,
) -> InputCalibration | MomentCalibration:
    """The least noise that keeps the promise, from public facts alone.

    Args:
        epsilon: ε of the published model (times `alpha`).
        delta: δ of the published model.
        dimension: d, the length of q and p.
        quorum: n, the least number of honest records; no model may be published below it.
        q_bound: R_q ≥ ‖q‖ for every record.
        p_bound: R_p ≥ ‖p‖ for every record.
        weight_bound: η; the model is sought in ‖w‖ ≤ η. Needed by mechanism="input".
        mechanism: "moment" blurs qqᵀ and p, d(d+3)/2 numbers, any number of releases; "input" blurs
            q and p, 2d numbers, one release.
        rule: "certified" is proved; "published" is what the paper prints (mechanism="input" only).
        neighbours: what one person may change: "replace" her record by any other, or "zero-out" (by
            q = 0, p = 0).
        parallel: p = κq with |κ| ≤ R_p/R_q for every record (squared and logistic loss): less noise
            under "replace". (moment)
        split: J's share of ε, between 0 and 1; None minimises `excess_risk`. (input, certified)
        balance: τ, the noise on p relative to that on qqᵀ; None minimises the expected noise on the
            gradient. (moment)
        local_epsilon: a target for a single submission too; raises the noise until it is kept
            exactly.
        local_delta: δ of the submission's guarantee; defaults to `delta`, but must be said with
            `local_epsilon`.
        local_share: with a local target, the share of a submission's μ² = μ_q² + μ_p² that the
            noise on q may spend; None minimises `excess_risk`. (input)
        alpha: the paper's balance between model and submission: ε ← αε, in (0, 1].
        debias: let a negative ridge take back what the noise adds to the curvature, as far as it is
            certain. (input)

    Raises:
        InvalidValueError: a value that its parameter cannot have.
        InfeasibleError: values that do not go together; the message has the remedy, such as the
            least quorum that works.

    >>> moment = calibrate(1, 1e-6, dimension=14, quorum=32768, q_bound=1, p_bound=1, parallel=True)
    >>> round(moment.sigma_m, 2), round(moment.sigma_p, 2), moment.model.releases
    (8.89, 9.0, 'any')
    """
    positive(epsilon=epsilon, alpha=alpha)
    inside_unit_interval(delta=delta)
    one_of(MECHANISMS, mechanism=mechanism)
    one_of(RULES, rule=rule)
    if alpha > 1:
        raise InvalidValueError(
            f"Expected alpha={alpha!r} <= 1: it only ever strengthens the promise."
        )
    setting = Setting(dimension, quorum, q_bound, p_bound, weight_bound, neighbours)
    target = ModelGuarantee(alpha * epsilon, delta, neighbours, "any")
    local = _LocalTarget.of(local_epsilon, local_delta, delta)
    if mechanism == "moment":
        _refuse_for(mechanism, split=split, local_share=local_share)
        if rule != "certified":
            raise InvalidValueError(
                "Expected rule='certified' with mechanism='moment': the paper has no such "
                "mechanism. Use mechanism='input' for the paper's numbers."
            )
        found = _calibrate_moment(setting, target, local, balance, parallel)
        found.verify()
        return found
    _refuse_for(mechanism, balance=balance)
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
    mechanism: Mechanism = "moment",
    neighbours: Neighbours = "replace",
    parallel: bool = False,
    sigma_u: float | None = None,
    sigma_b: float | None = None,
    ridge: float = 0.0,
    sigma_m: float | None = None,
    sigma_p: float | None = None,
    count: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
) -> ModelGuarantee:
    """The inverse of `calibrate`: what given noise keeps. Give δ to learn ε, or ε to learn δ.

    `quorum` is what each record was blurred for (variance σ²/quorum), `count` how many honest
    records there are (default: the quorum). mechanism="input" takes `sigma_u`, `sigma_b` and
    `ridge`; mechanism="moment" takes `sigma_m` and `sigma_p`.

    >>> kept = guarantee(dimension=14, quorum=32768, q_bound=1, p_bound=1, parallel=True,
    ...                  sigma_m=8.9, sigma_p=9.0, delta=1e-6, count=16384)
    >>> round(kept.epsilon, 2)
    1.45
    """
    one_of(MECHANISMS, mechanism=mechanism)
    setting = Setting(dimension, quorum, q_bound, p_bound, weight_bound, neighbours)
    if mechanism == "moment":
        _refuse_for(mechanism, sigma_u=sigma_u, sigma_b=sigma_b)
        sigma, tau_sigma = _needed(mechanism, sigma_m=sigma_m, sigma_p=sigma_p)
        positive(sigma_m=sigma, sigma_p=tau_sigma)
        reach = moment.sensitivity(setting, tau_sigma / sigma, parallel=parallel)
        return kept_by_moment(setting, sigma, reach, count, epsilon, delta)
    _refuse_for(mechanism, sigma_m=sigma_m, sigma_p=sigma_p)
    u, b = _needed(mechanism, sigma_u=sigma_u, sigma_b=sigma_b)
    nonnegative(sigma_u=u)
    positive(sigma_b=b)
    return kept_by_input(setting, Scales(u, b, ridge), count, epsilon, delta)


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
        return cls(delta, gaussian.mu_of(epsilon, delta) / _ROUNDING)

    def guarantee(self, mu: float) -> LocalGuarantee:
        return LocalGuarantee(mu, gaussian.epsilon_of(mu, self.delta), self.delta)


def _calibrate_moment(
    setting: Setting,
    target: ModelGuarantee,
    local: _LocalTarget,
    balance: float | None,
    parallel: bool,
) -> MomentCalibration:
    tau = moment.best_balance(setting, parallel=parallel) if balance is None else balance
    positive(balance=tau)
    reach = moment.sensitivity(setting, tau, parallel=parallel)
    local_reach = moment.local_sensitivity(setting, tau, parallel=parallel)
    sigma = reach / gaussian.mu_of(target.epsilon, target.delta) * _ROUNDING
    if local.mu is not None:
        sigma = max(sigma, moment.submission_mu(setting, local.mu, local_reach))
    return MomentCalibration(
        mechanism="moment",
        rule="certified",
        setting=setting,
        model=target,
        local=local.guarantee(moment.submission_mu(setting, sigma, local_reach)),
        excess_risk=None
        if setting.weight_bound is None
        else excess_risk.moment_excess_risk(setting, sigma, tau * sigma),
        sigma_m=sigma,
        sigma_p=tau * sigma,
        balance=tau,
        parallel=parallel,
        sensitivity=reach,
        local_sensitivity=local_reach,
        mu=moment.model_mu(setting, sigma, reach),
    )


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
        mechanism="input",
        rule="certified",
        setting=setting,
        model=model,
        local=local.guarantee(search.local_mu(setting, scales)),
        excess_risk=excess_risk.input_excess_risk(setting, scales),
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
    return InputCalibration(
        mechanism="input",
        rule="published",
        setting=setting,
        model=ModelGuarantee(
            target.epsilon, target.delta, target.neighbours, releases=1, proved=False
        ),
        local=local.guarantee(search.local_mu(setting, scales)),
        excess_risk=excess_risk.input_excess_risk(setting, scales),
        sigma_u=scales.sigma_u,
        sigma_b=scales.sigma_b,
        ridge=scales.ridge,
        split=None,
        shares=None,
        loss=None,
        kept=kept_by_input(setting, scales, None, None, target.delta),
        local_claim=paper.local_claim(setting, scales, target.delta),
    )


def _refuse_for(what: str, **values: Any) -> None:
    for name, value in values.items():
        if value is not None:
            raise InvalidValueError(
                f"Expected no {name}={value!r} with {what}: it has no such parameter."
            )


def _needed(mechanism: str, **values: float | None) -> list[float]:
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise InfeasibleError(f"mechanism={mechanism!r} needs {' and '.join(missing)}.")
    return [value for value in values.values() if value is not None]
