"""What a contributor types: each row of a table once, to one database or two, and a receipt."""

import itertools
import json
import signal
import time

import pytest
from click.testing import CliRunner

from blurfit import About, Agreement, Numeric, Schema, private_files
from blurfit import protocol as http
from blurfit.cli import main
from blurfit.contributor.journal import Receipt
from blurfit.messages.signing import Signer, new_key
from blurfit.protocol import hashed
from blurfit_server import Store
from blurfit_server.service.app import Service, in_a_thread
from server_support.requests import TOKEN
from server_support.serving import Port
from support import processes
from support.command import environment
from support.proposals import propose
from support.surveys import schema_text

ROWS = 25


@pytest.fixture
def collection(blurfit, agreed):
    """A collection of its own for each test, and a table of people."""
    (blurfit.folder / "people.csv").write_text("age,income\n" + "31,420\n" * ROWS)
    return agreed


def test_a_bad_row_is_exit_code_2_and_nothing_is_sent(blurfit, collection, database, asked) -> None:
    blurfit.refused("contribute agreement.json people.csv", *asked, says="Nothing is collected")
    database.open(collection)
    with (blurfit.folder / "people.csv").open("a") as file:
        file.write("old,420\n")
    blurfit.refused(
        "contribute agreement.json people.csv",
        *asked,
        says=f"Row {ROWS + 2} of 'people.csv' (the heading is row 1) has a value of 'age'",
    )
    assert database.status(collection)["count"] == 0


def test_those_who_are_invited(blurfit, collection, database, asked, service) -> None:
    database.open(collection)
    sending = ["contribute", "agreement.json", "people.csv", *asked]
    blurfit.refused(*sending, says="invitation", code=4)
    tokens = database.invite(collection, ROWS)
    page = f"{service.url}/c/{collection.fingerprint}#invitation="
    (blurfit.folder / "few.txt").write_text("\n".join(tokens[1:]))
    blurfit.refused(
        *sending, "--invitations", "few.txt", says=f"an invitation for each of {ROWS} rows"
    )
    links = [page + token if row % 2 else token for row, token in enumerate(tokens)]
    (blurfit.folder / "all.txt").write_text("\n".join(links) + "\n\n")
    blurfit.done(*sending, "--invitations", "all.txt")
    assert database.status(collection)["count"] == ROWS
    anew = [*sending, "--invitations", "all.txt", "--journal", "anew.journal"]
    blurfit.refused(*anew, says="were blurred before under this agreement", code=4)
    blurfit.refused(*anew, "--other-people", says="have been used", code=4)
    assert database.status(collection)["count"] == ROWS


def half_of_it(*arguments: str) -> None:
    """The command, which stops for ever before its sixth request that sends something."""
    ask, sent = http.Exchange.post, itertools.count(1)

    def post(self: http.Exchange, *given: object, **named: object) -> bytes:
        if next(sent) > 5:
            signal.pause()
        return ask(self, *given, **named)  # type: ignore[arg-type]

    http.Exchange.post = post  # type: ignore[method-assign,assignment]
    processes.blurfit(*arguments)


def test_a_run_that_is_killed_goes_on_where_it_was(blurfit, collection, database, asked) -> None:
    """At any moment after its first thousand rows, and before it has sent all."""
    rows = 10_000
    database.open(collection)
    (blurfit.folder / "people.csv").write_text("age,income\n" + "31,420\n" * rows)
    sending = ["contribute", "agreement.json", "people.csv", *asked, "--json"]
    process = processes.start(
        half_of_it,
        *sending,
        folder=blurfit.folder,
        environment=environment(),
        out=blurfit.folder / "said",
    )
    try:
        deadline = time.monotonic() + 300
        while not database.status(collection)["count"]:
            assert process.poll() is None, (blurfit.folder / "said").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert 0 < database.status(collection)["count"] < rows
    result = blurfit.done(*sending)
    assert json.loads(result.stdout)["rows"] == rows
    assert database.status(collection)["count"] == rows


# ---- withdraw


def run(*typed: object, code: int = 0) -> str:
    result = CliRunner().invoke(main, [str(one) for one in typed])
    assert result.exit_code == code, result.output
    return result.output


def test_from_a_receipt_to_a_verified_model(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    private = new_key()
    agreement = propose(signing_keys=[Signer(private).key])
    agreement.save("agreement.json")
    private_files.write(tmp_path / "token.txt", TOKEN)
    rows = "".join(f"{n},{2 * n}\n" for n in range(24))
    (tmp_path / "people.csv").write_text(f"age,income\n{rows}")
    with Store() as store:
        store.appoint(hashed(TOKEN))
        store.open(agreement)
        with in_a_thread(Service(store, signing_key=private)) as url:
            to = ("--to", url, "--patience", 5)
            told = run("contribute", "agreement.json", "people.csv", *to, "--receipt", "r.json")
            assert "The receipt is in r.json" in told
            assert Receipt.load("r.json").parts[0].rows == 24
            checked = ("verify", "r.json", "--agreement", "agreement.json")
            assert "that 24 submissions are stored" in run(*checked)
            assert "Expected --agreement" in run("verify", "r.json", code=2)
            assert "from 1 to 24, and got 25" in run("withdraw", "r.json", "--row", 25, code=2)
            assert "2 submissions are withdrawn" in run(
                "withdraw", "r.json", "--row", 3, "--row", 7
            )
            again = json.loads(run("withdraw", "r.json", "--row", 3, "--json"))
            assert (again["out"], again["staying"], len(again["signatures"])) == (1, 0, 1)
            assert store.count(agreement) == 22
            administer = (*to, "--admin-token-file", "token.txt")
            run("publish", "agreement.json", *administer, "--out", "m.json", "--moments", "s.json")
            assert "is closed" in run("withdraw", "r.json", "--row", 1, code=4)
        for file in ("m.json", "s.json"):
            assert "verified." in run("verify", file, "--agreement", "agreement.json")
        assert json.loads((tmp_path / "m.json").read_text())["count"] == 22


# ---- ledger


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
    first = blurfit.done("contribute one.json people.csv --out one.arrow")
    assert "Warning" not in first.stderr
    second = blurfit.done("contribute two.json people.csv --out two.arrow")
    assert "Warning: rows were sent for the same purpose before" in second.stderr
    told = blurfit("ledger")
    assert told.stdout.count("2 rows to the file") == 2
    assert "published has ε = 2.2" in told.stdout
    facts = json.loads(blurfit("ledger --json").stdout)
    assert [one["where"] for one in facts["entries"]] == [
        "the file one.arrow",
        "the file two.arrow",
    ]
    assert 2 < facts["together"]["replace"]["epsilon"] < 2.5
    assert "Erased 2 entries" in blurfit("ledger --erase").stdout
    assert "Nothing has been sent" in blurfit("ledger").stdout


# ---- two databases


SCHEMA = schema_text()
PROMISE = ["--epsilon", "1", "--delta", "1e-6", "--quorum", "20"]


@pytest.fixture
def done(blurfit):
    (blurfit.folder / "schema.toml").write_text(SCHEMA)
    rows = "".join(f"{n},{n * 7 % 1001}\n" for n in range(30))
    (blurfit.folder / "people.csv").write_text("age,income\n" + rows)
    private_files.write(blurfit.folder / "peer.txt", "a-secret-that-two-databases-share-in-tests\n")

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
        made = done("invite", *as_second, "--count", "2", "--out", "theirs.txt")
        assert "Give the file to the administrator of Office" in made
        assert f"--to {urls[0]} … --count 2 --join theirs.txt`" in made
        done("invite", *as_first, *joined, "--join", "theirs.txt")
        links = (blurfit.folder / "joined.txt").read_text().split()
        heading, *theirs = (blurfit.folder / "theirs.txt").read_text().split()
        assert heading == f"blurfit-invitations:{_fingerprint(blurfit)}:second"
        assert sorted(link.split(",")[1] for link in links) == sorted(theirs)
        (blurfit.folder / "joined.txt").unlink()
        _refused_files(blurfit, done, [*as_first, *joined], theirs)
        done("invite", *as_first, *joined, "--both", "second.txt")
        everyone = ["--count", "30", "--out", "everyone.txt", "--both", "first.txt"]
        done("invite", *as_second, *everyone)  # in the order of the databases all the same
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


def _refused_files(blurfit, done, joining: list[str], theirs: list[str]) -> None:
    """Each of these would make links that do not work, or show one's own to the other database."""

    def write(name: str, fingerprint: str, role: str, tokens: list[str]) -> None:
        lines = [f"blurfit-invitations:{fingerprint}:{role}", *tokens, ""]
        (blurfit.folder / name).write_text("\n".join(lines))

    def refused(name: str, says: str, code: int) -> None:
        assert says in " ".join(done("invite", *joining, "--join", name, code=code).split())
        assert not (blurfit.folder / "joined.txt").exists()

    here, fresh = _fingerprint(blurfit), ["a" * 43, "b" * 43]
    _, own = (blurfit.folder / "first-invitations.txt").read_text().split()
    write("again.txt", here, "second", theirs[::-1])
    write("other.txt", "ab" * 32, "second", fresh)
    write("own.txt", here, "second", [own, fresh[0]])
    write("twice.txt", here, "second", [fresh[0]] * 2)
    write("unknown.txt", here, "second", fresh)
    (blurfit.folder / "bare.txt").write_text("\n".join(fresh))
    refused("theirs.txt", "2 of these were joined before", 4)
    refused("again.txt", "2 of these were joined before", 4)
    refused("own.txt", "1 of these are this database's own", 4)
    refused("unknown.txt", "they are of another collection, or were used", 4)
    refused("other.txt", "it is of another collection, of your own database", 2)
    refused("first-invitations.txt", "it is of another collection, of your own database", 2)
    refused("bare.txt", "no file of invitations", 2)
    refused("twice.txt", "it holds 1 in 2 lines", 2)
    write("cut.txt", here, "second", [fresh[0], fresh[1][:-1]])
    write("script.txt", here, "second", [fresh[0], "\x1b" + fresh[1][:-1]])
    (blurfit.folder / "wide.txt").write_text("\n".join(fresh), encoding="utf-16")
    refused("cut.txt", "it holds 1 in 2 lines", 2)
    refused("script.txt", "it holds 1 in 2 lines", 2)
    refused("wide.txt", "no file of invitations", 2)


def test_a_peer_token_must_be_a_good_one(blurfit, done) -> None:
    private_files.write(blurfit.folder / "peer.txt", "short\n")
    assert "at least 32" in done("serve", "--peer-token-file", "peer.txt", code=2)
    for option in ("--peer-token-file", "--admin-token-file", "--share-key-file"):
        (blurfit.folder / "open.txt").write_text("a-secret-that-everybody-on-this-machine-reads\n")
        (blurfit.folder / "open.txt").chmod(0o644)
        told = " ".join(done("serve", option, "open.txt", code=2).split())
        assert "must be closed to other accounts of this machine, got mode 0644" in told
        assert "`chmod 600`" in told
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
