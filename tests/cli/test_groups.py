"""Groups from a schema's file to a pay-gap report, as typed; and between two databases."""

import json

import numpy as np

from blurfit import Agreement, Categorical, Numeric, PublishedMoments, Schema
from blurfit.contributor.blur import share
from blurfit.store.store import Store
from support.sharing import TWO, arrival, opened

SCHEMA = """
[[features]]
name = "age"
kind = "numeric"
lower = 20
upper = 60

[[features]]
name = "sex"
kind = "categorical"
levels = ["female", "male"]

[[features]]
name = "bands(pay)"
kind = "bands"
of = "pay"
edges = [20, 30, 40]

[target]
name = "pay"
kind = "numeric"
lower = 0
upper = 60

[terms]
epsilon = 50.0
delta = 1e-6
quorum = 1000
groups = "sex"
"""


def test_from_a_file_of_questions_to_a_report(blurfit) -> None:
    generator = np.random.default_rng(1)
    woman, age = generator.random(1200) < 0.5, generator.uniform(20, 60, 1200)
    pay = np.clip(20 + 0.3 * age - 4 * woman + generator.normal(0, 3, 1200), 0, 60)
    sex = np.where(woman, "female", "male")
    rows = (f"{a:.1f},{s},{p:.1f}" for a, s, p in zip(age, sex, pay, strict=True))
    (blurfit.folder / "schema.toml").write_text(SCHEMA)
    (blurfit.folder / "people.csv").write_text("age,sex,pay\n" + "\n".join(rows) + "\n")
    agreed = blurfit("agree", "schema.toml", "--overlap", "0.25", "--out", "agreement.json")
    assert agreed.returncode == 0, agreed.stderr
    words = " ".join(agreed.stdout.split())
    assert "Groups: sums are kept apart by sex (overlap 0.25)" in words
    for typed in (
        ("contribute", "agreement.json", "people.csv", "--out", "sent.arrow"),
        ("learn", "agreement.json", "sent.arrow", "--out", "model.json", "--moments", "m.json"),
    ):
        done = blurfit(*typed)
        assert done.returncode == 0, done.stderr
    shown = blurfit("fit", "m.json", "pay ~ age", "--by-group")
    assert "People by sex" in shown.stdout
    assert shown.stdout.count("female") >= 3
    report = blurfit("fit", "m.json", "pay ~ age", "--gap", "female", "male")
    assert "share of female in the lowest quarter" in report.stdout
    asked = (
        "fit",
        "m.json",
        "pay ~ age",
        "--gap",
        "female",
        "male",
        "--json",
        "--table",
        "gap.csv",
    )
    facts = json.loads(blurfit(*asked).stdout)
    parts = {row["part"]: row for row in facts["rows"]}
    rest = parts["unexplained"]
    assert abs(rest["estimate"] + 4) < 4 * rest["standard_error"]
    assert (blurfit.folder / "gap.csv").read_text().startswith("part,")
    refused = blurfit("fit", "m.json", "--by-group", "--uneven")
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
