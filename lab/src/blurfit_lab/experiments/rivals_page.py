"""The tables and the picture of `rivals2026`: written from its CSV, never by hand."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from blurfit_lab.experiments.averages import table
from blurfit_lab.experiments.contests import LABEL_SETS, PUBLIC
from blurfit_lab.experiments.head_to_head import (
    NEED_PUBLIC_ROWS,
    OURS,
    PRIVATE_MEAN,
    PUBLIC_FEATURES,
    RIVAL_LINES,
    WAVES,
)
from blurfit_lab.experiments.methods import NO_PRIVACY
from blurfit_lab.experiments.provenance import Provenance
from blurfit_lab.experiments.standings import (
    Cell,
    Errors,
    against,
    best_of,
    errors_of,
    geometric_mean,
    having,
    interval,
    under,
    worse,
)
from blurfit_lab.experiments.trials import Row, read_csv

NAME = "rivals2026"
RELATIONS = {"zero-out": "zero-out, their relation", "replace": "replace, ours"}
KINDS = {False: "numbers", True: "labels"}
COLOURS = ("tab:red", "tab:orange", "tab:green", "tab:blue")
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
        rivals = _rivals(chosen)
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


def _rivals(errors: Errors, line: str = WAVES) -> list[str]:
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
        width = 3 if line == WAVES else 1.5
        return line, {"color": COLOURS[place], "linewidth": width, "marker": ".", "zorder": 4}
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
        parts += [f"### {KINDS[label].capitalize()}: {RELATIONS[relation]}", _lines(chosen, label)]
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
            best = best_of(cells, _rivals(cells, line))
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


def _lines(errors: Errors, label: bool) -> str:
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
        best = best_of(chosen, _rivals(chosen))
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
