"""The one entry point: the certified figures, promises kept, monotonicity, and refusals with a
remedy."""

import contextlib
import math
from dataclasses import replace
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blurfit import BlurfitError, InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.input_perturbation import theorem
from blurfit.input_perturbation.calibration import Calibration, calibrate
from blurfit.input_perturbation.gradient_delta import log_gradient_delta
from blurfit.input_perturbation.theorem import (
    Scales,
    Setting,
    curvature_loss,
    input_excess_risk,
    standardised,
)
from blurfit.theory import gaussian
from support.exact import noncentral_tail


def kept(found: Calibration) -> float:
    """ε of the noise at its own shares of δ, computed anew."""
    return theorem.kept_epsilon(found.setting, found.scales, found.shares)


UNIT = {"q_bound": 1.0, "p_bound": 1.0, "weight_bound": 1.0}
CENSUS = {"dimension": 14, "quorum": 2**21, **UNIT}
EXPENSIVE = settings(max_examples=30)  # each of them calibrates several times


@pytest.mark.parametrize(
    ("epsilon", "delta", "split", "sigma_b"),
    [
        (0.1, 0.01, 0.2, 36.46),
        (0.1, 0.01, 0.02, 32.95),
        (1.0, 1e-6, 0.2, 15.9),
        (1.0, 1e-6, 0.02, 13.3),
    ],
)
def test_certified_figures(epsilon: float, delta: float, split: float, sigma_b: float) -> None:
    """Worked out beforehand, apart from this code, over 64 angles instead of 16."""
    found = calibrate(epsilon, delta, split=split, **CENSUS)
    assert found.sigma_b == pytest.approx(sigma_b, rel=0.01)
    assert found.sigma_u**2 == pytest.approx(1 / math.expm1(split * epsilon))


@pytest.mark.parametrize(("epsilon", "delta", "ratio"), [(0.1, 0.01, 1.31), (1.0, 1e-6, 1.2)])
def test_chosen_noise_beside_the_plain_gaussian_mechanism(epsilon, delta, ratio) -> None:
    """Sensitivity 3 at the full (ε, δ) is what releasing the gradient once would need."""
    found = calibrate(epsilon, delta, **CENSUS)
    assert 1 < found.sigma_b / (3 / gaussian.mu_of(epsilon, delta)) < ratio


@pytest.mark.parametrize(("epsilon", "sigma_b"), [(0.1, 139.0), (1.0, 14.41)])
def test_published_figures(epsilon: float, sigma_b: float) -> None:
    found = calibrate(epsilon, 0.01, rule="published", **CENSUS)
    assert found.sigma_b == pytest.approx(sigma_b, rel=5e-4)


inputs = st.fixed_dictionaries(
    {
        "epsilon": st.floats(1e-3, 30),
        "delta": st.floats(1e-15, 0.1),
        "dimension": st.integers(1, 40),
        "surplus": st.one_of(st.integers(1, 50), st.integers(50, 10**9)),
        "neighbours": st.sampled_from(["replace", "zero-out"]),
        "weight_bound": st.floats(0.1, 10),
        "q_bound": st.floats(0.1, 3),
        "p_bound": st.floats(0.1, 3),
        "split": st.floats(0.01, 0.95),
    }
)


def keyword_arguments(drawn: dict) -> dict:
    rest = dict(drawn)
    return {"quorum": rest["dimension"] + rest.pop("surplus"), **rest}


@EXPENSIVE
@given(inputs)
def test_input_keeps_its_promise_when_evaluated_again(drawn) -> None:
    call = keyword_arguments(drawn)
    found = calibrate(**call)
    assert found.shares.total <= call["delta"] * (1 + 1e-12)
    loss = curvature_loss(found.setting, found.sigma_u, found.ridge, found.shares)
    parts = standardised(found.setting, found.sigma_b, loss)
    headroom = call["epsilon"] - loss.determinant_loss
    spent = log_gradient_delta(headroom, *parts, call["dimension"])
    assert spent <= math.log(found.shares.gradient)
    assert kept(found) <= call["epsilon"] * (1 + 1e-9)


@EXPENSIVE
@given(inputs, st.integers(2, 1000))
def test_a_larger_quorum_never_raises_the_noise_of_a_collection(drawn, factor: int) -> None:
    call = keyword_arguments(drawn)
    few, many = (calibrate(**{**call, "quorum": call["quorum"] * k}) for k in (1, factor))
    assert many.sigma_u <= few.sigma_u
    assert many.sigma_b <= few.sigma_b * (1 + 1e-9)


@EXPENSIVE
@given(inputs, st.floats(1.05, 5), st.sampled_from(["epsilon", "delta"]))
def test_a_weaker_promise_never_raises_the_noise(drawn, factor: float, what: str) -> None:
    call = keyword_arguments(drawn)
    weaker = {**call, what: min(call[what] * factor, 0.5 if what == "delta" else math.inf)}
    assert calibrate(**weaker).sigma_b <= calibrate(**call).sigma_b * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize(("dimension", "quorum"), [(1, 50), (14, 2**15), (200, 3000)])
def test_chosen_split_is_as_good_as_the_best_of_a_grid(epsilon, dimension, quorum) -> None:
    public = {"dimension": dimension, "quorum": quorum, **UNIT}
    grid = [
        calibrate(epsilon, 1e-5, split=split, **public).excess_risk
        for split in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7)
    ]
    assert calibrate(epsilon, 1e-5, **public).excess_risk <= min(grid) * 1.002


@EXPENSIVE
@given(
    st.floats(0.05, 50),
    st.floats(1e-12, 0.1),
    st.sampled_from([(1, 40), (5, 1000), (14, 2**17)]),
    st.booleans(),
    st.sampled_from(["replace", "zero-out"]),
)
def test_local_target_is_kept_and_not_overpaid(
    local_epsilon, local_delta, size, debias, neighbours
) -> None:
    public = {"dimension": size[0], "quorum": size[1], "neighbours": neighbours, **UNIT}
    target = {"local_epsilon": local_epsilon, "local_delta": local_delta}
    found = calibrate(1.0, 1e-6, debias=debias, **public, **target)
    assert found.local.epsilon <= local_epsilon
    assert gaussian.delta_of(found.local.mu, local_epsilon) <= local_delta
    assert kept(found) <= 1.0 + 1e-9
    if (
        calibrate(1.0, 1e-6, **public).local.epsilon > 2 * local_epsilon
    ):  # so the target costs something
        assert found.local.epsilon > 0.9 * local_epsilon


def test_debiasing_takes_the_noise_back_and_never_more_than_is_certain() -> None:
    public = {"dimension": 5, "quorum": 20_000, **UNIT}
    target = {"local_epsilon": 5.0, "local_delta": 1e-6}
    biased = calibrate(1, 1e-6, debias=False, **public, **target)
    debiased = calibrate(1, 1e-6, **public, **target)
    assert biased.ridge >= 0 > debiased.ridge
    s, certain = debiased.q_noise, debiased.shares.spectrum
    assert -debiased.ridge < theorem.spectrum_floor(s, 5, 20_000, certain)
    assert debiased.excess_risk < biased.excess_risk / 2


def test_the_least_epsilon_is_the_inverse() -> None:
    found = calibrate(0.7, 1e-7, dimension=6, quorum=4000, **UNIT)
    asked = found.setting, found.scales, 1e-7
    kept, _ = theorem.least_kept_epsilon(*asked)
    assert 0.98 * 0.7 < kept <= 0.7


def test_objective_perturbation_is_the_case_without_noise_on_q() -> None:
    kept, _ = theorem.least_kept_epsilon(Setting(3, 100, **UNIT), Scales(0.0, 20.0, 5.0), 1e-6)
    J = math.log1p(1 / 5)
    spent = log_gradient_delta(kept - J, 2 / 20, 1 / 20, 3)
    assert spent == pytest.approx(math.log(1e-6), abs=1e-7)


def test_less_noise_than_is_stated_is_refused() -> None:
    found = calibrate(1, 1e-6, **CENSUS)
    for changed in (
        {"sigma_b": found.sigma_b * 0.99},
        {"sigma_u": found.sigma_u * 0.99},
        {"ridge": found.ridge - 0.1},
        {"excess_risk": found.excess_risk * 0.99},
        {"local": replace(found.local, mu=found.local.mu * 0.99)},
        {"kept": replace(found.kept, epsilon=0.99)},
        {"rule": "published"},
        {"shares": replace(found.shares, gradient=found.shares.gradient * 1.01)},
    ):
        with pytest.raises(NotCertifiedError):
            replace(found, **changed).verify()
    published = calibrate(1, 1e-6, rule="published", **CENSUS)
    published.verify()
    with pytest.raises(NotCertifiedError):
        replace(published, kept=replace(published.kept, epsilon=0.58)).verify()


def test_the_excess_risk_is_what_the_split_minimises() -> None:
    found = calibrate(1, 1e-6, **CENSUS)
    follows = input_excess_risk(found.setting, found.scales)
    assert follows <= found.excess_risk <= follows * (1 + 2**-26)
    found.verify()


@pytest.mark.parametrize("extreme", [(1e-6, 1e-290), (1e4, 0.4), (1e-6, 0.4), (50.0, 1e-290)])
@pytest.mark.parametrize(("dimension", "quorum"), [(1, 2), (1000, 1001), (3, 10**12)])
def test_extremes_work(extreme, dimension, quorum) -> None:
    epsilon, delta = extreme
    found = calibrate(epsilon, delta, dimension=dimension, quorum=quorum, **UNIT)
    assert kept(found) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("delta", [1e-100, 1e-200, 1e-250])
def test_certificates_far_in_the_tail_are_true(delta: float) -> None:
    """The records' energy exceeds λ̃ with probability γ₂ at most, by a closed form."""
    found = calibrate(1, delta, dimension=3, quorum=10**5, split=0.2, **UNIT)
    loss = curvature_loss(found.setting, found.sigma_u, found.ridge, found.shares)
    with mpmath.workdps(30):
        x = mpmath.mpf(loss.record_energy) / mpmath.mpf(found.q_noise) ** 2
        exceeded = noncentral_tail(x, 3, 1 / mpmath.mpf(found.q_noise) ** 2)
        assert exceeded <= mpmath.mpf(found.shares.record) * (1 + 1e-9)


def test_no_delta_is_promised_or_stated_that_cannot_be_certified() -> None:
    with pytest.raises(InfeasibleError, match="delta=1e-291 to be at least 1e-290"):
        calibrate(1, 1e-291, **CENSUS)
    found = calibrate(1, 1e-6, **CENSUS)
    with pytest.raises(InfeasibleError, match="at least 1e-290"):
        theorem.least_kept_epsilon(found.setting, found.scales, 1e-291)


@given(st.data())
@settings(max_examples=150)
def test_corners_have_an_answer_or_a_reason(data: st.DataObject) -> None:
    """Whatever numbers are asked for: an answer that verifies, or an error of blurfit's own."""

    def numbers(*values: float) -> st.SearchStrategy[float]:
        return st.sampled_from(values)

    epsilons = numbers(1e-300, 1e-100, 1e-15, 1e-9, 1e-3, 1, 30, 400, 1e4, 1e6)
    deltas = numbers(1e-300, 1e-290, 1e-150, 1e-30, 1e-6, 0.1, 0.5, 1 - 1e-9)
    bounds = numbers(1e-300, 1e-9, 1, 1, 1, 1, 1e150, 1e300)
    call: dict[str, Any] = {
        "epsilon": data.draw(epsilons),
        "delta": data.draw(deltas),
        "dimension": data.draw(numbers(1, 1, 2, 14)),
        "quorum": data.draw(numbers(1, 2, 3, 15, 100, 10**9, 10**18)),
        **{name: data.draw(bounds) for name in UNIT},
        "neighbours": data.draw(st.sampled_from(["replace", "zero-out"])),
    }
    more = data.draw(st.sampled_from(["nothing", "split", "published", "local"]))
    if more == "published":
        call["rule"] = "published"
    if more == "split":
        call["split"] = data.draw(numbers(1e-300, 1e-6, 0.5, 1 - 1e-12))
    if more == "local":
        call |= {"local_epsilon": data.draw(epsilons), "local_delta": data.draw(deltas)}
    with contextlib.suppress(BlurfitError):
        found = calibrate(**call)
        theorem.least_kept_epsilon(found.setting, found.scales, call["delta"])


def test_a_tiny_epsilon_for_one_dimension_and_few_people() -> None:
    found = calibrate(1e-9, 1e-6, dimension=1, quorum=100, **UNIT)
    assert kept(found) <= 1e-9 * (1 + 1e-9)


GOOD = {"epsilon": 1, "delta": 1e-6, "dimension": 5, "quorum": 100, **UNIT}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epsilon": -1}, InvalidValueError, r"Expected epsilon=-1 > 0\."),
        ({"epsilon": math.nan}, InvalidValueError, "epsilon=nan to be finite"),
        ({"epsilon": "1"}, InvalidValueError, "epsilon='1' to be a real number"),
        ({"epsilon": True}, InvalidValueError, "epsilon=True to be a real number"),
        ({"delta": 0}, InvalidValueError, "delta=0 strictly between 0 and 1"),
        ({"delta": 1}, InvalidValueError, "delta=1 strictly between"),
        ({"dimension": 0}, InvalidValueError, "dimension=0 to be a whole number"),
        ({"dimension": 2.5}, InvalidValueError, "dimension=2.5 to be a whole number"),
        ({"quorum": -3}, InvalidValueError, "quorum=-3 to be a whole number"),
        ({"q_bound": 0}, InvalidValueError, "q_bound=0 > 0"),
        ({"p_bound": math.inf}, InvalidValueError, "p_bound=inf to be finite"),
        ({"weight_bound": -1}, InvalidValueError, "weight_bound=-1 > 0"),
        ({"rule": "guessed"}, InvalidValueError, "rule='guessed' to be one of"),
        ({"neighbours": "next door"}, InvalidValueError, "neighbours='next door' to be one of"),
        ({"split": 1}, InvalidValueError, "split=1 strictly between"),
        ({"weight_bound": None}, InfeasibleError, "`weight_bound` must be given"),
        ({"quorum": 5}, InfeasibleError, "least quorum that works is 6"),
        ({"rule": "published", "quorum": 60}, InfeasibleError, "least quorum that works is 64"),
        (
            {"rule": "published", "local_epsilon": 1, "local_delta": 0.1},
            InvalidValueError,
            "no local_epsilon",
        ),
        ({"local_epsilon": 2}, InvalidValueError, "Expected local_delta with local_epsilon=2"),
        ({"local_epsilon": 2, "local_delta": 3}, InvalidValueError, "local_delta=3 strictly"),
        ({"local_epsilon": 0, "local_delta": 0.1}, InvalidValueError, "local_epsilon=0 > 0"),
    ],
)
def test_bad_input_names_the_value_and_the_remedy(change, error, message) -> None:
    with pytest.raises(error, match=message):
        calibrate(**{**GOOD, **change})


def test_it_says_why_nothing_is_kept() -> None:
    setting = Setting(5, 100, **UNIT)
    with pytest.raises(InfeasibleError, match="the ridge must be positive"):
        theorem.least_kept_epsilon(setting, Scales(0, 1, 0.0), 0.1)
    with pytest.raises(InfeasibleError, match="more cannot be taken away"):
        theorem.least_kept_epsilon(setting, Scales(1, 1, -5), 0.1)
    with pytest.raises(InfeasibleError, match="quorum=3 > dimension=5"):
        theorem.least_kept_epsilon(Setting(5, 3, **UNIT), Scales(1, 1, 0.0), 0.1)
