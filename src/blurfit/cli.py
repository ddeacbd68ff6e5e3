"""The command line, in the order in which a collection goes.

Exit codes: 0 done, 2 wrong usage or value, 3 nobody answers, 4 refused as things stand.
"""

import click

import blurfit
from blurfit.commands.administer import close, invite, open_collection, publish, status
from blurfit.commands.agree import agree
from blurfit.commands.calibrate import calibrate, guarantee
from blurfit.commands.common import Commands
from blurfit.commands.contribute import contribute
from blurfit.commands.learn import export, learn
from blurfit.commands.serve import serve
from blurfit.commands.use import predict, statement

COMMANDS = (
    calibrate,
    guarantee,
    agree,
    serve,
    open_collection,
    invite,
    contribute,
    status,
    close,
    publish,
    export,
    learn,
    predict,
    statement,
)


class _InOrder(Commands):
    """Lists commands in the order in which they are used, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx  # all commands, whatever the context
        return list(self.commands)


@click.group(cls=_InOrder, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(blurfit.__version__, prog_name="blurfit")
def main() -> None:
    """Blur your own record, then fit together: differentially private models without a pile of raw
    records.

    Exit codes: 0 done; 2 wrong usage or value; 3 nobody answers; 4 refused as things stand.
    """


for _command in COMMANDS:
    main.add_command(_command)
