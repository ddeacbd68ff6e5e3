"""Results as they come: a killed run continues where it stopped, and ends with the same CSV.

Each finished cell is one line of JSON in `<name>.journal`, whose first line says what was asked
for: another question starts anew. A line that was cut off by a kill is left out. When all cells are
there, the CSV is written from them in the order of the cells, and the journal is removed.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One number: which line of a figure, in which variant, at which ε and n, in which trial."""

    line: str
    variant: str
    epsilon: float
    n: int
    trial: int
    value: float


@dataclass(frozen=True)
class TrialLog:
    """The cells of one experiment that are done, under one question."""

    path: Path
    question: Mapping[str, Any]

    def read(self) -> dict[str, list[Row]]:
        """Cell → its rows; nothing if the file answers another question."""
        if not self.path.exists():
            return {}
        lines = self.path.read_text(encoding="utf-8").splitlines()
        documents = [document for line in lines if (document := _parsed(line)) is not None]
        if not documents or documents[0] != {"question": dict(self.question)}:
            return {}
        return {
            document["cell"]: [Row(*values) for values in document["rows"]]
            for document in documents[1:]
        }

    def start(self, done: Mapping[str, Sequence[Row]]) -> None:
        """Write the question and what is known, without what a kill left half written."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"question": dict(self.question)}), *map(_line, done, done.values())]
        self.path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")

    def add(self, cell: str, rows: Sequence[Row]) -> None:
        """One more cell, on the disk at once."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(cell, rows) + "\n")


def _line(cell: str, rows: Sequence[Row]) -> str:
    return json.dumps({"cell": cell, "rows": rows}, ensure_ascii=False)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """All digits, so that the same rows are the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(rows)


def read_csv(path: Path) -> list[Row]:
    """What `write_csv` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return [
        Row(line, variant, float(epsilon), int(n), int(trial), float(value))
        for line, variant, epsilon, n, trial, value in rows
    ]
