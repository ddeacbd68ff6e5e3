"""A made-up population: people, households and incomes drawn from a model stated below.

The 13 attributes of the paper's census records, with marital status told by two. Each is drawn
given those before it, so that the correlations have causes which can be read below:

    age → sex, birthplace → schooling → marriage → disability → children, relatives
        → home → years in it, automobiles → hours of work → income.

The rates were set by hand, as round numbers near the averages of the American Community Survey's
public file of 2024; no record of it is used, and effects on income are only plausible. So a model
learned here looks like one of a census, and is no evidence about a real population. For
demonstrations, tests and experiments: a seed reveals everything, which does no harm where nobody is
real.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from blurfit.arrays import FloatArray

BoolArray = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]

END_OF_LIFE = 96  # which nobody here reaches

# Ages at which the rates are stated; between them they change linearly.
AGES = (15, 20, 30, 40, 50, 60, 70, 80, 90, END_OF_LIFE)
YOUNGER = (0.00, 0.06, 0.19, 0.33, 0.47, 0.63, 0.80, 0.93, 0.985, 1.00)  # the share of people
FOREIGN_BORN = (0.05, 0.06, 0.12, 0.17, 0.17, 0.13, 0.10, 0.09, 0.09, 0.09)
NEVER_MARRIED = (1.00, 0.97, 0.53, 0.25, 0.14, 0.10, 0.07, 0.05, 0.03, 0.03)
STILL_MARRIED = (1.00, 0.95, 0.91, 0.86, 0.80, 0.75, 0.70, 0.60, 0.35, 0.20)  # of all who ever were
DISABLED = (0.08, 0.09, 0.09, 0.09, 0.12, 0.17, 0.23, 0.40, 0.66, 0.80)
CHILDREN = (1.00, 0.60, 0.80, 1.40, 0.75, 0.20, 0.10, 0.07, 0.05, 0.05)  # minors at home, the mean
RELATIVES = (1.90, 1.50, 0.55, 0.40, 0.55, 0.45, 0.30, 0.30, 0.40, 0.50)  # other adults, the mean
OWNERS = (0.77, 0.66, 0.60, 0.74, 0.80, 0.84, 0.87, 0.87, 0.82, 0.75)
WORKERS = (0.15, 0.72, 0.88, 0.87, 0.86, 0.74, 0.34, 0.12, 0.04, 0.01)
FULL_TIME = (0.02, 0.45, 0.85, 0.87, 0.87, 0.82, 0.42, 0.25, 0.20, 0.20)  # of those who work
LOG_WAGE = (2.10, 2.35, 2.90, 3.10, 3.16, 3.10, 2.95, 2.75, 2.60, 2.60)  # the hump

# The share of adults whose schooling ends at a level or below it, on the US census's scale from 1
# (none) to 24 (a doctorate); 16 is a high-school diploma and 21 a bachelor's degree.
SCHOOLING = {1: 0.01, 8: 0.02, 11: 0.03, 12: 0.04, 13: 0.055, 14: 0.075, 15: 0.09, 16: 0.33}
SCHOOLING |= {17: 0.37, 18: 0.44, 19: 0.57, 20: 0.66, 21: 0.86, 22: 0.96, 23: 0.98, 24: 1.00}

PENSION_AGE = 63
TOP_CODE = 2_000_000  # as a census publishes no income above some limit
TAIL_INDEX = 2.5  # the share of wages above w falls as w^−2.5: the heavy right tail


def draw_population(count: int, seed: int) -> dict[str, Column]:
    """`count` people who do not exist, as 14 columns; the rows are independent of one another.

    The same count and seed give the same people; another count gives others.
    """
    generator = np.random.default_rng(seed)

    def happens(probability: FloatArray) -> BoolArray:
        return generator.random(count) < probability

    age = np.floor(np.interp(generator.random(count), YOUNGER, AGES)).astype(np.uint8)
    male = happens(0.51 - 0.003 * np.maximum(age - 55.0, 0.0))
    foreign = happens(_by_age(FOREIGN_BORN)[age])

    rank = generator.standard_normal(count) - 0.3 * foreign
    education = _education(rank, age)
    learned = (education - 18.0) / 4.0  # in about standard deviations

    single = happens(_by_age(NEVER_MARRIED)[age])
    married = ~single & happens(_by_age(STILL_MARRIED)[age])
    disabled = happens(_by_age(DISABLED)[age] * (1.0 - 0.3 * learned))

    at_home = np.where(age < 23, 1.0, np.where(married, 1.25, 0.55))
    children = np.minimum(generator.poisson(_by_age(CHILDREN)[age] * at_home), 9)
    relatives = generator.poisson(_by_age(RELATIVES)[age] * np.where(married, 0.7, 1.1))
    family = np.minimum(1 + married + children + relatives, 12)

    comfort = 0.2 * (married - 0.5) + 0.06 * learned - 0.1 * foreign
    owns = happens(_by_age(OWNERS)[age] + comfort)
    stay = generator.standard_exponential(count) * np.where(owns, 3.0 + 0.22 * age, 4.0)
    drivers = 1.0 + married + np.minimum(relatives, 3)
    automobiles = np.minimum(generator.poisson(0.3 + 0.6 * drivers + 0.4 * owns), 6)

    works = happens(_by_age(WORKERS)[age] * (1.0 + 0.08 * learned) * (1.0 - 0.5 * disabled))
    full_time = happens(_by_age(FULL_TIME)[age] + 0.14 * (male - 0.5))
    hours = works * _hours(full_time, male, generator)

    log_wage = (
        _by_age(LOG_WAGE)[age]
        + 0.40 * learned
        + 0.28 * male
        + 0.10 * married
        + 0.12 * owns
        + 0.03 * automobiles
        - 0.15 * disabled
        - 0.05 * foreign
    )
    income = _earned(log_wage, hours, generator) + _unearned(age, learned, hours > 0, generator)

    columns: dict[str, Column] = {
        "age": age,
        "is_male": male,
        "is_single": single,
        "is_married": married,
        "education": education,
        "has_disability": disabled,
        "is_native_born": ~foreign,
        "hours_per_week": hours,
        "residence_years": np.minimum(stay, age),
        "owns_dwelling": owns,
        "family_size": family,
        "num_children": children,
        "num_automobiles": automobiles,
    }
    small = {name: column.astype(np.uint8) for name, column in columns.items()}
    income = np.minimum(10 * np.rint(income / 10), TOP_CODE)
    return small | {"annual_income": income.astype(np.int32)}


def _by_age(rates: Sequence[float]) -> FloatArray:
    """A table to be indexed by age, linear between the stated ages."""
    return np.interp(np.arange(END_OF_LIFE + 1), AGES, rates)


def _education(rank: FloatArray, age: Column) -> FloatArray:
    """The level at a normal rank among adults, as far as one's years allow: grade 9 at 15, a
    diploma at 18, a bachelor's degree at 22, a doctorate at 27.
    """
    levels, shares = np.array(list(SCHOOLING), dtype=np.float64), list(SCHOOLING.values())
    reached = levels[np.searchsorted(shares[:-1], ndtr(rank))]
    allowed = np.interp(age, (15, 18, 20, 22, 24, 27), (12, 16, 19, 21, 22, 24))
    return np.minimum(reached, np.floor(allowed))


def _hours(full_time: BoolArray, male: BoolArray, generator: np.random.Generator) -> FloatArray:
    """Most full-time workers say 40, some more; the others about 22. From 1 to 99."""
    count = len(male)
    usual = np.where(full_time, 44.0 + 3.0 * male, 22.0) + 10.0 * generator.standard_normal(count)
    forty = full_time & (generator.random(count) < 0.5)
    return np.where(forty, 40.0, np.clip(np.rint(usual), 1.0, 99.0))


def _earned(log_wage: FloatArray, hours: FloatArray, generator: np.random.Generator) -> FloatArray:
    """50 weeks of hours × wage, where luck in log-wage is normal plus exponential: its wages are
    lognormal in the middle and Paretian at the top.
    """
    count = len(hours)
    luck = 0.52 * generator.standard_normal(count)
    fortune = (generator.standard_exponential(count) - 1.0) / TAIL_INDEX
    return 50.0 * hours * np.exp(log_wage + luck + fortune)


def _unearned(
    age: Column, learned: FloatArray, works: BoolArray, generator: np.random.Generator
) -> FloatArray:
    """Pensions for nearly all of the old, benefits for some of those without work, else nothing."""
    count = len(age)
    old = age >= PENSION_AGE
    share = np.where(old, 0.96, np.where(works | (age < 18), 0.02, 0.45))
    receives = generator.random(count) < share
    size = np.where(old, 10.05 + 0.45 * learned, 9.1) + 0.75 * generator.standard_normal(count)
    return np.where(receives, np.exp(size), 0.0)
