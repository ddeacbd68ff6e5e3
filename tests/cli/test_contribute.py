"""`blurfit contribute`: each row of a table once, however often it is run or killed."""

import itertools
import json
import signal
import time

import pytest

from blurfit.protocol import http
from cli.conftest import environment
from support import processes

ROWS = 25


@pytest.fixture
def collection(blurfit, agreed):
    """A collection of its own for each test, and a table of people."""
    (blurfit.folder / "people.csv").write_text("age,income\n" + "31,420\n" * ROWS)
    return agreed


def test_a_table_is_stored_and_counted_once(blurfit, collection, database, asked) -> None:
    database.open(collection)
    first = blurfit("contribute", "agreement.json", "people.csv", *asked)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "25 rows of people.csv are stored there, each counted once.\n"
    assert "25/25" in first.stderr  # the bar
    second = blurfit("contribute", "agreement.json", "people.csv", *asked, "--json")
    assert json.loads(second.stdout) == {"rows": ROWS, "fingerprint": collection.fingerprint}
    assert not second.stderr
    assert database.status(collection)["count"] == ROWS
    (blurfit.folder / "people.csv").write_text("age,income\n" + "31,420\n" * (ROWS + 1))
    changed = blurfit("contribute", "agreement.json", "people.csv", *asked)
    assert changed.returncode == 4
    assert "a file of their own" in " ".join(changed.stderr.split())
    assert "Traceback" not in changed.stderr
    assert database.status(collection)["count"] == ROWS


def test_a_bad_row_is_exit_code_2_and_nothing_is_sent(blurfit, collection, database, asked) -> None:
    unopened = blurfit("contribute", "agreement.json", "people.csv", *asked)
    assert unopened.returncode == 2
    assert "Nothing is collected" in unopened.stderr
    database.open(collection)
    with (blurfit.folder / "people.csv").open("a") as file:
        file.write("old,420\n")
    result = blurfit("contribute", "agreement.json", "people.csv", *asked)
    assert result.returncode == 2
    assert (
        f"Row {ROWS + 2} of 'people.csv' (the heading is row 1) has a value of 'age'"
        in " ".join(result.stderr.split())
    )
    assert "Traceback" not in result.stderr
    assert database.status(collection)["count"] == 0


def test_those_who_are_invited(blurfit, collection, database, asked, service) -> None:
    database.open(collection)
    sending = ["contribute", "agreement.json", "people.csv", *asked]
    stranger = blurfit(*sending)
    assert stranger.returncode == 4
    assert "invitation" in stranger.stderr
    tokens = database.invite(collection, ROWS)
    page = f"{service.url}/c/{collection.fingerprint}#invitation="
    (blurfit.folder / "few.txt").write_text("\n".join(tokens[1:]))
    few = blurfit(*sending, "--invitations", "few.txt")
    assert few.returncode == 2
    assert f"an invitation for each of {ROWS} rows" in " ".join(few.stderr.split())
    links = [page + token if row % 2 else token for row, token in enumerate(tokens)]
    (blurfit.folder / "all.txt").write_text("\n".join(links) + "\n\n")
    result = blurfit(*sending, "--invitations", "all.txt")
    assert result.returncode == 0, result.stderr
    assert database.status(collection)["count"] == ROWS
    anew = [*sending, "--invitations", "all.txt", "--journal", "anew.journal"]
    again = blurfit(*anew)
    assert again.returncode == 4
    assert "were blurred before under this agreement" in " ".join(again.stderr.split())
    spent = blurfit(*anew, "--other-people")
    assert spent.returncode == 4
    assert "have been used" in " ".join(spent.stderr.split())
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
    result = blurfit(*sending)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == rows
    assert database.status(collection)["count"] == rows
