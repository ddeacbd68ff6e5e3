"""Each statistical test would refuse fair noise once in 10⁸ draws, and a deliberate mistake
(`TestTheTestsThemselves`) nearly always; the noise of a test is the same in every run."""

import inspect
import math
import os
import subprocess
import sys
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, norm

from blurfit import randomness as bits
from blurfit import randomness as noise
from blurfit.errors import InvalidValueError
from blurfit.randomness import add, new_identifiers, to_grid
from support.fair import probabilities, shape_pvalue
from support.replay import drawn_from

CHANCE = 1e-9
DRAWS = 120_000  # a variance that is wrong by 3 % is seen with probability 0.99
RATIOS = [0.7, 3.0, 1000.0, 2.0**20]
STEP = 2.0**-3

powers_of_two = st.integers(-40, 40).map(lambda exponent: 2.0**exponent)


@cache
def drawn(ratio):
    """Exact noise in steps, drawn once for all tests."""
    with drawn_from(f"noise in {ratio} steps"):  # whichever test is the first to ask
        blurred = add(np.zeros(DRAWS), ratio * STEP, STEP)
    return blurred / STEP


def variance(ratio):
    """That of the discrete Gaussian, which is s² up to e^{−2π²s²} from s = 3 on."""
    if ratio > 10:
        return ratio**2
    k, chances = probabilities(ratio)
    return float((k**2 * chances).sum())


def variance_pvalue(seen, ratio):
    """The mean of squares against the variance; their own deviation is taken from the draws."""
    squares = np.asarray(seen, dtype=float) ** 2
    deviation = squares.std() / math.sqrt(len(squares))
    return 2 * norm.sf(abs(squares.mean() - variance(ratio)) / deviation)


@pytest.mark.statistical
@pytest.mark.parametrize("ratio", RATIOS)
class TestExact:
    def test_on_the_grid_of_the_right_shape_variance_and_mean(self, ratio):
        assert np.array_equal(drawn(ratio), np.rint(drawn(ratio)))
        assert shape_pvalue(drawn(ratio), ratio) > CHANCE
        assert variance_pvalue(drawn(ratio), ratio) > CHANCE
        mean = drawn(ratio).mean() / math.sqrt(variance(ratio) / DRAWS)
        assert 2 * norm.sf(abs(mean)) > CHANCE


class TestTheTestsThemselves:
    """With a seed, noise that is nearly right fails; noise that is right does not."""

    @pytest.mark.parametrize("ratio", RATIOS)
    def test_a_variance_that_is_wrong_by_three_percent_fails(self, ratio):
        generator = np.random.default_rng(5)
        for factor, passes in ((1.0, True), (1.03, False), (0.97, False)):
            if ratio > 10:
                seen = np.rint(generator.normal(0, ratio * math.sqrt(factor), DRAWS))
            else:
                k, chances = probabilities(ratio * math.sqrt(factor))
                seen = generator.choice(k, DRAWS, p=chances)
            assert (variance_pvalue(seen, ratio) > CHANCE) == passes, factor

    def test_a_rounded_gaussian_is_no_discrete_one(self):
        seen = np.rint(np.random.default_rng(5).normal(0, 0.7, DRAWS))
        assert shape_pvalue(seen, 0.7) < CHANCE


class TestExactOtherwise:
    @pytest.mark.parametrize("ratio", [0.7, 3.0])
    @pytest.mark.statistical
    def test_against_opendp(self, ratio):
        opendp = pytest.importorskip("opendp.prelude")
        opendp.enable_features("contrib")
        try:
            domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
            space = domain, opendp.l2_distance(T=float)
            theirs = opendp.m.make_gaussian(*space, ratio)([0] * 20_000)
        finally:
            opendp.disable_features("contrib")
        assert shape_pvalue(theirs, ratio) > CHANCE
        k = np.arange(-2, 3) if ratio < 1 else np.arange(-9, 10)
        ours = np.array([(drawn(ratio) == one).sum() for one in k])
        others = np.array([(np.array(theirs) == one).sum() for one in k])
        share = others.sum() / (ours.sum() + others.sum())
        together = np.concatenate([(1 - share) * (ours + others), share * (ours + others)])
        seen = np.concatenate([ours, others])
        assert chisquare(seen, together, ddof=len(k)).pvalue > CHANCE


@pytest.mark.statistical
def test_nothing_is_drawn_twice():
    """Neither within a chunk, nor in the next, nor in the next call."""
    table = np.zeros((3, noise.CHUNK + 7))
    seen = np.concatenate([add(table, 2.0**45, 1.0).ravel() for _ in range(2)])
    assert len(np.unique(seen)) > 0.999 * len(seen)


@pytest.mark.statistical
def test_scales_for_each_column():
    scales = np.array([2.0**-6, 1.0, 2.0**6, 1.0])
    seen = add(np.zeros((DRAWS, 4)), scales, 2.0**-16)
    for column, scale in zip(seen.T, scales, strict=True):
        assert kstest(column / scale, "norm").pvalue > CHANCE
    assert not np.array_equal(seen[:, 1], seen[:, 3])
    together = np.corrcoef(seen.T) - np.eye(4)
    assert np.abs(together).max() < 6.5 / math.sqrt(DRAWS)


class TestAdd:
    @pytest.mark.parametrize("width", [1, 14, 119, noise.CHUNK + 1])
    def test_the_noise_is_added_exactly(self, monkeypatch, width):
        """With the key held still, two calls differ by what was blurred, to the last bit."""
        monkeypatch.setattr(bits, "octets", lambda size: bytes(range(size)))
        generator = np.random.default_rng(3)
        values = to_grid(
            generator.uniform(-1, 1, (5000 // width + 3, width)), STEP / 1024, toward_zero=True
        )
        blank = add(np.zeros(values.shape), 1.0, STEP / 1024)
        assert np.array_equal(add(values, 1.0, STEP / 1024) - blank, values)

    def test_in_place(self):
        table = np.zeros((1000, 3))
        view = table[:, ::-1]
        result = add(table, 1.0, 2.0**-20, out=table)
        assert result is table
        assert (table != 0).mean() > 0.99
        before = view.copy()
        assert add(view, 1.0, 2.0**-20).shape == (1000, 3)  # needs no particular order
        assert np.array_equal(view, before)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is nothing to fork")
    def test_a_forked_process_draws_its_own(self):
        script = """
import os, sys
import numpy as np
from blurfit.randomness import add, new_identifiers
def draw():
    wide, step = np.zeros(3), 1.0
    print(*add(wide, 2.0**45, step), new_identifiers(1).tobytes().hex(), flush=True)
draw()
for _ in range(3):
    if not os.fork():
        draw()
        os._exit(0)
    os.wait()
draw()
"""
        result = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        seen = result.stdout.split()
        assert len(seen) == 5 * 4
        assert len(set(seen)) == len(seen)


class TestValues:
    def test_no_negative_zero(self):
        """The sign of a zero would tell where between two steps the noise, or the record, was."""
        seen = add(np.full(4000, -0.0), 0.5, 1.0)
        zeros = seen[seen == 0]
        assert len(zeros) > 1000
        assert not np.signbit(zeros).any()

    @pytest.mark.parametrize(
        ("values", "scale", "step", "match"),
        [
            ([0.3], 1.0, 0.5, "multiples of step=0.5, and some are not.*to_grid"),
            ([0.5, 5e-324], 1.0, 0.5, "multiples of step=0.5, and some are not"),
            ([5e-324], 2.0**256, 2.0**256, "multiples of step"),
            ([math.nan], 1.0, 0.5, "finite and below .* some are not"),
            ([math.inf], 1.0, 0.5, "finite and below .* some are not"),
            ([2.0**52], 1.0, 1.0, r"below 2\*\*52 steps"),
            ([1e308], 2.0**-256, 2.0**-256, r"below 2\*\*52 steps"),
            ([0.0], 1.0, 0.3, "step=0.3 to be a power of two"),
            ([0.0], 1.0, -0.5, "step=-0.5 > 0"),
            ([0.0], 1.0, 0.0, "step=0.0 > 0"),
            ([0.0], 1.0, math.nan, "step=nan to be finite"),
            ([0.0], 1.0, True, "step=True to be a real number"),
            ([0.0], 1.0, 2.0**-257, "step=.* to be a power of two between"),
            ([0.0], 0.0, 1.0, "scale=.* > 0"),
            ([0.0], -1.0, 1.0, "scale=.* > 0"),
            ([0.0], math.nan, 1.0, "scale=.* to be finite"),
            ([0.0], math.inf, 1.0, "scale=.* to be finite"),
            ([0.0], "1", 1.0, "scale=.* to be a real number"),
            ([0.0, 0.0], [1.0, 0.0], 1.0, "scale=.* > 0"),
            ([0.0], 2.0**46, 1.0, r"scale=.* to be between 2\*\*-10 and 2\*\*45 times step=1.0"),
            ([0.0], 2.0**-11, 1.0, r"scale=.* to be between"),
            ([0.0, 0.0], [1.0, 1.0, 1.0], 1.0, r"scale.shape=\(3,\) to be \(\) or \(2,\)"),
            ([[0.0], [0.0]], [1.0, 1.0], 1.0, r"scale.shape=\(2,\) to be \(\) or \(1,\)"),
        ],
    )
    def test_refusals(self, values, scale, step, match):
        with pytest.raises(InvalidValueError, match=match):
            add(values, scale, step)


class TestOut:
    @pytest.mark.parametrize(
        "out", [np.empty(3), np.empty((2, 2), np.float32), np.empty((2, 4))[:, ::2]]
    )
    def test_refusals(self, out):
        with pytest.raises(InvalidValueError, match="Expected out to be a C-contiguous float64"):
            add(np.zeros((2, 2)), 1.0, 1.0, out=out)


class TestToGrid:
    @given(st.lists(st.floats(-(2.0**11), 2.0**11), min_size=1, max_size=5), powers_of_two)
    def test_toward_zero_nothing_grows(self, values, step):
        found = to_grid(values, step, toward_zero=True)
        for value, rounded in zip(values, found.tolist(), strict=True):
            steps = Fraction(rounded) / Fraction(step)
            assert steps.denominator == 1
            assert abs(steps) == abs(Fraction(value) / Fraction(step)) // 1
            assert rounded * value >= 0
        assert sum(Fraction(v) ** 2 for v in found.tolist()) <= sum(
            Fraction(v) ** 2 for v in values
        )

    @given(st.floats(-(2.0**11), 2.0**11), powers_of_two)
    def test_to_the_nearest(self, value, step):
        rounded = to_grid(value, step, toward_zero=False)
        steps = Fraction(float(rounded)) / Fraction(step)
        assert steps == round(Fraction(value) / Fraction(step))  # ties to even, as Fraction does

    @given(st.integers(-(2**52) + 1, 2**52 - 1), powers_of_two, st.booleans())
    def test_multiples_stay_and_may_be_blurred(self, steps, step, toward_zero):
        value = steps * step
        assert to_grid(value, step, toward_zero=toward_zero) == value
        assert add([value], step, step).shape == (1,)

    def test_shape_sign_and_input_are_kept(self):
        values = np.array([[-0.3, 0.3], [-0.0, 1.7]])
        before = values.copy()
        found = to_grid(values, 1.0, toward_zero=True)
        assert found.tolist() == [[0.0, 0.0], [0.0, 1.0]]
        assert not np.signbit(found).any()
        assert np.array_equal(values, before)

    @pytest.mark.parametrize("step", [0.0, -1.0, 3.0, 0.1, math.inf, math.nan, "1", 2.0**257])
    def test_steps_that_are_no_powers_of_two(self, step):
        with pytest.raises(InvalidValueError, match="step="):
            to_grid([1.0], step, toward_zero=True)

    @pytest.mark.parametrize("value", [2.0**52, -(2.0**52), 1e308, math.inf, math.nan])
    def test_values_that_are_too_large(self, value):
        with pytest.raises(InvalidValueError, match=r"below 2\*\*52 steps"):
            to_grid([0.0, value], 1.0, toward_zero=False)


class TestAtRandom:
    """With words that are known: what was drawn decides, and nothing about the value."""

    @pytest.mark.parametrize("u", [0, 2.0**-20, 0.5, 1 - 2.0**-20, 1 - 2.0**-53])
    def test_rounding_adds_a_uniform_part_of_a_step(self, monkeypatch, u):
        word = int(u * 2**64)
        monkeypatch.setattr(bits, "words", lambda count: np.full(count, word, np.uint64))
        values = np.array([[0.3, -0.3], [0.75, -1.0]])
        found = noise.to_grid_at_random(values, 0.5)
        expected = [math.floor(Fraction(v) / Fraction(1, 2) + Fraction(u)) / 2 for v in values.flat]
        assert found.ravel().tolist() == expected
        assert not np.signbit(found[found == 0]).any()

    def test_dither_fills_a_cell_evenly_and_moves_no_mean(self, monkeypatch):
        monkeypatch.setattr(bits, "words", lambda count: np.arange(count, dtype=np.uint64) << 61)
        found = noise.dither(np.full(8, 3.0), 1.0, 0.125)
        assert found.tolist() == [3 + k / 8 for k in range(-4, 4)]
        assert noise.dither([1.0, 2.0], 1.0, 1.0).tolist() == [1.0, 2.0]
        with pytest.raises(InvalidValueError, match="multiples of step"):
            noise.dither([0.3], 0.5, 0.25)


class TestIdentifiers:
    def test_they_are_random_and_differ(self):
        seen = new_identifiers(1000)
        assert seen.shape == (1000, 16)
        assert seen.dtype == np.uint8
        assert not seen.flags.writeable
        assert len(np.unique(seen, axis=0)) == 1000
        assert abs(seen.mean() - 127.5) < 5 * 74 / math.sqrt(16_000)

    @pytest.mark.parametrize("count", [0, -1, 1.5, True])
    def test_refusals(self, count):
        with pytest.raises(InvalidValueError, match="count="):
            new_identifiers(count)


def test_nothing_takes_a_seed():
    functions = [
        value
        for value in vars(noise).values()
        if inspect.isroutine(value) and value.__module__ == noise.__name__
    ]
    assert {add, to_grid, new_identifiers} < set(functions)
    for function in functions:
        for name in inspect.signature(function).parameters:
            assert not any(word in name for word in ("seed", "random", "generator", "rng", "key"))
