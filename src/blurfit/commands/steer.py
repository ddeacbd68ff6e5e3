"""Steering what is under way: `until`, and for a plan `hold`, `resume`, and its end."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.commands.administer import ONE_DATE, closes_in_words, in_words
from blurfit.commands.common import (
    EXISTING_FILE,
    Administered,
    RefusedError,
    agreement_file,
    answer,
    as_administrator,
    as_json,
    load_agreed,
    next_step,
)
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.plan import Plan
    from blurfit.model.published import PublishedModel

_EXAMPLE = "plan.json --to http://127.0.0.1:8000 --admin-token-file token.txt"
_plan_file = click.argument("plan", type=EXISTING_FILE)
NEVER = "never"
_WAVES = {
    "planned": "waits for {quorum:,}",
    "collecting": "has {count:,} of {quorum:,}",
    "closing": "is being published by the two databases, from {count:,}",
    "released": "released, from {count:,}",
    "dropped": "never released: {count:,} of {quorum:,} had come",
}


@click.command(
    epilog="Example: blurfit until agreement.json 2027-02-28 --to http://127.0.0.1:8000 "
    "--admin-token-file token.txt"
)
@agreement_file
@click.argument("date")
@as_administrator
@as_json
def until(agreement: Path, date: str, at: Administered, as_json: bool) -> None:
    """Move the DATE at which a collection or a plan closes by itself.

    DATE is a date (through its end in UTC), a time with its zone such as 2027-01-31T18:00+01:00, or
    "never". Once its date has come, a collection is closed for good.
    """
    agreed = load_agreed(agreement)
    with at.database() as database:
        state = database.move_closing(agreed, None if date == NEVER else date)
    words = in_words(state)
    answer(state, f"{words}\n{ONE_DATE}" if agreed.databases else words, as_json=as_json)


@click.command(epilog=f"Example: blurfit hold {_EXAMPLE}")
@_plan_file
@as_administrator
@as_json
def hold(plan: Path, at: Administered, as_json: bool) -> None:
    """Release no wave of a PLAN until it is resumed; the open wave goes on collecting."""
    _change("hold", plan, at, as_json=as_json)
    next_step(f"`blurfit resume {plan} {at}` lets it go on.", quiet=as_json)


@click.command(epilog=f"Example: blurfit resume {_EXAMPLE}")
@_plan_file
@as_administrator
@as_json
def resume(plan: Path, at: Administered, as_json: bool) -> None:
    """Resume a PLAN that was held."""
    _change("resume", plan, at, as_json=as_json)
    next_step(f"`blurfit status {plan} --to {at.url}`.", quiet=as_json)


def publish_plan(database: Any, plan: "Plan", *, early: bool) -> "PublishedModel":
    """The model of a plan, which is ended now only if that is wanted."""
    state = database.status(plan)
    if state["state"] != "ended" and not early:
        raise RefusedError(
            f"{plan_state_in_words(state)} It publishes its model by itself after the last wave. "
            "To end it now with the best model so far, add --early."
        )
    found: PublishedModel = database.publish(plan)
    return found


def plan_state_in_words(state: dict[str, Any]) -> str:
    """How far a plan is, wave by wave."""
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
    more = ""
    if state["invited"] and state["state"] == "collecting":
        more = "If a group does not fill, invite more people: a lot puts some of them into it."
    told = [heads[state["state"]], *waves, closes, state["reason"], _awaited(state.get("awaits"))]
    told.append(more)
    return " ".join(filter(None, told))


def _awaited(other: str | None) -> str:
    """What to do about a plan in which the next step is the other database's."""
    if other is None:
        return ""
    return (
        f"The next step is {other}'s, and is tried again by itself. If this does not change, its "
        "service is not running, or the two cannot reach each other: ask its administrator."
    )


def _change(what: str, plan: Path, at: Administered, *, as_json: bool) -> None:
    from blurfit.agreement.plan import Plan

    agreed = load_agreed(plan)
    if not isinstance(agreed, Plan):
        raise InvalidValueError(f"Expected a plan of waves, and {str(plan)!r} is an agreement.")
    with at.database() as database:
        state = getattr(database, what)(agreed)
    answer(state, plan_state_in_words(state), as_json=as_json)
