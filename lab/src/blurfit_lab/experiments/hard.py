"""Populations that real tables are like where defaults are likely to fail: for the coverage record.

In their own units, with bounds that somebody would state who has not seen the rows. Each has a
number, and from the same features a label and a count. `CHOICES` may be looked at while a rule is
chosen. **`ASIDE` may not**: they are run once, at the end.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit

from blurfit import Binary, Categorical, Numeric, Schema
from blurfit.data import AnyArray, FloatArray
from blurfit_lab.experiments.populations import REFERENCE, Generator, People, Rows, Task

MOST = 30  # the largest count
Bounds = tuple[float, float]


Column = tuple[AnyArray, Bounds | list[str] | None]


class Crowd(NamedTuple):
    """Columns with their bounds (yes or no: None; levels: they themselves), the signal in them that
    labels and counts follow, and a number with its bounds.
    """

    columns: Mapping[str, Column]
    signal: FloatArray
    number: FloatArray
    bounds: Bounds


def _stray_column(n: int, rng: Generator) -> Crowd:
    """Ways to work: one in 250 gives metres, and times grow little with them."""
    way, age = np.exp(rng.normal(2, 0.8, n)), np.clip(rng.normal(44, 14, n), 16, 90)
    stray, man = rng.random(n) < 0.004, rng.random(n) < 0.5
    way = np.where(stray, rng.uniform(1000, 12000, n), np.minimum(way, 500))
    signal = np.where(stray, 15, 1.5 * way) + 0.1 * age - 3 * man
    time = 8 + signal + np.where(stray, 0.015 * way, 0) + 6 * rng.normal(size=n)
    columns = {"way": (way, (0.0, 20000.0)), "age": (age, (0.0, 120.0)), "man": (man, None)}
    return Crowd(columns, signal, time, (0, 1000))


def _stray_target(n: int, rng: Generator) -> Crowd:
    """Bills, of which one in 200 is up to fifty times what is usual, whoever it is."""
    age, rooms = rng.uniform(18, 85, n), np.minimum(rng.poisson(3, n), 15).astype(float)
    signal = 1.5 * age + 10 * rooms
    bill = 30 + signal + rng.gamma(2, 15, n)
    bill = np.where(rng.random(n) < 0.005, rng.uniform(600, 6000, n), bill)
    columns = {"age": (age, (0.0, 120.0)), "rooms": (rooms, (0.0, 15.0))}
    return Crowd(columns, signal, bill, (0, 10000))


def _loose_bounds(n: int, rng: Generator) -> Crowd:
    """One column in bounds a thousand times its spread, and three in ordinary ones."""
    white = rng.normal(size=(n, 4))
    signal = white @ [1.0, 0.6, -0.6, 0.4]
    columns = {"weight": (700 + 2 * white[:, 0], (0.0, 2000.0))}
    columns |= {f"rate{k}": (50 + 14 * white[:, k], (0.0, 100.0)) for k in (1, 2, 3)}
    return Crowd(columns, signal, 50 + 7 * (signal + rng.normal(size=n)), (0, 100))


def _wages(n: int, rng: Generator) -> Crowd:
    """Yearly wages in bounds up to a million; schools, regions and yes or no, of which few say."""
    schools, regions = ["none", "middle", "high", "degree"], ["north", "east", "south", "isles"]
    school, region = (
        rng.choice(4, n, p=[0.1, 0.4, 0.35, 0.15]),
        rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05]),
    )
    age, union = np.clip(rng.normal(41, 12, n), 17, 75), rng.random(n) < 0.08
    signal = 0.04 * age - 0.0004 * age**2 + np.array([0, 0.2, 0.5, 0.9])[school]
    signal = signal + np.array([0, 0.1, -0.15, 0.3])[region] + 0.1 * union
    columns = {
        **{
            "age": (age, (0.0, 120.0)),
            "age2": (age**2 / 100, (0.0, 144.0)),
            "union": (union, None),
        },
        "school": (np.array(schools)[school], schools),
        "region": (np.array(regions)[region], regions),
    }
    return Crowd(columns, signal, np.exp(9.4 + signal + 0.5 * rng.normal(size=n)), (0, 1e6))


def _skewed(n: int, rng: Generator) -> Crowd:
    """Gamma, lognormal and exponential columns in bounds of 20 to 60 medians."""
    X = [rng.gamma(1.5, 1, n), np.exp(0.8 * rng.normal(size=n)), rng.exponential(1, n)]
    X += [rng.gamma(0.8, 2, n), rng.weibull(0.8, n)]
    most = np.array([30.0, 60.0, 20.0, 40.0, 30.0])
    table = np.minimum(np.column_stack(X), most)
    signal = table @ [0.5, 0.4, -0.5, 0.3, 0.4]
    columns = {f"x{k}": (table[:, k], (0.0, float(most[k]))) for k in range(5)}
    return Crowd(columns, signal, 10 + 4 * signal + 4 * (rng.gamma(2, 1, n) - 2), (0, 100))


def _rare_yes(n: int, rng: Generator) -> Crowd:
    """One in twenty says yes, and errors of those are seven times as large."""
    white, yes = rng.normal(size=(n, 3)), rng.random(n) < 0.05
    signal = 0.5 * white[:, 0] - 0.3 * white[:, 1] + 1.0 * yes
    columns = {f"rate{k}": (50 + 12 * white[:, k], (0.0, 100.0)) for k in range(3)}
    number = 50 + 3 * signal + np.where(yes, 14, 2) * rng.normal(size=n)
    return Crowd({**columns, "yes": (yes, None)}, signal, number, (0, 100))


def _cauchy(n: int, rng: Generator) -> Crowd:
    """Cauchy columns in bounds of 200 scales, and a number that a curve of them gives."""
    X, use = np.clip(rng.standard_cauchy((n, 3)), -200, 200), rng.random(n)
    signal = 3 * expit(X @ [0.5, 0.3, -0.4]) + use
    columns = {f"x{k}": (X[:, k], (-200.0, 200.0)) for k in range(3)}
    columns["use"] = (use, (0.0, 1.0))
    return Crowd(columns, signal, 10 + 4 * signal + 2.5 * rng.normal(size=n), (0, 40))


def _sentinel(n: int, rng: Generator) -> Crowd:
    """A pressure that is 9999 for one in seventy, where it was not measured."""
    white = rng.normal(size=(n, 3))
    signal = white @ [0.6, 0.5, -0.3]
    pressure = np.where(rng.random(n) < 1 / 70, 9999, 120 + 15 * white[:, 0])
    columns = {"pressure": (pressure, (0.0, 10000.0))}
    columns |= {f"rate{k}": (50 + 10 * white[:, k], (0.0, 100.0)) for k in (1, 2)}
    return Crowd(columns, signal, 30 + 5 * (signal + rng.normal(size=n)), (0, 60))


def _wealth(n: int, rng: Generator) -> Crowd:
    """Pareto's wealth up to ten millions, and spending that grows with its root."""
    wealth, age = np.minimum(4000 * rng.random(n) ** (-1 / 1.3), 1e7), rng.uniform(18, 85, n)
    signal = 0.05 * np.sqrt(wealth / 100) + 0.02 * age
    columns = {"wealth": (wealth, (0.0, 1e7)), "age": (age, (0.0, 120.0))}
    return Crowd(columns, signal, 500 * signal + 300 * rng.normal(size=n), (0, 20000))


def _likert(n: int, rng: Generator) -> Crowd:
    """Eight answers from 1 to 5 that one attitude makes alike: bounds are right."""
    attitude = rng.normal(size=(n, 1))
    X = np.clip(np.rint(3.2 + 0.6 * attitude + 0.9 * rng.normal(size=(n, 8))), 1, 5)
    signal = (X - 3) @ np.linspace(0.4, -0.2, 8)
    columns = {f"answer{k}": (X[:, k], (1.0, 5.0)) for k in range(8)}
    return Crowd(columns, signal, np.rint(5 + 1.5 * signal + rng.normal(size=n)), (0, 10))


def _doses(n: int, rng: Generator) -> Crowd:
    """Kept aside: a few doses, mostly none, whose effect saturates; weight; and a recovery."""
    dose = rng.choice([0.0, 5, 10, 20, 80], n, p=[0.5, 0.2, 0.2, 0.08, 0.02])
    weight = np.clip(rng.normal(75, 14, n), 35, 180)
    signal = 3 * dose / (dose + 10) - 0.02 * (weight - 75)
    columns = {"dose": (dose, (0.0, 500.0)), "weight": (weight, (0.0, 250.0))}
    return Crowd(columns, signal, 30 - 4 * signal + rng.gamma(3, 2, n), (0, 365))


def _farms(n: int, rng: Generator) -> Crowd:
    """Kept aside: shares of three crops that sum to less than 1, areas of a lognormal law, yields
    whose errors grow with the area.
    """
    share, area = rng.dirichlet([2, 1, 0.3, 1], n)[:, :3], np.exp(rng.normal(3, 1.2, n))
    signal = share @ [1.0, -0.5, 2.0] + 0.3 * np.log(area)
    columns = {f"share{k}": (share[:, k], (0.0, 1.0)) for k in range(3)}
    columns["area"] = (np.minimum(area, 5000), (0.0, 5000.0))
    number = 20 + 6 * signal + 0.8 * np.log1p(area) * rng.standard_t(6, n)
    return Crowd(columns, signal, number, (0, 150))


def _shifts(n: int, rng: Generator) -> Crowd:
    """Kept aside: times of day in minutes of three shifts, one of which few have, and a sick-leave
    column that is 0 for nine in ten.
    """
    shift = rng.choice(3, n, p=[0.7, 0.25, 0.05])
    start = np.array([420.0, 840.0, 1300.0])[shift] + 15 * rng.normal(size=n)
    leave = np.where(rng.random(n) < 0.1, np.ceil(rng.exponential(9, n)), 0)
    night, age = shift == 2, rng.uniform(18, 67, n)
    signal = np.array([0, 0.4, 1.0])[shift] + 0.05 * np.minimum(leave, 60) + 0.02 * age
    columns: dict[str, Column] = {
        "start": (start, (0.0, 1440.0)),
        "leave": (np.minimum(leave, 365), (0.0, 365.0)),
    }
    columns |= {"night": (night, None), "age": (age, (0.0, 120.0))}
    return Crowd(columns, signal, 40 + 10 * signal + 8 * rng.normal(size=n), (0, 200))


_Law = Callable[[int, Generator], Crowd]
CHOICES: dict[str, _Law] = {
    **{"stray-column": _stray_column, "stray-target": _stray_target, "wages": _wages},
    **{"loose-bounds": _loose_bounds, "skewed": _skewed, "rare-yes": _rare_yes, "likert": _likert},
    **{"cauchy-columns": _cauchy, "sentinel": _sentinel, "wealth": _wealth},
}
ASIDE: dict[str, _Law] = {"doses": _doses, "farms": _farms, "shifts": _shifts}


@lru_cache(maxsize=4)
def hard(name: str, task: Task, size: int) -> People:
    """Return the people of this name, and so many of them to test on."""
    law, own = (CHOICES | ASIDE)[name], [ord(letter) for letter in name]
    reference = law(REFERENCE, np.random.default_rng([*own, 0])).signal
    middle, spread = float(reference.mean()), float(reference.std())

    def crowd(count: int, generator: Generator) -> tuple[Schema, Rows]:
        columns, signal, number, bounds = law(count, generator)
        s, table = (signal - middle) / spread, {}
        features: list[Numeric | Binary | Categorical] = []
        for key, (values, known) in columns.items():
            table[key] = np.clip(values, *known) if isinstance(known, tuple) else values
            if known is None:
                features.append(Binary(key))
            elif isinstance(known, list):
                features.append(Categorical(key, known))
            else:
                features.append(Numeric(key, *known))
        y: AnyArray
        if task == "number":
            y = np.clip(number, *bounds)
        elif task == "label":
            y = generator.random(count) < expit(1.2 * s - 0.4)
        else:
            rate = 2 * np.exp(0.5 * np.minimum(s, 5))
            y = np.minimum(generator.poisson(rate), MOST).astype(float)
        known = (0, MOST) if task == "count" else bounds
        target = Binary("y") if task == "label" else Numeric("y", *known)
        return Schema(features, target), Rows(pd.DataFrame(table), y)

    schema, tested = crowd(size, np.random.default_rng([*own, 1]))

    def rows(count: int, generator: Generator) -> Rows:
        return crowd(count, generator)[1]

    return People(name, task, schema, rows, tested)
