"""Public features on real data: exact models from Σyx, and a local promise worth having.

The American Community Survey is found by BLURFIT_DATA. Every draw is written down as it is made,
with a seed of its own: a run that is stopped goes on where it was. Contributors, 40,000 public rows
and the tested rows are different people; where public rows are refused, the model is fitted without
them.

* `local`: incomes, every submission (ε_l, 10⁻⁶)-private; how far the model goes on the way from a
  constant to least squares without privacy, with public rows and without.
* `labels`: incomes above the median; accuracy and log loss of the exact logistic model, with 1,000,
  5,000 and 40,000 public rows, beside the tested rows' own logistic regression.
* `shifted`: the same with public rows that are fifteen years too young, which are re-weighted.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.optimize import brentq

from blurfit import MomentPerturbationClassifier, MomentPerturbationRegressor, NotPrivateWarning
from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError
from blurfit_lab.experiments.everywhere import floor_of, loss_of
from blurfit_lab.experiments.lines import markdown, mended
from blurfit_lab.experiments.populations import Rows, Task, people

PUBLIC, YOUNGER = 40_000, 15.0  # rows, and years
LOCAL_CELLS = [(n, target) for n in (2**17, 2**21) for target in (0.5, 1.0, 2.0, 4.0, 8.0)]
LOCAL_GOALS = {(2**21, 1.0): 0.72, (2**21, 4.0): 0.94}
LABEL_CELLS = [(1.0, 1e-6, 2**15)]
LABEL_CELLS += [(e, 0.01, 2**k) for e in (0.1, 1.0) for k in (9, 11, 13, 15, 17)]
LABEL_GOALS = [(1.0, 1e-6, 2**15), (0.1, 0.01, 2**13)]
SHIFTED_CELLS = [(1.0, 1e-6, 2**15), (1.0, 1e-6, 2**17)]
SIZES = (1000, 5000, 40_000)  # of public rows
LabelCell = tuple[float, float, int]
Values = dict[str, float]
Draw = Callable[[Any, int], Values]


def _drawn(task: Task, n: int, seed: int) -> tuple[Rows, pd.DataFrame]:
    """Contributors, and other people whose features are public."""
    X, y = people("survey", task, 0).draw(n + PUBLIC, seed)
    return Rows(X.iloc[:n], y[:n]), X.iloc[n:]


def _predicted(task: Task, rows: Rows, public: pd.DataFrame | None, **terms: Any) -> Any:
    """Of the tested rows; without public rows where they are refused."""
    crowd = people("survey", task, 0)
    family: Any = MomentPerturbationClassifier if task == "label" else MomentPerturbationRegressor
    model = family(bounds=crowd.schema, public_X=public, waves=1, **terms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        try:
            model.fit(rows.X, rows.y)
        except InfeasibleError:
            model.set_params(public_X=None).fit(rows.X, rows.y)
    X = crowd.tested.X
    return model.predict_proba(X)[:, 1] if task == "label" else model.predict(X)


def local_draw(cell: tuple[int, float], seed: int) -> Values:
    """Income under a local promise: how far each model goes."""
    n, target = cell
    crowd = people("survey", "number", 0)
    floor, (rows, public) = floor_of(crowd), _drawn("number", n, seed)
    terms = {"epsilon": 10.0, "local_epsilon": target, "local_delta": 1e-6, "random_state": seed}
    found = {}
    for way, known in (("alone", None), ("with public rows", public)):
        loss = loss_of("number", _predicted("number", rows, known, **terms), crowd.tested.y)
        ends = np.sqrt(floor.variance), np.sqrt(floor.loss)
        found[way] = float((ends[0] - np.sqrt(loss)) / (ends[0] - ends[1]))
    return found


def label_draw(cell: LabelCell, seed: int) -> Values:
    """Labels under a promise for the model, with public rows of three sizes."""
    rows, public = _drawn("label", cell[2], seed)
    return _scores(cell, rows, {f"{size:,} rows": public.iloc[:size] for size in SIZES}, seed)


def shifted_draw(cell: LabelCell, seed: int) -> Values:
    """Labels, with rows that match, and with rows that are too young."""
    rows, public = _drawn("label", cell[2], seed)
    age = public["age"].to_numpy(dtype=float)

    def tilted(s: float) -> FloatArray:
        return np.asarray(np.exp(-s * age) / np.exp(-s * age).sum())

    # the tilt e^(−s·age) that moves the mean so far
    tilt = brentq(lambda s: age.mean() - tilted(s) @ age - YOUNGER, 0.0, 0.3, xtol=1e-13)
    chosen = np.random.default_rng(seed).choice(PUBLIC, 5000, replace=False, p=tilted(tilt))
    young = public.iloc[chosen]
    ways = {"matching rows": public.iloc[:5000], "young, weighted": young}
    return _scores(cell, rows, ways, seed)


def _scores(cell: LabelCell, rows: Rows, ways: dict[str, pd.DataFrame], seed: int) -> Values:
    crowd = people("survey", "label", 0)
    found = {"no privacy: accuracy": floor_of(crowd).accuracy}
    found["no privacy: log loss"] = floor_of(crowd).loss
    for way, known in ways.items():
        terms = {"epsilon": cell[0], "delta": cell[1], "random_state": seed}
        p = _predicted("label", rows, known, **terms)
        found[f"{way}: accuracy"] = float(np.mean((p > 0.5) == crowd.tested.y))
        found[f"{way}: log loss"] = loss_of("label", p, crowd.tested.y)
    return found


@dataclass(frozen=True)
class Table:
    """Cells, how one draw of a cell is made, and which cells a goal is about."""

    heads: list[str]
    cells: list[tuple[Any, ...]]
    goals: list[tuple[Any, ...]]
    draw: Draw

    def run(self, draws: int, out: Path, *, goals: bool = False) -> None:
        """Make the draws that are missing, the first of all cells before the second of any."""
        known = mended(self._file(out))
        for place in range(draws):
            for cell in self.goals if goals else self.cells:
                line = {**dict(zip(self.heads, cell, strict=True)), "draw": place}
                if any(line.items() <= one.items() for one in known):
                    continue
                with self._file(out).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line | self.draw(cell, place)) + "\n")

    def told(self, out: Path) -> str:
        """Means and standard errors of each cell that has draws."""
        lines = mended(self._file(out))
        if not lines:
            return "Nothing was measured."
        found = pd.DataFrame(lines).drop(columns="draw").groupby(self.heads, sort=False)
        told = found.mean().map("{:.4f}".format) + " ± " + found.sem().map("{:.4f}".format)
        told.insert(0, "draws", found.size())
        return markdown(told.reset_index().astype(dict.fromkeys(self.heads, str)))

    def _file(self, out: Path) -> Path:
        return out / f"{self.draw.__name__}.jsonl"


TABLES = {
    "local": Table(["n", "local ε"], LOCAL_CELLS, list(LOCAL_GOALS), local_draw),
    "labels": Table(["ε", "δ", "n"], LABEL_CELLS, LABEL_GOALS, label_draw),
    "shifted": Table(["ε", "δ", "n"], SHIFTED_CELLS, SHIFTED_CELLS[1:], shifted_draw),
}
