"""A forecast as a picture: errors against contributors."""

import math
from typing import Any

from blurfit.forecast.results import LEVEL, Forecast
from blurfit.optional import optional


def plot(found: Forecast) -> Any:
    """One panel for each mechanism, with bands; the figure is returned."""
    plt = optional("matplotlib.pyplot")

    lines = found.lines()
    mechanisms = list(dict.fromkeys(mechanism for mechanism, _, _ in lines))
    size = (6 * len(mechanisms), 4.5)
    figure, axes = plt.subplots(
        1, len(mechanisms), figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    for (mechanism, epsilon, local), cases in lines.items():
        axis = axes[0, mechanisms.index(mechanism)]
        known = [one for one in cases if math.isfinite(one.error)]
        sizes = [one.contributors for one in known]
        label = f"ε = {epsilon:g}" + (f", local {local:g}" if local else "")
        style = {"marker": "o", "ms": 3, "linestyle": "-" if local is None else "--"}
        (drawn,) = axis.plot(sizes, [one.error for one in known], label=label, **style)
        bounds = [one.lower for one in known], [one.upper for one in known]
        axis.fill_between(sizes, *bounds, color=drawn.get_color(), alpha=0.2, linewidth=0)
    for axis, mechanism in zip(axes[0], mechanisms, strict=True):
        axis.axhline(found.best, color="black", linewidth=1, label="no privacy")
        axis.axhline(found.constant, color="grey", linewidth=1, linestyle="--", label="a constant")
        axis.set(xscale="log", title=mechanism, xlabel="contributors")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("share of wrong predictions" if found.is_label else "error")
    axes[0, 0].set_ylim(bottom=0.9 * found.best, top=1.5 * found.constant)
    axes[0, -1].legend(fontsize="small")
    figure.suptitle(f"{found.population}, {LEVEL:.0%} bands")
    return figure
