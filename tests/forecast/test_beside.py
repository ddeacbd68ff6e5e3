"""What public rows are worth: by the same code that fits, on people who are not in the rows."""

import json
import math

import numpy as np
import pytest

from blurfit import Agreement, Binary, InvalidValueError, Numeric, Schema
from blurfit.forecast.choices import (
    forecast_agreement_beside,
    forecast_beside,
    people_and_rows,
)
from blurfit.forecast.population import Population

FEATURES = (Numeric("age", 0, 100), Binary("male"), Numeric("hours", 0, 99))
SCHEMA = Schema(FEATURES, Numeric("income", 0, 100))
GENERATOR = np.random.default_rng(1)
ROWS = np.column_stack(
    [
        GENERATOR.uniform(-1, 1, 900),
        GENERATOR.choice([-1.0, 1.0], 900),
        GENERATOR.normal(0, 0.3, 900),
    ]
).clip(-1, 1)


def test_one_half_tells_the_law_and_the_other_is_read() -> None:
    people, kept = people_and_rows(SCHEMA, ROWS, seed=3)
    assert (people.columns, len(people.rows), len(kept)) == (4, 450, 450)
    read = {tuple(row) for row in kept}
    assert not any(tuple(row[1:-1]) in read for row in people.rows)
    assert people.best < 0.9 * people.constant
    with pytest.raises(InvalidValueError, match="at least 4 public rows"):
        people_and_rows(SCHEMA, ROWS[:3])


def test_a_local_promise_is_worth_more_beside_public_rows() -> None:
    people, kept = people_and_rows(SCHEMA, ROWS, seed=3)
    asked = {"contributors": [300_000], "epsilons": [1.0], "local_epsilons": [1.0], "draws": 8}
    found = forecast_beside(SCHEMA, people, kept, **asked)
    (case,) = found.cases
    assert (case.contributors, case.local_epsilon) == (300_000, 1.0)
    assert case.with_public_rows < case.alone
    assert found.way(case.without_privacy) == pytest.approx(1, abs=0.02)
    assert found.way(found.constant) == 0
    assert forecast_beside(SCHEMA, people, kept, **asked) == found
    assert json.loads(json.dumps(found.to_dict()))["cases"][0]["alone"] == case.alone


@pytest.mark.parametrize("target", [Binary("rich"), Numeric("income", 0, 100)])
def test_an_agreement_reads_its_own_release_twice(target) -> None:
    schema = Schema(FEATURES, target)
    people, kept = people_and_rows(schema, ROWS)
    agreement = Agreement.propose(schema, epsilon=5, delta=1e-6, quorum=4000)
    found = forecast_agreement_beside(agreement, people, kept, contributors=[100, 8000], draws=3)
    below, enough = found.cases
    assert math.isnan(below.alone)
    assert math.isnan(below.with_public_rows)
    assert found.to_dict()["cases"][0]["alone"] is None
    assert enough.alone < found.constant
    assert enough.with_public_rows < found.constant
    assert found.is_label == isinstance(target, Binary)


def test_people_have_the_rows_features() -> None:
    people = Population.beside(SCHEMA, ROWS, explained=0.5)
    assert people.rows[:, 1:-1] == pytest.approx(ROWS)
