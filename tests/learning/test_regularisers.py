import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from blurfit.errors import InvalidValueError
from blurfit.learning.solver import ElasticNet, length, prox_in_ball, relative

numbers = st.floats(-10, 10, allow_subnormal=False)
strengths = st.floats(0, 5, allow_subnormal=False)
steps = st.floats(0.01, 10)


class AtLeast:
    """All weights at least `least`: a domain without zero, so w(θ) is not θ·w(1)."""

    def __init__(self, least):
        self.least = least

    def value(self, weights):
        return 0.0 if (weights >= self.least).all() else np.inf

    def prox(self, point, _step):
        return np.maximum(point, self.least)


@given(strengths, strengths, numbers, steps)
def test_elastic_net_prox_minimises_its_definition(l1, l2, point, step):
    net = ElasticNet(l1, l2)
    found = net.prox(np.array([point]), step)

    def definition(w):
        return step * net.value(np.array([w])) + 0.5 * (w - point) ** 2

    oracle = minimize_scalar(
        definition, bounds=(-11, 11), method="bounded", options={"xatol": 1e-9}
    )
    assert definition(found[0]) <= oracle.fun + 1e-12
    assert found[0] == pytest.approx(oracle.x, abs=1e-5)


def test_values():
    w = np.array([3.0, -4.0])
    assert ElasticNet(2.0).value(w) == 14.0
    assert ElasticNet(2.0, 3.0).value(w) == 14.0 + 37.5


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, "1"])
def test_strengths_are_not_negative(bad):
    with pytest.raises(InvalidValueError, match="l1="):
        ElasticNet(bad, 1.0)
    with pytest.raises(InvalidValueError, match="l2="):
        ElasticNet(1.0, bad)


@pytest.mark.parametrize(
    "regulariser",
    [ElasticNet(0.3), ElasticNet(0.3, 2.0), ElasticNet(0.0, 5.0), AtLeast(0.2), AtLeast(-1.0)],
)
@given(seed=st.integers(0, 10**6), radius=st.floats(0.5, 5), step=steps)
def test_prox_in_ball_beats_every_point_of_the_ball(regulariser, seed, radius, step):
    rng = np.random.default_rng(seed)
    v = 3 * rng.normal(size=4)
    w, price = prox_in_ball(regulariser, v, step, radius)

    def definition(w):
        return step * regulariser.value(w) + 0.5 * float((w - v) @ (w - v))

    assert np.linalg.norm(w) <= radius * (1 + 1e-14)
    assert price == 0.0 or np.linalg.norm(w) == pytest.approx(radius, rel=1e-14)
    assert price >= 0.0
    steps = np.repeat([1e-3, 1e-1, 1.0], 10)[:, None] * rng.normal(size=(30, 4))
    others = np.array([regulariser.prox(one, 1e-9) for one in w + steps])
    others *= np.minimum(1.0, radius / np.linalg.norm(others, axis=1))[:, None]
    least = min(definition(other) for other in others)
    assert definition(w) <= least + 1e-12 * (1 + definition(w))


def test_a_norm_needs_no_search():
    calls = []

    class Counting(ElasticNet):
        def prox(self, point, step, /):
            calls.append(step)
            return super().prox(point, step)

    w, price = prox_in_ball(Counting(0.5), np.array([3.5, 4.5]), 1.0, 1.0)
    assert w == pytest.approx([0.6, 0.8], abs=1e-15)
    assert price == pytest.approx(4.0, rel=1e-14)
    assert len(calls) == 2


def test_odd_proxes_are_named_or_left_alone():
    class Wrong(AtLeast):
        def prox(self, point, _step):
            return point[:1]

    with pytest.raises(InvalidValueError, match=r"Wrong.prox to return shape=\(1,\) as \(2,\)"):
        prox_in_ball(Wrong(0.0), np.zeros(2), 1.0, 1.0)

    class InPlace(AtLeast):
        def prox(self, point, _step):
            return np.maximum(point, self.least, out=point)

    v = np.array([-1.0, 2.0])
    assert prox_in_ball(InPlace(0.0), v, 1.0, 1.0)[0].tolist() == [0.0, 1.0]
    assert v.tolist() == [-1.0, 2.0]


def test_lengths_and_gaps_are_forgiven_their_rounding_and_nothing_more():
    for scale in (1e-200, 1.0, 1e200):
        assert length(scale * np.array([3.0, 4.0])) == pytest.approx(5 * scale, rel=1e-15)
    assert length(np.empty(0)) == 0.0
    assert relative(0.5, of=2.0, rounding=0.5) == 0.0
    assert relative(2.5, of=2.0, rounding=0.5) == 1.0
    assert relative(0.0, of=0.0) == 0.0
    assert relative(3.0, of=0.0) == 3.0
    for gap, rounding in ((np.inf, np.inf), (np.nan, 1.0), (np.nan, np.inf), (1.0, np.nan)):
        assert not relative(gap, of=1.0, rounding=rounding) <= 1e300
