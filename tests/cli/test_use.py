"""From files of submissions to models, tables and predictions, as they are typed."""

import csv
import io
import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from blurfit import Bands, PublishedMoments
from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import perturb_table, share
from blurfit.messages.files import Writer
from blurfit.model.model import PublishedModel
from blurfit.model.statement import as_html, as_markdown
from blurfit.schema.imports import to_toml
from blurfit.schema.schema import Categorical, Numeric, Schema
from blurfit_server.store.store import Store
from server_support.sharing import arrival, opened
from support.joint_release import release
from support.sharing import TWO

AGES = [0.0, 12.5, 50.0, 99.0, 100.0]
TEXT = "name,age\n" + "".join(f"someone,{age}\n" for age in AGES)


def published(folder, target) -> PublishedModel:
    """A model from fifty people, in model.json."""
    agreement = Agreement.propose(
        Schema(features=[Numeric("age", 0, 100)], target=target), epsilon=1.0, delta=1e-6, quorum=50
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
    result = blurfit.done("predict model.json people.csv --out predictions.csv")
    assert result.stdout == "Wrote 5 predictions to predictions.csv.\n"
    heading, *found = lines((blurfit.folder / "predictions.csv").read_text())
    assert heading == ["income"]
    exact = number.predict({"age": AGES})
    assert [float(one) for (one,) in found] == [round(float(one), 2) for one in exact]
    assert "`blurfit statement model.json`" in result.stderr
    wide = (blurfit.folder / "people.csv").read_text().encode("utf-16")
    (blurfit.folder / "wide.csv").write_bytes(wide)
    blurfit.refused("predict model.json wide.csv", says="often `--encoding cp1252`")
    again = blurfit.done("predict model.json wide.csv --encoding utf-16").stdout
    assert again == (blurfit.folder / "predictions.csv").read_text()
    shown = blurfit("predict model.json people.csv")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert lines(shown.stdout) == [heading, *found]


def test_a_label_comes_with_its_probability(blurfit, label) -> None:
    parquet.write_table(pa.table({"age": AGES}), blurfit.folder / "people.parquet")
    result = blurfit("predict model.json people.parquet --out p.csv --json")
    assert json.loads(result.stdout) == {"rows": 5, "out": "p.csv"}
    heading, *found = lines((blurfit.folder / "p.csv").read_text())
    assert heading == ["income", "probability"]
    assert [int(one) for one, _ in found] == [int(v) for v in label.predict({"age": AGES})]
    np.testing.assert_allclose(
        [float(share) for _, share in found], label.predict_proba({"age": AGES})[:, 1], atol=5.1e-5
    )


def test_intervals_are_the_models(blurfit) -> None:
    moments = release()
    model = moments.fit("income ~ age + married")
    model.save(blurfit.folder / "model.json")
    (blurfit.folder / "people.csv").write_text("age,married\n30,1\n60,0\n")
    asked = ["predict", "model.json", "people.csv", "--intervals"]
    done = blurfit.done(*asked, "--confidence", "0.8")
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
    heading, *found = lines(blurfit("predict model.json people.csv").stdout)
    assert heading == ["region", *(f"probability of {one}" for one in ("north", "south", "west"))]
    people = {"age": [30, 60], "income": [20_000, 90_000]}
    assert [row[0] for row in found] == model.predict(people).tolist()
    shares = np.array([row[1:] for row in found], dtype=float)
    np.testing.assert_allclose(shares, model.predict_proba(people), atol=5.1e-5)


def test_the_statement_of_moments(blurfit) -> None:
    moments = release()
    moments.save(blurfit.folder / "moments.json")
    told = blurfit.done("statement moments.json")
    assert told.stdout.rstrip("\n") == as_markdown(moments).rstrip("\n")
    assert "Blurred sums of all products of two of **age" in told.stdout


def test_the_statement_in_every_form(blurfit, number) -> None:
    markdown = blurfit("statement model.json")
    assert (markdown.returncode, markdown.stderr) == (0, "")
    assert markdown.stdout.rstrip("\n") == as_markdown(number).rstrip("\n")
    html = blurfit("statement model.json --format html")
    assert html.stdout.rstrip("\n") == as_html(number).rstrip("\n")
    as_yaml = blurfit("statement model.json --format yaml")
    assert yaml.safe_load(as_yaml.stdout)
    numbers = json.loads(blurfit("statement model.json --json").stdout)
    promise, local = number.guarantee, number.agreement.calibration.local
    assert numbers == {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "neighbours": "replace",
        "unit": "record",
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
    heading, *found = lines(blurfit("predict model.json people.csv").stdout)
    assert heading[0] == "'=HYPERLINK(1)"
    assert {row[0] for row in found} <= {"-7", *(f"'{one}" for one in FORMULAS)}
    for cell in itertools.chain(heading, *found):
        assert cell == "-7" or cell[0] not in "=+-@\t\r＝"


# ---- learn


PEOPLE = {"age": np.linspace(0, 100, 30), "income": np.linspace(0, 1000, 30)}


@pytest.fixture
def agreed_learn(blurfit, propose):
    agreement = propose()
    agreement.save(blurfit.folder / "agreement.json")
    return agreement


def test_hospitals_blur_and_somebody_learns(blurfit, agreed_learn) -> None:
    (blurfit.folder / "lake").mkdir()
    for first, name in enumerate("ab"):
        (blurfit.folder / f"{name}.csv").write_text(
            "age,income\n" + "".join(f"{age},{10 * age}\n" for age in range(first, first + 15))
        )
        typed = ["contribute", "agreement.json", f"{name}.csv", "--out", f"lake/{name}.parquet"]
        done = blurfit.done(*typed)
        assert done.stdout.startswith(f"Wrote 15 submissions to lake/{name}.parquet, one for each")
    blurfit.refused(
        "learn agreement.json lake/a.parquet", says="5 more contributors are needed", code=4
    )
    learned = blurfit.done("learn agreement.json lake/*.parquet --json --workers 2")
    said = json.loads(learned.stdout)
    assert (said["model"], said["count"]) == ("model.json", 30)
    assert said["fingerprint"] == agreed_learn.fingerprint
    again = blurfit.done(
        *("learn", "agreement.json", "lake", "--workers", "1"),
        *("--out", "again.json", "--moments", "moments.json"),
    )
    model = PublishedModel.load(blurfit.folder / "again.json")
    record = f"{agreed_learn.fingerprint[:12]}.release.json"
    assert (blurfit.folder / "lake" / record).exists()
    assert again.stdout.startswith(f"{model.summary()}\n\nThe release is recorded beside the files")
    assert f"in {record}. Keep it there" in again.stdout
    assert again.stdout.endswith("\n\nWrote again.json and moments.json.\n")
    moments = PublishedMoments.load(blurfit.folder / "moments.json")
    assert moments.fit().to_json() == model.to_json()
    first, second = (blurfit.folder / name for name in ("model.json", "again.json"))
    assert first.read_bytes() == second.read_bytes()
    (blurfit.folder / "lake" / "b.parquet").unlink()
    blurfit.refused("learn agreement.json lake --out third.json", says="missing: b.parquet", code=4)
    assert not (blurfit.folder / "third.json").exists()


def test_a_new_cluster_learns_the_same(blurfit, agreed_learn) -> None:
    table, texts = perturb_table(agreed_learn, PEOPLE), set()
    for engine in ("local", "dask"):  # each in a folder of its own, since a release is recorded
        (blurfit.folder / engine).mkdir()
        with Writer(blurfit.folder / engine / "a.parquet", agreed_learn.layout) as writer:
            writer.add(table)
        options = ["--engine", engine, "--workers", "1", "--out", f"{engine}.model"]
        done = blurfit.apart("learn", "agreement.json", engine, *options)
        assert done.returncode == 0, done.stderr
        texts.add((blurfit.folder / f"{engine}.model").read_bytes())
    assert len(texts) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_closed_collection_is_exported(blurfit, agreed_learn, kind, request) -> None:
    place = "sqlite:///collection.db"
    if kind == "postgresql":
        place = request.getfixturevalue("places").fresh()
    here = f"sqlite:///{blurfit.folder}/collection.db" if kind == "sqlite" else place
    with Store(here) as store:
        store.add(agreed_learn, perturb_table(agreed_learn, PEOPLE))
    typed = ["export", "agreement.json", "--store", place, "--out", "a.parquet", "--json"]
    blurfit.refused(*typed, says="still collecting", code=4)
    with Store(here) as store:
        published = store.publish_text(agreed_learn.fingerprint)
    done = blurfit.done(*typed)
    assert json.loads(done.stdout) == {
        "rows": 30,
        "fingerprint": agreed_learn.fingerprint,
        "out": "a.parquet",
    }
    blurfit.done("learn agreement.json a.parquet")
    assert (blurfit.folder / "model.json").read_text() == published
    assert PublishedModel.load(blurfit.folder / "model.json").count == 30


# ---- table


MOMENTS = release()


@pytest.fixture
def table(blurfit):
    MOMENTS.save(blurfit.folder / "moments.json")

    def table(*arguments: str):
        return blurfit("table moments.json", *arguments)

    return table


@pytest.mark.parametrize(
    ("typed", "ask"),
    [
        ([], lambda m: m.describe()),
        (["income"], lambda m: m.mean("income")),
        (["income", "region"], lambda m: m.mean("income", by="region")),
        (["region"], lambda m: m.table("region")),
        (["region", "married"], lambda m: m.table("region", "married")),
        (
            ["region", "married", "--shares", "row"],
            lambda m: m.table("region", "married", shares="row"),
        ),
    ],
)
def test_the_table_is_the_librarys(table, typed, ask) -> None:
    done = table(*typed)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{ask(MOMENTS)}\n"


def test_for_scripts_spreadsheets_and_eyes(table, tmp_path) -> None:
    done = table("income", "region", "--json", "--out", "means.csv", "--plot", "means.png")
    facts = json.loads(done.stdout)
    assert [row["region"] for row in facts["rows"]] == ["north", "south", "west"]
    assert facts["test"]["p_value"] < 1e-6
    assert (tmp_path / "means.csv").read_text().startswith("region,estimate,standard_error")
    assert (tmp_path / "means.png").read_bytes().startswith(b"\x89PNG")


def test_a_population_and_rows_for_other_tools(table, blurfit) -> None:
    """By a CSV of totals; rows say in their first line what they are not for."""
    totals = (
        "question,level,value\nregion,north,5000\nregion,south,3000\nregion,west,2000\nage,,50\n"
    )
    (blurfit.folder / "totals.csv").write_text(totals)
    known = {"region": {"north": 5000, "south": 3000, "west": 2000}, "age": 50}
    done = table("income", "--population", "totals.csv")
    assert done.stdout == f"{MOMENTS.calibrate(known).mean('income')}\n"
    refused = table("region", "married", "--population", "totals.csv")
    assert "products of three columns" in refused.stderr
    (blurfit.folder / "totals.csv").write_text("question,value\nage,50\n")
    assert "question, level and value" in table("income", "--population", "totals.csv").stderr
    assert table("--draw", "20", "--out", "rows.csv").returncode == 0
    first, heading, *rows = (blurfit.folder / "rows.csv").read_text().splitlines()
    assert first.startswith("# ")
    assert "no standard errors" in first
    assert heading == "region,married"
    assert len(rows) == 20
    assert "--out" in table("--draw", "20").stderr


def test_a_model_is_asked_more(table, blurfit) -> None:
    done = blurfit.done(
        "fit moments.json",
        "income ~ age + education",
        "--against",
        "income ~ age",
        "--test",
        "age = 300",
        "--effect",
        "age",
        "--plot",
        "effect.png",
        "--table",
        "table.xlsx",
        "--out",
        "model.json",
    )
    model = MOMENTS.fit("income ~ age + education")
    for told in (model.compare(MOMENTS.fit("income ~ age")), model.test("age = 300")):
        assert str(told) in done.stdout
    assert str(model.effect("age")) in done.stdout
    assert (blurfit.folder / "effect.png").stat().st_size > 1000
    assert (blurfit.folder / "table.xlsx").stat().st_size > 1000
    shown = blurfit("show model.json --test", "age = 300", "--json")
    facts = json.loads(shown.stdout)
    assert facts["test"]["p_value"] == pytest.approx(model.test("age = 300").p_value)
    assert "Expected a model" in blurfit("show moments.json --test", "age = 0").stderr


# ---- fit


FORMULA = "income ~ age + education + C(region, 'south')"


@pytest.fixture
def fit(blurfit):
    MOMENTS.save(blurfit.folder / "moments.json")

    def fit(*arguments: str):
        return blurfit("fit moments.json", *arguments)

    return fit


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        (["--ridge", "0"], {"ridge": 0.0}),
        (["--ridge", "0.5", "--uneven"], {"ridge": 0.5, "uneven": True}),
        (["--lasso", "0.01"], {"lasso": 0.01}),
    ],
)
def test_options_reach_the_fit(fit, tmp_path, typed, options) -> None:
    assert fit(FORMULA, *typed, "--out", "m.json").returncode == 0
    assert (tmp_path / "m.json").read_text() == MOMENTS.fit(FORMULA, **options).to_json()


def test_for_scripts(fit) -> None:
    facts = json.loads(fit("married ~ age + income", "--out", "m.json", "--json").stdout)
    assert (facts["model"], facts["target"], facts["count"]) == ("m.json", "married", 20_000)
    (output,) = facts["outputs"].values()
    age = output["estimates"][1]
    assert age["lower"] < age["value"] < age["upper"]
    assert age["standard_error"] > age["privacy_error"] > 0


# ---- show


@pytest.mark.parametrize(
    ("what", "words", "facts"),
    [
        (MOMENTS.agreement, f"Fingerprint {MOMENTS.fingerprint}.", {"kind": "agreement"}),
        (MOMENTS.agreement, "(1, 1e-06)-differentially private", {"trust": "one"}),
        (MOMENTS.fit(), str(MOMENTS.fit().summary()), {"kind": "model", "count": 20_000}),
        (MOMENTS, str(MOMENTS.correlations()), {"kind": "moments"}),
        (MOMENTS, '`blurfit fit file.json "income ~ ."`', {"fingerprint": MOMENTS.fingerprint}),
    ],
)
def test_show_tells_what_a_file_is(blurfit, what, words, facts) -> None:
    what.save(blurfit.folder / "file.json")
    done = blurfit.done("show file.json")
    assert " ".join(words.split()) in " ".join(f"{done.stdout} {done.stderr}".split())
    told = json.loads(blurfit.done("show file.json --json").stdout)
    assert told.items() >= facts.items()


# ---- groups


PAY = Schema(
    [Numeric("age", 20, 60), Categorical("sex", ["female", "male"]), Bands("pay", [20, 30, 40])],
    Numeric("pay", 0, 60),
)
PAY_TERMS = '\n[terms]\nepsilon = 50.0\ndelta = 1e-6\nquorum = 1000\ngroups = "sex"\n'


def test_from_a_file_of_questions_to_a_report(blurfit) -> None:
    generator = np.random.default_rng(1)
    woman, age = generator.random(1200) < 0.5, generator.uniform(20, 60, 1200)
    pay = np.clip(20 + 0.3 * age - 4 * woman + generator.normal(0, 3, 1200), 0, 60)
    sex = np.where(woman, "female", "male")
    rows = (f"{a:.1f},{s},{p:.1f}" for a, s, p in zip(age, sex, pay, strict=True))
    (blurfit.folder / "schema.toml").write_text(to_toml(PAY) + PAY_TERMS)
    (blurfit.folder / "people.csv").write_text("age,sex,pay\n" + "\n".join(rows) + "\n")
    agreed = blurfit.done("agree schema.toml --overlap 0.25 --out agreement.json")
    words = " ".join(agreed.stdout.split())
    assert "Groups: sums are kept apart by sex (overlap 0.25)" in words
    for typed in (
        ("contribute", "agreement.json", "people.csv", "--out", "sent.arrow"),
        ("learn", "agreement.json", "sent.arrow", "--out", "model.json", "--moments", "m.json"),
    ):
        blurfit.done(*typed)
    shown = blurfit("fit m.json", "pay ~ age", "--by-group")
    assert "People by sex" in shown.stdout
    assert shown.stdout.count("female") >= 3
    report = blurfit("fit m.json", "pay ~ age", "--gap", "female", "male")
    assert "pay: female less male, explained by age" in report.stdout
    asked = ("pay ~ age", "--gap", "female", "male", "--json", "--table", "gap.csv")
    facts = json.loads(blurfit("fit m.json", *asked).stdout)
    parts = {row["part"]: row for row in facts["rows"]}
    rest = parts["unexplained"]
    assert abs(rest["estimate"] + 4) < 4 * rest["standard_error"]
    assert (blurfit.folder / "gap.csv").read_text().startswith("part,")
    refused = blurfit("fit m.json --by-group --uneven")
    assert "Expected --by-group or --gap with a formula" in refused.stderr


def test_two_databases_publish_sums_of_groups() -> None:
    schema = Schema([Numeric("age", 0, 100), Categorical("k", ["a", "b"])], Numeric("y", 0, 100))
    promise = {"epsilon": 190, "delta": 1e-6, "quorum": 4, "admission": "anyone"}
    agreement = Agreement.propose(schema, databases=TWO, groups="k", proofs=False, **promise)
    table = {"age": [10, 20, 30, 40, 50, 60], "k": list("aababb"), "y": [5, 90, 30, 10, 70, 20]}
    shared = share(agreement, table)
    with Store() as first, Store() as second:
        peer = opened(agreement, first, second)
        for store, shares in ((first, shared.first), (second, shared.second)):
            store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
        second.close_collection(agreement.fingerprint)
        first.publish_text(agreement.fingerprint, peer)
        moments = PublishedMoments.from_json(first.moments_text(agreement.fingerprint))
        assert second.moments_text(agreement.fingerprint) == moments.to_json()
    exact = agreement.exact(table).sum(axis=0)
    assert np.abs(moments.sums - exact).max() < 6 * moments.deviation
