"""The catalogue of the paper's experiments, their pictures, and the page that is written from them.

From CSV to PNG, one picture each; only means are computed. The page's words are in `paper.md.in`;
`write_page` fills in tables and numbers, and copies the pictures beside it. It is written by
`blurfit-lab reproduce --page`, never by hand.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from blurfit.errors import InvalidValueError
from blurfit_lab.experiments import figures
from blurfit_lab.experiments.figures import CONSTANT, FIGURES, GRADIENT, INPUT, MOMENT, NO_PRIVACY
from blurfit_lab.experiments.lines import filled, table
from blurfit_lab.experiments.runner import Experiment, Provenance, Row, read_csv

PICTURES = "figures"
PAPER: tuple[str, ...] = tuple(figure.name for figure in FIGURES)
CLAIMS = figures.ExcessRisk(), figures.PublicNumbers(), figures.LocalTarget()
EXPERIMENTS: dict[str, Experiment] = {one.name: one for one in (*FIGURES, *CLAIMS)}
KEY = ["line", "variant", "epsilon", "n"]


def means(rows: Iterable[Row]) -> pd.DataFrame:
    """Mean over trials, its standard error and their number, by line, variant, ε and n."""
    found = pd.DataFrame(list(rows), columns=Row._fields).groupby(KEY, sort=False).value
    return pd.DataFrame(
        {"value": found.mean(), "error": found.sem().fillna(0.0), "trials": found.size()}
    )


def slope(points: Iterable[tuple[float, float]]) -> float:
    """The exponent k of y ∝ x^k by least squares in logarithms, where y > 0.

    >>> round(slope([(1, 8), (2, 4), (4, 2)]), 6)
    -1.0
    """
    x, y = np.log([(x, y) for x, y in points if y > 0]).T
    return float(np.polyfit(x, y, 1)[0])


def power(n: int) -> str:
    """n as a power of two, if it is one: 2¹⁷."""
    exponent = n.bit_length() - 1
    if n != 2**exponent:
        return str(n)
    return "2" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


# ---- pictures


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
    figures.WAVES: {"color": "tab:cyan", "linewidth": 2.5},
}


def draw(name: str, rows: Sequence[Row], path: Path, title: str) -> None:
    """The picture of the experiment of that name."""
    figure = Figure(figsize=(11, 4.2), dpi=DOTS, layout="constrained")
    other = {"risk": _draw_risk, "noise": _draw_noise, "target": _draw_target}
    drawer: Callable[[Figure, pd.DataFrame], None] = other.get(name, _draw_paper)
    drawer(figure, means(rows).reset_index())
    if drawer is not _draw_noise:
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8
        )
    if drawer is _draw_paper:
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


def _draw_paper(figure: Figure, found: pd.DataFrame) -> None:
    words = {"default": "public defaults", "tuned": "tuned on the data, as the paper did"}
    axes = figure.subplots(1, 2, sharey=True)
    for axis, variant in zip(axes, words, strict=True):
        _lines(axis, found[(found.variant == variant) | (found.line == CONSTANT)])
        axis.set_xscale("log", base=2)
        axis.set(title=words[variant], xlabel="n")


def _draw_risk(figure: Figure, found: pd.DataFrame) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (epsilon, part) in zip(axes, found.groupby("epsilon"), strict=False):
        _lines(axis, part)
        first = part[part.line == INPUT].sort_values("n").iloc[0]
        sizes = np.sort(part.n.unique())
        rate = first.value * first.n / sizes
        axis.plot(sizes, rate, color="grey", linestyle=":", label="Theorem 2: slope −1")
        axis.set(xscale="log", yscale="log", title=f"ε = {epsilon:g}", xlabel="n")
    axes[0].set_ylabel("excess empirical risk")


def _draw_noise(figure: Figure, found: pd.DataFrame) -> None:
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


def _draw_target(figure: Figure, found: pd.DataFrame) -> None:
    found = found.assign(target=found.variant.astype(float))
    sizes = sorted(found.n.unique())
    axes = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axis, n in zip(axes, sizes, strict=True):
        _lines(axis, found[found.n == n], "target")
        axis.set_xscale("log", base=2)
        axis.set(title=f"n = {n:,}", xlabel="ε of one submission")
    axes[0].set_ylabel(RMSE)


# ---- the page


def _figure(found: pd.DataFrame) -> str:
    """The means by n, and the ridges that tuning chose."""
    wide = found[found.index.get_level_values("variant") != "ridge"].value.unstack("n", sort=False)
    wide = wide.droplevel("epsilon").sort_index(axis=1)
    rows = [
        [*key, *(f"{value:.4f}" for value in row)]
        for key, row in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    ridges = found[(found.index.get_level_values("variant") == "ridge") & (found.value > 0)]
    chosen = ", ".join(f"{key[0]} {value:g}" for key, value in ridges.value.items())
    told = table(["method", "variant", *map(power, wide.columns)], rows)
    return f"{told}\n\nRidges that tuning chose, where not 0: {chosen or 'none'}."


def _risk(found: pd.DataFrame) -> str:
    local = dict.fromkeys((INPUT, figures.PUBLISHED_INPUT, MOMENT), "grows as nε")
    rows = []
    for line, part in found.value.droplevel("variant").groupby("line", sort=False):
        cells = []
        for _, values in part.droplevel("line").groupby("epsilon"):
            at = values.droplevel("epsilon")
            large = at[at.index >= 2**13] if (at.index >= 2**13).sum() > 1 else at
            cells += [f"{at[min(2**17, max(at.index))]:.2e}", f"{slope(large.items()):.2f}"]
        rows.append([line, *cells, local.get(line, "none: raw records are collected")])
    header = ["method", "ε = 0.1: at 2¹⁷", "slope", "ε = 1: at 2¹⁷", "slope", "a submission's ε"]
    return table(header, rows)


def _noise(found: pd.DataFrame) -> str:
    columns = {
        "σ_u published": (figures.PUBLISHED_INPUT, "sigma_u"),
        "σ_u certified": (INPUT, "sigma_u"),
        "σ_b published": (figures.PUBLISHED_INPUT, "sigma_b"),
        "σ_b certified": (INPUT, "sigma_b"),
        "excess risk, certified": (INPUT, "certified excess risk"),
        "local ε, Corollary 1": (figures.PUBLISHED_INPUT, "Corollary 1"),
        "the same noise, exactly": (figures.PUBLISHED_INPUT, "exact local epsilon"),
        "certified": (INPUT, "exact local epsilon"),
        "moment": (MOMENT, "exact local epsilon"),
    }
    wide = found.value.unstack(["line", "variant"])[list(columns.values())].sort_index()
    rows = [
        [f"{epsilon:g}", power(n), *(f"{value:.4g}" for value in row)]
        for (epsilon, n), row in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    return table(["ε", "n", *columns], rows)


def _target(found: pd.DataFrame) -> str:
    wide = found.value.droplevel("epsilon").unstack("line", sort=False)
    ratios = wide.drop(columns=NO_PRIVACY).div(wide[NO_PRIVACY], axis=0)
    order = sorted(ratios.index, key=lambda key: (key[1], float(key[0])))
    rows = [
        [power(n), target, *(f"{value:.3f}" for value in ratios.loc[(target, n)])]
        for target, n in order
    ]
    return table(["n", "ε_l", *ratios.columns], rows)


_TABLES = {"risk": _risk, "noise": _noise, "target": _target}


def _yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


def agreement(found: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """What agrees with the paper and what does not, as numbers and words for the template."""
    largest = max(found["fig1a"].index.get_level_values("n"))

    def value(name: str, line: str, n: int) -> float:
        return float(found[name].value[line, "default", 0.1 if name.endswith("a") else 1.0, n])

    lines = INPUT, figures.CERTIFIED_OBJECTIVE, figures.OUTPUT, MOMENT, figures.WAVES, NO_PRIVACY
    few = [
        value("fig1a", line, 2**13) for line in (*lines, figures.PUBLISHED_INPUT, figures.OBJECTIVE)
    ]
    first, second = (
        value(name, INPUT, largest) / value(name, NO_PRIVACY, largest)
        for name in ("fig1a", "fig1b")
    )
    named = NO_PRIVACY, INPUT, figures.OBJECTIVE, figures.WAVES
    free, ours, objective, curve = (value("fig2b", line, largest) for line in named)
    published = few[-2:]
    return {f"few_{place}": f"{one:.4f}" for place, one in enumerate(few)} | {
        "at": power(largest),
        "approaches": _yes(max(first, second) < 1.01),
        "ratio_a": f"{first:.4f}",
        "ratio_b": f"{second:.4f}",
        "close": _yes(max(published) < 1.05 * min(published)),
        "worse": _yes(few[lines.index(figures.OUTPUT)] > max(published)),
        "meet": _yes(objective - ours < 0.001),
        "gap": f"{100 * (free - ours):.2f}",
        "objective_gap": f"{100 * (objective - ours):.2f}",
        "curve": f"{abs(100 * (free - curve)):.2f}",
        "side": "below" if free > curve else "above",
    }


def write_page(path: Path, folder: Path, facts: Provenance) -> None:
    """The page of all experiments, whose CSV files and pictures are in the folder."""
    missing = [name for name in EXPERIMENTS if not (folder / f"{name}.csv").exists()]
    if missing:
        raise InvalidValueError(
            f"Expected the CSV files of all experiments in {str(folder)!r}, and {missing} are not "
            "there: run them first."
        )
    found = {name: means(read_csv(folder / f"{name}.csv")) for name in EXPERIMENTS}
    pictures = path.parent / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    for name in found:
        shutil.copyfile(folder / f"{name}.png", pictures / f"{name}.png")
    tables = {name: _TABLES.get(name, _figure)(found[name]) for name in EXPERIMENTS}
    text = filled("paper.md.in", tables | agreement(found) | _method(facts))
    path.write_text(text, encoding="utf-8")


def _method(facts: Provenance) -> dict[str, str]:
    made_up = "**The people are made up** (`make_census`): no evidence about real ones."
    return {
        "population": facts.population,
        "rows": f"{facts.rows:,}",
        "real": made_up if facts.synthetic else "Real people; the file is public.",
        "trials": str(facts.trials),
        "rest": f"{max(facts.rows - 2**21, 0):,}",
        "times": ", ".join(f"{name} {seconds:.0f} s" for name, seconds in facts.seconds.items()),
        "workers": f"{facts.workers} worker{'' if facts.workers == 1 else 's'}",
    } | dict(zip(("clock", "computing"), facts.spent(PAPER), strict=True))
