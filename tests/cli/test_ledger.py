"""`blurfit ledger`, and the warning before a second contribution to one purpose."""

import json

from blurfit import About, Agreement, Numeric, Schema


def write(folder, name: str, epsilon: float) -> None:
    schema = Schema(
        [Numeric("age", 0, 100)], Numeric("income", 0, 1000), about=About(purpose="Health")
    )
    Agreement.propose(schema, epsilon=epsilon, delta=1e-6, quorum=500).save(folder / name)


def test_what_was_sent_and_what_it_adds_up_to(blurfit) -> None:
    assert "Nothing has been sent" in blurfit("ledger").stdout
    (blurfit.folder / "people.csv").write_text("age,income\n30,400\n50,500\n")
    for name, epsilon in (("one", 1), ("two", 2)):
        write(blurfit.folder, f"{name}.json", epsilon)
    first = blurfit("contribute", "one.json", "people.csv", "--out", "one.arrow")
    assert first.returncode == 0, first.stderr
    assert "Warning" not in first.stderr
    second = blurfit("contribute", "two.json", "people.csv", "--out", "two.arrow")
    assert second.returncode == 0, second.stderr
    assert "Warning: rows were sent for the same purpose before" in second.stderr
    told = blurfit("ledger")
    assert told.stdout.count("2 rows to the file") == 2
    assert "published has ε = 2.2" in told.stdout
    facts = json.loads(blurfit("ledger", "--json").stdout)
    assert [one["where"] for one in facts["entries"]] == [
        "the file one.arrow",
        "the file two.arrow",
    ]
    assert 2 < facts["together"]["replace"]["epsilon"] < 2.5
    assert "Erased 2 entries" in blurfit("ledger", "--erase").stdout
    assert "Nothing has been sent" in blurfit("ledger").stdout
