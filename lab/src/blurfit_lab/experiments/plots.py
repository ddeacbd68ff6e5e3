"""Draw the paper's experiments: from CSV to PNG, one picture each; only means are computed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from blurfit_lab.experiments import figures
from blurfit_lab.experiments.claims import GRADIENT
from blurfit_lab.experiments.figures import CONSTANT, INPUT, MOMENT, NO_PRIVACY, WAVES
from blurfit_lab.experiments.pages import means
from blurfit_lab.experiments.runner import Row

DOTS, COLOURS = 80, 64  # per inch: pictures for a page, of some ten kilobytes
STYLES: dict[str, dict[str, Any]] = {
    NO_PRIVACY: {"color": "black", "linestyle": "--"},
    CONSTANT: {"color": "grey", "linestyle": ":"},
    figures.OUTPUT: {"color": "tab:brown"},
    figures.OBJECTIVE: {"color": "tab:orange", "linestyle": "--"},
    figures.CERTIFIED_OBJECTIVE: {"color": "tab:orange"},
    GRADIENT: {"color": "tab:pink"},
    INPUT: {"color": "tab:blue", "linewidth": 2},
    figures.PUBLISHED_INPUT: {"color": "tab:blue", "linestyle": "--"},
    MOMENT: {"color": "tab:red", "linewidth": 2},
    WAVES: {"color": "tab:cyan", "linewidth": 2.5},
}


def draw(name: str, rows: Sequence[Row], path: Path, title: str) -> None:
    """The picture of the experiment of that name."""
    figure = Figure(figsize=(11, 4.2), dpi=DOTS, layout="constrained")
    other = {"risk": _risk, "noise": _noise, "target": _target}
    drawer: Callable[[Figure, pd.DataFrame], None] = other.get(name, _paper)
    drawer(figure, means(rows).reset_index())
    if drawer is not _noise:
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8
        )
    if drawer is _paper:
        figure.axes[0].set_ylabel("accuracy" if name.startswith("fig2") else RMSE)
        if name.startswith("fig1"):
            figure.axes[0].set_ylim(0.18, 0.42)
    figure.suptitle(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()  # once, where `savefig` lays everything out twice
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    # 64 colours are enough for lines, at a third of the size
    picture.quantize(COLOURS).save(path, optimize=True)


RMSE = "RMSE, income scaled to [0, 1]"


def _lines(axis: Any, found: pd.DataFrame, x: str = "n") -> None:
    for line, part in found.groupby("line", sort=False):
        some = part.sort_values(x)
        terms: dict[str, Any] = {"marker": "o", "markersize": 3, "capsize": 2}
        style = STYLES.get(str(line), {})
        axis.errorbar(some[x], some.value, some.error, label=line, **terms, **style)
    axis.grid(alpha=0.3, which="both")


def _paper(figure: Figure, found: pd.DataFrame) -> None:
    words = {"default": "public defaults", "tuned": "tuned on the data, as the paper did"}
    axes = figure.subplots(1, 2, sharey=True)
    for axis, variant in zip(axes, words, strict=True):
        _lines(axis, found[(found.variant == variant) | (found.line == CONSTANT)])
        axis.set_xscale("log", base=2)
        axis.set(title=words[variant], xlabel="n")


def _risk(figure: Figure, found: pd.DataFrame) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (epsilon, part) in zip(axes, found.groupby("epsilon"), strict=False):
        _lines(axis, part)
        first = part[part.line == INPUT].sort_values("n").iloc[0]
        sizes = np.sort(part.n.unique())
        rate = first.value * first.n / sizes
        axis.plot(sizes, rate, color="grey", linestyle=":", label="Theorem 2: slope −1")
        axis.set(xscale="log", yscale="log", title=f"ε = {epsilon:g}", xlabel="n")
    axes[0].set_ylabel("excess empirical risk")


def _noise(figure: Figure, found: pd.DataFrame) -> None:
    """Excess risk, σ_b and σ_u, and a submission's ε; ε = 0.1 solid, ε = 1 dashed."""
    told = {
        "certified excess risk (probability 0.9)": ("certified excess risk",),
        "noise of all contributors together": ("sigma_b", "sigma_u"),
        "ε of one submission, δ = 0.01": ("exact local epsilon", "Corollary 1"),
    }
    for axis, (title, variants) in zip(figure.subplots(1, 3), told.items(), strict=True):
        some = found[found.variant.isin(variants)]
        for (line, variant, epsilon), part in some.groupby(["line", "variant", "epsilon"]):
            label = f"{variant}, {line}, ε = {epsilon:g}"
            axis.plot(part.n, part.value, label=label, linestyle="-" if epsilon < 1 else "--")
        axis.set(xscale="log", yscale="log", xlabel="quorum n", title=title)
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=6)


def _target(figure: Figure, found: pd.DataFrame) -> None:
    found = found.assign(target=found.variant.astype(float))
    sizes = sorted(found.n.unique())
    axes = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axis, n in zip(axes, sizes, strict=True):
        _lines(axis, found[found.n == n], "target")
        axis.set_xscale("log", base=2)
        axis.set(title=f"n = {n:,}", xlabel="ε of one submission")
    axes[0].set_ylabel(RMSE)
