"""Arguments and options follow from a function's signature, and their help from its docstring."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click
from click.testing import CliRunner, Result

from blurfit.cli._common import Answer, Together, command


@dataclass(frozen=True)
class Place:
    """Where to go.

    Options:
        port: The port
            of the place.
    """

    host: Annotated[str, "The host."]
    port: int = 80


def doubled(_context: object, _option: object, value: int) -> int:
    return 2 * value


@command("go", "there")
def go(
    file: Path,
    others: tuple[int, ...] = (),
    *,
    at: Place,
    as_: Literal["one", "two"] | None,
    pair: tuple[float, float] | None,
    row: tuple[Annotated[int, click.IntRange(1)], ...],
    fast: bool,
    shown: bool = True,
    twice: Annotated[int, doubled] = 3,
    terms: Annotated[dict[str, int], Together([click.Option(["--a"], type=int)])],
) -> Answer:
    """Go somewhere.

    Options:
        as_: Who goes: one of two.
        pair (LEFT RIGHT): Two numbers.
    """
    facts = [str(file), others, [at.host, at.port], as_, pair, row, fast, shown, twice, terms]
    return Answer(facts, "Gone.")


def run(*typed: str) -> Result:
    return CliRunner().invoke(go, [*typed, "--json"])


def told(*typed: str) -> object:
    return json.loads(run(*typed).stdout)


def test_what_is_typed_reaches_the_function() -> None:
    facts = ["there", [], ["here", 80], None, None, [], False, True, 6, {"a": None}]
    assert told("there", "--host", "here") == facts
    typed = "there 4 5 --host here --port 9 --as two --pair 1 2.5 --row 1 --row 2 --fast --no-shown"
    expected = ["there", [4, 5], ["here", 9], "two", [1.0, 2.5], [1, 2], True, False, 8, {"a": 7}]
    assert told(*shlex.split(typed), "--twice", "4", "--a", "7") == expected


def test_what_is_wrong_is_refused() -> None:
    for typed, message in (
        (["there"], "Missing option '--host'"),
        (["--host", "here"], "Missing argument 'FILE'"),
        (["there", "--host", "here", "--as", "three"], "'three' is not one of"),
        (["there", "--host", "here", "--row", "0"], "0 is not in the range"),
    ):
        result = run(*typed)
        assert result.exit_code == 2
        assert message in result.output


def test_help_is_the_docstring() -> None:
    said = " ".join(CliRunner().invoke(go, ["--help"]).output.split())
    for words in (
        "[OPTIONS] FILE [OTHERS]... Go somewhere. Options:",
        "--host TEXT The host. [required]",
        "--port INTEGER The port of the place. [default: 80]",
        "--as [one|two] Who goes: one of two.",
        "--pair LEFT RIGHT Two numbers.",
        "--shown / --no-shown",
        "--json Print JSON for scripts.",
        "Example: blurfit go there",
    ):
        assert words in said
    assert "as_:" not in said


def test_an_answer_is_a_sentence_or_json() -> None:
    @command("count", "3")
    def count(rows: int) -> Answer:
        """Count."""
        return Answer({"rows": rows}, f"There are {rows} rows.", "count again.", code=7)

    said = CliRunner().invoke(count, ["3"])
    assert (said.exit_code, said.stdout, said.stderr) == (
        *(7, "There are 3 rows.\n", "Next: count again.\n"),
    )
    facts = CliRunner().invoke(count, ["3", "--json"])
    assert (facts.exit_code, json.loads(facts.stdout), facts.stderr) == (7, {"rows": 3}, "")
