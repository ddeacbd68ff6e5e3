"""Audit anybody's estimator: whatever is fitted like scikit-learn's and promises (ε, δ).

It is fitted again and again to each of two tables that differ in one row, and what it publishes
(`coef_` and `intercept_`, or the attributes that you name) goes to the attackers of
`blurfit_lab.audit.examination`. Nothing is known of how it works, so bounds are counted, never read
as Gaussian.

| pair | the one row | the others |
| --- | --- | --- |
| `target` | features at their highest, the target at its highest or its lowest | in the middle |
| `features` | features at their highest or lowest, the target at its highest | in the middle |
| `middle` | all at their highest, or in the middle as all others are | in the middle |
| `scale` | features at their highest or in the middle, the target in the middle | one like it |

`target` and `features` are neighbours that replace a row; `middle` is what leaving a row out does
where the middle counts as nothing. With labels, the others have both in turn. In `scale` only the
second moment of the features differs: it finds a diagonal without noise.

**People with several rows.** With `rows_each` every row of a pair stands so many times, and the
tables differ in all rows of one person. An estimator that promises to the person is told whose row
is whose, `fit(X, y, groups=...)`, and must keep its ε; one that is not told (`by_person=False`)
promises to a row, and m rows are found with up to √m times the μ.

Several pairs are several chances to be wrong: each bound is computed for its share of 1 −
confidence, so that all of them hold together with the confidence that is stated.
"""

import importlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone  # type: ignore[import-untyped]

from blurfit.data import FloatArray, IntArray
from blurfit.errors import InvalidValueError, NotPrivateWarning, one_of, whole
from blurfit_lab.audit import CONFIDENCE, PAIRS, TRIALS
from blurfit_lab.audit.agreements import audit
from blurfit_lab.audit.examination import Findings, nearest

PUBLISHED = ("coef_", "intercept_")
PILOT = 0.1  # as many fits more, for the attacker that looks at the shape


@dataclass(frozen=True, eq=False)
class Tables:
    """Two neighbouring tables, as rows X and targets y; `people` say whose row is whose."""

    name: str
    first: tuple[FloatArray, npt.NDArray[Any]]
    second: tuple[FloatArray, npt.NDArray[Any]]
    people: IntArray | None = None

    def __post_init__(self) -> None:
        (X, y), (other_X, other_y) = self.first, self.second
        if X.shape != other_X.shape or y.shape != other_y.shape or len(X) != len(y):
            raise InvalidValueError(
                f"Expected two tables of the same rows and columns, and got X {X.shape} and "
                f"{other_X.shape}, y {y.shape} and {other_y.shape}."
            )
        changed = (other_X != X).any(axis=1) | (y != other_y)
        whose = np.arange(len(X)) if self.people is None else self.people
        if len(np.unique(whose[changed])) != 1:
            raise InvalidValueError(
                "Expected neighbours: tables that differ in one row, or in the rows of one person, "
                f"and {int(changed.sum())} rows differ. An estimator promises nothing about others."
            )


@dataclass(frozen=True)
class Range:
    """What is publicly known of the tables: how many rows and columns, and the least and largest
    value of a feature and of the target; `labels` for the classes 0 and 1 in its place. With
    `rows_each` above 1 there are so many rows of each person, and `rows` people.
    """

    rows: int = 30
    columns: int = 1
    features: tuple[float, float] = (-1.0, 1.0)
    target: tuple[float, float] = (-1.0, 1.0)
    labels: bool = False
    rows_each: int = 1

    def __post_init__(self) -> None:
        whole(rows=self.rows, columns=self.columns, rows_each=self.rows_each)
        if self.rows < 4:
            raise InvalidValueError(
                f"Expected rows={self.rows} >= 4: one row that differs, and others."
            )
        for name, (low, high) in (("features", self.features), ("target", self.target)):
            if not low < high:
                raise InvalidValueError(f"Expected {name}=({low!r}, {high!r}) to be low < high.")


def pair_of(name: str, known: Range) -> Tables:
    """One of `PAIRS` within the public range."""
    one_of(PAIRS, pair=name)
    low, high = known.features
    bottom, top = (0.0, 1.0) if known.labels else known.target
    centre, half = (low + high) / 2, (bottom + top) / 2
    X, y = np.full((known.rows, known.columns), centre), np.full(known.rows, half)
    kind, each = np.int64 if known.labels else np.float64, known.rows_each
    if known.labels:
        y, half = np.arange(known.rows) % 2 * 1.0, bottom
    if name == "scale":
        X[1] = high  # so that the second moment is not zero without the one row
    still = top if known.labels else half
    pairs = {  # the one row's features and target in each of the two tables
        "target": ((high, top), (high, bottom)),
        "features": ((high, top), (low, top)),
        "middle": ((high, top), (centre, half)),
        "scale": ((high, still), (centre, still)),
    }
    tables = []
    for value, aim in pairs[name]:
        X[0], y[0] = value, aim
        tables.append((np.repeat(X, each, axis=0), np.repeat(y.astype(kind), each)))
    people = None if each == 1 else np.repeat(np.arange(known.rows), each)
    return Tables(name, tables[0], tables[1], people)


def load_estimator(where: str, parameters: Mapping[str, Any]) -> Any:
    """Return the estimator at "module:Name", made with these parameters."""
    module, _, name = where.partition(":")
    if not module or not name:
        raise InvalidValueError(
            f"Expected --of={where!r} to be module:Estimator, such as "
            "blurfit.estimators:MomentPerturbationRegressor."
        )
    try:
        family = getattr(importlib.import_module(module), name)
        return family(**parameters)
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidValueError(
            f"Expected --of={where!r} to be an estimator that can be imported and takes "
            f"{list(parameters)}: {error}"
        ) from error


def promise_of(estimator: Any) -> tuple[float, float]:
    """Return ε and δ as its own parameters say; δ is 0 where there is none."""
    parameters = estimator.get_params()
    if "epsilon" not in parameters:
        raise InvalidValueError(
            f"Expected {type(estimator).__name__} to have a parameter epsilon, and it has "
            f"{sorted(parameters)}: say what it promises."
        )
    return float(parameters["epsilon"]), float(parameters.get("delta", 0.0))


def audit_estimator(
    estimator: Any,
    pairs: Sequence[Tables],
    *,
    promise: tuple[float, float] | None = None,
    published: Sequence[str] = PUBLISHED,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    by_person: bool = True,
) -> Findings:
    """Return what an attacker finds in many fits to each table of each pair.

    The estimator has `fit` and `get_params`; it is cloned for every fit, and gets a fresh seed as
    `random_state` if it takes one. A `promise` of None reads its parameters `epsilon` and `delta`;
    `published` are the attributes that the world sees; `confidence` is that of all the bounds
    together; and fits are told whose row is whose, where people have several, if `by_person`.
    """
    epsilon, delta = promise_of(estimator) if promise is None else promise
    seeded = "random_state" in estimator.get_params()

    def release(table: tuple[Any, ...], generator: np.random.Generator) -> FloatArray:
        X, y, people = table
        groups = {} if people is None or not by_person else {"groups": people}
        model = clone(estimator)
        if seeded:
            model.set_params(random_state=int(generator.integers(2**31)))
        try:
            with warnings.catch_warnings():  # an audit's fits are seeded, and protect nobody
                warnings.simplefilter("ignore", NotPrivateWarning)
                model.fit(X, y, **groups)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise InvalidValueError(
                f"{model!r} could not be fitted to a table of {len(y)} rows: {error}"
            ) from error
        return np.concatenate([np.ravel(np.asarray(getattr(model, a))) for a in published])

    pilot = max(20, int(PILOT * trials))
    each = 1 - (1 - confidence) / max(1, len(pairs))
    found = Findings()
    for number, pair in enumerate(pairs):
        tables = [(*side, pair.people) for side in (pair.first, pair.second)]
        generator = np.random.default_rng([seed, number, pilot])  # for fits that are not counted
        sides = [np.array([release(one, generator) for _ in range(pilot)]) for one in tables]
        told = audit(
            release,
            *tables,
            epsilon=epsilon,
            delta=delta,
            trials=trials,
            confidence=each,
            seed=seed,
            attacks={"nearest": nearest(*sides)},
            name="model",
        )
        found.append(replace(told, pair=pair.name))
    return found
