"""From CSV to PNG, one picture for each experiment; nothing is computed but means."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from blurfit_lab.experiments import methods, rivals
from blurfit_lab.experiments.averages import Key, Mean, Means, means
from blurfit_lab.experiments.head_to_head import RIVALS_2026
from blurfit_lab.experiments.methods import CONSTANT, INPUT, MOMENT, NO_PRIVACY, WAVES
from blurfit_lab.experiments.rivals_page import draw_rivals
from blurfit_lab.experiments.trials import Row

DOTS, COLOURS = 80, 64  # per inch: pictures for a page, of some ten kilobytes
STYLES: dict[str, dict[str, Any]] = {
    NO_PRIVACY: {"color": "black", "linestyle": "--"},
    CONSTANT: {"color": "grey", "linestyle": ":"},
    methods.OUTPUT: {"color": "tab:brown"},
    methods.OBJECTIVE: {"color": "tab:orange", "linestyle": "--"},
    methods.CERTIFIED_OBJECTIVE: {"color": "tab:orange"},
    rivals.LAPLACE_OBJECTIVE: {"color": "gold"},
    rivals.FUNCTIONAL: {"color": "tab:purple"},
    rivals.ADASSP: {"color": "tab:green", "linestyle": "--"},
    rivals.EXACT_ADASSP: {"color": "tab:green"},
    rivals.GRADIENT: {"color": "tab:pink"},
    rivals.PUBLISHED_GRADIENT: {"color": "tab:pink", "linestyle": "--"},
    rivals.LOCAL: {"color": "tab:olive"},
    INPUT: {"color": "tab:blue", "linewidth": 2},
    methods.PUBLISHED_INPUT: {"color": "tab:blue", "linestyle": "--"},
    MOMENT: {"color": "tab:red", "linewidth": 2},
    WAVES: {"color": "tab:cyan", "linewidth": 2.5},
}


def draw(name: str, rows: Sequence[Row], path: Path, title: str) -> None:
    """The picture of the experiment of that name."""
    figure = Figure(figsize=(11, 4.2), dpi=DOTS, layout="constrained")
    if name == RIVALS_2026.name:
        draw_rivals(figure, rows)  # of many sets, and not of the population alone
    else:
        _drawers(name)(figure, means(rows))
        figure.suptitle(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()  # once, where `savefig` lays everything out twice
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    # 64 colours are enough for lines, at a third of the size
    picture.quantize(COLOURS).save(path, optimize=True)


def _drawers(name: str) -> Callable[[Figure, Means], None]:
    if name.startswith("fig1"):
        return lambda figure, found: _paper(figure, found, "RMSE, income scaled to [0, 1]")
    if name.startswith("fig2"):
        return lambda figure, found: _paper(figure, found, "accuracy")
    return {
        "risk": _risk,
        "noise": _noise,
        "target": _target,
        "rivals": _rivals,
        "utility": _utility,
        "reliability": _reliability,
    }[name]


def _lines(axis: Any, found: Means, x: Callable[[Key], float], lines: Sequence[str]) -> None:
    for line in lines:
        points = [(x(key), mean) for key, mean in found.items() if key.line == line]
        points.sort(key=lambda point: point[0])
        axis.errorbar(
            [place for place, _ in points],
            [mean.value for _, mean in points],
            [mean.error for _, mean in points],
            label=line,
            marker="o",
            markersize=3,
            capsize=2,
            **STYLES.get(line, {}),
        )
    axis.grid(alpha=0.3, which="both")


def _of(found: Means, **wanted: Any) -> dict[Key, Mean]:
    return {
        key: mean
        for key, mean in found.items()
        if all(getattr(key, name) == value for name, value in wanted.items())
    }


def _names(found: Means) -> list[str]:
    return list(dict.fromkeys(key.line for key in found))


def _paper(figure: Figure, found: Means, label: str) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (variant, words) in zip(
        axes,
        (("default", "public defaults"), ("tuned", "tuned on the data, as the paper did")),
        strict=True,
    ):
        chosen = _of(found, variant=variant) | _of(found, line=CONSTANT)
        _lines(axis, chosen, lambda key: key.n, _names(chosen))
        axis.set_xscale("log", base=2)
        axis.set(title=words, xlabel="n")
    axes[0].set_ylabel(label)
    if label.startswith("RMSE"):
        axes[0].set_ylim(0.18, 0.42)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)


def _risk(figure: Figure, found: Means) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for axis, epsilon in zip(axes, sorted({key.epsilon for key in found}), strict=False):
        chosen = _of(found, epsilon=epsilon)
        _lines(axis, chosen, lambda key: key.n, _names(chosen))
        first = chosen[min((k for k in chosen if k.line == INPUT), key=lambda key: key.n)].value
        sizes = sorted({key.n for key in chosen})
        axis.plot(
            sizes,
            [first * sizes[0] / n for n in sizes],
            color="grey",
            linestyle=":",
            label="Theorem 2: slope −1",
        )
        axis.set(xscale="log", yscale="log", title=f"ε = {epsilon:g}", xlabel="n")
    axes[0].set_ylabel("excess empirical risk")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)


def _noise(figure: Figure, found: Means) -> None:
    """σ_b and σ_u left, a submission's ε right; ε = 0.1 solid, ε = 1 dashed."""
    left, right = figure.subplots(1, 2)
    for axis, variants in (
        (left, ("sigma_b", "sigma_u")),
        (right, ("exact local epsilon", "Corollary 1")),
    ):
        for key in found:
            if key.variant in variants and key.n == min(k.n for k in found):
                same = _of(found, line=key.line, variant=key.variant, epsilon=key.epsilon)
                axis.plot(
                    [k.n for k in same],
                    [mean.value for mean in same.values()],
                    label=f"{key.variant}, {key.line}, ε = {key.epsilon:g}",
                    linestyle="-" if key.epsilon < 1 else "--",
                )
        axis.set(xscale="log", yscale="log", xlabel="quorum n")
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=6)
    left.set_title("noise of all contributors together")
    right.set_title("ε of one submission, δ = 0.01")


def _target(figure: Figure, found: Means) -> None:
    sizes = sorted({key.n for key in found})
    axes = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axis, n in zip(axes, sizes, strict=True):
        _lines(axis, _of(found, n=n), lambda key: float(key.variant), _names(found))
        axis.set_xscale("log", base=2)
        axis.set(title=f"n = {n:,}", xlabel="ε of one submission")
    axes[0].set_ylabel("RMSE, income scaled to [0, 1]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)


def _rivals(figure: Figure, found: Means) -> None:
    axes = figure.subplots(1, 2)
    for axis, problem in zip(axes, ("linear", "logistic"), strict=True):
        _lines(axis, _of(found, variant=problem), lambda key: key.epsilon, _names(found))
        axis.set(xscale="log", title=problem, xlabel="ε")
    axes[0].set(ylabel="RMSE", ylim=(0.19, 0.3))
    axes[1].set(ylabel="accuracy")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)


def _utility(figure: Figure, found: Means) -> None:
    axes = figure.subplots(1, 4)
    cases = [(problem, epsilon) for problem in ("linear", "logistic") for epsilon in (0.1, 1.0)]
    for axis, (problem, epsilon) in zip(axes, cases, strict=True):
        chosen = _of(found, variant=problem, epsilon=epsilon)
        _lines(axis, chosen, lambda key: key.n, _names(found))
        axis.set_xscale("log", base=2)
        axis.set(title=f"{problem}, ε = {epsilon:g}", xlabel="n")
        if problem == "linear":
            axis.set_ylim(0.19, 0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)


def _reliability(figure: Figure, found: Means) -> None:
    """Share of +1 against probability; the larger a point, the more people it stands for."""
    sizes = sorted({key.n for key in found})
    epsilons = sorted({key.epsilon for key in found})
    axes = figure.subplots(len(epsilons), len(sizes), sharex=True, sharey=True, squeeze=False)
    for row, epsilon in zip(axes, epsilons, strict=True):
        for axis, n in zip(row, sizes, strict=True):
            axis.plot([0, 1], [0, 1], color="grey", linestyle=":")
            for line in (NO_PRIVACY, MOMENT, WAVES):
                of = {
                    k.variant: m.value
                    for k, m in _of(found, line=line, epsilon=epsilon, n=n).items()
                }
                places = sorted(name[-2:] for name in of if name.startswith("predicted"))
                points = [[of[f"{word} {p}"] for p in places] for word in ("predicted", "observed")]
                weight = [300 * of[f"weight {p}"] for p in places]
                colour = STYLES[line]["color"]
                axis.plot(*points, color=colour, linewidth=1, label=line)
                axis.scatter(*points, s=weight, color=colour, alpha=0.6)
            axis.set_title(f"ε = {epsilon:g}, n = {n:,}", fontsize=8)
            axis.grid(alpha=0.3)
    figure.supxlabel("probability that the model gives", fontsize=8)
    figure.supylabel("share of +1", fontsize=8)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)
