"""The paper's formulas, worked by hand for three settings (each step shown, four or more digits
kept)."""

import pytest

from blurfit import InfeasibleError
from blurfit.input_perturbation import calibration, noise_of_algorithm_1
from blurfit.input_perturbation.calibration import calibrate
from blurfit.input_perturbation.theorem import Setting

# setting, ε, δ, σ_b, σ_u, Δ_in, Corollary 1's ε
BY_HAND = [
    # λ = 1, η = 1, ζ = 2, γ = 0.005: ln(2/γ) = ln 400 = 5.991465, ln(4/γ) = ln 800 = 6.684612
    # σ_b = 2·√(8·5.991465 + 0.4)/0.1 = 139.04203
    # a = √(5.991465/2097152) = 0.0016902523, √28·a = 0.0089439746, v = 1 − 2·√(6.684612/2097152) =
    #   0.9964293
    # σ_u = (0.0089439746 + √(0.000079995 + 19.928586))/0.9964293 = (0.0089439746 +
    #   4.4641535)/0.9964293 = 4.4891267
    # Δ = 2·√(14·4.605170)/0.1 = 160.58939, less 2λ/ε = 20
    # c = √(2 ln 125) = 3.1075115; 2c√n = 9000.3146; times 1/4.4891267 + 2/139.04203 = 0.23714461
    (Setting(14, 2**21, 1.0, 1.0, 1.0), 0.1, 0.01, 139.04203, 4.4891267, 140.58939, 2134.3761),
    # λ = 0.25, η = 2, R_p = 0.5, ζ = 1, γ = 5e-7: ln(2/γ) = 15.201805, ln(4/γ) = 15.894952
    # σ_b = √(121.61444 + 4) = 11.207785; a = 0.038989492, √6·a·λ = 0.02387609, v = 0.92026305
    # σ_u = (0.02387609 + √(0.00057006768 + 0.46013153))/0.92026305 = (0.02387609 +
    #   0.67875002)/0.92026305 = 0.76350573
    # Δ = √(3·13.815511)/2 = 3.218949, less 0.5
    # c = √(2 ln 1250000) = 5.2988025; 2c·100 = 1059.7605; times 0.25/0.76350573 + 1/11.207785 =
    #   0.41666066
    (Setting(3, 10_000, 0.5, 0.5, 2.0), 1.0, 1e-6, 11.207785, 0.76350573, 2.718949, 441.56052),
    # λ = 4, η = 0.5, R_p = 3, ζ = 5, γ = 0.05: ln(2/γ) = 3.6888795, ln(4/γ) = 4.3820266, d = 1, n =
    #   100
    # σ_b = 5·√(29.511036 + 8)/2 = 15.311563; a = 0.19206456, √2·a·4 = 1.0864812, v = 1 −
    #   2·0.20933291 = 0.58133418
    # σ_u = (1.0864812 + √(1.1804414 + 2.3253367))/0.58133418 = (1.0864812 + 1.8723723)/0.58133418 =
    #   5.0897636
    # Δ = max(4, 5·√2.302585/(2·0.5)) = 7.5871356, less 4
    # c = √(2 ln 12.5) = 2.2475447; 20c = 44.950894; times 4/5.0897636 + 5/15.311563 = 1.1124417
    (Setting(1, 100, 2.0, 3.0, 0.5), 2.0, 0.1, 15.311563, 5.0897636, 3.5871356, 50.00525),
]


@pytest.mark.parametrize(("setting", "epsilon", "delta", "b", "u", "ridge", "corollary"), BY_HAND)
def test_worked_by_hand(setting, epsilon, delta, b, u, ridge, corollary) -> None:
    noise = calibration.published_scales(setting, epsilon, delta)
    assert noise.sigma_b == pytest.approx(b, rel=2e-7)
    assert noise.sigma_u == pytest.approx(u, rel=2e-7)
    assert noise.ridge == pytest.approx(ridge, rel=2e-7)
    reference = noise_of_algorithm_1(
        epsilon,
        delta,
        d=setting.dimension,
        n=setting.quorum,
        zeta=setting.gradient_bound,
        smoothness=setting.smoothness,
    )
    assert reference == pytest.approx((noise.sigma_u, noise.sigma_b), rel=1e-12)
    claim = calibration.published_claim(setting, noise, delta)
    assert claim.epsilon == pytest.approx(corollary, rel=2e-7)
    assert claim.delta == 2 * delta


def test_it_says_its_least_quorum_and_a_hundredth_of_its_local_privacy() -> None:
    least = calibration.least_quorum(1e-6)
    assert least == 64  # 4 ln(8·10⁶) = 63.58
    arguments = {"dimension": 3, "q_bound": 1, "p_bound": 1, "weight_bound": 1, "rule": "published"}
    with pytest.raises(InfeasibleError, match=r"quorum=63 .*least quorum that works is 64"):
        calibrate(1, 1e-6, quorum=63, **arguments)
    assert calibrate(1, 1e-6, quorum=64, **arguments).sigma_u > 0
    public = {"dimension": 14, "quorum": 2**21, "q_bound": 1, "p_bound": 1, "weight_bound": 1}
    found = calibrate(0.1, 0.01, rule="published", **public)
    assert found.local.epsilon == pytest.approx(2.1e5, rel=0.01)
    assert found.local_claim.epsilon == pytest.approx(2.1e3, rel=0.02)
    assert not found.model.proved
    assert found.kept.proved
