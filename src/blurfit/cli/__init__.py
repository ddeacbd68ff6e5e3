"""The command line: its commands in groups, each read when it is called, and their exit codes.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 2 | a wrong option, file or value; nothing was done |
| 3 | no service answered; the same command may be run again |
| 4 | refused as things stand: below quorum, closed, a conflict, not invited |
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import click

from blurfit import __version__, errors
from blurfit.errors import EXTRAS, BlurfitError, ServiceError, StorageError, missing

WRONG, UNREACHABLE, REFUSED = 2, 3, 4

_REFUSALS = (
    *(errors.BelowQuorumError, errors.BetweenWavesError, errors.ClosedError, errors.ConflictError),
    *(errors.NotInvitedError, errors.NotPublishedError, errors.OtherGroupError, errors.PausedError),
)


class WrongError(click.ClickException):
    """A wrong option, file or value."""

    exit_code = WRONG


class UnreachableError(click.ClickException):
    """No service answers."""

    exit_code = UNREACHABLE


class RefusedError(click.ClickException):
    """Refused as things stand."""

    exit_code = REFUSED


class Commands(click.Group):
    """Turns what blurfit refuses into one line on standard error and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BlurfitError as error:
            raise as_exit(error) from error
        except ModuleNotFoundError as error:
            package = str(error.name).partition(".")[0]
            if package not in EXTRAS:
                raise
            raise WrongError(str(missing(package))) from error
        except OSError as error:
            if error.filename is None:
                raise
            raise WrongError(f"{error.strerror}: {str(error.filename)!r}.") from error
        except ArithmeticError as error:
            message = f"These numbers are too large or too small for floating point ({error})."
            raise WrongError(message) from error


def as_exit(error: BlurfitError) -> click.ClickException:
    """Return an exit with one line for standard error, and a code that scripts can use."""
    if isinstance(error, StorageError) or (
        isinstance(error, ServiceError) and error.status in (0, *errors.TRY_AGAIN)
    ):
        return UnreachableError(str(error))
    if isinstance(error, (*_REFUSALS, ServiceError)):
        return RefusedError(str(error))
    return WrongError(str(error))


# What `--help` and completion say of each command, under the module that has it. A command is read
# when it is called, so that none waits for what others need.
_TABLE = """
agree: Agree on what is asked and promised
  init        Write an example survey into a FOLDER: a schema to adapt, and people to try it with.
  agree       Write the agreement for a SCHEMA: what is asked, how it is blurred, what is promised.
  next        Write the agreement of a PLAN's next wave, which follows from the RELEASES so far.
forecast: Plan ahead
  calibrate   Turn a promise (ε, δ) and public bounds into noise scales.
  guarantee   Tell which promise given noise keeps: the inverse of calibrate.
  forecast    Forecast a collection's error: FILE is a proposal (.toml) or an agreement (.json).
contribute: Contribute
  contribute  Blur each row of a TABLE and send it once, or write all to a file (--out).
  withdraw    Withdraw the submissions of a RECEIPT, as long as their collection is open.
  ledger      Tell what was sent from this account, to whom and when, and what it all adds up to.
use: Learn from files, and use a model
  learn       Learn the one model of FILES of submissions: paths, folders, patterns or URLs.
  show        Show what is in a FILE: an agreement, a plan, a model or moments.
  table       Tell means, shares and tables of published MOMENTS, with errors and tests.
  fit         Fit a model to published MOMENTS: any column by any others, at no cost in privacy.
  predict     Predict for each row of a TABLE (.csv, .xlsx, .parquet) with a published MODEL.
  statement   Print the privacy statement of a published model or of moments in FILE.
verify: Check what is published
  verify      Check who signed a model, moments or a receipt (FILE), and say what that shows.
"""
# Other distributions add commands by an entry point in this group, a table like the one above in
# the package of the modules that it names.
JOINING = "blurfit.commands"
SERVER = (
    *("serve", "token", "deeds", "backup", "restore", "export", "quickstart", "demo", "open"),
    *("invite", "status", "until", "hold", "pause", "resume", "close", "publish"),
)


class Listed(NamedTuple):
    """A command that was not read yet: what it does, and its module."""

    summary: str
    module: str


Groups = dict[str, dict[str, Listed]]  # by heading and name


def listed(table: str, package: str) -> Groups:
    """Read a table of commands, whose modules are in a package."""
    groups: Groups = {}
    for group in re.split(r"\n(?=\w)", table.strip()):
        head, *lines = group.splitlines()
        module, _, heading = head.partition(": ")
        commands = dict(line.split(maxsplit=1) for line in lines)
        groups[heading] = {
            name: Listed(text, f"{package}.{module}") for name, text in commands.items()
        }
    return groups


OWN = listed(_TABLE, "blurfit.cli")
_OWN = {name: one for group in OWN.values() for name, one in group.items()}


@cache
def groups() -> Groups:
    """Return the commands of this distribution, then those of the others that are installed.

    Raises:
        WrongError: another distribution is installed in another version.
    """
    found = dict(OWN)
    for point in entry_points(group=JOINING):
        try:
            found |= listed(point.load(), point.module)
        except BlurfitError as error:
            raise as_exit(error) from error
    return found


def commands() -> dict[str, Listed]:
    """Return all commands that are installed."""
    return {name: one for group in groups().values() for name, one in group.items()}


def read(name: str) -> click.Command:
    """Import a command, and let each of its options be given in the environment."""
    module = import_module((_OWN.get(name) or commands()[name]).module)
    (found,) = (
        one for one in vars(module).values() if isinstance(one, click.Command) and one.name == name
    )
    for option in found.params:
        flags = [flag for flag in option.opts if flag.startswith("--")]
        if isinstance(option, click.Option) and flags and option.envvar is None:
            option.envvar = variable(name, flags[0])
    return found


def variable(command: str, flag: str) -> str:
    """Return the environment variable that an option can be given in.

    >>> variable("serve", "--admin-token-file")
    'BLURFIT_SERVE_ADMIN_TOKEN_FILE'
    """
    return f"BLURFIT_{command}_{flag.removeprefix('--')}".replace("-", "_").upper()


class _ReadWhenCalled(Commands):
    """Know commands by name and summary until one is called.

    Click then asks `resolve_command`, for running a command and for completing its options. Other
    distributions are asked for theirs when a list or an unknown name needs them.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx  # all commands, whatever the context
        self.commands.update(_unread(commands()))
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in their groups."""
        known = self.list_commands(ctx)
        for heading, group in groups().items():
            with formatter.section(heading):
                formatter.write_dl([(name, one.summary) for name, one in group.items()])
        if missing := [name for name in SERVER if name not in known]:
            with formatter.section("Not installed: pip install blurfit-server"):
                formatter.write_text(", ".join(missing))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        asked = args[0]
        if asked not in _OWN and asked not in self.list_commands(ctx) and asked in SERVER:
            raise WrongError(
                f"`blurfit {asked}` needs blurfit-server: run `pip install blurfit-server`."
            )
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else read(name), rest


def _unread(known: Mapping[str, Listed]) -> dict[str, click.Command]:
    return {name: click.Command(name, short_help=one.summary) for name, one in known.items()}


START = """\
blurfit: blur your own record, then fit together.

  blurfit quickstart            see it on this machine: two services, their pages, made-up people
  blurfit init survey           write an example survey, and people to try it with
  blurfit agree schema.toml     fix what is asked and promised
  blurfit forecast …            see what so many people can tell
  blurfit serve, blurfit open   collect; `blurfit invite` makes links
  blurfit table moments.json    see what was published, and `blurfit fit` models of it

`blurfit --help` lists all commands, `blurfit COMMAND --help` explains one."""


@click.group(
    cls=_ReadWhenCalled,
    commands=_unread(_OWN),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="blurfit")
@click.pass_context
def main(context: click.Context) -> None:
    """Blur your own record, then fit together: differentially private models without a pile of raw
    records.

    Every option can be set in the environment, too: `serve --store` as BLURFIT_SERVE_STORE.

    Exit codes: 0 done; 2 wrong usage or value; 3 no service answers; 4 refused as things stand.
    """
    if context.invoked_subcommand is None:
        click.echo(START)
