"""Draw the experiments, and write the tables of the head to head.

**The head to head.** The tables and the picture of `rivals2026`: written from its CSV, never by
hand.

**Pictures.** From CSV to PNG, one picture for each experiment; nothing is computed but means.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from blurfit_lab.experiments import beyond, figures
from blurfit_lab.experiments.figures import CONSTANT, INPUT, MOMENT, NO_PRIVACY, WAVES
from blurfit_lab.experiments.head_to_head import (
    LABEL_SETS,
    NEED_PUBLIC_ROWS,
    OURS,
    PRIVATE_MEAN,
    PUBLIC,
    PUBLIC_FEATURES,
    RIVAL_LINES,
    RIVALS_2026,
)
from blurfit_lab.experiments.head_to_head import WAVES as OUR_WAVES
from blurfit_lab.experiments.runner import Provenance, Row, read_csv
from blurfit_lab.experiments.standings import (
    Cell,
    Errors,
    Key,
    Mean,
    Means,
    against,
    best_of,
    errors_of,
    geometric_mean,
    having,
    interval,
    means,
    table,
    under,
    worse,
)

NAME = "rivals2026"
RELATIONS = {"zero-out": "zero-out, their relation", "replace": "replace, ours"}
KINDS = {False: "numbers", True: "labels"}
LINE_COLOURS = ("tab:red", "tab:orange", "tab:green", "tab:blue")
BEGIN, END = f"<!-- {NAME}: begin -->", f"<!-- {NAME}: end -->"


def draw_rivals(figure: Figure, rows: Sequence[Row]) -> None:
    """Error over a private mean's by ε, geometric mean over the sets: what is lower is better.

    A row for numbers and one for labels, a column for each relation; ours in colour, the best rival
    in black, all others grey.
    """
    errors = errors_of(rows)
    sections = list(_sections(errors))
    figure.set_size_inches(10, 8)
    figure.suptitle(f"{NAME} · {len({cell.data for cell in errors})} sets", fontsize=10)
    kinds = list(dict.fromkeys(label for label, _, _ in sections))
    relations = list(dict.fromkeys(relation for _, relation, _ in sections))
    axes = figure.subplots(len(kinds), len(relations), sharey="row", squeeze=False)
    known: dict[str, Any] = {}
    for label, relation, chosen in sections:
        axis = axes[kinds.index(label)][relations.index(relation)]
        rivals = _rivals_told(chosen)
        best = best_of(chosen, rivals)
        for line in (NO_PRIVACY, *rivals, *_ours(chosen)):
            epsilons = sorted({cell.epsilon for cell in chosen})
            means = [geometric_mean(_at(chosen, e), line, PRIVATE_MEAN) for e in epsilons]
            name, style = _style(line, best)
            (known[name],) = axis.plot(epsilons, means, **style)
        known[PRIVATE_MEAN] = axis.axhline(1.0, color="grey", linestyle=":")
        title = f"{KINDS[label]}: {RELATIONS[relation]}\nbest rival: {best}"
        axis.set(xscale="log", yscale="log")
        axis.set_title(title, fontsize=10)
        axis.set_ylim((0.45, 1.1) if label else (0.28, 2.2))
        ticks = [0.5, 0.6, 0.7, 0.8, 1.0] if label else [0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0]
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("ε (more to the right: less privacy)")
    for axis in axes[:, 0]:
        axis.set_ylabel("error over a private mean's")
    figure.legend(
        list(known.values()), list(known), loc="outside lower center", ncols=4, fontsize=8
    )


def _sections(errors: Errors) -> Iterator[tuple[bool, str, Errors]]:
    """Numbers, then labels, under each relation."""
    for label in KINDS:
        kind = {cell: lines for cell, lines in errors.items() if (cell.data in LABEL_SETS) == label}
        for relation in RELATIONS:
            if chosen := under(kind, relation):
                yield label, relation, chosen


def _rivals_told(errors: Errors, line: str = OUR_WAVES) -> list[str]:
    """The rivals that were run in all of these cells, on no more rows than this line of ours."""
    return [one for one in _on_the_same_rows(line) if len(having(errors, one)) == len(errors)]


def _on_the_same_rows(line: str) -> list[str]:
    """The rivals of a line: those with public rows only where it has them too."""
    return [one for one in RIVAL_LINES if line in NEED_PUBLIC_ROWS or one not in NEED_PUBLIC_ROWS]


def _ours(errors: Errors) -> list[str]:
    return [line for line in OURS if len(having(errors, line)) == len(errors)]


def _at(errors: Errors, epsilon: float) -> Errors:
    return {cell: lines for cell, lines in errors.items() if cell.epsilon == epsilon}


def _style(line: str, best: str) -> tuple[str, dict[str, Any]]:
    """What the legend calls a line, and its look: what matters is seen first."""
    if line in OURS:
        place = list(OURS).index(line)
        width = 3 if line == OUR_WAVES else 1.5
        return line, {"color": LINE_COLOURS[place], "linewidth": width, "marker": ".", "zorder": 4}
    if line == NO_PRIVACY:
        return line, {"color": "black", "linestyle": "--"}
    if line == best:
        return "the best rival", {"color": "black", "linewidth": 2, "zorder": 3}
    return "other rivals", {"color": "lightgrey", "linewidth": 1, "zorder": 1}


def write_rivals_page(path: Path, folder: Path, facts: Provenance) -> None:
    """Put what was measured between the two marks of the page, and its picture beside it."""
    measured = measured_text(read_csv(folder / f"{NAME}.csv"), facts)
    pictures = path.parent / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / f"{NAME}.png", pictures / f"{NAME}.png")
    text = path.read_text(encoding="utf-8") if path.exists() else f"{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after}", encoding="utf-8")


def measured_text(rows: Sequence[Row], facts: Provenance) -> str:
    """Answers first, then a table of lines for each relation, then the sets."""
    errors = errors_of(rows)
    sets = list(dict.fromkeys(cell.data for cell in errors))
    counts = {len(values) for lines in errors.values() for values in lines.values()}
    trials = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    people = "made up" if facts.synthetic else "real"
    rows_option = f" --rows {facts.rows}" if facts.synthetic else ""
    parts = [
        f"Measured with `blurfit-lab reproduce {NAME} --trials {max(counts)}{rows_option}`: "
        f"{len(sets)} sets "
        f"({', '.join(sets)}; the people are {people}), ε on six values from 0.1 to 10, "
        f"δ = 1/n², {trials} paired trials in each cell. Samples of people have {PUBLIC:,} public "
        "rows besides, which nobody trains or tests on."
    ]
    sections = list(_sections(errors))
    parts += [_goals(sections)]
    for label, relation, chosen in sections:
        parts += [
            f"### {KINDS[label].capitalize()}: {RELATIONS[relation]}",
            _lines_told(chosen, label),
        ]
    parts += ["### Set by set", _sets(errors)]
    return "\n\n".join(parts)


def _goals(sections: Sequence[tuple[bool, str, Errors]]) -> str:
    """What was aimed at, and how far each of ours got."""
    rows = []
    for label, relation, chosen in sections:
        for line in OURS:
            cells = having(chosen, line)
            if not cells:
                continue
            best = best_of(cells, _rivals_told(cells, line))
            low, high = interval(cells, line, best)
            record = against(cells, line, best)
            mean = worse(cells, line, [PRIVATE_MEAN], 1.05)
            there = worse(cells, line, _on_the_same_rows(line), 1.1)
            rows.append(
                [
                    f"{KINDS[label]}, {relation}",
                    line,
                    best,
                    f"{geometric_mean(cells, line, best):.3f} ({low:.3f} to {high:.3f})",
                    f"{record.wins} / {record.even} / {record.losses}",
                    f"{mean[0]} ({mean[1]}) of {len(cells)}",
                    f"{there[0]} ({there[1]}) of {len(cells)}",
                ]
            )
    header = [
        "where",
        "ours",
        "best rival",
        "error, ours over theirs (95%)",
        "won / even / lost",
        "> 5% worse than a private mean (surely)",
        "> 10% worse than the best rival there (surely)",
    ]
    return table(header, rows)


def _lines_told(errors: Errors, label: bool) -> str:
    epsilons = sorted({cell.epsilon for cell in errors})
    rows = []
    for line in (NO_PRIVACY, *RIVAL_LINES, *OURS):
        cells = having(errors, line)
        if not cells:
            continue
        name = line if len(cells) == len(errors) else f"{line} (people only)"
        means = [f"{geometric_mean(_at(cells, e), line, PRIVATE_MEAN):.3f}" for e in epsilons]
        rows.append([name, *means, f"{geometric_mean(cells, line, PRIVATE_MEAN):.3f}"])
    what = "Share of mistakes" if label else "Mean squared test error"
    return f"{what} over that of a private mean, geometric mean over the sets.\n\n" + table(
        ["line", *(f"ε = {e:g}" for e in epsilons), "all ε"], rows
    )


def _sets(errors: Mapping[Cell, Mapping[str, np.ndarray]]) -> str:
    """For each set: the best of ours and the best rival, over ε and both relations."""
    rows = []
    for data in dict.fromkeys(cell.data for cell in errors):
        chosen = {cell: lines for cell, lines in errors.items() if cell.data == data}
        best = best_of(chosen, _rivals_told(chosen))
        ours = best_of(chosen, [line for line in _ours(chosen) if line != PUBLIC_FEATURES])
        record = against(chosen, ours, best)
        public = "–"
        if len(having(chosen, PUBLIC_FEATURES)) == len(chosen):
            public = f"{geometric_mean(chosen, PUBLIC_FEATURES, best):.3f}"
        rows.append(
            [
                data,
                ours,
                best,
                f"{geometric_mean(chosen, ours, best):.3f}",
                f"{record.wins} / {record.even} / {record.losses}",
                public,
            ]
        )
    header = ["set", "best of ours", "best rival", "error, ours over theirs", "won / even / lost"]
    return table([*header, "with public rows"], rows)


DOTS, COLOURS = 80, 64  # per inch: pictures for a page, of some ten kilobytes
STYLES: dict[str, dict[str, Any]] = {
    NO_PRIVACY: {"color": "black", "linestyle": "--"},
    CONSTANT: {"color": "grey", "linestyle": ":"},
    figures.OUTPUT: {"color": "tab:brown"},
    figures.OBJECTIVE: {"color": "tab:orange", "linestyle": "--"},
    figures.CERTIFIED_OBJECTIVE: {"color": "tab:orange"},
    beyond.LAPLACE_OBJECTIVE: {"color": "gold"},
    beyond.FUNCTIONAL: {"color": "tab:purple"},
    beyond.ADASSP: {"color": "tab:green", "linestyle": "--"},
    beyond.EXACT_ADASSP: {"color": "tab:green"},
    beyond.GRADIENT: {"color": "tab:pink"},
    beyond.PUBLISHED_GRADIENT: {"color": "tab:pink", "linestyle": "--"},
    beyond.LOCAL: {"color": "tab:olive"},
    INPUT: {"color": "tab:blue", "linewidth": 2},
    figures.PUBLISHED_INPUT: {"color": "tab:blue", "linestyle": "--"},
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
