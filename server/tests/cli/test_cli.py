"""The command line as a whole: what it offers, its exit codes, and examples that work in order."""

import inspect
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence

import click
import pytest
from click.testing import CliRunner

from blurfit import __version__, cli, errors
from blurfit.agreement.agreement import Agreement
from blurfit.cli import REFUSED, UNREACHABLE, Commands, agree, as_exit
from blurfit.errors import BlurfitError, ServiceError
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from server_support.command import Blurfit
from support import processes
from support.command import environment

# Whose examples are run one after the other; tests of their own run those of the others.
IN_ORDER = [
    *("init", "calibrate", "guarantee", "agree", "serve", "open", "invite", "contribute"),
    *("status", "close", "publish", "export", "learn", "show", "fit", "predict", "statement"),
]


def example(name: str) -> list[str]:
    """What the command's help shows as its example."""
    epilog = cli.read(name).epilog
    assert epilog is not None, f"{name} shows no example"
    assert epilog.startswith(f"Example: blurfit {name} ")
    return shlex.split(epilog.removeprefix("Example: blurfit "))


def test_commands_are_listed_in_groups(blurfit) -> None:
    result = blurfit.done("--help")
    listed = re.findall(r"^  (\w+) ", result.stdout.split("Show this message")[1], re.MULTILINE)
    assert listed == list(cli.commands())
    assert all(f"{heading}:\n" in result.stdout for heading in cli.groups())
    assert "0 done; 2 wrong usage or value; 3 no service answers; 4 refused" in " ".join(
        result.stdout.split()
    )


@pytest.mark.parametrize("name", list(cli.commands()))
def test_what_is_listed_is_what_the_command_says_of_itself(name: str) -> None:
    assert cli.commands()[name].summary == cli.read(name).get_short_help_str(200)
    assert cli.read(name).name == name


HEAVY = "numpy", "scipy", "sklearn", "rich", "httpx2", "msgspec"


def said_without(heavy: Sequence[str], *typed: Sequence[str], **settings: str) -> list[str]:
    """What some commands say, one after the other in a process that must not import these."""
    script = f"""
import sys
from blurfit.cli import main
for arguments in {[list(one) for one in typed]!r}:
    try:
        main(arguments, prog_name="blurfit")
    except SystemExit as end:
        assert not end.code, arguments
    loaded = [name for name in {heavy!r} if name in sys.modules]
    assert not loaded, (arguments, loaded)
    print("\\f")
"""
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=environment() | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split("\f")[: len(typed)]


def test_help_waits_for_nothing() -> None:
    """Seconds of imports, were a command read for its one line of help."""
    names = ("predict", "fit", "show", "contribute", "publish")
    said = said_without(HEAVY, ["--help"], ["--version"], *([name, "--help"] for name in names))
    assert all(one.strip() for one in said)
    assert all(f"Usage: blurfit {name} " in one for name, one in zip(names, said[2:], strict=True))


def test_completion_waits_for_nothing() -> None:
    asked = {"_BLURFIT_COMPLETE": "bash_complete", "COMP_WORDS": "blurfit p", "COMP_CWORD": "1"}
    (said,) = said_without(HEAVY, [], **asked)
    assert "plain,publish" in said


def test_help_that_is_made_from_terms_waits_for_no_numbers() -> None:
    names = ("agree", "init", "calibrate", "guarantee", "forecast", "learn")
    said = said_without(("numpy", "scipy", "rich"), *([name, "--help"] for name in names))
    assert all(f"Usage: blurfit {name} " in one for name, one in zip(names, said, strict=True))


@pytest.mark.parametrize("name", list(cli.commands()))
def test_every_command_and_option_says_what_it_is_for(name: str) -> None:
    command = cli.read(name)
    assert command.help
    assert example(name)[0] == name
    options = [p for p in command.params if isinstance(p, click.Option)]
    assert all(p.help or isinstance(p.type, click.Choice) for p in options)
    if name not in ("serve", "quickstart"):  # which go on until they are stopped
        assert any("--json" in p.opts for p in options)


def test_help_shows_the_example(blurfit) -> None:
    result = blurfit.done("contribute -h")
    assert " ".join(example("contribute")) in " ".join(result.stdout.split())


def test_the_example_of_forecast_works_in_the_example(tmp_path) -> None:
    assert processes.run(example("init"), folder=tmp_path).returncode == 0
    folder = tmp_path / "survey"
    for name in ("agree", "forecast"):
        result = processes.run(example(name), folder=folder, environment=environment())
        assert result.returncode == 0, result.stderr
        assert result.stdout


def test_version_and_an_unknown_command(blurfit) -> None:
    assert __version__ in blurfit("--version").stdout
    blurfit.refused("guess", says="No such command 'guess'")
    assert "Did you mean 'publish'" in blurfit("publsh").stderr


def test_the_examples_work_one_after_the_other(tmp_path) -> None:
    """From an example survey to predictions: the examples of `--help`, in their order.

    The port is a free one, and invitations are for a collection that is opened for them.
    """
    folder = tmp_path / "survey"

    def run(arguments: list[str], url: str = "") -> str:
        typed = [word.replace("http://127.0.0.1:8000", url) for word in arguments]
        where = folder if folder.exists() else tmp_path
        result = processes.run(typed, folder=where, environment=environment())
        assert result.returncode == 0, f"{typed}: {result.stderr}"
        assert result.stdout
        return result.stdout

    done = []
    for name in ("init", "calibrate", "guarantee", "agree"):
        run(example(name))
        done.append(name)
    agreement = Agreement.load(folder / "agreement.json")
    served = [word for word in example("serve")[1:] if word not in ("--port", "8000")]
    with Blurfit(folder).serving(*served) as service:
        url = service.url
        done.append("serve")
        for name in IN_ORDER[len(done) :]:
            said = run(example(name), url)
            if name == "status":
                assert f'"count": {agree.PEOPLE}' in said
            done.append(name)
    assert done == IN_ORDER
    assert len((folder / "invitations.txt").read_text().split()) == agree.PEOPLE
    model = PublishedModel.load(folder / "model.json")
    assert (model.count, model.agreement) == (agree.PEOPLE, agreement)
    assert (folder / "learned.json").read_bytes() == (folder / "model.json").read_bytes()
    assert PublishedMoments.load(folder / "moments.json").fit().to_json() == model.to_json()
    assert PublishedModel.load(folder / "income.json").features == ("age", "education", "marital")
    predictions = (folder / "predictions.csv").read_text().splitlines()
    assert len(predictions) == agree.PEOPLE + 1
    for name in ("collection.db", "token.txt"):
        assert (folder / name).exists()


def test_every_option_can_be_given_in_the_environment_by_its_name() -> None:
    """Seen before: `serve --store` was BLURFIT_SERVE_PLACE, whatever the documentation said."""
    for name in cli.commands():
        for option in cli.read(name).params:
            if isinstance(option, click.Option) and "--help" not in option.opts:
                assert option.envvar in {cli.variable(name, flag) for flag in option.opts}, (
                    option.opts
                )
    given = {"BLURFIT_BACKUP_STORE": "sqlite:///nowhere.db", "BLURFIT_BACKUP_OUT": "out.db"}
    done = CliRunner(env=given).invoke(cli.main, ["backup"])
    assert done.exit_code == 2
    assert "nowhere.db" in done.output


# ---- common


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


def test_without_a_command_ten_lines_say_how_to_begin() -> None:
    """On standard output, so that a pager shows them; quickstart and init come first."""
    result = CliRunner().invoke(cli.main, [])
    lines = result.stdout.splitlines()
    assert (result.exit_code, len(lines), result.stderr) == (0, 10, "")
    assert [line.split()[1] for line in lines[2:4]] == ["quickstart", "init"]
    for name in re.findall(r"blurfit ([a-z]+)", result.stdout):
        assert name in cli.commands()


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
    assert (
        command == "contribute" or f"{url} does not answer. Trying again for 0.3" in result.stderr
    )
    assert "Traceback" not in result.stderr
    assert not result.stdout


def test_a_package_that_is_not_installed_is_a_line_that_names_its_extra() -> None:
    error = ModuleNotFoundError("No module named 'psycopg.rows'", name="psycopg.rows")
    result = CliRunner().invoke(raising(error), ["fail"])
    assert result.exit_code == 2
    assert "pip install 'blurfit-server[postgresql]'" in result.output


def test_a_module_of_our_own_that_is_not_there_is_a_bug() -> None:
    error = ModuleNotFoundError("No module named 'blurfit.nothing'", name="blurfit.nothing")
    result = CliRunner().invoke(raising(error), ["fail"])
    assert result.exception is error


def test_the_library_knows_which_commands_the_server_adds() -> None:
    """Without the server, each of them says what to install."""
    added = {name for name, command in cli.commands().items() if "blurfit_server" in command.module}
    assert added == set(cli.SERVER)
