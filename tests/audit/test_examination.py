"""Train, choose, count: each on trials of its own."""

import matplotlib as mpl
import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit.audit.examination import Finding, Findings, examine

mpl.use("Agg")

KEPT = Finding("sums", "opposite records", "linear", 1000, 1.0, 1e-6, 0.4, 0.9, 0.95)
BROKEN = Finding("model", "zero and extreme", "quadratic", 1000, 1.0, 1e-6, 2.5)


def gaussians(shift: float, seed: int = 0):
    generator = np.random.default_rng(seed)
    return lambda which, count: generator.normal(size=(count, 3)) + (0 if which else shift)


def found(draw, **how) -> Finding:
    given = {"trials": 2000, "confidence": 0.99, "promise": (1.0, 1e-5), "labels": ("a", "b")}
    return examine(draw, **(given | how))


def test_no_more_trials_than_asked_for_and_none_counted_twice() -> None:
    drawn = []

    def draw(which: bool, count: int) -> np.ndarray:
        drawn.append((which, count))
        return np.random.default_rng(len(drawn)).normal(size=(count, 1))

    found(draw)
    assert [sum(n for side, n in drawn if side is which) for which in (False, True)] == [2000] * 2
    assert len(drawn) == 6


def test_choosing_on_other_trials_keeps_the_confidence() -> None:
    """Equal laws, many attackers: almost never is anything found."""
    wrong = sum(found(gaussians(0.0, seed), confidence=0.95).audited > 0 for seed in range(60))
    assert wrong <= 8


def test_what_is_found_is_told_beside_the_promise() -> None:
    one = found(gaussians(3.0), gaussian=1e-5, exact=20.0)
    assert one.counted > 3
    assert one.gaussian is not None
    assert one.audited == max(one.counted, one.gaussian)
    assert one.broken
    assert one.ratio == one.audited / 1.0
    assert one.to_dict()["exact"] == 20.0


def test_own_attacks_are_tried_too() -> None:
    def draw(which: bool, count: int) -> np.ndarray:
        numbers = np.random.default_rng(count + which).integers(0, 1000, (count, 1)) * 1.0
        return numbers - numbers % 2 + (0 if which else 1)  # odd or even

    attack = {"parity": lambda seen: seen[:, 0] % 2}
    one = found(draw, attacks=attack)
    assert one.counted > 5


def test_too_few_trials_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="trials=99"):
        found(gaussians(0.0), trials=99)


def test_bars_are_as_long_as_what_was_found() -> None:
    axes = Findings([KEPT, BROKEN]).plot()
    kept, broken = axes.patches
    assert (kept.get_width(), broken.get_width()) == pytest.approx((0.9, 2.5))
    assert kept.get_facecolor() != broken.get_facecolor()
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "sums: opposite records",
        "model: zero and extreme",
    ]
    mpl.pyplot.close(axes.figure)
