"""The command line, in the order in which a collection goes.

Exit codes: 0 done, 2 wrong usage or value, 3 no service answers, 4 refused as things stand.
"""

from importlib import import_module

import click

import blurfit
from blurfit.cli._common import Commands

# Where each command lives, and what `--help` and completion say of it. A command is read when it is
# called, so that none waits for what others need.
COMMANDS = {
    "init": (
        "examples:init",
        "Write an example survey into a FOLDER: a schema to adapt, and people to try it with.",
    ),
    "quickstart": (
        "examples:quickstart",
        "Run an example on this machine: watch it fill up, take part, read the model.",
    ),
    "calibrate": (
        "forecast:calibrate",
        "Turn a promise (ε, δ) and public bounds into noise scales.",
    ),
    "guarantee": (
        "forecast:guarantee",
        "Tell which promise given noise keeps: the inverse of calibrate.",
    ),
    "forecast": (
        "forecast:forecast_command",
        "Forecast a collection's error: FILE is a proposal (.toml) or an agreement (.json).",
    ),
    "agree": (
        "agree:agree",
        "Write the agreement for a SCHEMA: what is asked, how it is blurred, what is promised.",
    ),
    "serve": ("serve:serve", "Collect submissions over HTTP, lose nothing, publish once."),
    "open": (
        "administer:open_collection",
        "Start collecting under an AGREEMENT, or under a plan of waves.",
    ),
    "invite": (
        "contribute:invite",
        "Make one-time invitations for a collection or a plan, one for each person.",
    ),
    "contribute": (
        "contribute:contribute",
        "Blur each row of a TABLE (.csv, .parquet) and send it once, or write all to a file "
        "(--out).",
    ),
    "withdraw": (
        "contribute:withdraw",
        "Withdraw the submissions of a RECEIPT, as long as their collection is open.",
    ),
    "ledger": (
        "contribute:ledger",
        "Tell what was sent from this account, to whom and when, and what it all adds up to.",
    ),
    "status": (
        "administer:status",
        "Tell how many have contributed under an AGREEMENT, or to each wave of a plan.",
    ),
    "until": (
        "administer:until",
        "Move the DATE at which a collection or a plan closes by itself.",
    ),
    "close": ("administer:close", "Stop collecting, without publishing anything yet."),
    "publish": ("administer:publish", "Close the collection, learn its model and publish it."),
    "hold": (
        "administer:hold",
        "Release no wave of a PLAN until it is resumed; the open wave goes on collecting.",
    ),
    "pause": (
        "administer:pause",
        "Take no submissions under an AGREEMENT or a plan until it is resumed.",
    ),
    "resume": ("administer:resume", "Resume what was paused, or a plan that was held."),
    "export": (
        "administer:export",
        "Write the submissions of a closed collection to a file, for `blurfit learn`.",
    ),
    "token": (
        "administer:token",
        "Grant or revoke a token for one kind of task; without options, list all tokens.",
    ),
    "deeds": (
        "administer:deeds",
        "List what administrators did, newest first: when, who, what, and the outcome.",
    ),
    "backup": (
        "administer:backup",
        "Copy a store while it is in use, as of one moment, and check the copy.",
    ),
    "restore": (
        "administer:restore",
        "Restore a store from a backup FILE, so that nothing can be published a second time.",
    ),
    "learn": (
        "use:learn",
        "Learn the one model of FILES of submissions: paths, folders, patterns or URLs.",
    ),
    "next": (
        "agree:next_wave",
        "Write the agreement of a PLAN's next wave, which follows from the RELEASES so far.",
    ),
    "show": ("use:show", "Show what is in a FILE: an agreement, a plan, a model or moments."),
    "fit": (
        "use:fit",
        "Fit a model to published MOMENTS: any column by any others, at no cost in privacy.",
    ),
    "predict": (
        "use:predict",
        "Predict for each row of a TABLE (.csv, .parquet) with a published MODEL.",
    ),
    "statement": (
        "use:statement",
        "Print the privacy statement of a published model or of moments in FILE.",
    ),
    "verify": (
        "audit:verify",
        "Check who signed a model, moments or a receipt (FILE, .json), and say what that shows.",
    ),
    "audit": (
        "audit:audit_command",
        "Attack what the agreement in FILE (.json) promises, or an estimator that you name with "
        "--of.",
    ),
    "demo": ("examples:demo", "Let generated people agree, blur, send and get a model."),
}


def read(name: str) -> click.Command:
    """Import a command, and let each of its options be given in the environment."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found: click.Command = getattr(import_module(f"blurfit.cli.{module}"), attribute)
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
    """Know commands by name and summary, in the order in which they are used, until one is called.

    Click then asks `resolve_command`, for running a command and for completing its options.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx  # all commands, whatever the context
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else read(name), rest


@click.group(
    cls=_ReadWhenCalled,
    commands=[click.Command(name, short_help=summary) for name, (_, summary) in COMMANDS.items()],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(blurfit.__version__, prog_name="blurfit")
def main() -> None:
    """Blur your own record, then fit together: differentially private models without a pile of raw
    records.

    Every option can be set in the environment, too: `serve --store` as BLURFIT_SERVE_STORE.

    Exit codes: 0 done; 2 wrong usage or value; 3 no service answers; 4 refused as things stand.
    """
