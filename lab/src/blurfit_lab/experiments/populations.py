"""Populations that differ in what real tables differ in, for experiments on public defaults.

Stated bounds that are tight or ten times too wide, tails, rare answers, correlation, curvature,
uneven spread. A population's law (coefficients, centres, scales) follows from its name and its
number of columns alone; rows follow from a seed as well. A law is written in three steps:

    d ─ columns ─► X in [−1, 1], signal ─ standardised ─► s ─ answer ─► a number, a label or a count

`CHOICES` may be looked at while a rule is chosen. **`ASIDE` may not**: these populations are
different in kind, were written before any rule was changed, and are run once, at the end. `survey`,
`fulton` and `adult` are real people (`blurfit_lab.datasets`), of which the last rows are kept for
testing; of the small sets of `UCI_SETS` four fifths are learned from, another part for each seed.
Any name may end in `-loose` or `-wide`: the same people, whose numbers have stated bounds three or
ten times as wide.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit

from blurfit import Binary, Categorical, Numeric, Schema
from blurfit.data import AnyArray, FloatArray
from blurfit_lab.datasets import UCI_SETS, load_acs, load_adult, load_fulton, load_uci

Task = Literal["number", "label", "count"]
Generator = np.random.Generator
TESTED = 2**16  # rows to test on
REFERENCE = 2**15  # rows by which a signal is standardised


class Rows(NamedTuple):
    """A table of features, and the target: a number, True or False, or a count."""

    X: pd.DataFrame
    y: AnyArray

    def at(self, places: Any) -> "Rows":
        """Return some of them."""
        return Rows(self.X.iloc[places].reset_index(drop=True), self.y[places])


class Columns(NamedTuple):
    """Features in [−1, 1], the signal in them, and those that are levels rather than numbers."""

    X: FloatArray
    signal: FloatArray
    levels: Mapping[str, AnyArray] = {}


# From d, what draws the law's own constants, the number of rows, and what draws these.
Law = Callable[[int, Generator, int, Generator], Columns]
Answer = Callable[[FloatArray, Generator], AnyArray]  # from a standardised signal


@dataclass(frozen=True)
class Recipe:
    """How a population is made, before its number of columns is known."""

    law: Law
    answer: Answer
    binary: bool = False  # columns are yes or no
    strays: float = 0.0  # share of people who are anywhere at the bounds, answer included
    most: int = 0  # the largest count


@dataclass(frozen=True, eq=False)
class People:
    """A population with a schema, from which any number of rows can be drawn."""

    name: str
    task: Task
    schema: Schema
    _draw: Callable[[int, Generator], Rows]
    tested: Rows
    rows: int | None = None  # how many there are to learn from; None: as many as one likes
    divided: bool = False  # all rows are in `tested`, and `split` divides them

    def draw(self, count: int, seed: int) -> Rows:
        """Rows to learn from, none of which is tested on."""
        columns = len(self.schema.features)
        return self._draw(count, _generator(self.name, self.task, columns, count, seed))

    def split(self, count: int, seed: int) -> tuple["People", Rows]:
        """Rows to learn from, beside whom to test on: of a small set, who is left by this seed."""
        if not self.divided:
            return self, self.draw(count, seed)
        order = _generator(self.name, seed).permutation(len(self.tested.y))
        rows, rest = map(self.tested.at, np.split(order, [count]))
        return replace(self, tested=rest), rows

    @classmethod
    def of_all(cls, name: str, task: Task, schema: Schema, rows: Rows, kept: int) -> "People":
        """All rows of a small set, of which `split` keeps so many to learn from."""
        return cls(name, task, schema, lambda *_: rows, rows, kept, divided=True)


# ---- laws of features, each with its signal


def _spread(
    scale: float, placed: float, d: int, constants: Generator, n: int, generator: Generator
) -> Columns:
    """Gaussian columns of one spread, whose centres are placed within so much of the middle."""
    slope, centre = constants.normal(size=d), constants.uniform(-placed, placed, d)
    white = generator.normal(size=(n, d))
    return Columns(centre + scale * white, white @ slope)


def _linear(
    law: Callable[[int, int, Generator], FloatArray],
    d: int,
    constants: Generator,
    n: int,
    generator: Generator,
) -> Columns:
    """Columns of any law, and a signal that is linear in what the bounds leave of them."""
    X = np.clip(law(n, d, generator), -1, 1)
    return Columns(X, X @ constants.normal(size=d))


def _products(n: int, d: int, generator: Generator) -> FloatArray:
    """Columns and their products as columns of their own."""
    k = max(2, int((np.sqrt(8 * d + 1) - 1) / 2))
    first = generator.uniform(-1, 1, (n, k))
    a, b = np.triu_indices(k, 1)
    X = np.hstack([first, first[:, a] * first[:, b]])[:, :d]
    return np.hstack([X, generator.uniform(-1, 1, (n, d - X.shape[1]))])


def _incomes(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Lognormal columns of 0 to 20 medians, all of which raise the signal."""
    slope = np.abs(constants.normal(size=d))
    X = np.clip(np.exp(0.8 * generator.normal(size=(n, d))) / 10 - 1, -1, 1)
    return Columns(X, X @ slope)


def _conditioned(
    number: float, d: int, constants: Generator, n: int, generator: Generator
) -> Columns:
    """Gaussian columns of this condition number, with a signal in every direction."""
    turn = np.linalg.qr(constants.normal(size=(d, d)))[0]
    values = np.geomspace(1, 1 / number, d)
    root = 0.3 * np.sqrt(values * d / values.sum())
    slope = constants.normal(size=d)
    white = generator.normal(size=(n, d))
    return Columns((white * root) @ turn.T, white @ slope)


# ---- laws of features that are kept aside


def _panel(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Answers from 1 to 5, of a few attitudes that make them alike."""
    attitudes = max(1, d // 5)
    loading = constants.normal(size=(attitudes, d)) + 0.5
    slope, shift = constants.normal(size=d), constants.uniform(-0.8, 0.8, d)
    latent = generator.normal(size=(n, attitudes)) @ loading / np.sqrt(attitudes)
    answer = np.clip(np.rint(3 + shift + latent + 0.7 * generator.normal(size=(n, d))), 1, 5)
    X = (answer - 3) / 2
    return Columns(X, X @ slope + 0.5 * X[:, 0] * X[:, -1])


def _seasons(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Hats over the year, of which two are not 0, and use that falls off over the columns left."""
    hats = max(1, d // 2)
    slope, wave = constants.normal(size=d), constants.uniform(1, 3)
    time = generator.beta(1.3, 1.8, n)
    knots = np.arange(hats) / hats  # the last hat is left to the constant
    hat = np.clip(1 - hats * np.abs(time[:, None] - knots), 0, 1)
    use = generator.exponential(size=(n, 1)) * generator.random((n, d - hats)) ** 3
    X = np.hstack([hat, np.clip(use / 4, 0, 1)])
    return Columns(X, X @ slope + 0.3 * np.sin(wave * 2 * np.pi * time))


def _cohorts(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Two kinds of people, one in seven of the second, with other places, scales and slopes."""
    slope = constants.normal(size=(2, d))
    slope[1, ::2] = -slope[0, ::2]
    centre = constants.uniform(-0.5, 0.5, (2, d))
    scale = np.array([[0.05], [0.2]]) * constants.uniform(0.5, 1.5, (2, d))
    kind = (generator.random(n) < 1 / 7).astype(int)
    X = centre[kind] + scale[kind] * generator.laplace(size=(n, d))
    X = np.clip(X, -1, 1)
    return Columns(X, np.sum(slope[kind] * (X - centre[kind]) / scale[0], axis=1))


def _towns(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Towns of Zipf's law, four trades, and amounts that are mostly 0 in bounds too wide."""
    towns = max(3, d // 2)
    share = 1 / np.arange(1, towns + 1)
    of_town, of_trade = constants.normal(size=towns), constants.normal(size=4)
    amounts = max(1, d - towns - 2)
    slope = np.abs(constants.normal(size=amounts))
    town = generator.choice(towns, n, p=share / share.sum())
    trade = generator.choice(4, n, p=[0.5, 0.3, 0.17, 0.03])
    some = generator.random((n, amounts)) < 0.3
    X = np.clip(some * np.exp(generator.normal(size=(n, amounts)) - 3), 0, 1)
    signal = of_town[town] + of_trade[trade] + 20 * X @ slope / np.sqrt(amounts)
    names = np.array([f"t{place}" for place in range(towns)])
    levels = {"town": names[town], "trade": np.array(["a", "b", "c", "e"])[trade]}
    return Columns(np.asarray(X, dtype=float), signal, levels)


def _visits(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Counts of visits, most of them 0, of people who go everywhere or nowhere."""
    rate, slope = constants.uniform(0.1, 2, d), constants.normal(size=d)
    habit = generator.gamma(0.7, 1 / 0.7, size=(n, 1))
    X = np.clip(generator.poisson(habit * rate, (n, d)), 0, 20) / 10 - 1
    return Columns(X, X @ slope)


def _sensors(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Neighbouring columns of correlation 0.9, anywhere in bounds four times too wide."""
    centre, slope = constants.uniform(-0.6, 0.6, d), constants.normal(size=d)
    white = generator.normal(size=(n, d))
    for place in range(1, d):
        white[:, place] = 0.9 * white[:, place - 1] + np.sqrt(0.19) * white[:, place]
    return Columns(centre + 0.08 * white, white @ slope + 0.3 * white[:, 0] ** 2)


def _trades(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Skills of three trades, some with long tails, and rare certificates of 0 or 1."""
    centre, slope = constants.uniform(-0.4, 0.4, (3, d)), constants.normal(size=d)
    share, rare = constants.dirichlet([4, 2, 1]), np.arange(d) % 3 == 0
    trade = generator.choice(3, n, p=share)
    X = centre[trade] + 0.1 * generator.standard_t(4, (n, d))
    X[:, rare] = generator.random((n, int(rare.sum()))) < 0.04
    return Columns(np.clip(X, -1, 1), np.clip(X, -1, 1) @ slope)


def _tariffs(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Ages of a beta law, marks from 1 to 5, and contracts that every fifth person has."""
    kind, slope = constants.permutation(np.arange(d) % 3), constants.normal(size=d)
    shape = constants.uniform(1.5, 5, (2, d))
    taste = generator.normal(size=(n, 1))
    ages = generator.beta(shape[0], shape[1], (n, d))
    marks = np.clip(np.rint(3.4 + 0.8 * taste + 0.9 * generator.normal(size=(n, d))), 1, 5) / 5
    contracts = generator.random((n, d)) < 0.2
    X = 2 * np.choose(kind, [ages, marks, contracts]) - 1
    return Columns(np.asarray(X, dtype=float), X @ slope + 0.3 * X[:, 0] * X[:, -1])


def _households(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Members by age, rooms and cars that go with them, and incomes that share what they have."""
    rate, slope = constants.uniform(0.2, 1.5, d), constants.normal(size=d)
    money = np.arange(d) % 4 == 3
    size = generator.gamma(3, 1 / 3, (n, 1))
    members = generator.poisson(size * rate, (n, d)) / 12
    wealth = np.exp(0.7 * generator.normal(size=(n, 1)) + 0.5 * generator.normal(size=(n, d)))
    X = np.clip(np.where(money, wealth / 25, members), 0, 1)
    return Columns(X, X @ (slope / np.where(money, 0.05, 0.09)))


def _lanes(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Sensors that are on or off with some noise, and narrow ones that are far from the middle."""
    narrow, centre = np.arange(d) % 2 == 1, constants.uniform(-0.8, 0.8, d)
    slope, share = constants.normal(size=d), constants.uniform(0.3, 0.7, d)
    on = np.where(generator.random((n, d)) < share, 0.6, -0.6)
    X = np.where(narrow, centre + 0.05 * generator.uniform(-1, 1, (n, d)), on)
    X = np.clip(X + 0.05 * generator.normal(size=(n, d)), -1, 1)
    return Columns(X, np.tanh((X - centre) @ slope / np.sqrt(d)))


def _ledgers(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Shares of a beta law, one of which was mistyped in every fiftieth row: it is at its bound."""
    shape, slope = constants.uniform(1.5, 6, (2, d)), constants.normal(size=d)
    meant = 2 * generator.beta(shape[0], shape[1], (n, d)) - 1
    typed, wrong = meant.copy(), generator.random(n) < 0.02
    typed[wrong, generator.integers(0, d, int(wrong.sum()))] = 1.0
    return Columns(typed, meant @ slope)


def _shops(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Sales that grow with the size of a shop; one in 200 is a chain, 15 times larger."""
    slope = np.abs(constants.normal(size=d))
    size = np.exp(0.4 * generator.normal(size=(n, 1)))
    size *= np.where(generator.random((n, 1)) < 0.005, 15.0, 1.0)
    X = np.clip(0.03 * size * generator.gamma(2, 0.5, (n, d)), 0, 1)
    return Columns(X, np.sqrt(X) @ slope)


def _wards(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Findings that 2 % to half of the people have, and marks from 0 to 10 around a few."""
    share, middle = constants.uniform(0.02, 0.5, d), constants.uniform(2, 8, d)
    slope, found = constants.normal(size=d), np.arange(d) % 2 == 0
    frail = generator.normal(size=(n, 1))
    marks = np.clip(np.rint(middle + 0.8 * frail + 1.2 * generator.normal(size=(n, d))), 0, 10)
    X = np.where(found, generator.random((n, d)) < share, marks / 10)
    return Columns(X, X @ (slope / np.where(found, np.sqrt(share * (1 - share)), 0.14)))


def _tidal(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Angles, whose cosines are most often at their ends; the mean is a line of them."""
    X = np.cos(np.pi * generator.random((n, d))) * constants.uniform(0.2, 1, d)
    return Columns(X, X @ constants.normal(size=d))


def _queues(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Waiting times on busy and on quiet days, on which they mean different things."""
    busy, slope = generator.random((n, 1)) < 0.3, constants.normal(size=(2, d))
    X = np.clip(generator.exponential(np.where(busy, 0.3, 0.1), (n, d)), 0, 1)
    return Columns(X, np.where(busy[:, 0], X @ slope[0] / 3, X @ slope[1]))


def _budgets(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Shares of what people spend, which sum to less than 1: the largest is near a half."""
    size, slope = constants.gamma(1.0, size=d + 1) + 0.1, constants.normal(size=d)
    spent = generator.gamma(5 * size, size=(n, d + 1))
    X = spent[:, :d] / spent.sum(axis=1, keepdims=True)
    return Columns(X, np.log(X + 0.01) @ slope)


def _routes(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Travel times that one jam delays all of; whoever takes longer than the bound is at it."""
    slope, shape = constants.normal(size=d), constants.uniform(0.8, 2, d)
    jam = np.exp(0.5 * generator.normal(size=(n, 1)))
    X = np.clip(0.3 * jam * generator.weibull(shape, (n, d)), 0, 1)
    return Columns(X, X @ slope)


def _alloys(d: int, constants: Generator, n: int, generator: Generator) -> Columns:
    """Measurements in a seventh of their bounds, most of them alike, and marks of one in ten."""
    mark, centre = np.arange(d) % 4 == 1, constants.uniform(-0.7, 0.7, d)
    slope = constants.normal(size=d)
    batch, own = generator.normal(size=(n, 1)), generator.normal(size=(n, d))
    X = np.where(mark, own + 0.5 * batch > 1.4, centre + 0.1 * batch + 0.06 * own)
    return Columns(np.clip(X, -1, 1), X @ (slope / np.where(mark, 0.3, 0.1)))


# ---- answers


def _number(share: float = 0.5, spread: float = 0.3, centre: float = 0.0) -> Answer:
    """A share of the variance is the signal's, the rest is Gaussian."""

    def answer(s: FloatArray, generator: Generator) -> FloatArray:
        noise = generator.normal(size=len(s))
        return np.asarray(centre + spread * (np.sqrt(share) * s + np.sqrt(1 - share) * noise))

    return answer


def _label(probability: Callable[[FloatArray], FloatArray]) -> Answer:
    return lambda s, generator: generator.random(len(s)) < probability(s)


def _curve(shift: float = 0.0, slope: float = 1.5) -> Answer:
    """The logistic curve: the model is true."""
    return _label(lambda s: expit(shift + slope * s))


def _step(low: float, high: float, where: float = 0.0) -> Answer:
    """Two probabilities and nothing between: no curve."""
    return _label(lambda s: np.where(s > where, high, low))


def _count(
    most: int, rate: float, spread: float = 0.0, zeros: float = 0.0, slope: float = 0.5
) -> Answer:
    """Poisson; with `spread` its rate is gamma beside, and `zeros` of all people have none."""

    def answer(s: FloatArray, generator: Generator) -> FloatArray:
        mean = rate * np.exp(slope * s)
        if spread:
            mean = mean * generator.gamma(1 / spread, spread, len(s))
        found = generator.poisson(np.minimum(mean, 1e6)) * (generator.random(len(s)) >= zeros)
        return np.minimum(found, most).astype(float)

    return answer


_GAUSS, _LOOSE = partial(_spread, 0.35, 0.0), partial(_spread, 0.033, 0.5)
_HEAVY = partial(_linear, lambda n, d, rng: rng.standard_t(2.5, (n, d)) / 40)
_AGES = partial(_linear, lambda n, d, rng: rng.uniform(20, 60, (n, d)) / 60 - 1)  # of 0 to 120
_RARE = partial(_linear, lambda n, d, rng: np.where(rng.random((n, d)) < 0.01, 1.0, -1.0))
_AMOUNTS = partial(
    _linear, lambda n, d, rng: 2 * (rng.random((n, d)) < 0.05) * rng.random((n, d)) - 1
)
# Kept aside: a frailty that raises all values, one angle in every column, blocs that vote alike.
_CLINICS = partial(
    _linear, lambda n, d, rng: rng.gamma(1 + rng.exponential(size=(n, 1)), size=(n, d)) / 5 - 1
)
_TIDES = partial(
    _linear,
    lambda n, d, rng: rng.random((n, 1)) * np.cos(6.3 * rng.random((n, 1)) * range(1, d + 1)),
)
_BLOCS = partial(
    _linear,
    lambda n, d, rng: np.sign(rng.choice([0.05, 0.3, 0.9], (n, 1)) - rng.random((n, d))),
)


def _skewed(s: FloatArray, rng: Generator) -> FloatArray:
    """Amounts whose upper bound is fifty times the median."""
    return np.asarray(np.exp(0.5 * s + 0.6 * rng.normal(size=len(s))) / 25 - 1)


def _uneven(s: FloatArray, rng: Generator) -> FloatArray:
    """A linear mean, whose errors are larger the further the signal is from its middle."""
    return np.asarray(0.2 * s + 0.14 * np.abs(s) * rng.normal(size=len(s)))


def _gamma(s: FloatArray, rng: Generator) -> FloatArray:
    """Noise of the signal's own size, of a skewed law."""
    noise = 0.15 * np.exp(0.4 * s) * (rng.gamma(2, size=len(s)) - 2)
    return np.asarray(0.15 * s - 0.3 + noise)


_FEATURES: dict[str, Recipe] = {
    "gauss": Recipe(_GAUSS, _number()),
    "weak": Recipe(_GAUSS, _number(0.02)),
    "strong": Recipe(_GAUSS, _number(0.98)),
    "loose": Recipe(_LOOSE, _number(spread=0.033, centre=0.25)),
    "looseX": Recipe(_LOOSE, _number()),
    "looseY": Recipe(_GAUSS, _number(spread=0.033, centre=0.25)),
    "age": Recipe(_AGES, _number(spread=0.15, centre=-0.6)),
    "heavy": Recipe(_HEAVY, _number()),
    "lognormal": Recipe(  # 0 to 20 medians: the mean is curved, and the spread is uneven
        _incomes, lambda s, rng: np.exp(0.6 * s + 0.5 * rng.normal(size=len(s))) / 10 - 1
    ),
    "sparse": Recipe(_AMOUNTS, _number()),
    "cond10": Recipe(partial(_conditioned, 10.0), _number()),
    "cond1000": Recipe(partial(_conditioned, 1000.0), _number()),
    "rare": Recipe(_RARE, _number(), binary=True),
    "outliers": Recipe(partial(_spread, 0.1, 0.0), _number(spread=0.1), strays=0.01),
    "inter": Recipe(partial(_linear, _products), _number()),
}
FIFTEEN = tuple(_FEATURES)
_ALIKE = ("weak", "strong", "looseY")  # other numbers, and the same features as `gauss`
CHOICES: dict[Task, dict[str, Recipe]] = {
    "number": {**_FEATURES, "uneven": Recipe(_GAUSS, _uneven)},
    "label": {
        **{
            name: replace(recipe, answer=_curve())
            for name, recipe in _FEATURES.items()
            if name not in _ALIKE
        },
        "few": Recipe(_GAUSS, _curve(-4.6)),
        "steps": Recipe(_GAUSS, _step(0.15, 0.85)),
        "cauchy": Recipe(_HEAVY, _label(lambda s: 0.5 + np.arctan(3 * (s - 0.5)) / np.pi)),
        # most likely in the middle of the upper half: it falls again
        "hump": Recipe(_incomes, _label(lambda s: 0.1 + 0.7 * np.exp(-((s - 0.8) ** 2)))),
    },
    "count": {
        "poisson": Recipe(_GAUSS, _count(20, 2.0), most=20),
        "overdispersed": Recipe(_GAUSS, _count(60, 4.0, spread=0.7), most=60),
        "zeros": Recipe(partial(_linear, _products), _count(20, 2.0, zeros=0.3), most=20),
        "age": Recipe(_AGES, _count(20, 2.0), most=20),
        "loose": Recipe(_LOOSE, _count(100, 2.0), most=100),
        "rare": Recipe(_RARE, _count(20, 2.0), binary=True, most=20),
        "sparse": Recipe(_AMOUNTS, _count(20, 2.0), most=20),
    },
}
ASIDE: dict[Task, dict[str, Recipe]] = {
    "number": {
        "panel": Recipe(  # a whole number from 0 to 10, with many at its upper end
            _panel,
            lambda s, rng: (
                np.clip(np.rint(7.5 + 1.6 * s + 1.2 * rng.standard_t(5, len(s))), 0, 10) / 5 - 1
            ),
        ),
        "seasons": Recipe(_seasons, _gamma),
        "cohorts": Recipe(_cohorts, _number(0.6, 0.12, -0.3)),
        "towns": Recipe(_towns, _skewed),
        "visits": Recipe(_visits, _skewed),
        "sensors": Recipe(_sensors, _number(0.7, 0.08, 0.3)),
        "trades": Recipe(_trades, _uneven),
        "tariffs": Recipe(  # gamma, in bounds that reach far beyond most people
            _tariffs, lambda s, rng: 0.02 * np.exp(0.5 * s) * rng.gamma(4, size=len(s)) - 1
        ),
        "households": Recipe(  # errors with the tails of t(4), a third of the bounds wide
            _households, lambda s, rng: 0.2 + 0.12 * s + 0.06 * rng.standard_t(4, len(s))
        ),
        "lanes": Recipe(_lanes, _number(0.8, 0.2, -0.1)),
        "ledgers": Recipe(_ledgers, _number(0.6, 0.25, 0.1)),
        "shops": Recipe(_shops, _gamma),
        "wards": Recipe(_wards, _number(0.9, 0.08, 0.5)),
        "floods": Recipe(_tidal, _number(0.95, 0.4, 0.2)),  # much to learn from few
        "queues": Recipe(_queues, _skewed),
        "berths": Recipe(_tidal, lambda s, rng: np.where(s + rng.normal(size=len(s)) > 1, 0.6, -1)),
        "budgets": Recipe(
            _budgets, lambda s, rng: 0.3 * np.tanh(s) + 0.1 * rng.laplace(size=len(s))
        ),
        "routes": Recipe(_routes, _gamma),
        "alloys": Recipe(_alloys, _number(0.85, 0.05, -0.4)),
    },
    "label": {
        "panel": Recipe(_panel, _step(0.3, 0.9, -0.5)),
        "seasons": Recipe(_seasons, _label(lambda s: expit(2 * np.sin(s) - 1))),
        "cohorts": Recipe(_cohorts, _label(lambda s: expit(np.sign(s) * s**2 / 2))),
        "towns": Recipe(_towns, _curve(-2.5, 1.0)),
        "clinics": Recipe(_CLINICS, _curve(-3.0, 1.2)),
        "tides": Recipe(_TIDES, _label(lambda s: 0.02 + 0.5 * expit(3 * s))),
        "blocs": Recipe(_BLOCS, _label(lambda s: -np.expm1(-np.exp(0.8 * s - 0.5))), binary=True),
        "budgets": Recipe(_budgets, _label(lambda s: 0.05 + 0.9 * expit(2 * s))),
        "routes": Recipe(_routes, _curve(-2.0, 1.5)),
        "alloys": Recipe(_alloys, _step(0.1, 0.7, 0.5)),
    },
    "count": {
        "panel": Recipe(_panel, _count(30, 3.0, spread=0.3), most=30),
        "towns": Recipe(_towns, _count(50, 1.0, zeros=0.2, slope=0.7), most=50),
        "clinics": Recipe(_CLINICS, _count(40, 1.5, spread=0.5), most=40),
        "tides": Recipe(_TIDES, _count(30, 5.0, slope=0.3), most=30),
        "blocs": Recipe(_BLOCS, _count(25, 0.7, slope=0.6), binary=True, most=25),
        "budgets": Recipe(_budgets, _count(15, 1.0, slope=0.4), most=15),
        "routes": Recipe(_routes, _count(40, 3.0, spread=0.4), most=40),
        "alloys": Recipe(_alloys, _count(30, 2.0, zeros=0.15), most=30),
    },
}
# Real people, with how many columns they have.
REAL: dict[Task, dict[str, int]] = {
    "number": {"survey": 13, "survey-loose": 13, "fulton": 14, "adult": 11},
    "label": {"survey": 13, "survey-loose": 13, "fulton": 14, "adult": 12},
    "count": {},
}


@lru_cache(maxsize=4)
def people(name: str, task: Task, d: int) -> People:
    """Return the population of this name; real ones have the columns that they have."""
    base, _, bounds = name.partition("-")
    if bounds:
        found = people(base, task, d)
        features = tuple(_wider(one, WIDER[bounds]) for one in found.schema.features)
        schema = Schema(features, _wider(found.schema.target, WIDER[bounds]))
        return replace(found, name=name, schema=schema)
    if name in UCI_SETS:
        census = load_uci(name)
        _, (X, y) = rows_of(census.table, census.schema)
        whole = Rows(X.astype(float), y)
        return People.of_all(name, "number", census.schema, whole, 4 * len(y) // 5)
    if name in REAL[task]:
        return _real(name, task)
    recipe = (CHOICES[task] | ASIDE[task])[name]

    def columns(count: int, generator: Generator) -> Columns:
        return recipe.law(d, _generator(name, d), count, generator)

    reference = columns(REFERENCE, _generator(name, d, "reference")).signal
    middle, spread = float(reference.mean()), float(reference.std())

    def rows(count: int, generator: Generator) -> Rows:
        X, signal, levels = columns(count, generator)
        y = recipe.answer((signal - middle) / spread, generator)
        if recipe.strays:
            stray = generator.random(count) < recipe.strays
            X[stray] = np.sign(generator.normal(size=(int(stray.sum()), X.shape[1])))
            yes = generator.random(int(stray.sum())) < 0.5
            y[stray] = yes if task == "label" else np.where(yes, 1.0, -1.0)
        if task == "number":
            y = np.clip(y, -1, 1)
        table = {f"x{place}": column for place, column in enumerate(np.clip(X, -1, 1).T)}
        if recipe.binary:
            table = {key: column > 0 for key, column in table.items()}
        return Rows(pd.DataFrame({**table, **levels}), y)

    tested = rows(TESTED, _generator(name, task, d, "tested"))
    known = (0, recipe.most) if task == "count" else (-1, 1)
    target = Binary("y") if task == "label" else Numeric("y", *known)
    features = tuple(_stated(str(key), column) for key, column in tested.X.items())
    return People(name, task, Schema(features, target), rows, tested)


def _stated(name: str, column: pd.Series) -> Numeric | Binary | Categorical:
    """State what everyone knows: [−1, 1], yes or no, or which levels there are."""
    if column.dtype == bool:
        return Binary(name)
    return Numeric(name, -1, 1) if column.dtype == float else Categorical(name, sorted({*column}))


def _real(name: str, task: Task) -> People:
    """Incomes of the American Community Survey or of Fulton County; Adult's label, or hours."""
    census = {"survey": load_acs, "fulton": load_fulton, "adult": load_adult}[name]()
    schema = census.label_schema if name != "adult" and task == "label" else census.schema
    if name == "adult" and task == "number":
        *others, hours = sorted(schema.features, key=lambda one: one.name == "hours_per_week")
        schema = Schema(others, hours)
    schema, whole = rows_of(census.table, schema)
    kept = len(whole.y) - min(TESTED, len(whole.y) // 3)

    def rows(count: int, generator: Generator) -> Rows:
        return whole.at(generator.choice(kept, count, replace=False))

    return People(name, task, schema, rows, whole.at(slice(kept, None)), kept)


def rows_of(table: Any, schema: Schema) -> tuple[Schema, Rows]:
    """Return a table's rows, the target within its bounds, yes and no and labels as True and False;
    and the schema, in which a label is a yes or no.
    """
    X = pd.DataFrame({one.name: np.asarray(table[one.name]) for one in schema.features})
    X = X.astype({one.name: bool for one in schema.features if isinstance(one, Binary)})
    target, y = schema.target, np.asarray(table[schema.target.name])
    if isinstance(target, Numeric):
        return schema, Rows(X, np.clip(y.astype(float), *ends(target)))
    return Schema(schema.features, Binary(target.name)), Rows(X, target.scale(y) > 0)


def ends(column: Any) -> tuple[float, float]:
    """Return the bounds of a number; those of anything else are 0 and 1."""
    return (column.lower, column.upper) if isinstance(column, Numeric) else (0.0, 1.0)


WIDER = {"loose": 3.0, "wide": 10.0}


def _wider(column: Any, times: float) -> Any:
    """The same column with bounds that are so many times as wide."""
    if not isinstance(column, Numeric):
        return column
    more = (times - 1) / 2 * (column.upper - column.lower)
    return Numeric(column.name, column.lower - more, column.upper + more)


def _generator(*words: object) -> Generator:
    return np.random.default_rng([zlib.crc32(str(word).encode()) for word in words])
