"""The command line, in the order in which a collection goes.

Exit codes: 0 done, 2 wrong usage or value, 3 nobody answers, 4 refused as things stand.
"""

from importlib import import_module

import click

import blurfit
from blurfit.commands.common import Commands

# Where each command lives. It is read when it is called, so that none waits for what others need.
HOMES = {
    "calibrate": "calibrate:calibrate",
    "guarantee": "calibrate:guarantee",
    "forecast": "forecast:forecast_command",
    "agree": "agree:agree",
    "serve": "serve:serve",
    "open": "administer:open_collection",
    "invite": "administer:invite",
    "contribute": "contribute:contribute",
    "status": "administer:status",
    "close": "administer:close",
    "publish": "administer:publish",
    "export": "learn:export",
    "learn": "learn:learn",
    "predict": "use:predict",
    "statement": "use:statement",
    "audit": "audit:audit_command",
    "reproduce": "reproduce:reproduce",
    "demo": "demo:demo",
}


class _InOrder(Commands):
    """Lists commands in the order in which they are used, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx  # all commands, whatever the context
        return list(HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in HOMES:
            return None
        module, _, name = HOMES[cmd_name].partition(":")
        found: click.Command = getattr(import_module(f"blurfit.commands.{module}"), name)
        return found


_SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "auto_envvar_prefix": "BLURFIT",  # `serve --store` is also BLURFIT_SERVE_STORE
}


@click.group(cls=_InOrder, context_settings=_SETTINGS)
@click.version_option(blurfit.__version__, prog_name="blurfit")
def main() -> None:
    """Blur your own record, then fit together: differentially private models without a pile of raw
    records.

    Every option can be given in the environment too: `serve --store` as BLURFIT_SERVE_STORE.

    Exit codes: 0 done; 2 wrong usage or value; 3 nobody answers; 4 refused as things stand.
    """
