"""Nothing that anybody reads tells a value: canaries go through every door by which records come,
and neither an error with all that Python shows of it, nor a warning, a log or a stream has one."""

import io
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from blurfit import (
    Agreement,
    Binary,
    BlurfitError,
    Categorical,
    InvalidValueError,
    Numeric,
    Schema,
    perturb,
    perturb_table,
)
from blurfit.budget import Budget
from blurfit.cli import main
from blurfit.errors import InfeasibleError
from blurfit.estimators import (
    InputPerturbationClassifier,
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
)
from blurfit.estimators.passes import require_room

WORD, NUMBER = "HIV+CANARY", 7.7712345
CANARIES = ("CANARY", "canary", "7.7712", "77712345", "1977-07-12", "1977, 7, 12", "197707")
ROWS = 300

FEATURES = [
    Numeric("age", 0, 1, outside="refuse"),
    Numeric("hours", 0, 1, outside="refuse", optional=True),
    Binary("married"),
    Categorical("region", ["north", "south"]),
]
SCHEMA = Schema(FEATURES, Numeric("income", 0, 1, outside="refuse"))
NUMBERS = Schema(FEATURES[:1], Numeric("income", 0, 1, outside="refuse"))
LABELS = Schema(FEATURES, Categorical("sick", ["no", "yes", "perhaps"]))

# What stands where something else should: of another type, outside, unknown, too large, or a date.
WRONG: dict[str, Any] = {
    "word": WORD,
    "outside": NUMBER,
    "far": 7.7712345e200,
    "huge": int("77712345" * 60),
    "decimal": Decimal("7.7712345"),
    "bytes": WORD.encode(),
    "date": date(1977, 7, 12),
    "time": datetime(1977, 7, 12, 7, 7),
    "numpy time": np.datetime64("1977-07-12"),
    "pandas time": pd.Timestamp("1977-07-12"),
    "list": [NUMBER, WORD],
    "dict": {WORD: NUMBER},
    "complex": complex(NUMBER, NUMBER),
    "infinite": np.inf,
    "missing": None,
    "not a number": np.nan,
}


def people(rows: int = ROWS) -> dict[str, list[Any]]:
    generator = np.random.default_rng(5)
    return {
        "age": generator.uniform(0, 1, rows).tolist(),
        "hours": generator.uniform(0, 1, rows).tolist(),
        "married": generator.integers(0, 2, rows).tolist(),
        "region": generator.choice(["north", "south"], rows).tolist(),
        "income": generator.uniform(0, 1, rows).tolist(),
        "sick": generator.choice(["no", "yes", "perhaps"], rows).tolist(),
    }


@contextmanager
def silence() -> Iterator[None]:
    """Whatever happens inside tells no canary by any way, and refuses with blurfit's own errors or
    with the types that scikit-learn asks for."""
    stream, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    told = []
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            redirect_stderr(stream),
            redirect_stdout(stream),
        ):
            warnings.simplefilter("always")
            try:
                yield
            except (BlurfitError, TypeError) as error:
                told.append("".join(traceback.format_exception(error, limit=0)))
        told += [str(one.message) for one in warned] + [stream.getvalue(), log.getvalue()]
    finally:
        logging.getLogger().removeHandler(handler)
    assert not [canary for canary in CANARIES if canary in "\n".join(told)], told


FORMS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "frame": pd.DataFrame,
    "lists": lambda table: [list(row) for row in zip(*table.values(), strict=True)],
    "array": lambda table: np.array(
        [list(row) for row in zip(*table.values(), strict=True)], dtype=object
    ),
    "strings": lambda table: pd.DataFrame(
        {name: [None if v is None else str(v) for v in values] for name, values in table.items()}
    ),
}
REGRESSORS = [
    lambda: MomentPerturbationRegressor(bounds=SCHEMA),
    lambda: MomentPerturbationRegressor(bounds=SCHEMA, epsilon=50, waves=2),
    lambda: MomentPerturbationRegressor(bounds=SCHEMA, per_record=True),
    lambda: InputPerturbationRegressor(bounds=SCHEMA),
    lambda: MomentPerturbationRegressor(bounds=([0, 0, 0, 0], [1, 1, 1, 1]), target_bounds=(0, 1)),
]
CLASSIFIERS = [
    lambda: MomentPerturbationClassifier(bounds=LABELS),
    lambda: InputPerturbationClassifier(bounds=LABELS),
    lambda: MomentPerturbationClassifier(bounds=([0] * 4, [1] * 4), classes=LABELS.target.levels),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", WRONG)
def test_estimators_tell_no_value(form: str, wrong: str) -> None:
    """In each feature, and in the target: before or after anything is spent."""
    for make, name in product(REGRESSORS, ["age", "hours", "married", "region", "income"]):
        _fit(make, form, "income", name, WRONG[wrong])
    for make, name in product(CLASSIFIERS, ["age", "region", "sick"]):
        _fit(make, form, "sick", name, WRONG[wrong])


def _fit(make: Callable[[], Any], form: str, target: str, name: str, wrong: Any) -> None:
    table = people()
    table[name][17] = wrong
    y = table[target]
    X = FORMS[form]({one.name: table[one.name] for one in FEATURES})
    for targets in (y, pd.Series(y, name=target)):
        with silence():
            make().fit(X, targets)


@pytest.mark.parametrize("wrong", WRONG)
def test_predictions_tell_no_value(wrong: str) -> None:
    table = people()
    X = pd.DataFrame({one.name: table[one.name] for one in FEATURES})
    fitted = MomentPerturbationRegressor(bounds=SCHEMA).fit(X, table["income"])
    for name in X.columns:
        worse = X.astype(object)
        worse.at[3, name] = str(WRONG[wrong]) if wrong in ("list", "dict") else WRONG[wrong]
        with silence():
            fitted.predict(worse)
        with silence():
            fitted.model_.predict(worse)
    with silence():
        fitted.predict(X.rename(columns={"age": WORD}))
    with silence():
        fitted.predict(np.full(3, NUMBER))
    with silence():
        fitted.model_.predict(X.rename(columns={"age": WORD}))


def test_shapes_and_names_tell_no_value() -> None:
    """One row, one number, columns without a heading, y of another length, words as classes."""
    table = people()
    X = pd.DataFrame({one.name: table[one.name] for one in FEATURES})
    for make in (*REGRESSORS, *CLASSIFIERS):
        for given in (
            np.full(5, NUMBER),
            NUMBER,
            WORD,
            [[NUMBER] * 4],
            X.rename(columns={"age": WORD}),
            X.set_axis([WORD, "7.7712345", "c", "d"], axis=1),
            X.assign(**{WORD: 1}),
            X.assign(age=[[NUMBER]] * ROWS),
        ):
            with silence():
                make().fit(given, table["income"])
        for y in (np.full(3, NUMBER), WORD, NUMBER, [WORD] * ROWS, np.full((ROWS, 2), NUMBER)):
            with silence():
                make().fit(X, y)
    for y in ([WORD] * ROWS, [WORD, 1, None] * (ROWS // 3), [NUMBER] * ROWS):
        with silence():
            MomentPerturbationClassifier(bounds=([0] * 4, [1] * 4)).fit(
                X.assign(region=0).to_numpy(dtype=float), np.array(y, dtype=object)
            )


@pytest.mark.parametrize("wrong", WRONG)
def test_contributors_tell_no_value(wrong: str) -> None:
    table = {name: values for name, values in people(5).items() if name != "sick"}
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2000)
    for name in table:
        worse = {one: list(values) for one, values in table.items()}
        worse[name][3] = WRONG[wrong]
        record = {one: values[3] for one, values in worse.items()}
        for given in (worse, pd.DataFrame(worse)):
            with silence():
                perturb_table(agreement, given)
        for given in (record, {**record, "more": WORD}, {WORD: NUMBER}):
            with silence():
                perturb(agreement, given)


BROKEN = {
    "word": "0.5,{word},1,north,0.5",
    "target": "0.5,0.5,1,north,{word}",
    "level": "0.5,0.5,1,{word},0.5",
    "binary": "0.5,0.5,{number},north,0.5",
    "outside": "{number},0.5,1,north,0.5",
    "optional outside": "0.5,{number},1,north,0.5",
    "target outside": "0.5,0.5,1,north,{number}",
    "short": "{number},{word}",
    "long": "0.5,0.5,1,north,0.5,{word},{number}",
    "date": "1977-07-12,0.5,1,north,0.5",
    "quoted": '"{word}\n{number}",0.5,1,north,0.5',
}
HEADING = "age,hours,married,region,income"


@pytest.mark.parametrize("broken", [*BROKEN, "no heading", "not a text"])
@pytest.mark.parametrize("command", ["contribute", "predict"])
def test_commands_tell_no_value(broken, command, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2)
    agreement.save("agreement.json")
    row = BROKEN.get(broken, "{number},{number},1,{word},0.5").format(word=WORD, number=NUMBER)
    heading = row if broken == "no heading" else HEADING
    body = f"{heading}\n0.5,0.5,1,north,0.5\n{row}\n".encode()
    (tmp_path / "people.csv").write_bytes(b"\xff" + body if broken == "not a text" else body)
    typed = ["contribute", "agreement.json", "people.csv", "--out", "sent.parquet"]
    if command != "contribute":
        table = people()
        X = pd.DataFrame({one.name: table[one.name] for one in FEATURES})
        fitted = MomentPerturbationRegressor(bounds=SCHEMA).fit(X, table["income"])
        fitted.model_.save("model.json")
        typed = ["predict", "model.json", "people.csv"]
    with silence():
        done = CliRunner().invoke(main, typed, catch_exceptions=False)
        assert not [canary for canary in CANARIES if canary in done.output], done.output
        assert done.exit_code != 0 or command == "predict" or "outside" in broken


@pytest.mark.parametrize("kind", ["words", "dates", "structures", "not parquet", "submissions"])
def test_commands_tell_no_value_of_parquet(kind, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2)
    agreement.save("agreement.json")
    table = {name: values for name, values in people(5).items() if name != "sick"}
    table["age"] = {
        "words": [WORD] * 5,
        "dates": [date(1977, 7, 12)] * 5,
        "structures": [{WORD: NUMBER}] * 5,
    }.get(kind, [NUMBER] * 5)
    pq.write_table(pa.table(table), "people.parquet")
    if kind == "not parquet":
        (tmp_path / "people.parquet").write_bytes(f"PAR1 {WORD} {NUMBER} PAR1".encode())
    typed = ["contribute", "agreement.json", "people.parquet", "--out", "sent.parquet"]
    if kind == "submissions":
        typed = ["learn", "agreement.json", "people.parquet"]
    with silence():
        done = CliRunner().invoke(main, typed, catch_exceptions=False)
        assert done.exit_code != 0
        assert not [canary for canary in CANARIES if canary in done.output], done.output


# ---- what some rows could break is looked at before anything is spent


@pytest.mark.parametrize("place", ["age", "hours", "income"])
@pytest.mark.parametrize(
    "options", [{"waves": 1}, {"waves": 2, "epsilon": 50}, {"per_record": True}, "input"]
)
def test_what_refuses_others_does_so_in_every_way_and_before_it_is_paid(place, options) -> None:
    kind = InputPerturbationRegressor if options == "input" else MomentPerturbationRegressor
    table = people()
    table["hours"][5] = None
    table[place][17] = NUMBER
    X = pd.DataFrame({one.name: table[one.name] for one in FEATURES})
    given = {} if options == "input" else options
    with Budget(100, 1e-5) as budget:
        with pytest.raises(InvalidValueError, match=f"Expected every value of '{place}' to be"):
            kind(bounds=SCHEMA, **given).fit(X, table["income"])
        assert not budget.expenses
    table[place][17] = 1.0
    kind(bounds=SCHEMA, **given).fit(X.assign(**{place: table[place]})[list(X)], table["income"])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_targets_that_are_none_are_refused_before_anything_is_paid(bad) -> None:
    y = np.linspace(0, 1, ROWS).astype(object)
    y[7] = bad
    with Budget(100, 1e-5) as budget:
        with pytest.raises((InvalidValueError, ValueError), match="contains"):
            MomentPerturbationRegressor(bounds=(0, 1), target_bounds=(0, 1)).fit(
                np.linspace(0, 1, ROWS)[:, None], y
            )
        assert not budget.expenses


def test_too_many_rows_for_exact_sums_are_refused_from_public_facts() -> None:
    """Sums within the bound always pass the noise's own check; one beyond it says so beforehand."""
    fine = Agreement.propose(NUMBERS, epsilon=1, delta=1e-6, quorum=10**6)
    require_room(fine, 10**6)
    with pytest.raises(InfeasibleError, match="rows with epsilon=1: their sums could exceed"):
        require_room(fine, 10**15)


def test_a_fit_to_too_many_rows_is_refused_whatever_they_are() -> None:
    """Small rows would have passed the noise's own check, and large ones failed after spending."""
    X = np.zeros((10**6, 1))
    model = MomentPerturbationRegressor(epsilon=1e7, bounds=(0, 1), target_bounds=(0, 1), waves=1)
    for value in (0.0, 0.5, 1.0):
        with Budget(1e300, 0.5) as budget:
            with pytest.raises(InfeasibleError, match="could exceed"):
                model.fit(X + value, X[:, 0] + value)
            assert not budget.expenses


@pytest.mark.parametrize("wrong", WRONG)
def test_scores_tell_no_value(wrong: str) -> None:
    """Of the targets, and of weights: scikit-learn's own words are not repeated."""
    table = people()
    X = pd.DataFrame({one.name: table[one.name] for one in FEATURES})
    worse = [WRONG[wrong], *table["income"][1:]]
    regressor = MomentPerturbationRegressor(bounds=SCHEMA).fit(X, table["income"])
    classifier = MomentPerturbationClassifier(bounds=LABELS).fit(X, table["sick"])
    for fitted, y in ((regressor, table["income"]), (classifier, table["sick"])):
        with silence():
            fitted.score(X, worse)
        with silence():
            fitted.score(X, y, sample_weight=worse)
    assert classifier.score(X, table["sick"], sample_weight=np.ones(ROWS)) <= 1
