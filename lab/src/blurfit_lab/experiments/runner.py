"""Run an experiment: cells to workers, results to a journal, journal to CSV.

Each finished cell is one line of JSON in `<name>.journal`, whose first line says what was asked
for: another question starts anew. When all cells are there, the CSV is written from them in the
order of the cells, and the journal is removed. Every cell draws from a seed of its own and computes
with one BLAS thread, so that the CSV does not depend on how many workers there are, which of them
was first, or whether the run was killed. `Provenance` says what a folder of results was computed
from, and how long that took.
"""

import json
import multiprocessing
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pandas as pd  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import blurfit
from blurfit.errors import Progress, silent, whole
from blurfit.simulation import Generator, generator_for
from blurfit_lab.experiments.cohort import Cohort
from blurfit_lab.experiments.lines import mended


class Row(NamedTuple):
    """One number: which line of a figure, in which variant, at which ε and n, in which trial."""

    line: str
    variant: str
    epsilon: float
    n: int
    trial: int
    value: float


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write all digits, so that the same rows are the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=Row._fields).to_csv(path, index=False, lineterminator="\n")


def read_csv(path: Path) -> list[Row]:
    """Read what `write_csv` wrote."""
    kinds = {"variant": str, "epsilon": float, "value": float}  # Python's, which read every digit
    found = pd.read_csv(path, converters=kinds, na_filter=False)
    return [Row(*one) for one in found.itertuples(index=False)]


FILENAME = "provenance.json"


@dataclass
class Provenance:
    """The population, whether its people are made up, and the time of each experiment.

    On a machine that does other things too, `computing` tells more than `seconds`.
    """

    population: str = "unknown population"
    synthetic: bool = True
    rows: int = 0
    trials: int = 0
    workers: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    computing: dict[str, float] = field(default_factory=dict)  # of all processes together

    @classmethod
    def read(cls, folder: Path) -> "Provenance":
        """As written by an earlier run; unknown facts if there was none."""
        path = folder / FILENAME
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()

    def write(self, folder: Path) -> None:
        """Beside the CSV."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"
        (folder / FILENAME).write_text(text, encoding="utf-8")

    def took(self, name: str, seconds: float, computing: float) -> None:
        """Add the time of one experiment: by the clock, and of the processors."""
        self.seconds[name], self.computing[name] = round(seconds, 1), round(computing, 1)

    def spent(self, names: Sequence[str]) -> list[str]:
        """Tell the time of some experiments together: by the clock, and of the processors."""
        times = self.seconds, self.computing
        return [f"{sum(one.get(name, 0.0) for name in names):.0f}" for one in times]

    @property
    def title(self) -> str:
        """For plots: so that nobody takes made-up people for real ones."""
        return f"{self.population}{' · SYNTHETIC people' if self.synthetic else ''}"


def seeded(seed: int, words: str, *numbers: int) -> Generator:
    """A generator for what these words and numbers name, under the seed of a run."""
    return generator_for([seed, zlib.crc32(words.encode()), *numbers])


class Experiment(Protocol):
    """What can be run: named, cut into cells, each of which can be computed by itself.

    `cells` are in the order of the CSV; "tuning" is computed before all others, which know it.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def cells(self, population: Cohort, trials: int, /) -> list[str]: ...  # noqa: D102

    def compute(  # noqa: D102
        self, population: Cohort, cell: str, known: Mapping[str, list[Row]], /
    ) -> list[Row]: ...


def run(
    experiment: Experiment,
    population: Cohort,
    trials: int,
    workers: int,
    out: Path,
    progress: Progress = silent,
) -> Path:
    """The CSV of an experiment; goes on where a killed run of the same question was."""
    whole(trials=trials, workers=workers)
    path, cells = out / f"{experiment.name}.csv", experiment.cells(population, trials)
    question = {
        "version": blurfit.__version__,
        "experiment": repr(experiment),
        "population": population.name,
        "rows": len(population),
        "seed": population.seed,
        "trials": trials,
    }
    journal = out / f"{experiment.name}.journal"
    done = {cell: rows for cell, rows in known_of(journal, question).items() if cell in cells}
    with threadpool_limits(limits=1):
        population.prepare()
        for some in (["tuning"] if "tuning" in cells else [], cells):  # which all others know
            known = {cell: rows for cell, rows in done.items() if cell == "tuning"}
            missing = [cell for cell in some if cell not in done]
            for cell, rows in _computed((experiment, population, known), missing, workers):
                _add(journal, {"cell": cell, "rows": rows})
                done[cell] = rows
                progress(len(done), len(cells))
    write_csv(path, [row for cell in cells for row in done[cell]])
    journal.unlink()
    return path


def known_of(journal: Path, question: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Return the cells that a journal has; one that answers another question starts anew."""
    asked, *lines = mended(journal) or [{}]
    if asked != {"question": question}:
        journal.unlink()
        _add(journal, {"question": question})
        return {}
    return {line["cell"]: [Row(*values) for values in line["rows"]] for line in lines}


def _add(journal: Path, line: Mapping[str, Any]) -> None:
    with journal.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


Shared = tuple[Experiment, Cohort, Mapping[str, list[Row]]]
_shared: Shared


def _computed(shared: Shared, missing: list[str], workers: int) -> Iterator[tuple[str, list[Row]]]:
    global _shared  # which workers inherit when they are forked: gigabytes are not sent to them
    _shared = shared
    if workers == 1 or len(missing) < 2:
        yield from map(_work, missing)
        return
    with multiprocessing.get_context("fork").Pool(workers, threadpool_limits, (1,)) as pool:
        yield from pool.imap_unordered(_work, missing)


def _work(cell: str) -> tuple[str, list[Row]]:
    experiment, population, known = _shared
    return cell, experiment.compute(population, cell, known)
