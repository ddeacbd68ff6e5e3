"""Attacks on the rivals through their public interface: none breaks its promise, and the model
without privacy is caught.

Each release is the coefficients (and the intercept, if there is one) of a fit to one of two tables
that differ in one row: the neighbours that every rival is asked to protect.
"""

import numpy as np
import pytest

from blurfit import baselines
from blurfit.audit.findings import audit
from blurfit.baselines.rival import PureRival

EPSILON, DELTA, ROWS = 1.0, 1e-3, 30
STEPS = 16  # of gradient descent; `test_gradient` attacks all 512
LABELS, NUMBERS = (
    sorted(
        name
        for name in baselines.__all__
        if name.endswith(kind) and issubclass(getattr(baselines, name), PureRival)
    )
    for kind in ("Classifier", "Regressor")
)


def tables(*, labels: bool):
    """Two tables that differ in one extreme row."""
    generator = np.random.default_rng(4)
    x = generator.uniform(-1, 1, (ROWS, 2))
    y = np.clip(x @ [0.5, -0.3], -1, 1)
    x[0], y[0] = (1, 1), 1
    other_x, other_y = x.copy(), y.copy()
    other_x[0], other_y[0] = (1, 1), -1
    if labels:
        y, other_y = y > 0, other_y > 0
    return (x, y), (other_x, other_y)


def released(name: str, **options):
    kind = getattr(baselines, name)
    fields = kind().get_params()
    given = {"bounds": (-1, 1), "target_bounds": (-1, 1), "epsilon": EPSILON, "delta": DELTA}
    given |= {"steps": STEPS}
    chosen = {key: value for key, value in (given | options).items() if key in fields}

    def release(table, generator: np.random.Generator):
        seeded = {"random_state": generator} if "random_state" in fields else {}
        model = kind(**chosen, **seeded).fit(*table)
        return np.append(np.ravel(model.coef_), model.intercept_)

    return release


@pytest.mark.statistical
@pytest.mark.parametrize("name", [*NUMBERS, *LABELS])
def test_a_rival_keeps_its_promise(name) -> None:
    first, second = tables(labels=name in LABELS)
    found = audit(
        released(name), first, second, epsilon=EPSILON, delta=DELTA, trials=400, name=name
    )
    assert not found.broken, found


@pytest.mark.parametrize("name", ["NonPrivateRegressor", "NonPrivateClassifier"])
def test_no_privacy_is_caught(name) -> None:
    first, second = tables(labels=name == "NonPrivateClassifier")
    exact = released(name)

    def release(table, generator: np.random.Generator):
        return exact(table, generator) + generator.normal(0, 1e-6)

    found = audit(release, first, second, epsilon=EPSILON, delta=DELTA, trials=200, name=name)
    assert found.broken
