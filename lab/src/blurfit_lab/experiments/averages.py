"""Means over trials, ratios and slopes: what plots and tables show of a CSV."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from blurfit_lab.experiments.trials import Row


@dataclass(frozen=True)
class Mean:
    """The mean over trials, its standard error, and their number."""

    value: float
    error: float
    trials: int


@dataclass(frozen=True)
class Key:
    """Which line, variant, ε and n."""

    line: str
    variant: str
    epsilon: float
    n: int


Means = Mapping[Key, Mean]


def means(rows: Iterable[Row]) -> dict[Key, Mean]:
    """Over trials, in the order of the rows."""
    values: dict[Key, list[float]] = {}
    for row in rows:
        values.setdefault(Key(row.line, row.variant, row.epsilon, row.n), []).append(row.value)
    return {
        key: Mean(
            float(np.mean(found)),
            float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else 0.0,
            len(found),
        )
        for key, found in values.items()
    }


def slope(points: Iterable[tuple[float, float]]) -> float:
    """The exponent k of y ∝ x^k by least squares in logarithms, where y > 0.

    >>> round(slope([(1, 8), (2, 4), (4, 2)]), 6)
    -1.0
    """
    positive = [(math.log(x), math.log(y)) for x, y in points if y > 0]
    x, y = np.array(positive).T
    return float(np.polyfit(x, y, 1)[0])


def power(n: int) -> str:
    """n as a power of two, if it is one: 2¹⁷."""
    exponent = n.bit_length() - 1
    if n != 2**exponent:
        return str(n)
    return "2" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
