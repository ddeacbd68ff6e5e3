"""An audit as a picture: how much of what was promised each attack found."""

from collections.abc import Sequence
from typing import Any

from blurfit.audit.examination import Finding
from blurfit.optional import optional


def plot(findings: Sequence[Finding], ax: Any = None) -> Any:
    """Audited over promised ε, a bar for each attack; the axes are returned."""
    if ax is None:
        size = 8, 1 + 0.45 * len(findings)
        _, ax = optional("matplotlib.pyplot").subplots(figsize=size, layout="constrained")
    names = [f"{one.view}: {one.pair}" for one in findings]
    colours = ["tab:red" if one.broken else "tab:blue" for one in findings]
    ax.barh(names, [one.ratio for one in findings], color=colours)
    ax.axvline(1, color="black", linewidth=1)
    ax.invert_yaxis()
    ax.set_xlabel("audited ε over promised ε (beyond 1: broken)")
    return ax
