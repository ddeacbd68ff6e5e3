"""Two databases as they are typed: agree, serve twice, open, invite, contribute, publish."""

import json

import pytest

from support.serving import Port
from support.surveys import schema_text

SCHEMA = schema_text()
PROMISE = ["--epsilon", "1", "--delta", "1e-6", "--quorum", "20"]


@pytest.fixture
def done(blurfit):
    (blurfit.folder / "schema.toml").write_text(SCHEMA)
    rows = "".join(f"{n},{n * 7 % 1001}\n" for n in range(30))
    (blurfit.folder / "people.csv").write_text("age,income\n" + rows)
    (blurfit.folder / "peer.txt").write_text("a-secret-that-two-databases-share-in-tests\n")

    def run(*arguments: str, code: int = 0) -> str:
        result = blurfit(*arguments)
        assert result.returncode == code, f"{arguments}: {result.stdout} {result.stderr}"
        return result.stdout if code == 0 else result.stderr

    return run


def test_from_a_schema_to_one_model_at_two_databases(blurfit, done) -> None:
    ports = Port(), Port()
    urls = [port.url for port in ports]
    split = ["--database", "Office", urls[0], "--database", "University", urls[1]]
    said = " ".join(done("agree", "schema.toml", *PROMISE, *split).split())
    assert "holds against each of the two as well" in said
    assert "Together they could" in said
    serving = [
        blurfit.start(
            *("serve", "--store", f"sqlite:///{name}.db", "--port", url.rpartition(":")[2]),
            *("--admin-token-file", f"{name}.txt", "--peer-token-file", "peer.txt"),
        )
        for name, url in zip(("first", "second"), urls, strict=True)
    ]
    try:
        for process in serving:
            assert "Serving at" in process.line()
        as_first, as_second = (
            ["agreement.json", "--to", url, "--admin-token-file", f"{name}.txt"]
            for name, url in zip(("first", "second"), urls, strict=True)
        )
        assert "--as first" in done("open", *as_first, code=2)
        for role, options in (("first", as_first), ("second", as_second)):
            opened = done("open", *options, "--as", role)
            assert "Collecting from those who are invited" in opened
            assert "The other database gives out its own" in opened
            done("invite", *options, "--count", "1", "--out", f"{role}-invitations.txt")
        again = blurfit("open", *as_first, "--as", "first")
        assert "--join second-invitations.txt --links --out links.txt" in again.stderr
        joined = ["--count", "2", "--links", "--out", "joined.txt"]
        assert "Expected --join FILE or --both" in done("invite", *as_first, *joined, code=2)
        done("invite", *as_second, "--count", "2", "--out", "theirs.txt")
        done("invite", *as_first, *joined, "--join", "theirs.txt")
        links = (blurfit.folder / "joined.txt").read_text().split()
        theirs = (blurfit.folder / "theirs.txt").read_text().split()
        assert sorted(link.split(",")[1] for link in links) == sorted(theirs)
        (blurfit.folder / "joined.txt").unlink()
        done("invite", *as_first, *joined, "--both", "second.txt")
        everyone = ["--count", "30", "--out", "everyone.txt", "--both", "second.txt"]
        done("invite", *as_first, *everyone)
        for line in (blurfit.folder / "joined.txt").read_text().split():
            page, _, both = line.partition("#invitation=")
            assert page == f"{urls[0]}/c/{_fingerprint(blurfit)}"
            assert [len(token) for token in both.split(",")] == [43, 43]
        assert "invitation" in done("contribute", "agreement.json", "people.csv", code=4)
        refused = done("contribute", "agreement.json", "people.csv", "--to", urls[0], code=2)
        assert "Expected no --to" in refused
        file = done("contribute", "agreement.json", "people.csv", "--out", "x.parquet", code=2)
        assert "between two databases" in " ".join(file.split())
        each = ["--invitations", "first-invitations.txt", "--invitations", "second-invitations.txt"]
        few = done("contribute", "agreement.json", "people.csv", *each, code=2)
        assert "Expected an invitation of Office for each of 30 rows" in " ".join(few.split())
        sent = done("contribute", "agreement.json", "people.csv", "--invitations", "everyone.txt")
        assert "30 rows" in sent
        assert "University to have closed" in done("publish", *as_first, code=2)
        assert "The next step is Office's" in done("publish", *as_second, code=4)
        waiting = done("status", *as_second[:3])
        assert "Office publishes for both databases: ask its administrator" in waiting
        done("publish", *as_first, "--out", "one.json")
        done("publish", *as_second, "--out", "two.json")
    finally:
        for process in serving:
            process.kill()
    models = {(blurfit.folder / name).read_text() for name in ("one.json", "two.json")}
    assert len(models) == 1
    assert json.loads(models.pop())["count"] == 30
    statement = done("statement", "one.json")
    assert "**Either of the two databases alone.**" in statement
    assert "**Office and University together.**" in statement


def test_a_peer_token_must_be_a_good_one(blurfit, done) -> None:
    (blurfit.folder / "peer.txt").write_text("short\n")
    assert "at least 32" in done("serve", "--peer-token-file", "peer.txt", code=2)
    with blurfit.serving("--peer-token-file", "new.txt", "--store", "sqlite:///new.db") as served:
        assert "new.txt is new: give a copy" in served.said
    assert len((blurfit.folder / "new.txt").read_text().strip()) == 43


def test_two_files_of_invitations(blurfit, done) -> None:
    split = ["--database", "A", "https://a.example", "--database", "B", "https://b.example"]
    done("agree", "schema.toml", *PROMISE, *split)
    (blurfit.folder / "some.txt").write_text("x\n")
    told = done("contribute", "agreement.json", "people.csv", "--invitations", "some.txt", code=2)
    assert "Expected 2 in each line" in told
    three = ["--invitations", "some.txt"] * 3
    told = done("contribute", "agreement.json", "people.csv", *three, code=2)
    assert "Expected 2 files" in told
    assert "two databases" in done("agree", "schema.toml", *PROMISE, *split[:3], code=2)


def _fingerprint(blurfit) -> str:
    return str(json.loads((blurfit.folder / "agreement.json").read_text())["fingerprint"])
