"""Records, tampered contracts, and what would be blurred: for whoever checks it again."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from blurfit import Agreement, Binary, Categorical, Schema
from blurfit.contributor import noise


def on_grid(agreement: Agreement, records: Any) -> np.ndarray:
    """What is blurred, on the grid: the exact numbers of each part, rounded as it says."""
    exact = agreement.exact(records)
    return np.concatenate(
        [
            noise.to_grid(exact[..., part.numbers], part.step, toward_zero=part.toward_zero)
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

    columns = [*schema.features, schema.target]
    return [{column.name: value(column) for column in columns} for _ in range(count)]


def mutations(agreement: Agreement, count: int) -> list[dict[str, Any]]:
    """One field of the contract changed, a little or a lot, or made something else."""
    generator = np.random.default_rng(4)
    changes: list[Callable[[float], Any]] = [
        *(
            lambda one, by=by: one * by
            for by in (1 + 1e-12, 1 + 1e-8, 1 - 1e-8, 1 + 1e-6, 1 - 1e-6)
        ),
        *(lambda one, by=by: one * by for by in (0.5, 2, -1, 0, 1e300)),
        *(lambda _, to=to: to for to in (None, "0", [], {}, True, 1e-320)),
    ]
    found, text = [], json.dumps(agreement.to_dict())
    for _ in range(count):
        document = json.loads(text)
        holder: Any = document
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = keys[generator.integers(len(keys))]
            if not isinstance(holder[key], dict | list) or not holder[key]:
                break
            holder = holder[key]
        value, change = holder[key], changes[generator.integers(len(changes))]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        holder[key] = change(value if is_number else 1.0)
        found.append(document)
    return found
