"""What an administrator types about a plan that is under way: `hold`, `resume`, and its end."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.commands.common import (
    RefusedError,
    WrongError,
    administrator,
    answer,
    as_json,
    load_agreed,
    next_step,
    service,
)

if TYPE_CHECKING:
    from blurfit.agreement.plan import Plan
    from blurfit.model.published import PublishedModel

_EXAMPLE = "plan.json --to http://127.0.0.1:8000 --admin-token-file token.txt"
_plan_file = click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
_WAVES = {
    "planned": "waits for {quorum:,}",
    "collecting": "has {count:,} of {quorum:,}",
    "closing": "is being published by the two databases, from {count:,}",
    "released": "released, from {count:,}",
    "dropped": "never released: {count:,} of {quorum:,} had come",
}


@click.command(epilog=f"Example: blurfit hold {_EXAMPLE}")
@_plan_file
@service
@administrator
@as_json
def hold(plan: Path, url: str, patience: float, token_file: Path, as_json: bool) -> None:
    """Release no wave of a PLAN until it is resumed; the open one goes on collecting."""
    _change("hold", plan, url, patience, token_file, as_json=as_json)
    typed = f"{plan} --to {url} --admin-token-file {token_file}"
    next_step(f"`blurfit resume {typed}` lets it go on.", quiet=as_json)


@click.command(epilog=f"Example: blurfit resume {_EXAMPLE}")
@_plan_file
@service
@administrator
@as_json
def resume(plan: Path, url: str, patience: float, token_file: Path, as_json: bool) -> None:
    """Let a PLAN go on that was held."""
    _change("resume", plan, url, patience, token_file, as_json=as_json)
    next_step(f"`blurfit status {plan} --to {url}`.", quiet=as_json)


def publish_plan(database: Any, plan: "Plan", *, early: bool) -> "PublishedModel":
    """The model of a plan, which is ended now only if that is wanted."""
    state = database.status(plan)
    if state["state"] != "ended" and not early:
        raise RefusedError(
            f"{plan_state_in_words(state)} It publishes its model by itself after the last wave. "
            "To end it now with the best model so far, say --early."
        )
    found: PublishedModel = database.publish(plan)
    return found


def plan_state_in_words(state: dict[str, Any]) -> str:
    """How far a plan is, wave by wave."""
    from blurfit.commands.administer import closes_in_words

    who = "those who are invited" if state["invited"] else "anyone"
    heads = {
        "collecting": f"Collecting from {who}, in {len(state['waves'])} waves.",
        "held": "Held: no wave is released until it is resumed.",
        "ended": "Ended.",
    }
    waves = [
        f"Wave {one['number']} {_WAVES[one['state']].format(**one)}." for one in state["waves"]
    ]
    closes = "" if state["state"] == "ended" else closes_in_words(state["closes"]).strip()
    told = [heads[state["state"]], *waves, closes, state["reason"], _awaited(state.get("awaits"))]
    return " ".join(filter(None, told))


def _awaited(other: str | None) -> str:
    """What to do about a plan in which the other of two databases has the next step."""
    if other is None:
        return ""
    return (
        f"The next step is {other}'s, and is tried again by itself. If this stays so, its service "
        "does not run, or the two do not reach each other: ask its administrator."
    )


def _change(
    what: str, plan: Path, url: str, patience: float, token_file: Path, *, as_json: bool
) -> None:
    from blurfit.agreement.plan import Plan
    from blurfit.commands.administer import database_at

    agreed = load_agreed(plan)
    if not isinstance(agreed, Plan):
        raise WrongError(f"Expected a plan of waves, and {str(plan)!r} is an agreement.")
    with database_at(url, patience, token_file) as database:
        state = getattr(database, what)(agreed)
    answer(state, plan_state_in_words(state), as_json=as_json)
