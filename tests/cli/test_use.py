"""What a model's user types: predictions that are the model's, and the statement."""

import csv
import io
import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import perturb_table
from blurfit.model.model import PublishedModel
from blurfit.model.statement import as_html, as_markdown
from blurfit.schema.schema import Categorical, Numeric, Schema
from blurfit.store.store import Store
from support.joint_release import release

AGES = [0.0, 12.5, 50.0, 99.0, 100.0]
TEXT = "name,age\n" + "".join(f"someone,{age}\n" for age in AGES)


def published(folder, target) -> PublishedModel:
    """A model from fifty people, in model.json."""
    agreement = Agreement.propose(
        Schema(features=[Numeric("age", 0, 100)], target=target),
        epsilon=1.0,
        delta=1e-6,
        quorum=50,
    )
    people = {"age": np.linspace(0, 100, 50), "income": np.linspace(0, 1000, 50)}
    with Store() as store:
        store.add(agreement, perturb_table(agreement, people))
        model = store.publish(agreement)
    model.save(folder / "model.json")
    (folder / "people.csv").write_text(TEXT)
    return model


@pytest.fixture
def number(tmp_path) -> PublishedModel:
    return published(tmp_path, Numeric("income", 0, 1000))


@pytest.fixture
def label(tmp_path) -> PublishedModel:
    return published(tmp_path, Numeric("income", 0, 1000).above(370))


def lines(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_predictions_are_the_models(blurfit, number) -> None:
    result = blurfit("predict", "model.json", "people.csv", "--out", "predictions.csv")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "Wrote 5 predictions to predictions.csv.\n"
    heading, *found = lines((blurfit.folder / "predictions.csv").read_text())
    assert heading == ["income"]
    exact = number.predict({"age": AGES})
    assert [float(one) for (one,) in found] == [round(float(one), 2) for one in exact]
    assert "`blurfit statement model.json`" in result.stderr
    shown = blurfit("predict", "model.json", "people.csv")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert lines(shown.stdout) == [heading, *found]


def test_a_label_comes_with_its_probability(blurfit, label) -> None:
    parquet.write_table(pa.table({"age": AGES}), blurfit.folder / "people.parquet")
    result = blurfit("predict", "model.json", "people.parquet", "--out", "p.csv", "--json")
    assert json.loads(result.stdout) == {"rows": 5, "out": "p.csv"}
    heading, *found = lines((blurfit.folder / "p.csv").read_text())
    assert heading == ["income", "probability"]
    assert [int(one) for one, _ in found] == [int(v) for v in label.predict({"age": AGES})]
    np.testing.assert_allclose(
        [float(share) for _, share in found], label.predict_proba({"age": AGES})[:, 1], atol=5.1e-5
    )


@pytest.mark.usefixtures("number")
def test_what_cannot_be_predicted_is_exit_code_2(blurfit) -> None:
    (blurfit.folder / "bad.csv").write_text(TEXT + "someone,old\n")
    (blurfit.folder / "none.csv").write_text("name\nsomeone\n")
    for arguments, message in (
        (["model.json", "bad.csv", "--out", "p.csv"], "a value of 'age' which is not a number"),
        (["model.json", "none.csv", "--out", "p.csv"], "Expected the columns age"),
        (["model.json", "people.csv", "--json"], "Expected --out besides --json"),
        (["people.csv", "people.csv"], "Expected"),
    ):
        result = blurfit("predict", *arguments)
        assert result.returncode == 2
        assert message in " ".join(result.stderr.split())
        assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("number")
def test_a_table_that_is_refused_leaves_no_predictions_behind(blurfit) -> None:
    (blurfit.folder / "bad.csv").write_text(TEXT + "someone,old\n")
    assert blurfit("predict", "model.json", "bad.csv", "--out", "p.csv").returncode == 2
    assert not (blurfit.folder / "p.csv").exists()


def test_intervals_are_the_models(blurfit) -> None:
    moments = release()
    model = moments.fit("income ~ age + married")
    model.save(blurfit.folder / "model.json")
    (blurfit.folder / "people.csv").write_text("age,married\n30,1\n60,0\n")
    asked = ["predict", "model.json", "people.csv", "--intervals"]
    done = blurfit(*asked, "--confidence", "0.8")
    assert done.returncode == 0, done.stderr
    heading, *found = lines(done.stdout)
    assert heading == ["income", "lower", "upper"]
    people = {"age": [30, 60], "married": [1, 0]}
    bounds = model.prediction_intervals(people, 0.8)
    expected = np.column_stack([model.predict(people), bounds])
    np.testing.assert_allclose(np.array(found, dtype=float), expected, atol=0.51)
    moments.fit("married ~ age").save(blurfit.folder / "model.json")
    refused = blurfit(*asked)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Intervals are for numbers" in refused.stderr


def test_classes_come_with_their_probabilities(blurfit) -> None:
    model = release().fit("region ~ age + income")
    model.save(blurfit.folder / "model.json")
    (blurfit.folder / "people.csv").write_text("age,income\n30,20000\n60,90000\n")
    heading, *found = lines(blurfit("predict", "model.json", "people.csv").stdout)
    assert heading == ["region", *(f"probability of {one}" for one in ("north", "south", "west"))]
    people = {"age": [30, 60], "income": [20_000, 90_000]}
    assert [row[0] for row in found] == model.predict(people).tolist()
    shares = np.array([row[1:] for row in found], dtype=float)
    np.testing.assert_allclose(shares, model.predict_proba(people), atol=5.1e-5)


def test_the_statement_of_moments(blurfit) -> None:
    moments = release()
    moments.save(blurfit.folder / "moments.json")
    told = blurfit("statement", "moments.json")
    assert told.returncode == 0, told.stderr
    assert told.stdout.rstrip("\n") == as_markdown(moments).rstrip("\n")
    assert "Blurred sums of all products of two of **age" in told.stdout


def test_the_statement_in_every_form(blurfit, number) -> None:
    markdown = blurfit("statement", "model.json")
    assert (markdown.returncode, markdown.stderr) == (0, "")
    assert markdown.stdout.rstrip("\n") == as_markdown(number).rstrip("\n")
    html = blurfit("statement", "model.json", "--format", "html")
    assert html.stdout.rstrip("\n") == as_html(number).rstrip("\n")
    as_yaml = blurfit("statement", "model.json", "--format", "yaml")
    assert yaml.safe_load(as_yaml.stdout)
    numbers = json.loads(blurfit("statement", "model.json", "--json").stdout)
    promise, local = number.guarantee, number.agreement.calibration.local
    assert numbers == {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "neighbours": "replace",
        "unit": "record",
        "releases": promise.releases,
        "models": 1,
        "caveats": [],
        "seen_by": "collector",
        "condition": number.condition,
        "count": 50,
        "quorum": 50,
        "local_mu": local.mu,
        "local_epsilon": local.epsilon,
        "local_delta": local.delta,
    }


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "＝1"]


def test_nothing_that_is_written_is_a_formula_to_a_spreadsheet(blurfit) -> None:
    """Neither the target's name nor a level; a level that is a number stays one."""
    levels = ["-7", *FORMULAS]
    schema = Schema([Numeric("age", 0, 100)], Categorical("=HYPERLINK(1)", levels))
    agreement = Agreement.propose(schema, epsilon=1000, delta=1e-6, quorum=60)
    people = {"age": np.linspace(0, 100, 60), "=HYPERLINK(1)": levels * 10}
    with Store() as store:
        store.add(agreement, perturb_table(agreement, people))
        store.publish(agreement).save(blurfit.folder / "model.json")
    (blurfit.folder / "people.csv").write_text(TEXT)
    heading, *found = lines(blurfit("predict", "model.json", "people.csv").stdout)
    assert heading[0] == "'=HYPERLINK(1)"
    assert {row[0] for row in found} <= {"-7", *(f"'{one}" for one in FORMULAS)}
    for cell in itertools.chain(heading, *found):
        assert cell == "-7" or cell[0] not in "=+-@\t\r＝"
