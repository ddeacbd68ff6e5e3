"""What all benchmarks share: the best of several rounds, beside something in the same run."""

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """What was measured, its best time, and the ratio to what it is measured against."""

    what: str
    seconds: float
    against: str
    ratio: float


def best_times(
    *functions: Callable[[], object], number: int = 1, rounds: int = 5, processor: bool = False
) -> list[float]:
    """Seconds a call for each, the best of several rounds in which they take turns.

    Taking turns lets a disturbance of the machine hit all of them alike. `processor` counts the
    time of all threads on processors rather than the clock's.
    """
    clock = process_time if processor else perf_counter
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for index, function in enumerate(functions):
            start = clock()
            for _ in range(number):
                function()
            best[index] = min(best[index], (clock() - start) / number)
    return best


def show(
    rows: Sequence[Row],
    *,
    title: str,
    path: Path | None = None,
    columns: Sequence[str] = ("what", "time", "against", "ratio"),
) -> None:
    """Print a table, and write JSON too if there is a path for it."""
    told = [
        [row.what, f"{row.seconds * 1e3:.3g} ms", row.against, f"{row.ratio:.3g}"] for row in rows
    ]
    table(title, columns, told)
    if path is not None:
        text = json.dumps([asdict(row) for row in rows], indent=2) + "\n"
        path.write_text(text, encoding="utf-8")


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with the version of Python."""
    printed = Table(*heads, title=f"{title}, Python {platform.python_version()}")
    for row in rows:
        printed.add_row(*row)
    Console(width=120).print(printed)
