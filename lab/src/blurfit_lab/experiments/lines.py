"""What experiments share: cells, results that are kept as JSON lines, and how these are told.

    cells × seeds × methods ─ run ─► JSON lines ─ frame ─► means, paired comparisons ─► Markdown

A line that is there is not computed again: a run that was stopped goes on, and more seeds are
added to fewer.

**Paired comparisons.** `surely` says that the mean of paired gaps is above 0, by Student's law at
99 %.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import stdtrit
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from blurfit.data import FloatArray
from blurfit.errors import BlurfitError, Progress, silent

CELL = ["population", "d", "n", "epsilon"]
KEY = [*CELL, "seed", "method"]
SURE = 0.99


class Cell(NamedTuple):
    """What is learned from: a population, its columns, and how many people under which ε."""

    population: str
    d: int
    n: int
    epsilon: float


class Collections(NamedTuple):
    """How many people are in a collection, under which ε, and how often each is simulated."""

    sizes: Sequence[int]
    epsilons: Sequence[float]
    trials: int

    def cells(self, *kinds: Iterable[Any]) -> Iterable[tuple[Any, ...]]:
        """All kinds of people, their number, and ε."""
        return product(*kinds, self.sizes, self.epsilons)


Measured = Callable[[str], dict[str, Any]]  # from a method to what is told of it


def run(
    task: str,
    wanted: Sequence[tuple[Cell, int]],
    methods: Sequence[str],
    out: Path,
    prepare: Callable[[Cell, int], Measured],
    tell: Progress = silent,
) -> None:
    """Compute the lines that `out` lacks; a method's own refusal is a line, too.

    `prepare` draws what all methods of a cell and a seed have in common.
    """
    done = {tuple(line[key] for key in KEY) for line in mended(out)}
    with out.open("a", encoding="utf-8") as file, threadpool_limits(limits=1):
        for place, (cell, seed) in enumerate(wanted):
            missing = [one for one in methods if (*cell, seed, one) not in done]
            measured = prepare(cell, seed) if missing else None
            for method in missing:
                line = {"task": task, **cell._asdict(), "seed": seed, "method": method}
                try:
                    line |= measured(method) if measured else {}
                except (BlurfitError, np.linalg.LinAlgError) as error:
                    line["refused"] = f"{type(error).__name__}: {error}"
                file.write(json.dumps(line) + "\n")
            file.flush()
            tell(place + 1, len(wanted))


def mended(path: Path) -> list[dict[str, Any]]:
    """Make a file ready for further lines, without what a kill cut off, and return what it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text.endswith("\n"):
        path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
    return read(path)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file."""
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def frame(paths: Iterable[Path]) -> pd.DataFrame:
    """Return all lines of some files, the last of those that are of the same fit."""
    lines = [line for path in paths for line in read(path)]
    return pd.DataFrame(lines).drop_duplicates(KEY, keep="last")


def measured(
    heads: Sequence[str],
    cells: Iterable[tuple[Any, ...]],
    measure: Callable[..., Mapping[str, Any]],
    progress: Progress = silent,
) -> pd.DataFrame:
    """Return a row for each cell: its values under the heads, and what was measured of them."""
    wanted = list(cells)
    rows: list[dict[str, Any]] = []
    for cell in wanted:
        rows.append({**dict(zip(heads, cell, strict=True)), **measure(*cell)})
        progress(len(rows), len(wanted))
    return pd.DataFrame(rows)


def reach(gaps: FloatArray) -> float:
    """Return how far the mean of paired gaps may be from the truth, at 99 %."""
    if len(gaps) < 2:
        return math.inf
    quantile = stdtrit(len(gaps) - 1, 1 - (1 - SURE) / 2)
    return float(quantile * gaps.std(ddof=1) / math.sqrt(len(gaps)))


def surely(gaps: FloatArray) -> bool:
    """Tell whether the mean of paired gaps is above 0, at 99 %."""
    return bool(len(gaps) > 1 and gaps.mean() > reach(gaps))


def judgeable(
    lines: pd.DataFrame, method: str, others: Sequence[str]
) -> Iterator[tuple[Any, pd.DataFrame, list[str]]]:
    """Yield each cell that has a method: its losses by seed, and which of the others have any."""
    for cell, part in wide(lines).groupby(level=CELL, sort=False):
        known = [one for one in others if one in part and part[one].notna().any()]
        if known and method in part and part[method].notna().any():
            yield cell, part, known


def wide(lines: pd.DataFrame, value: str = "loss") -> pd.DataFrame:
    """Return a value with a row for each cell and seed, and a column for each method."""
    return lines.set_index(KEY)[value].unstack(sort=False)


def both(part: pd.DataFrame, mine: str, other: str) -> FloatArray:
    """Return the values of two methods in the seeds that both have."""
    return np.asarray(part[[mine, other]].dropna().to_numpy().T)


def worded(loses: bool, gaps: FloatArray) -> str:
    """Return the verdict: lost, surely won, or even."""
    return "loses" if loses else "wins" if surely(-gaps) else "even"


def filled(template: str, told: Mapping[str, str]) -> str:
    """Return the page of a template beside this file: {name} is what is told under that name."""
    words = Path(__file__).with_name(template).read_text(encoding="utf-8")
    for name, value in told.items():
        words = words.replace(f"{{{name}}}", value)
    return words


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table for a page.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(found: pd.DataFrame, digits: int = 4) -> str:
    """Write a data frame for a page.

    >>> print(markdown(pd.DataFrame({"n": [512], "excess": [0.12345]})))
    | n | excess |
    | --- | --- |
    | 512 | 0.1235 |
    """

    def told(value: Any) -> str:
        if isinstance(value, float):
            return "–" if math.isnan(value) else f"{value:.{digits}f}"
        return str(value)

    rows = found.itertuples(index=False, name=None)
    return table([*map(str, found.columns)], ([told(value) for value in row] for row in rows))
