"""The tables and the picture of `rivals2026`: written from its CSV, never by hand."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from blurfit.experiments.facts import Facts
from blurfit.experiments.head_to_head import OURS, PRIVATE_MEAN, RIVAL_LINES
from blurfit.experiments.methods import NO_PRIVACY
from blurfit.experiments.standings import (
    Cell,
    Errors,
    against,
    best_of,
    errors_of,
    geometric_mean,
    interval,
    under,
)
from blurfit.experiments.summary import table
from blurfit.experiments.trials import Row, read_csv

NAME = "rivals2026"
RELATIONS = {"zero-out": "zero-out, their relation", "replace": "replace, ours"}
COLOURS = ("tab:red", "tab:blue", "tab:green", "tab:purple", "tab:orange")
MARKERS = ".v^<>sPXD*"
BEGIN, END = f"<!-- {NAME}: begin -->", f"<!-- {NAME}: end -->"


def draw_rivals(figure: Figure, rows: Sequence[Row]) -> None:
    """Geometric mean over the sets of error over a private mean's, by ε: below 1 is of use."""
    errors = errors_of(rows)
    relations = [name for name in RELATIONS if under(errors, name)]
    axes = figure.subplots(1, len(relations), sharey=True, squeeze=False)[0]
    for axis, relation in zip(axes, relations, strict=True):
        chosen = under(errors, relation)
        epsilons = sorted({cell.epsilon for cell in chosen})
        best = best_of(chosen, list(RIVAL_LINES))
        for line in (NO_PRIVACY, *RIVAL_LINES, *OURS):
            means = [
                geometric_mean(_at(chosen, epsilon), line, PRIVATE_MEAN) for epsilon in epsilons
            ]
            axis.plot(epsilons, means, label=line, **_style(line, best))
        axis.axhline(1.0, color="grey", linestyle=":", label=PRIVATE_MEAN)
        axis.set(xscale="log", yscale="log", xlabel="ε", title=RELATIONS[relation])
        axis.set_ylim(0.25, 4)
        axis.grid(alpha=0.3, which="both")
    axes[0].set_ylabel("test error over a private mean's")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)


def _at(errors: Errors, epsilon: float) -> Errors:
    return {cell: lines for cell, lines in errors.items() if cell.epsilon == epsilon}


def _style(line: str, best: str) -> dict[str, Any]:
    """Ours in colour, the best rival in black, all others grey: what matters is seen first."""
    if line in OURS:
        colour = COLOURS[list(OURS).index(line) % len(COLOURS)]
        return {"color": colour, "linewidth": 2.5, "marker": "o", "markersize": 4, "zorder": 3}
    if line == NO_PRIVACY:
        return {"color": "black", "linestyle": "--"}
    place = list(RIVAL_LINES).index(line)
    look = {"marker": MARKERS[place % len(MARKERS)], "markersize": 4}
    if line == best:
        return look | {"color": "black", "linewidth": 2, "zorder": 2}
    return look | {"color": "darkgrey", "linewidth": 1}


def write_rivals_page(path: Path, folder: Path, facts: Facts) -> None:
    """Put what was measured between the two marks of the page, and its picture beside it."""
    measured = measured_text(read_csv(folder / f"{NAME}.csv"), facts)
    pictures = path.parent / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / f"{NAME}.png", pictures / f"{NAME}.png")
    text = path.read_text(encoding="utf-8") if path.exists() else f"{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after}", encoding="utf-8")


def measured_text(rows: Sequence[Row], facts: Facts) -> str:
    """Answers first, then a table of lines for each relation, then the sets."""
    errors = errors_of(rows)
    sets = list(dict.fromkeys(cell.data for cell in errors))
    trials = min(len(values) for lines in errors.values() for values in lines.values())
    people = "made up" if facts.synthetic else "real"
    rows_option = f" --rows {facts.rows}" if facts.synthetic else ""
    parts = [
        f"Measured with `blurfit reproduce {NAME} --trials {trials}{rows_option}`: "
        f"{len(sets)} sets "
        f"({', '.join(sets)}; the people are {people}), ε on six values from 0.1 to 10, "
        f"δ = 1/n², {trials} paired trials in each cell.",
    ]
    for relation, words in RELATIONS.items():
        chosen = under(errors, relation)
        if chosen:
            parts += [f"### {words}", _answers(chosen), _lines(chosen)]
    parts += ["### Set by set", _sets(errors)]
    return "\n\n".join(parts)


def _answers(errors: Errors) -> str:
    best = best_of(errors, list(RIVAL_LINES))
    sentences = []
    for line in OURS:
        ratio, (low, high) = geometric_mean(errors, line, best), interval(errors, line, best)
        record = against(errors, line, best)
        mean = [
            cell
            for cell, lines in errors.items()
            if lines[line].mean() > 1.05 * lines[PRIVATE_MEAN].mean()
        ]
        worse = sum(
            lines[line].mean() > 1.1 * min(lines[rival].mean() for rival in RIVAL_LINES)
            for lines in errors.values()
        )
        sentences.append(
            f"- **{line}** against the best rival, {best}: error {ratio:.3f} times as large "
            f"(95%: {low:.3f} to {high:.3f}); {record.wins} cells won, {record.losses} lost, "
            f"{record.even} even (sign test p = {record.p_value:.2g}); more than 5% worse than a "
            f"private mean in {len(mean)} of {len(errors)} cells, and more than 10% worse than "
            f"whichever rival did best there in {worse}."
        )
    return "\n".join(sentences)


def _lines(errors: Errors) -> str:
    epsilons = sorted({cell.epsilon for cell in errors})
    rows = []
    for line in (NO_PRIVACY, *RIVAL_LINES, *OURS):
        cells = [f"{geometric_mean(_at(errors, e), line, PRIVATE_MEAN):.3f}" for e in epsilons]
        rows.append([line, *cells, f"{geometric_mean(errors, line, PRIVATE_MEAN):.3f}"])
    return (
        "Mean squared test error over that of a private mean, geometric mean over the sets.\n\n"
        + table(["line", *(f"ε = {e:g}" for e in epsilons), "all ε"], rows)
    )


def _sets(errors: Mapping[Cell, Mapping[str, np.ndarray]]) -> str:
    """For each set: the best of ours and the best rival, over ε and both relations."""
    rows = []
    for data in dict.fromkeys(cell.data for cell in errors):
        chosen = {cell: lines for cell, lines in errors.items() if cell.data == data}
        ours, best = best_of(chosen, list(OURS)), best_of(chosen, list(RIVAL_LINES))
        record = against(chosen, ours, best)
        rows.append(
            [
                data,
                ours,
                best,
                f"{geometric_mean(chosen, ours, best):.3f}",
                f"{record.wins} / {record.even} / {record.losses}",
            ]
        )
    header = ["set", "best of ours", "best rival", "error, ours over theirs", "won / even / lost"]
    return table(header, rows)
