"""The pages about the head to head, written from its lines: all of it, and the product's headline.

The words are in `rivals.md.in` and `comparison.md.in`; `write` fills in tables, counts and goals.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd  # type: ignore[import-untyped]

from blurfit.theory.guarantees import NEIGHBOURS, Neighbours
from blurfit_lab.experiments.everywhere import HOLDER, MEAN, RIVALS, SEND, TOLERANCE, TWO
from blurfit_lab.experiments.headtohead import (
    ACCURACY,
    OURS,
    RUN,
    Family,
    best_rival,
    judged,
    means_of,
    over,
    read,
)
from blurfit_lab.experiments.lines import markdown, table
from blurfit_lab.experiments.pages import power
from blurfit_lab.experiments.populations import Task

NAMES = {
    HOLDER: "**holder**",
    SEND: "**one send**",
    TWO: "**two databases**",
    MEAN: "private mean",
    "AdaSSPRegressor": "AdaSSP (exact)",
    "BoostedAdaSSPRegressor": "BoostedAdaSSP (exact)",
    "GaussMixRegressor": "GaussMix (exact)",
    "IterativeHessianMixingRegressor": "IHM (exact)",
    "BinAggRegressor": "BinAgg",
    "TukeyRegressor": "TukeyEM",
    "GeneralisedObjectivePerturbationRegressor": "generalised objective",
    "GradientPerturbationRegressor": "gradient descent",
    "GeneralisedObjectivePerturbationClassifier": "generalised objective",
    "GradientPerturbationClassifier": "gradient descent",
    "ObjectivePerturbationClassifier": "objective (certified)",
}
WORDS = ("wins", "even", "loses")
GOAL = 0.85  # of the best rival's loss, in each family


class Judged(NamedTuple):
    """A family under one relation: its lines, its best rival, and the verdicts on ours."""

    family: Family
    relation: Neighbours
    lines: pd.DataFrame
    means: pd.DataFrame
    best: str
    rivals: dict[str, pd.DataFrame]
    mean: dict[str, pd.DataFrame]

    def words(self, method: str, against: dict[str, pd.DataFrame]) -> str:
        """Return "wins / even / losses"."""
        counts = against[method].verdict.value_counts()
        return " / ".join(str(counts.get(one, 0)) for one in WORDS)


def judge(out: Path) -> list[Judged]:
    """Read a folder of `headtohead.measure`, and judge all of it."""
    found = []
    for family, relation, lines in read(out):
        task = family.task
        rivals = {one: judged(lines, task, one, RIVALS[task]) for one in OURS}
        mean = {one: judged(lines, task, one, [MEAN]) for one in OURS}
        means = means_of(lines)
        best = best_rival(means, task)
        found.append(Judged(family, relation, lines, means, best, rivals, mean))
    return found


def headline(found: Sequence[Judged]) -> str:
    """Return losses over the best rival's in each family, and how many cells are won and lost."""
    heads = ["people", "neighbours", "cells", "best rival", "holder", "one send", "two databases"]
    heads += ["holder, cell by cell", "one send, cell by cell", "holder against the mean"]
    rows = [
        [
            one.family.name,
            one.relation,
            str(len(one.rivals[HOLDER])),
            NAMES[one.best],
            *(f"{over(one.means, method, one.best):.3f}" for method in OURS),
            one.words(HOLDER, one.rivals),
            one.words(SEND, one.rivals),
            one.words(HOLDER, one.mean),
        ]
        for one in found
    ]
    return table(heads, rows)


def short(found: Sequence[Judged]) -> str:
    """Return the headline in few columns, a row for each family."""
    heads = ["people", *(f"{NAMES[one].strip('*')}, {r}" for r in NEIGHBOURS for one in OURS)]
    heads += [f"won / even / lost, {relation}" for relation in NEIGHBOURS]
    rows: dict[str, list[str]] = {}
    for one in found:
        told = (f"{over(one.means, method, one.best):.2f}" for method in OURS)
        rows.setdefault(one.family.name, [one.family.name]).extend(told)
    for one in found:
        rows[one.family.name].append(one.words(HOLDER, one.rivals))
    return table(heads, rows.values())


def methods(found: Sequence[Judged], task: Task, relation: Neighbours) -> str:
    """Return every method's loss over the private mean's, geometric means over each family."""
    some = [one for one in found if (one.family.task, one.relation) == (task, relation)]
    rows = [
        [NAMES[method], *(f"{over(one.means, method, MEAN):.3f}" for one in some)]
        for method in (*OURS, *RIVALS[task])
    ]
    return table(["method", *(one.family.name for one in some)], rows)


def lost(found: Sequence[Judged], methods: Sequence[str] = OURS) -> str:
    """Return the cells that are surely lost, to a rival or to the private mean."""
    rows = list(_lost(found, methods))
    heads = ["line", "people", "n", "ε", "neighbours", "to", "loss over its", "surely more than"]
    heads += ["accuracy behind", "trials"]
    return table(heads, rows) if rows else "None."


def _lost(found: Sequence[Judged], methods: Sequence[str]) -> Iterator[list[str]]:
    for one in found:
        digits = ".3f" if one.family.task == "number" else "+.4f"
        for method in methods:
            for part in (one.rivals[method], one.mean[method]):
                for row in part[part.verdict == "loses"].itertuples():
                    name = row.population + (", label" if one.family.task == "label" else "")
                    right = "–" if one.family.task == "number" else f"{row.accuracy:.4f}"
                    told = [f"{row.ratio:{digits}}", f"{row.sure:{digits}}", right, str(row.trials)]
                    where = [name, power(row.n), f"{row.epsilon:g}", one.relation]
                    yield [NAMES[method].strip("*"), *where, NAMES[row.against], *told]


def goals(found: Sequence[Judged]) -> str:
    """Return the goals of the comparison, each with what was found; what misses is bold."""
    rows = []
    for task, words in (("number", "5 %"), ("label", f"{TOLERANCE['label']} or {ACCURACY}")):
        some = [one for one in found if one.family.task == task]
        cells = sum(len(one.rivals[HOLDER]) for one in some)
        for what, name in (("rivals", "a rival"), ("mean", "the private mean")):
            losing = [_count(some, what, method, "loses") for method in OURS]
            told = [_told(str(one), missed=one > 0) for one in losing]
            goal = f"{task}s: surely behind {name} by more than {words} in no cell of {cells}"
            rows.append([goal, *told])
    for one in (one for one in found if one.family.task == "number"):
        ratios = [over(one.means, method, one.best) for method in OURS]
        goal = f"{one.family.name}, {one.relation}: at most {GOAL} of the best rival's error"
        rows.append([goal, *(_told(f"{ratio:.3f}", missed=ratio > GOAL) for ratio in ratios)])
    return table(["goal", *(NAMES[one].strip("*") for one in OURS)], rows)


def _told(text: str, *, missed: bool) -> str:
    return f"**{text}**" if missed else text


def _count(found: Sequence[Judged], what: str, method: str, word: str) -> int:
    """Return in how many cells a line has a verdict against "rivals" or the "mean"."""
    return sum(int((getattr(one, what)[method].verdict == word).sum()) for one in found)


def facts(out: Path, found: Sequence[Judged]) -> dict[str, str]:
    """Return what the pages say of the run."""
    run = json.loads((out / RUN).read_text(encoding="utf-8"))
    trials = pd.concat([one.rivals[HOLDER].trials for one in found])
    refused = [one.lines[one.lines.refused.notna()] for one in found if "refused" in one.lines]
    of_task = {
        task: [one for one in found if one.family.task == task] for task in ("number", "label")
    }
    numbers = of_task["number"]
    wins = {
        f"{method}_{task}": " / ".join(str(_count(some, "rivals", method, one)) for one in WORDS)
        for method in OURS
        for task, some in of_task.items()
    }
    return wins | {
        "rivals": str(len({*RIVALS["number"], *RIVALS["label"]})),
        "behind_mean": str(_count(found, "mean", HOLDER, "loses")),
        "commit": " and ".join(sorted({*run.values()})),
        "commits": ", ".join(f"{part} at commit {one}" for part, one in run.items()),
        "cells": str(len(trials)),
        "least": str(trials.min()),
        "most": str(trials.max()),
        "fits": f"{sum(len(one.lines) for one in found):,}",
        "refused": str(sum(map(len, refused))),
        "best": f"{min(over(one.means, HOLDER, one.best) for one in numbers):.2f}",
        "worst": f"{max(over(one.means, HOLDER, one.best) for one in numbers):.2f}",
    }


def write(out: Path, page: Path | None, headline_page: Path | None) -> None:
    """Write the laboratory's page, and the product's."""
    found = judge(out)
    told = facts(out, found)
    told |= {"headline": headline(found), "goals": goals(found), "lost": lost(found)}
    told |= {"lost_holder": lost(found, [HOLDER]), "short": short(found)}
    for task in ("number", "label"):
        for relation in NEIGHBOURS:
            told[f"{task}_{relation}".replace("-", "_")] = methods(found, task, relation)
    persons = out / "persons.jsonl"
    told["persons"] = "Not measured."
    if persons.exists():
        compared = pd.read_json(persons, lines=True)
        compared["ε"] = [f"{one:g}" for one in compared["ε"]]
        compared["leads"] = ["yes" if one else "" for one in compared.leads]
        told["persons"] = markdown(compared, 4)
    for path, name in ((page, "rivals.md.in"), (headline_page, "comparison.md.in")):
        if path is not None:
            words = Path(__file__).with_name(name).read_text(encoding="utf-8")
            for key, value in told.items():
                words = words.replace(f"{{{key}}}", value)
            path.write_text(words, encoding="utf-8")
