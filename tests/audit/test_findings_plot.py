"""The picture of an audit: a bar for each attack, and where a promise is broken."""

import matplotlib as mpl
import pytest

from blurfit.audit.examination import Finding
from blurfit.audit.findings_plot import plot

mpl.use("Agg")

KEPT = Finding("sums", "opposite records", "linear", 1000, 1.0, 1e-6, 0.4, 0.9, 0.95)
BROKEN = Finding("model", "zero and extreme", "quadratic", 1000, 1.0, 1e-6, 2.5)


def test_bars_are_as_long_as_what_was_found() -> None:
    axes = plot([KEPT, BROKEN])
    kept, broken = axes.patches
    assert (kept.get_width(), broken.get_width()) == pytest.approx((0.9, 2.5))
    assert kept.get_facecolor() != broken.get_facecolor()
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "sums: opposite records",
        "model: zero and extreme",
    ]
    mpl.pyplot.close(axes.figure)
