"""Public features on real data: exact models from Σyx, and a local promise worth having.

`python experiments/public.py --draws 20`; finds the American Community Survey by BLURFIT_DATA, and
writes CSV and Markdown into build/figures. Rows are used once: the first 2²¹ take part (a smaller n
is a window of them that starts at random), the next 40,000 are public features, the rest the test.

* `local`: incomes, every submission (ε_l, 10⁻⁶)-private; how far the model goes on the way from a
  constant to least squares without privacy, with public rows and without.
* `labels`: incomes above the median; accuracy and log loss of the exact logistic model against
  those of logistic regression without privacy, with 1,000, 5,000 and 40,000 public rows.
* `shifted`: public rows that are fifteen years too young, taken as they are and re-weighted.
"""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.special import log_expit

from blurfit.arrays import FloatArray
from blurfit.datasets import load_acs
from blurfit.errors import InfeasibleError
from blurfit.learning.joint_sums import JointSums
from blurfit.learning.public_features import Family, fit_with_public_rows
from blurfit.learning.shrinkage import shrink
from blurfit.schema.joint import joint_form, kind_of, values
from blurfit.schema.schema import Schema
from blurfit.theory.gaussian import mu_of
from blurfit.theory.joint import sensitivity
from blurfit.theory.joint_form import JointForm
from blurfit.theory.public_weights import public_weights

CONTRIBUTORS, PUBLIC = 2**21, 40_000
YOUNGER = 15.0  # years
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class People:
    """Encoded columns of everyone, the target last, and who is what."""

    schema: Schema
    columns: FloatArray
    age: FloatArray

    @property
    def public(self) -> FloatArray:
        """The features of the public rows."""
        return self.columns[CONTRIBUTORS : CONTRIBUTORS + PUBLIC, :-1]

    @property
    def test(self) -> FloatArray:
        """Rows that nobody has seen."""
        return self.columns[CONTRIBUTORS + PUBLIC :]

    def too_young(self, count: int, generator: np.random.Generator) -> FloatArray:
        """Public rows drawn such that their mean age is about fifteen years below the others'."""
        age = self.age[CONTRIBUTORS : CONTRIBUTORS + PUBLIC]
        low, high = 0.0, 0.3
        for _ in range(40):  # the tilt e^(−s·age) that moves the mean so far
            tilt = (low + high) / 2
            weights = np.exp(-tilt * age)
            moved = age.mean() - float(weights @ age / weights.sum())
            low, high = (tilt, high) if moved < YOUNGER else (low, tilt)
        chosen = generator.choice(PUBLIC, count, replace=False, p=weights / weights.sum())
        return self.public[chosen]


def load(label: bool) -> People:
    """Everyone of the survey, encoded by public bounds."""
    acs = load_acs()
    schema = acs.label_schema if label else acs.schema
    parts = [
        values(schema, acs.take(2**17, start=start).table).astype(np.float32)
        for start in range(0, len(acs) - 2**17 + 1, 2**17)
    ]
    done = sum(len(part) for part in parts)
    if done < len(acs):
        rest = values(schema, acs.take(len(acs) - done, start=done).table)
        parts.append(rest.astype(np.float32))
    return People(schema, np.vstack(parts), np.asarray(acs.table["age"], dtype=np.float64))


def form_for(schema: Schema, count: int, mu: float, *, public: bool) -> JointForm:
    """The default weights; with public rows the target's weight is that of all the rest, ω = R."""
    found = public_weights([kind_of(one) for one in schema.features], count, mu)
    if not public:
        return joint_form(schema, found.constant, [*found.features, found.target])
    constant = 0.4
    target = math.sqrt((1 + constant**2) / 2)
    shrink_by = math.sqrt((1 - target**2) / sum(w**2 for w in found.features))
    return joint_form(schema, constant, [*(shrink_by * w for w in found.features), target])


def release(
    people: People, form: JointForm, n: int, deviation: float, generator: np.random.Generator
) -> JointSums:
    """The blurred sums of n people, a window of the contributors."""
    start = int(generator.integers(0, CONTRIBUTORS - n + 1))
    z = np.empty((n, form.size), dtype=np.float64)
    z[:, 0] = form.constant
    z[:, 1:] = people.columns[start : start + n] * [column.weight for column in form.columns]
    noise = np.triu(generator.normal(size=(form.size, form.size)) * deviation / math.sqrt(2))
    noise[np.diag_indices_from(noise)] *= math.sqrt(2)
    blurred = np.triu(z.T @ z) + noise
    blurred += np.triu(blurred, 1).T
    return JointSums(form.columns, form.constant, n, blurred, deviation)


def fitted(
    sums: JointSums, target: str, rows: FloatArray, family: Family, *, match: bool
) -> FloatArray:
    """Coefficients of (1, v); of a constant where the public rows are refused."""
    try:
        return fit_with_public_rows(sums.submodel(target), rows, family, match=match).coefficients
    except InfeasibleError:
        return shrink(sums.submodel(target)).coefficients


def local_rows(draws: int) -> Iterator[Row]:
    """Income under a local promise."""
    people = load(label=False)
    name, test = people.schema.target.name, people.test
    x, y = test[:, :-1], test[:, -1]

    def error(w: FloatArray) -> float:
        return float(np.sqrt(np.mean((w[0] + x @ w[1:] - y) ** 2)))

    rows = np.column_stack([np.ones(CONTRIBUTORS), people.columns[:CONTRIBUTORS, :-1]])
    found = np.linalg.lstsq(rows[:: 2**3], people.columns[: CONTRIBUTORS : 2**3, -1])[0]
    best = error(np.asarray(found, dtype=np.float64))
    constant = float(np.std(y))
    generator = np.random.default_rng(2017)
    for n in (2**17, 2**21):
        for target in (0.5, 1.0, 2.0, 4.0, 8.0):
            mu = mu_of(target, 1e-6)
            ways: dict[str, list[float]] = {"alone": [], "public": []}
            for _ in range(draws):
                for public in (False, True):
                    form = form_for(people.schema, n, mu, public=public)
                    # σ = √n·Δ/μ_l for each submission's promise, all of it in the sum
                    deviation = math.sqrt(n) * sensitivity(form.constant, form.radius)
                    deviation /= mu_of(target, 1e-6)
                    sums = release(people, form, n, deviation, generator)
                    if public:
                        w = fitted(sums, name, people.public, "linear", match=True)
                    else:
                        w = shrink(sums.submodel(name)).coefficients
                    way = (constant - error(w)) / (constant - best)
                    ways["public" if public else "alone"].append(way)
            yield {
                "n": n,
                "local ε": target,
                "alone": float(np.mean(ways["alone"])),
                "with public rows": float(np.mean(ways["public"])),
                "± (public)": float(np.std(ways["public"])) / math.sqrt(draws),
            }


def label_rows(draws: int, *, shifted: bool) -> Iterator[Row]:
    """Labels under a promise for the model."""
    people = load(label=True)
    name, test = people.schema.target.name, people.test
    x, y = test[:, :-1], test[:, -1]

    def scores(w: FloatArray) -> tuple[float, float]:
        score = w[0] + x @ w[1:]
        return float(np.mean((score > 0) == (y > 0))), float(-np.mean(log_expit(y * score)))

    best = scores(_logistic(people.columns[: 2**18]))
    generator = np.random.default_rng(2018)
    cells = [(1.0, 1e-6, 2**15)]
    cells += [(e, 0.01, 2**k) for e in (0.1, 1.0) for k in (9, 11, 13, 15, 17)]
    sizes: tuple[int, ...] = (1000, 5000, 40_000)
    if shifted:
        cells, sizes = [(1.0, 1e-6, 2**15), (1.0, 1e-6, 2**17)], (5000,)
    for epsilon, delta, n in cells:
        mu = mu_of(epsilon, delta)
        form = form_for(people.schema, n, mu, public=True)
        deviation = sensitivity(form.constant, form.radius) / mu
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(draws):
            sums = release(people, form, n, deviation, generator)
            for size in sizes:
                matching = people.public[generator.choice(PUBLIC, size, replace=False)]
                w = fitted(sums, name, matching, "logistic", match=True)
                found.setdefault(f"{size:,} rows", []).append(scores(w))
                if shifted:
                    young = people.too_young(size, generator)
                    for label, match in (("young, weighted", True), ("young, as they are", False)):
                        w = fitted(sums, name, young, "logistic", match=match)
                        found.setdefault(label, []).append(scores(w))
        row: Row = {"ε": epsilon, "δ": delta, "n": n}
        for label, pairs in found.items():
            row[f"{label}: accuracy"] = float(np.mean([one for one, _ in pairs]))
            row[f"{label}: log loss"] = float(np.mean([loss for _, loss in pairs]))
        yield row | {"no privacy: accuracy": best[0], "no privacy: log loss": best[1]}


def _logistic(rows: FloatArray) -> FloatArray:
    """Logistic regression without privacy, by Newton."""
    design, y = np.column_stack([np.ones(len(rows)), rows[:, :-1]]), rows[:, -1]
    w = np.zeros(design.shape[1])
    for _ in range(25):
        mean = np.tanh(design @ w / 2)
        slope = (1 - mean**2) / 2
        w += np.linalg.solve((design * slope[:, None]).T @ design, design.T @ (y - mean))
    return w


@click.command()
@click.option("--draws", default=10, show_default=True, help="Collections for each cell.")
@click.option(
    "--only", type=click.Choice(["local", "labels", "shifted"]), help="One of the three tables."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/figures"),
    show_default=True,
)
def main(draws: int, only: str | None, out: Path) -> None:
    """Measure what public features are worth."""
    out.mkdir(parents=True, exist_ok=True)
    tables = {
        "local": local_rows(draws),
        "labels": label_rows(draws, shifted=False),
        "shifted": label_rows(draws, shifted=True),
    }
    for name in [only] if only else list(tables):
        rows = list(track(tables[name], description=name, console=Console(stderr=True)))
        with (out / f"public_{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        lines = [
            "| " + " | ".join(rows[0]) + " |",
            "| " + " | ".join("---" for _ in rows[0]) + " |",
        ]
        lines += ["| " + " | ".join(_cell(one) for one in row.values()) + " |" for row in rows]
        text = "\n".join(lines)
        (out / f"public_{name}.md").write_text(text + "\n", encoding="utf-8")
        click.echo(f"{name}, {draws} draws\n{text}")


def _cell(value: Any) -> str:
    return (
        f"{value:.4f}" if isinstance(value, float) and value < 1 and value > 1e-4 else f"{value:g}"
    )


if __name__ == "__main__":
    main()
