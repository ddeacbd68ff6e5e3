"""Not saying: the bound on the record holds, the silent bias nobody, and nothing refuses them."""

import csv
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from blurfit import Agreement, Binary, Categorical, Numeric, PublishedModel, Schema
from blurfit.errors import InvalidValueError
from blurfit.estimators import InputPerturbationRegressor, MomentPerturbationRegressor
from blurfit.estimators.passes import Rows
from blurfit.estimators.rows import _table
from blurfit.model.release import moments_of
from blurfit.schema.schema import kind_of, values
from blurfit.schema.table_files import TableFile
from blurfit.simulation import exact_totals
from blurfit.theory.moments import sensitivity
from support.refusals import refusal

SCHEMA = Schema(
    [
        Numeric("age", 20, 60, optional=True),
        Binary("married", optional=True),
        Categorical("region", ["north", "south"], optional=True),
        Numeric("hours", 0, 80),
    ],
    Numeric("income", 0, 1000),
)
SILENT = {"age": None, "married": None, "region": None, "hours": 40, "income": 500}


def people(count: int, generator: np.random.Generator, silent: float = 0.3) -> dict:
    age, married = generator.uniform(20, 60, count), generator.integers(0, 2, count)
    region, hours = generator.choice(["north", "south"], count), generator.uniform(0, 80, count)
    income = 200 + 5 * age + 100 * married + 50 * (region == "south") + 2 * hours
    table = {"age": age, "married": married, "region": region}
    for name, column in table.items():
        table[name] = column.astype(object)
        table[name][generator.random(count) < silent] = None
    return table | {"hours": hours, "income": income}


def test_the_columns_of_what_was_said_and_what_was_not() -> None:
    table = {
        "age": [60, None, np.nan],
        "married": [True, None, 0],
        "region": ["south", pd.NA, None],
        "hours": [0, 80, 40],
        "income": [0, 1000, 500],
    }
    assert [name for one in SCHEMA.questions for name in one.columns] == [
        "age",
        "age=(not said)",
        "married",
        "married=(not said)",
        "region=north",
        "region=south",
        "region=(not said)",
        "hours",
        "income",
    ]
    assert values(SCHEMA, table).tolist() == [
        [1, 0, 1, 0, 0, 1, 0, -1, -1],
        [0, 1, 0, 1, 0, 0, 1, 1, 1],
        [0, 1, -1, 0, 0, 0, 1, 0, 0],
    ]
    assert values(SCHEMA, SILENT).tolist() == [0, 1, 0, 1, 0, 0, 1, 0, 0]
    assert [kind_of(one) for one in SCHEMA.questions] == [3, 3, 3, "numeric", "numeric"]


def test_nobody_leaves_the_ball() -> None:
    """‖x‖ ≤ 1 and ‖u‖ ≤ ρ, whatever is said and what is not: as if all had to be answered."""
    table = people(500, np.random.default_rng(0), silent=0.5)
    x, _ = SCHEMA.encode(table)
    assert np.linalg.norm(x, axis=1).max() <= 1
    answered = Schema([replace(one, optional=False) for one in SCHEMA.features], SCHEMA.target)
    assert SCHEMA.scale == answered.scale
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=1000)
    form = agreement.form
    u = values(SCHEMA, table) * [column.weight for column in form.columns]
    assert np.linalg.norm(u, axis=1).max() <= form.radius
    weights = agreement.weights.columns
    assert form.radius == pytest.approx(np.sqrt(np.sum(np.square(weights))))


def test_no_two_records_are_further_apart_than_is_promised() -> None:
    """Pairs of records, silence included, stay within Δ."""
    form = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=1000).form
    reach = sensitivity(form.constant, form.radius, "replace")
    generator = np.random.default_rng(1)
    rows = values(SCHEMA, people(400, generator, silent=0.5))
    corners = np.where(np.abs(rows) < 1, np.sign(rows), rows)
    sent = form.products(corners) * np.sqrt(form.counts)
    distances = np.linalg.norm(sent[:200, None] - sent[None, 200:], axis=2)
    assert distances.max() <= reach


def test_what_is_always_zero_is_not_sent() -> None:
    form = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=1000).form
    assert "age·age=(not said)" not in form.names
    assert {"age·age", "age=(not said)·age=(not said)", "married·married"} <= set(form.names)
    v = values(SCHEMA, people(50, np.random.default_rng(2)))
    z = np.column_stack([np.ones(50), v]) * form.scale
    assert form.matrix(form.products(v).sum(axis=0), 50) == pytest.approx(z.T @ z, abs=1e-9)


def test_the_silent_bias_no_other_coefficient() -> None:
    """Exact sums of many people: each effect is its own, the silent have their own coefficient."""
    generator = np.random.default_rng(3)
    table = people(4000, generator)
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2000)
    agreement.verify()
    assert Agreement.from_json(agreement.to_json()) == agreement
    exact = exact_totals(agreement, table)
    model = moments_of(agreement, exact).fit()
    effects = {one.name: one for one in model.estimates()}
    for name, truth in {"age": 5, "married": 100, "region=south": 50, "hours": 2}.items():
        one = effects[name]
        assert one.lower <= truth <= one.upper, name
    # the silent earn what those at the middle do: nobody is silent for a reason here
    assert effects["married=(not said)"].lower <= 0 <= effects["married=(not said)"].upper
    assert model.predict(SILENT) == pytest.approx(200 + 5 * 40 + 50 + 25 + 80, abs=60)
    assert model.prediction_intervals(SILENT).shape == (1, 2)


def test_where_nobody_is_silent_all_else_is_still_told() -> None:
    """The columns for silence have no spread then, and are left out of the errors alone."""
    table = people(4000, np.random.default_rng(4), silent=0.0)
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2000)
    model = moments_of(agreement, exact_totals(agreement, table)).fit()
    names = ["(intercept)", "age", "married", "region=south", "hours"]
    assert [one.name for one in model.estimates()] == names
    one = model.estimates()[1]
    assert one.lower <= 5 <= one.upper
    assert model.prediction_intervals(SILENT).shape == (1, 2)
    assert PublishedModel.from_json(model.to_json()).summary().sections == model.summary().sections


def test_targets_and_what_is_not_optional_must_be_said() -> None:
    income = Numeric("income", 0, 1)
    message = refusal(Schema, [Binary("a")], replace(income, optional=True))
    assert "'income' to be answered by everybody" in message
    message = refusal(Schema, [Binary("a", optional=True)], income, targets=["a", "income"])
    assert "'a' to be answered by everybody" in message
    assert SCHEMA.targets == ("hours", "income")
    message = refusal(values, SCHEMA, SILENT | {"hours": None})
    assert message.startswith("Row 0 has a missing value of 'hours'; set optional = true")
    message = refusal(Categorical, "c", ["a", "(not said)"], optional=True)
    assert "do not answer an optional question" in message
    two = {name: [value, value] for name, value in SILENT.items()} | {"age": [None, "x"]}
    assert "Row 1 has a value of 'age'" in refusal(values, SCHEMA, two)  # the row's own number


def test_an_empty_cell_of_a_file_is_not_said(tmp_path) -> None:
    file = tmp_path / "people.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(
            [SILENT, ["", "", "", 40, 500], [30, "true", "south", 40, 500]]
        )
    x, _ = next(TableFile(file, SCHEMA).encoded())
    assert (x / SCHEMA.scale).round(12).tolist() == [
        [0, 1, 0, 1, 0, 0, 1, 0, 1],
        [-0.5, 0, 1, 0, 0, 1, 0, 0, 1],
    ]


@pytest.mark.parametrize("kind", [MomentPerturbationRegressor, InputPerturbationRegressor])
def test_estimators_take_nan_where_it_is_allowed(kind) -> None:
    frame = pd.DataFrame(people(800, np.random.default_rng(5)))
    frame["age"] = frame["age"].astype(float)  # NaN, where others have None
    X, y = frame.drop(columns="income"), frame["income"]
    model = kind(bounds=SCHEMA, epsilon=50, delta=1e-3)
    model.fit(X, y)
    found = model.predict(X)
    assert np.isfinite(found).all()
    assert np.corrcoef(found, y)[0, 1] > 0.2
    if kind is MomentPerturbationRegressor:
        published = model.model_
        assert published.predict(X) == pytest.approx(found)
    with pytest.raises(InvalidValueError, match="every row of 'hours', and some are missing"):
        model.fit(X.assign(hours=np.nan), y)


def test_one_pass_and_one_by_one_are_the_same_sums() -> None:
    frame = pd.DataFrame(people(300, np.random.default_rng(6)))
    table = _table(frame.drop(columns="income"), SCHEMA.features)
    v = values(SCHEMA, frame)
    found = Rows(table, v[:, -1:], SCHEMA.features).joint.matrix(300)
    rows = np.column_stack([np.ones(300), v])
    assert found == pytest.approx(rows.T @ rows, abs=1e-9)
