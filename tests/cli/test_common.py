"""What a script sees: exit codes that mean what they say, and one line that names the value."""

import inspect
import json
import socket

import click
import pytest
from click.testing import CliRunner

from blurfit import errors
from blurfit.agreement.agreement import Agreement
from blurfit.cli import REFUSED, UNREACHABLE, Commands, as_exit
from blurfit.cli._options import Answer, command
from blurfit.errors import BlurfitError, InvalidValueError, NotCertifiedError, ServiceError

# 2: change what you typed; 3: try the same again; 4: it is not to be had as things stand.
CODES = {
    "BlurfitError": 2,
    "InvalidValueError": 2,
    "InfeasibleError": 2,
    "NotCertifiedError": 2,
    "UnknownCollectionError": 2,
    "StorageError": 3,
    "ServiceError": 3,
    "ConflictError": 4,
    "NotInvitedError": 4,
    "ClosedError": 4,
    "WaveClosedError": 4,
    "DateClosedError": 4,
    "PausedError": 4,
    "BetweenWavesError": 4,
    "NotPublishedError": 4,
    "OtherGroupError": 4,
    "BelowQuorumError": 4,
}


def raising(error: Exception) -> click.Group:
    @click.command()
    def fail() -> None:
        raise error

    return Commands(commands={"fail": fail})


def test_every_error_has_an_exit_code() -> None:
    classes = {
        c.__name__
        for c in vars(errors).values()
        if inspect.isclass(c) and issubclass(c, BlurfitError)
    }
    assert set(CODES) == classes


@pytest.mark.parametrize("name", CODES)
def test_an_error_is_a_line_and_its_exit_code(name: str) -> None:
    error = getattr(errors, name)("Expected n=3 of at least 4.")
    result = CliRunner().invoke(raising(error), ["fail"])
    assert result.exit_code == CODES[name] == as_exit(error).exit_code
    assert result.stderr == "Error: Expected n=3 of at least 4.\n"
    assert not result.stdout


@pytest.mark.parametrize("status", [400, 401, 404, 405, 413, 415])
def test_a_service_that_refused_is_told_from_one_that_is_away(status: int) -> None:
    assert as_exit(ServiceError("No.", status)).exit_code == REFUSED


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_service_that_was_busy_may_be_asked_again(status: int) -> None:
    """Exit code 3 is documented as: the same command may be run again."""
    assert as_exit(ServiceError("Later.", status)).exit_code == UNREACHABLE


def test_numbers_beyond_floating_point_are_wrong_values() -> None:
    result = CliRunner().invoke(raising(OverflowError("math range error")), ["fail"])
    assert result.exit_code == 2
    assert "too large or too small for floating point (math range error)" in result.stderr


def test_what_is_a_mistake_of_ours_is_not_hidden() -> None:
    result = CliRunner().invoke(raising(KeyError("oops")), ["fail"])
    assert isinstance(result.exception, KeyError)


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


def test_an_agreement_is_verified_when_it_is_read(propose, tmp_path) -> None:
    path, agreement = tmp_path / "agreement.json", propose()
    agreement.save(path)
    assert Agreement.load(path) == agreement
    document = agreement.to_dict()
    document["calibration"]["sigma"] *= 0.9
    weak = Agreement.from_dict(document)
    weak.save(path)
    with pytest.raises(NotCertifiedError):
        Agreement.load(path)
    path.write_text(agreement.to_json().replace('"upper":100', '"upper":101'))
    with pytest.raises(InvalidValueError, match="was changed after it was written"):
        Agreement.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BlurfitError):
        Agreement.load(path)


# ---- real processes


@pytest.mark.parametrize("command", ["status", "contribute"])
def test_who_does_not_answer_is_exit_code_3(blurfit, propose, command: str) -> None:
    propose().save(blurfit.folder / "agreement.json")
    (blurfit.folder / "people.csv").write_text("age,income\n1,2\n")
    table = ["people.csv"] if command == "contribute" else []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        asked = ["agreement.json", *table, "--to", url, "--patience", "0.3"]
        result = blurfit(command, *asked)
    assert result.returncode == 3
    assert url in result.stderr
    assert "Traceback" not in result.stderr
    assert not result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.json", "--to", "http://127.0.0.1:1"], "'nowhere.json' does not exist"),
        (["broken.json", "--to", "http://127.0.0.1:1"], "Expected an agreement or a plan in JSON"),
        (["agreement.json", "--to", "127.0.0.1:1"], "Expected '127.0.0.1:1' to be the address"),
        (["agreement.json", "--to", "http://127.0.0.1:port"], "http://127.0.0.1:port"),
        (["agreement.json"], "Missing option '--to'"),
    ],
)
def test_what_is_typed_wrongly_is_exit_code_2(blurfit, propose, arguments, message) -> None:
    propose().save(blurfit.folder / "agreement.json")
    (blurfit.folder / "broken.json").write_text("{")
    result = blurfit("status", *arguments)
    assert "Traceback" not in result.stderr
    assert result.returncode == 2
    assert message in result.stderr
    assert not result.stdout


def test_a_package_that_is_not_installed_is_a_line_that_names_its_extra() -> None:
    error = ModuleNotFoundError("No module named 'starlette.routing'", name="starlette.routing")
    result = CliRunner().invoke(raising(error), ["fail"])
    assert result.exit_code == 2
    assert "pip install 'blurfit[service]'" in result.output


def test_a_module_of_our_own_that_is_not_there_is_a_bug() -> None:
    error = ModuleNotFoundError("No module named 'blurfit.nothing'", name="blurfit.nothing")
    result = CliRunner().invoke(raising(error), ["fail"])
    assert result.exception is error
