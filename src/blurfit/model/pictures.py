"""Published models and moments as pictures, for a notebook or a report.

Everything drawn here follows from what is published, so it costs no privacy.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from blurfit.optional import axes
from blurfit.schema.columns import Numeric
from blurfit.schema.schema import titles

if TYPE_CHECKING:
    from blurfit.model.moments import PublishedMoments
    from blurfit.model.published import PublishedModel


def plot_model(
    model: "PublishedModel", ax: Any = None, *, output: str | None = None, confidence: float = 0.95
) -> Any:
    """Each coefficient with its interval, over its feature's whole range so that they compare.

    The part of the interval that is due to privacy alone is drawn thick. Without standard errors
    the coefficients that predictions are made with are drawn alone. The axes are returned.
    """
    output = model.outputs[0] if output is None else output
    found = model.coefficients_of(output)
    estimates = model.estimates(confidence, output)[1:] if model.inference else ()
    names = [one.name for one in estimates] or list(found.effects)
    asked = (model.agreement.schema.question(name) for name in model.features)
    widths = {one.name: one.width for one in asked if isinstance(one, Numeric)}
    ranges = np.array([widths.get(name, 1.0) for name in names])
    ax = axes(ax, 7, 1.6 + 0.35 * len(names))
    places = np.arange(len(names))
    if estimates:
        middle = ranges * [one.value for one in estimates]
        reach = ranges * [one.upper - one.value for one in estimates]
        of_it = [one.privacy_error / (one.standard_error or 1) for one in estimates]
        ax.hlines(places, middle - reach, middle + reach, linewidth=1.5)
        ax.hlines(places, middle - reach * of_it, middle + reach * of_it, linewidth=4, alpha=0.5)
        ax.plot(middle, places, "o")
        note = f"{confidence:.0%} intervals; thick: the part due to privacy noise"
    else:
        ax.plot(ranges * list(found.effects.values()), places, "o")
        note = "no standard errors"
    ax.axvline(0, color="grey", linewidth=1)
    called = titles(model.agreement.schema)
    ax.set_yticks(places, [called.get(name, name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    unit = model.target if model.link == "linear" else f"{model.link} scale of {model.target}"
    ax.set_xlabel(f"effect of the whole range on {unit}\n{note}")
    ax.set_title(f"{output}: {model.guarantee.counted}, {model.guarantee.numbers}")
    return ax


def plot_moments(moments: "PublishedMoments", ax: Any = None) -> Any:
    """The correlations of all columns, blank where the noise drowns one; the axes are returned."""
    found = moments.correlations()
    size = 1.5 + 0.45 * len(found.names)
    ax = axes(ax, size + 1, size)
    picture = ax.imshow(np.clip(found.values, -1, 1), cmap="RdBu", vmin=-1, vmax=1)
    ax.figure.colorbar(picture, ax=ax, label="correlation")
    places = np.arange(len(found.names))
    ax.set_xticks(places, found.names, rotation=45, ha="right")
    ax.set_yticks(places, found.names)
    if len(found.names) <= 12:
        for row, column in np.ndindex(found.values.shape):
            if np.isfinite(value := found.values[row, column]):
                colour = "white" if abs(value) > 0.6 else "black"
                kept = {"ha": "center", "va": "center", "color": colour, "fontsize": "small"}
                ax.text(column, row, f"{value:.2f}", **kept)
    ax.set_title(f"{moments.guarantee.counted}, {moments.guarantee.numbers}")
    return ax
