"""A researcher's own table and own rival meet ours on the same rows."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from blurfit import Binary, Categorical, InvalidValueError, Numeric, Schema
from blurfit.schema.imports import to_toml
from blurfit_lab.cli import main
from blurfit_lab.experiments.contest import contest, family_of, of

SCHEMA = Schema(
    [Numeric("age", 0, 100), Binary("married"), Categorical("region", ["n", "s", "w"])],
    Numeric("income", 0, 1000),
)


class Middle:
    """A rival that promises everything: it never looks at a row."""

    trust, published_neighbours, proved = "central", "replace", True

    def __init__(self, target_bounds=(0.0, 1.0)) -> None:
        self.target_bounds = target_bounds

    def fit(self, X, y) -> "Middle":
        assert X.shape[1] == 4  # age, married, and two of three levels
        return self

    def predict(self, X):
        return np.full(len(X), sum(self.target_bounds) / 2)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    age, married = draw.uniform(0, 110, 3000), draw.integers(0, 2, 3000)
    region = draw.choice(["n", "s", "w"], 3000)
    income = 300 + 4 * age + 100 * married + 50 * (region == "s") + draw.normal(0, 30, 3000)
    return pd.DataFrame({"age": age, "married": married, "region": region, "income": income})


def test_all_meet_on_the_same_rows(table) -> None:
    methods = ["one", "mean", "NonPrivateRegressor", Middle]
    found = contest([of(table, SCHEMA, "mine")], methods, [1.0, 8.0], trials=3)
    means = found.to_frame()
    own = f"{Middle.__module__}:Middle"
    assert list(means.epsilon) == [1.0, 8.0]
    assert (means["NonPrivateRegressor"] < 0.02).all()
    assert (means["one"] < means["mean"]).all()
    assert (means[own] > 1).all()
    assert found.verdicts("one", [own]).verdict.tolist() == ["wins", "wins"]
    assert "| NonPrivateRegressor |" in str(found)
    assert found.promises.set_index("method").loc[own].tolist() == ["central", "replace", True]
    assert len(found.plot().axes) == 1


def test_nothing_is_dropped(table) -> None:
    with pytest.raises(InvalidValueError, match="missing value of 'age'"):
        of(table.assign(age=np.where(table.index == 7, np.nan, table.age)), SCHEMA, "gap")
    with pytest.raises(InvalidValueError, match="none of its levels"):
        of(table.assign(region="east"), SCHEMA, "levels")
    silent = Schema([Numeric("age", 0, 100, optional=True)], SCHEMA.target)
    with pytest.raises(InvalidValueError, match="may be left unsaid"):
        of(table, silent, "silent")


def test_a_yes_or_no_is_a_label(table) -> None:
    crowd = of(table, Schema([Numeric("age", 0, 100)], Binary("married")), "mine")
    assert crowd.task == "label"
    assert (crowd.tested.y == (table.married == 1)).all()
    assert crowd.tested.X.age.max() == 100  # cut to its bound


def test_from_the_command_line(table, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table.to_parquet("people.parquet")
    (tmp_path / "schema.toml").write_text(to_toml(SCHEMA), encoding="utf-8")
    (tmp_path / "mine_to_try.py").write_text(
        "import numpy as np\n"
        "class Zero:\n"
        "    def __init__(self, epsilon, random_state=None): self.epsilon = epsilon\n"
        "    def fit(self, X, y): return self\n"
        "    def predict(self, X): return np.zeros(len(X))\n"
    )
    typed = ["reproduce", "--table", "people.parquet", "--schema", "schema.toml"]
    typed += ["--rival", "mine_to_try:Zero", "--rival", "AdaSSPRegressor"]
    more = ["--epsilon", "1", "--trials", "2", "--out", "found"]
    done = CliRunner().invoke(main, [*typed, *more, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (line,) = json.loads(done.stdout)
    assert set(line) >= {"holder", "send", "one", "mean", "mine_to_try:Zero", "AdaSSPRegressor"}
    assert line["holder"] < line["mean"] < line["mine_to_try:Zero"]
    assert (tmp_path / "found" / "contest.png").stat().st_size > 5000


def test_what_is_no_rival_is_refused() -> None:
    for where in ("nowhere_at_all:Class", "json:nothing", "json:dumps"):
        with pytest.raises(InvalidValueError, match="Expected"):
            family_of(where)
