"""`blurfit contribute --out`, `export` and `learn`, as they are typed."""

import json

import numpy as np
import pytest

from blurfit import PublishedModel, PublishedMoments, Store, perturb_table
from blurfit.messages.files import Writer

_TO_A_FILE = ["contribute", "agreement.json", "people.csv", "--out"]
PEOPLE = {"age": np.linspace(0, 100, 30), "income": np.linspace(0, 1000, 30)}


@pytest.fixture
def agreed(blurfit, propose):
    agreement = propose()
    agreement.save(blurfit.folder / "agreement.json")
    return agreement


def test_hospitals_blur_and_somebody_learns(blurfit, agreed) -> None:
    (blurfit.folder / "lake").mkdir()
    for first, name in enumerate("ab"):
        (blurfit.folder / f"{name}.csv").write_text(
            "age,income\n" + "".join(f"{age},{10 * age}\n" for age in range(first, first + 15))
        )
        typed = ["contribute", "agreement.json", f"{name}.csv", "--out", f"lake/{name}.parquet"]
        done = blurfit(*typed)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"Wrote 15 submissions to lake/{name}.parquet, one for each")
    few = blurfit("learn", "agreement.json", "lake/a.parquet")
    assert few.returncode == 4
    assert "5 more contributors are needed" in few.stderr
    learned = blurfit("learn", "agreement.json", "lake/*.parquet", "--json", "--workers", "2")
    assert learned.returncode == 0, learned.stderr
    said = json.loads(learned.stdout)
    assert (said["model"], said["count"]) == ("model.json", 30)
    assert said["fingerprint"] == agreed.fingerprint
    again = blurfit(
        *("learn", "agreement.json", "lake", "--workers", "1"),
        *("--out", "again.json", "--moments", "moments.json"),
    )
    assert again.returncode == 0, again.stderr
    model = PublishedModel.load(blurfit.folder / "again.json")
    assert again.stdout == f"{model.summary()}\n\nWrote again.json and moments.json.\n"
    moments = PublishedMoments.load(blurfit.folder / "moments.json")
    assert moments.fit().to_json() == model.to_json()
    first, second = (blurfit.folder / name for name in ("model.json", "again.json"))
    assert first.read_bytes() == second.read_bytes()
    (blurfit.folder / "lake" / "b.parquet").unlink()
    changed = blurfit("learn", "agreement.json", "lake", "--out", "third.json")
    assert changed.returncode == 4
    assert "missing: b.parquet" in changed.stderr
    assert not (blurfit.folder / "third.json").exists()


def test_a_new_cluster_learns_the_same(blurfit, agreed) -> None:
    table, texts = perturb_table(agreed, PEOPLE), set()
    for engine in ("local", "dask"):  # each in a folder of its own, since a release is recorded
        (blurfit.folder / engine).mkdir()
        with Writer(blurfit.folder / engine / "a.parquet", agreed.layout) as writer:
            writer.add(table)
        options = ["--engine", engine, "--workers", "1", "--out", f"{engine}.model"]
        done = blurfit.apart("learn", "agreement.json", engine, *options)
        assert done.returncode == 0, done.stderr
        texts.add((blurfit.folder / f"{engine}.model").read_bytes())
    assert len(texts) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_closed_collection_is_exported(blurfit, agreed, kind, request) -> None:
    place = "sqlite:///collection.db"
    if kind == "postgresql":
        place = request.getfixturevalue("places").fresh()
    here = f"sqlite:///{blurfit.folder}/collection.db" if kind == "sqlite" else place
    with Store(here) as store:
        store.add(agreed, perturb_table(agreed, PEOPLE))
    typed = ["export", "agreement.json", "--store", place, "--out", "a.parquet", "--json"]
    early = blurfit(*typed)
    assert early.returncode == 4
    assert "still collecting" in early.stderr
    with Store(here) as store:
        published = store.publish_text(agreed.fingerprint)
    done = blurfit(*typed)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "rows": 30,
        "fingerprint": agreed.fingerprint,
        "out": "a.parquet",
    }
    assert blurfit("learn", "agreement.json", "a.parquet").returncode == 0
    assert (blurfit.folder / "model.json").read_text() == published
    assert PublishedModel.load(blurfit.folder / "model.json").count == 30


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["contribute", "agreement.json", "people.csv"], "either --to SERVICE or --out FILE"),
        (
            [*_TO_A_FILE, "a.parquet", "--invitations", "people.csv"],
            "no --invitations",
        ),
        ([*_TO_A_FILE, "a.csv"], ".parquet or .arrow"),
        (["learn", "agreement.json", "people.csv", "--scheduler", "tcp://x:1"], "--engine dask"),
        (["learn", "agreement.json", "people.csv"], "Parquet or Arrow file"),
        (["learn", "agreement.json", "nothing*"], "a pattern that some match"),
        (["learn", "agreement.json", "http://127.0.0.1:1/a.parquet"], "Cannot open"),
        (
            ["export", "agreement.json", "--store", "sqlite:///x.db", "--out", "a.parquet"],
            "Nothing",
        ),
    ],
)
def test_wrong_words(blurfit, agreed, typed, words) -> None:
    (blurfit.folder / "people.csv").write_text("age,income\n1,2\n")
    refused = blurfit(*typed)
    assert refused.returncode == 2, refused.stderr
    assert words in " ".join(refused.stderr.split())
    assert not (blurfit.folder / "model.json").exists()
    assert not (blurfit.folder / "a.parquet").exists()


def test_the_sums_of_input_are_not_shown(blurfit, propose) -> None:
    propose(mechanism="input", weight_bound=1.0).save(blurfit.folder / "agreement.json")
    refused = blurfit("learn", "agreement.json", "nothing", "--moments", "moments.json")
    assert refused.returncode == 2
    assert "its sums are never shown" in " ".join(refused.stderr.split())
