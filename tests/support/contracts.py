"""Records, tampered contracts, and what would be blurred: for whoever checks it again."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from blurfit import Agreement, Binary, Categorical, Schema
from blurfit import randomness as noise


def on_grid(agreement: Agreement, records: Any) -> np.ndarray:
    """What is blurred, on the grid: the exact numbers of each part, rounded as it says."""
    exact = agreement.exact(records)
    return np.concatenate(
        [
            noise.to_grid(exact[..., part.numbers], part.step, toward_zero=False)
            for part in agreement.parts
        ],
        axis=-1,
    )


def table_of(records: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Records as a table, whose columns are computed at once."""
    return {name: np.array([one[name] for one in records]) for name in records[0]}


def deviations(agreement: Agreement) -> np.ndarray:
    return np.concatenate([part.deviations for part in agreement.parts])


def steps(agreement: Agreement) -> np.ndarray:
    return np.concatenate([np.full(len(part.deviations), part.step) for part in agreement.parts])


def records(schema: Schema, count: int) -> list[dict[str, Any]]:
    """Some at the bounds, some outside where that is allowed, most anywhere."""
    generator = np.random.default_rng(1)

    def value(column: Any) -> Any:
        if isinstance(column, Binary):
            return bool(generator.integers(2))
        if isinstance(column, Categorical):
            return str(generator.choice(column.levels))
        width = column.upper - column.lower
        if generator.random() < 0.2:
            return float(generator.choice([column.lower, column.upper]))
        reach = 0.0 if column.outside == "refuse" else 0.3
        return float(
            min(max(column.lower + width * generator.uniform(-reach, 1 + reach), -1e300), 1e300)
        )

    return [{column.name: value(column) for column in schema.asked} for _ in range(count)]


CHANGES: list[Callable[[float], Any]] = [
    *(lambda one, by=by: one * by for by in (1 + 1e-12, 1 + 1e-8, 1 - 1e-8, 1 + 1e-6, 1 - 1e-6)),
    *(lambda one, by=by: one * by for by in (0.5, 2, -1, 0, 1e300)),
    *(lambda _, to=to: to for to in (None, "0", [], {}, True, 1e-320)),
]


def mutations(agreement: Agreement, count: int) -> list[dict[str, Any]]:
    """One field of the contract changed, a little or a lot, or made something else: each number of
    noise, promises and step in each of these ways, and so many fields anywhere.
    """
    text = json.dumps(agreement.to_dict())
    original = json.loads(text)
    paths = [path for part in ("calibration", "step") for path in _numbers((part,), original[part])]
    wanted = [(path, change) for path in paths for change in CHANGES]
    generator = np.random.default_rng(4)
    for _ in range(count):
        path, value = (), original
        while isinstance(value, dict | list) and value:
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            path = (*path, keys[generator.integers(len(keys))])
            value = value[path[-1]]
        wanted.append((path, CHANGES[generator.integers(len(CHANGES))]))
    return [_changed(json.loads(text), path, change) for path, change in wanted]


def _numbers(path: tuple[Any, ...], value: Any) -> list[tuple[Any, ...]]:
    """Where there are numbers in it."""
    if isinstance(value, dict):
        return [found for key, one in value.items() for found in _numbers((*path, key), one)]
    return [path] if _is_number(value) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _changed(
    document: dict[str, Any], path: tuple[Any, ...], change: Callable[[float], Any]
) -> dict[str, Any]:
    *holders, last = path
    holder: Any = document
    for key in holders:
        holder = holder[key]
    holder[last] = change(holder[last] if _is_number(holder[last]) else 1.0)
    return document
