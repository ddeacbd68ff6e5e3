"""Attacks on the rivals: none breaks its promise, and the model without privacy is caught.

Each release is the weights of a fit to one of two tables that differ in one row: the neighbours
that every rival is asked to protect.
"""

import numpy as np
import pytest

from blurfit import Binary, Numeric, Schema
from blurfit_lab import rivals
from blurfit_lab.audit.agreements import audit
from blurfit_lab.rivals.rival import PureRival, coefficients

EPSILON, DELTA, ROWS = 1.0, 1e-3, 12
STEPS = 16  # of gradient descent and of boosting; `test_perturbation` attacks all 512
LABELS, NUMBERS = (
    sorted(
        name
        for name in rivals.__all__
        if name.endswith(kind) and issubclass(getattr(rivals, name), PureRival)
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


def schema(*, labels: bool) -> Schema:
    """Which encodes the rows as every fit does."""
    columns = [Numeric("x0", -1, 1), Numeric("x1", -1, 1)]
    return Schema(columns, Binary("y") if labels else Numeric("y", -1, 1))


def rival(name: str):
    """As it is attacked; of these parameters those that it has."""
    given = {"bounds": (-1, 1), "target_bounds": (-1, 1), "epsilon": EPSILON, "delta": DELTA}
    given |= {"steps": STEPS, "rounds": STEPS}
    kind = getattr(rivals, name)
    fields = kind().get_params()
    return kind(**{key: value for key, value in given.items() if key in fields})


class Fitted:
    """A fit, which encodes its rows and draws weights from them: only the latter is chance.

    So the weights are drawn again and again, of rows that are encoded once. A whole fit has to
    have drawn the same weights, and to have published them in the user's units and nothing else.
    """

    def __init__(self, name: str, table, *, labels: bool) -> None:
        x, y = table
        encoding = schema(labels=labels)
        self.rows = encoding.encode({"x0": x[:, 0], "x1": x[:, 1], "y": y})
        self.model = rival(name).set_params(random_state=np.random.default_rng(7)).fit(*table)
        np.testing.assert_array_equal(self.model.weights_, self.release(np.random.default_rng(7)))
        published = coefficients(encoding, self.model.weights_)
        np.testing.assert_array_equal(np.ravel(self.model.coef_), list(published.effects.values()))
        np.testing.assert_array_equal(np.ravel(self.model.intercept_), [published.intercept])

    def release(self, generator: np.random.Generator):
        return self.model._weights(*self.rows, generator)


@pytest.mark.statistical
@pytest.mark.parametrize("name", [*NUMBERS, *LABELS])
def test_a_rival_keeps_its_promise(name) -> None:
    labels = name in LABELS
    first, second = (Fitted(name, table, labels=labels) for table in tables(labels=labels))
    found = audit(
        Fitted.release, first, second, epsilon=EPSILON, delta=DELTA, trials=400, name=name
    )
    assert not found.broken, found


@pytest.mark.parametrize("name", ["NonPrivateRegressor", "NonPrivateClassifier"])
def test_no_privacy_is_caught(name) -> None:
    first, second = (rival(name).fit(*table) for table in tables(labels=name.endswith("ifier")))

    def release(model, generator: np.random.Generator):
        return np.append(model.coef_, model.intercept_) + generator.normal(0, 1e-6)

    found = audit(release, first, second, epsilon=EPSILON, delta=DELTA, trials=200, name=name)
    assert found.broken
