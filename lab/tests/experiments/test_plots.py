"""Pictures are drawn from rows alone, the same bytes each time, and small."""

from pathlib import Path

import pytest

from blurfit_lab.experiments.figures import INPUT, MOMENT, NO_PRIVACY, PUBLISHED_INPUT, WAVES
from blurfit_lab.experiments.page import ONE_PAGE
from blurfit_lab.experiments.plots import _drawers, draw
from blurfit_lab.experiments.runner import Row

VARIANTS = {
    "risk": ("",),
    "noise": ("sigma_b", "sigma_u", "exact local epsilon", "Corollary 1"),
    "target": ("1", "16"),
    "rivals": ("linear", "logistic"),
    "utility": ("linear", "logistic"),
    "reliability": ("predicted 03", "observed 03", "weight 03", "error"),
}


def drawn(name: str, path: Path) -> bytes:
    rows = [
        Row(line, variant, epsilon, n, trial, 0.2 + 0.01 * trial + 1 / n)
        for line in (NO_PRIVACY, PUBLISHED_INPUT, INPUT, MOMENT, WAVES)
        for variant in VARIANTS.get(name, ("default", "tuned"))
        for epsilon in ((0.1, 1.0) if name in VARIANTS else (0.1,))
        for n in (2**13, 2**17)
        for trial in range(2)
    ]
    draw(name, rows, path, "made up")
    return path.read_bytes()


SAME = {"fig1b": "fig1a", "fig2b": "fig2a"}  # are drawn alike


def test_the_papers_figures_are_drawn_alike() -> None:
    for name, other in SAME.items():
        one, two = _drawers(name), _drawers(other)
        assert (one.__code__, one.__closure__) == (two.__code__, two.__closure__)


@pytest.mark.parametrize("name", [name for name in ONE_PAGE if name not in SAME])
def test_pictures_are_small_and_the_same_each_time(name, tmp_path) -> None:
    picture = drawn(name, tmp_path / "a.png")
    assert 2_000 < len(picture) < 100_000
    if name in ("fig1a", "reliability"):  # of the plots' two kinds
        assert drawn(name, tmp_path / "b.png") == picture
