"""Head to head: public defaults against a private mean and every rival, family by family.

    family × n × ε × neighbours ─ everywhere.run ─► JSON lines ─ more trials near the line ─► tables

Lines are kept in a file for each population and relation of neighbours: two runs that divide the
families between them can share a folder. `run.json` says which commit our lines are of, and which
one changed the rivals last: each part is continued by the same commit alone, so that the rivals'
lines serve until their code changes.

**More trials** go to cells where `holder` or `send` has a larger mean than a rival or the private
mean, and it is not sure on which side of the tolerance it is: twice as many, until it is sure or
`most` are reached.

**Pages.** `write` tells all of it on the laboratory's page, and the headline on the product's. The
words are in `rivals.md.in`, which defines the verdicts, and in `comparison.md.in`.
"""

import json
import math
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

import blurfit
from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, Progress, silent
from blurfit.theory.moments import NEIGHBOURS, Neighbours
from blurfit_lab.datasets import UCI_SETS
from blurfit_lab.experiments import everywhere, lines
from blurfit_lab.experiments.everywhere import HOLDER, MEAN, RIVALS, SEND, TOLERANCE, TWO, unit
from blurfit_lab.experiments.lines import CELL, Cell, markdown, table
from blurfit_lab.experiments.pages import power
from blurfit_lab.experiments.populations import CHOICES, FIFTEEN, REAL, Task, people

OURS = (HOLDER, SEND, TWO)
COLUMNS = 14  # of generated people
ACCURACY = 0.0005
RUN = "run.json"
Part = Literal["ours", "rivals"]
PARTS: tuple[Part, ...] = ("ours", "rivals")


class Family(NamedTuple):
    """Populations that are judged together."""

    name: str
    task: Task
    populations: tuple[str, ...]
    sizes: tuple[int, ...]  # none: a small set has the rows that it has
    epsilons: tuple[float, ...]

    def cells(self, population: str) -> list[Cell]:
        """Return what is learned from one of its populations."""
        return cells_of(self.task, population, [COLUMNS], self.sizes, self.epsilons)


def cells_of(
    task: Task,
    population: str,
    columns: Sequence[int],
    sizes: Sequence[int],
    epsilons: Sequence[float],
) -> list[Cell]:
    """Return the cells of a population; real ones have the columns that they have, and small sets
    their rows.
    """
    if population in UCI_SETS:
        known = people(population, task, 0)
        columns, sizes = [len(known.schema.features)], [known.rows or 0]
    elif population in REAL[task]:
        columns = [REAL[task][population]]
    return [Cell(population, *rest) for rest in product(columns, sizes, epsilons)]


_FEW, _MANY = (2**11, 2**13), (2**11, 2**13, 2**15)
_ALL = (0.1, 1.0, 10.0)
_LABELS = tuple(CHOICES["label"])
FAMILIES: tuple[Family, ...] = (
    Family("community survey", "number", ("survey",), _MANY, (0.1, 0.3, 1.0, 3.0, 10.0)),
    Family("Fulton County", "number", ("fulton",), _FEW, (0.1, 0.3, 1.0, 3.0, 10.0)),
    Family("Adult, hours", "number", ("adult",), _FEW, (0.1, 0.3, 1.0, 3.0, 10.0)),
    Family("twelve small sets", "number", UCI_SETS, (), (0.1, 0.3, 1.0, 3.0, 10.0)),
    Family("generated, tight", "number", FIFTEEN, _FEW, _ALL),
    Family("generated, wide", "number", tuple(f"{one}-wide" for one in FIFTEEN), _FEW, _ALL),
    Family("community survey, label", "label", ("survey",), _MANY, (0.1, 0.3, 1.0, 3.0, 10.0)),
    Family("Fulton County, label", "label", ("fulton",), _FEW, (0.1, 0.3, 1.0, 3.0, 10.0)),
    Family("Adult, label", "label", ("adult",), _FEW, (0.1, 0.3, 1.0, 3.0, 10.0)),
    Family("generated labels, tight", "label", _LABELS, _FEW, _ALL),
    Family("generated labels, wide", "label", tuple(f"{one}-wide" for one in _LABELS), _FEW, _ALL),
)


# ---- running


def measure(
    out: Path,
    families: Sequence[Family] = FAMILIES,
    *,
    trials: int = 8,
    most: int = 100,
    relations: Sequence[Neighbours] = NEIGHBOURS,
    parts: Sequence[Part] = PARTS,
    progress: Progress = silent,
) -> None:
    """Compute what is missing in the folder: `trials` of every cell, then more where it matters."""
    _require_commit(out, parts)
    work = [
        (family, population, relation)
        for family in families
        for relation in relations
        for population in family.populations
    ]
    rounds = [(trials, False)]
    while rounds[-1][0] < most:
        rounds.append((min(2 * rounds[-1][0], most), True))
    for place, ((count, near_alone), one) in enumerate(product(rounds, work)):
        family, population, relation = one
        cells = family.cells(population)
        file = _file(out, family.task, population, relation)
        if near_alone:
            cells = near(lines.frame([file]), family.task, cells)
        theirs = (MEAN, *RIVALS[family.task])
        methods = [one for part in parts for one in (OURS if part == "ours" else theirs)]
        everywhere.run(family.task, cells, range(count), methods, file, neighbours=relation)
        progress(place + 1, len(rounds) * len(work))


def _file(out: Path, task: Task, population: str, relation: Neighbours) -> Path:
    return out / relation / f"{task}-{population}.jsonl"


def _require_commit(out: Path, parts: Sequence[Part]) -> None:
    """Write down which commit is measured, or refuse to add to another's results."""
    file = out / RUN
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for part in parts:
        if (other := known.setdefault(part, here := commit(part))) != here:
            raise InvalidValueError(
                f"Expected to continue {part} of commit {here}, and results in {str(out)!r} are of "
                f"{other}: give another --out, or write the pages alone with --pages-only."
            )
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(known) + "\n", encoding="utf-8")


def commit(part: Part) -> str:
    """Name what is measured: this commit, or the last that changed the rivals; the version outside
    of a clone.
    """
    of = {
        "ours": ["describe", "--always", "--dirty", "--abbrev=8"],
        "rivals": ["log", "-1", "--format=%h", "--abbrev=8", "--", "../rivals"],
    }
    here: Any = {"cwd": Path(__file__).parent, "capture_output": True, "text": True}
    told = subprocess.run(["git", *of[part]], check=False, **here)
    return told.stdout.strip() or f"version {blurfit.__version__}"


# ---- judging


def _beyond(task: Task, mine: FloatArray, theirs: FloatArray) -> FloatArray:
    """How far each trial is behind by more than is tolerated."""
    allowed = TOLERANCE[task] * theirs if task == "number" else TOLERANCE[task]
    return np.asarray(mine - theirs - allowed)


def near(fits: pd.DataFrame, task: Task, cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells where it is open whether a line is behind by more than is tolerated."""
    asked, found = {tuple(cell) for cell in cells}, []
    for key, part in lines.wide(fits).groupby(level=CELL, sort=False):
        ours = [one for one in (HOLDER, SEND) if one in part and key in asked]
        pairs = product(ours, (one for one in part if one not in OURS))
        if any(_open(task, *lines.both(part, *pair)) for pair in pairs):
            found.append(Cell(*key))
    return found


def _open(task: Task, mine: FloatArray, theirs: FloatArray) -> bool:
    gaps = _beyond(task, mine, theirs)
    return mine.mean() > theirs.mean() and bool(abs(gaps.mean()) <= lines.reach(gaps))


def judged(fits: pd.DataFrame, task: Task, method: str, others: Sequence[str]) -> pd.DataFrame:
    """Return a row for each cell: whom it is judged against, how far behind, and the verdict.

    `against` is the best of those that a losing cell surely loses to, else the best of all;
    `ratio` is of mean losses, of labels their difference, and `sure` the least that is sure of it;
    `accuracy` is how far that of labels is behind.
    """
    accuracy, found = lines.wide(fits, "accuracy") if task == "label" else None, []
    for key, part, known in lines.judgeable(fits, method, others):
        behind = {one: np.full(1, math.nan) for one in known}
        if accuracy is not None:
            behind = {
                one: np.subtract(*lines.both(accuracy.loc[key], method, one)) for one in known
            }
        losing = [
            one
            for one in known
            if lines.surely(_beyond(task, *lines.both(part, method, one)))
            or lines.surely(behind[one] - ACCURACY)
        ]
        against = min(losing or known, key=lambda one: part[one].mean())
        mine, theirs = lines.both(part, method, against)
        gaps, (start, size) = mine - theirs, unit(task, theirs)
        ratio, sure = start + gaps.mean() / size, start + (gaps.mean() - lines.reach(gaps)) / size
        told = behind[against].mean(), len(gaps), lines.worded(bool(losing), gaps)
        found.append([*key, against, ratio, sure, *told])
    columns = [*CELL, "against", "ratio", "sure", "accuracy", "trials", "verdict"]
    return pd.DataFrame(found, columns=columns)


def over(means: pd.DataFrame, method: str, other: str) -> float:
    """Return the geometric mean over cells of a method's mean loss over another's."""
    if method not in means or other not in means:
        return math.nan
    return float(np.exp(np.log(means[method] / means[other]).mean()))


def read(
    out: Path, families: Sequence[Family] = FAMILIES
) -> Iterator[tuple[Family, Neighbours, pd.DataFrame]]:
    """Yield each family's lines under each relation, as far as there are any."""
    for family, relation in product(families, NEIGHBOURS):
        files = [_file(out, family.task, one, relation) for one in family.populations]
        if known := [one for one in files if one.exists() and one.stat().st_size]:
            yield family, relation, lines.frame(known)


# ---- pages


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
GOAL = 0.85  # of the best rival's loss, in each family


class Judged:
    """A family under one relation: its lines, the verdicts on ours, and its best rival, of the
    least geometric mean of losses over the private mean's.
    """

    def __init__(self, family: Family, relation: Neighbours, fits: pd.DataFrame) -> None:
        self.family, self.relation, self.fits = family, relation, fits
        self.means = lines.wide(fits).groupby(level=CELL, sort=False).mean()
        self.best = min(RIVALS[family.task], key=lambda one: over(self.means, one, MEAN))
        others = {"rivals": RIVALS[family.task], "mean": [MEAN]}
        self.verdicts = {
            (what, one): judged(fits, family.task, one, against)
            for one, (what, against) in product(OURS, others.items())
        }

    def over(self, method: str, digits: int = 3) -> str:
        """Return a method's loss over the best rival's."""
        return f"{over(self.means, method, self.best):.{digits}f}"


def headline(found: Sequence[Judged]) -> str:
    """Return losses over the best rival's in each family, and how many cells are won and lost."""
    heads = ["people", "neighbours", "cells", "best rival", "holder", "one send", "two databases"]
    heads += ["holder, cell by cell", "one send, cell by cell", "holder against the mean"]
    rows = [
        [
            one.family.name,
            one.relation,
            str(len(one.verdicts["rivals", HOLDER])),
            NAMES[one.best],
            *map(one.over, OURS),
            *(_words([one], HOLDER), _words([one], SEND), _words([one], HOLDER, "mean")),
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
        told = (one.over(method, 2) for method in OURS)
        rows.setdefault(one.family.name, [one.family.name]).extend(told)
    for one in found:
        rows[one.family.name].append(_words([one], HOLDER))
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
    heads = ["line", "people", "n", "ε", "neighbours", "to", "loss over its", "surely more than"]
    heads += ["accuracy behind", "trials"]
    rows = []
    parts = [(some, each) for some in found for each in some.verdicts.items()]
    for one, ((_, method), part) in parts:
        digits, label = (".3f", "") if one.family.task == "number" else ("+.4f", ", label")
        for row in part[(part.verdict == "loses") & (method in methods)].itertuples():
            right = f"{row.accuracy:.4f}" if label else "–"
            told = [f"{row.ratio:{digits}}", f"{row.sure:{digits}}", right, str(row.trials)]
            where = [row.population + label, power(row.n), f"{row.epsilon:g}", one.relation]
            rows.append([NAMES[method].strip("*"), *where, NAMES[row.against], *told])
    return table(heads, rows) if rows else "None."


def goals(found: Sequence[Judged]) -> str:
    """Return the goals of the comparison, each with what was found; what misses is bold."""
    rows = []
    for task, words in (("number", "5 %"), ("label", f"{TOLERANCE['label']} or {ACCURACY}")):
        some = [one for one in found if one.family.task == task]
        cells = sum(len(one.verdicts["rivals", HOLDER]) for one in some)
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


def _words(found: Sequence[Judged], method: str, what: str = "rivals") -> str:
    """Return "wins / even / losses" against the rivals, or the mean."""
    return " / ".join(str(_count(found, what, method, one)) for one in ("wins", "even", "loses"))


def _count(found: Sequence[Judged], what: str, method: str, word: str) -> int:
    """Return in how many cells a line has a verdict against "rivals" or the "mean"."""
    return sum(int((one.verdicts[what, method].verdict == word).sum()) for one in found)


def facts(out: Path, found: Sequence[Judged]) -> dict[str, str]:
    """Return what the pages say of the run."""
    run = json.loads((out / RUN).read_text(encoding="utf-8"))
    trials = pd.concat([one.verdicts["rivals", HOLDER].trials for one in found])
    refused = [one.fits[one.fits.refused.notna()] for one in found if "refused" in one.fits]
    wins = {
        f"{method}_{task}": _words([one for one in found if one.family.task == task], method)
        for method, task in product(OURS, ("number", "label"))
    }
    numbers = [over(one.means, HOLDER, one.best) for one in found if one.family.task == "number"]
    return wins | {
        "rivals": str(len({*RIVALS["number"], *RIVALS["label"]})),
        "behind_mean": str(_count(found, "mean", HOLDER, "loses")),
        "commit": " and ".join(sorted({*run.values()})),
        "commits": ", ".join(f"{part} at commit {one}" for part, one in run.items()),
        "cells": str(len(trials)),
        "least": str(trials.min()),
        "most": str(trials.max()),
        "fits": f"{sum(len(one.fits) for one in found):,}",
        "refused": str(sum(map(len, refused))),
        "best": f"{min(numbers):.2f}",
        "worst": f"{max(numbers):.2f}",
    }


def write(out: Path, page: Path | None, headline_page: Path | None) -> None:
    """Write the laboratory's page, and the product's."""
    found = [Judged(*one) for one in read(out)]
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
            path.write_text(lines.filled(name, told), encoding="utf-8")
