"""What an administrator types: `open`, `status`, `close`, `publish`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit import dates
from blurfit.commands.common import (
    Administered,
    agreement_file,
    answer,
    as_administrator,
    as_json,
    load_agreed,
    moments_file,
    next_step,
    out_file,
    service,
    token_option,
)
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.messages.shares import Role

FIRST_OR_SECOND = ("first", "second")  # of `blurfit.messages.shares.ROLES`, without its numpy
_WITH_INVITATIONS = (
    "Now give out this database's invitations, one to each person: `blurfit invite`. The other "
    "database gives out its own."
)
_WITHOUT_INVITATIONS = (
    "Without invitations nothing keeps the other database from inventing contributors, and then "
    "the promise against it does not hold."
)
ONE_DATE = (
    "The other database has its own date, and the earlier one ends the collection: set the same "
    "date there."
)
_EXAMPLE = "agreement.json --to http://127.0.0.1:8000"
_AS_ADMINISTRATOR = f"{_EXAMPLE} --admin-token-file token.txt"


@click.command("open", epilog=f"Example: blurfit open {_AS_ADMINISTRATOR}")
@agreement_file
@as_administrator
@click.option(
    "--as",
    "role",
    type=click.Choice(FIRST_OR_SECOND),
    help="Which of the agreement's two databases this is, if it has two.",
)
@click.option(
    "--until",
    metavar="DATE",
    help="When it closes by itself: a date (through its end in UTC), or a time with its zone, such "
    "as 2027-01-31T18:00+01:00. `blurfit until` moves it.",
)
@as_json
def open_collection(
    agreement: Path,
    at: Administered,
    role: "Role | None",
    until: str | None,
    as_json: bool,
) -> None:
    """Start collecting under an AGREEMENT, or under a plan of waves.

    Each submission needs an invitation, unless the agreement says that anyone may take part
    (`blurfit agree --anyone`). A plan moves from wave to wave by itself: as soon as a wave has its
    quorum, its sums are published and the next wave opens. On its closing date the plan ends, with
    the best model of what was released.
    """
    from blurfit.agreement.conditions import premise_in_words
    from blurfit.agreement.plan import Plan

    agreed = load_agreed(agreement)
    with at.database() as database:
        state = database.open(agreed, role=role or "whole", until=until)
    page = at.page("c", agreed.fingerprint)
    sentence = f"{in_words(state)} The page for contributors: {page}"
    if agreed.databases:
        sentence += f"\n{_WITH_INVITATIONS if state['invited'] else _WITHOUT_INVITATIONS}"
        sentence += f"\n{ONE_DATE}" if state["closes"] is not None else ""
    elif not state["invited"]:
        sentence += f"\n{premise_in_words(agreed.first() if isinstance(agreed, Plan) else agreed)}"
    answer(state | {"page": page}, sentence, as_json=as_json)
    if state["invited"]:
        step = (
            f"`blurfit invite {agreement} {at} --count N --links --out links.txt` writes a link "
            "for each of N people."
        )
    else:
        typed = f"{agreement} TABLE --to {at.url}"
        step = f"share that link, or send a table: `blurfit contribute {typed}`."
    next_step(step, quiet=as_json)


@click.command(epilog=f"Example: blurfit status {_EXAMPLE} --json")
@agreement_file
@service
@token_option(
    "The administrator's token: also tell whether contributors look honest (one database).",
    required=False,
)
@as_json
def status(
    agreement: Path, url: str, patience: float, token_file: Path | None, as_json: bool
) -> None:
    """Tell how many have contributed under an AGREEMENT, or to each wave of a plan.

    With the administrator's token, those who came first are compared with those who came later: if
    the two differ by more than chance, contributors may be lying together.
    """
    from blurfit.protocol import tokens
    from blurfit.service.remote import RemoteDatabase

    agreed = load_agreed(agreement)
    token = None if token_file is None else tokens.read_token(token_file)
    with RemoteDatabase(url, token=token, patience=patience) as database:
        state = database.status(agreed)
        words = in_words(state)
        if token is not None and not agreed.databases:
            waves = (one for one in state.get("waves", ()) if one["state"] == "collecting")
            for one in waves if "waves" in state else (state,):
                one["halves"] = database.halves(one["fingerprint"])
                words += f"\n{one['halves']['told']}"
    answer(state, words, as_json=as_json)
    reached = "quorum" in state and state["count"] >= state["quorum"]  # a plan goes on by itself
    if reached and state["state"] == "collecting":
        typed = f"{agreement} --to {url} --admin-token-file FILE"
        next_step(f"`blurfit publish {typed}`, or wait for more.", quiet=as_json)


@click.command(epilog=f"Example: blurfit close {_AS_ADMINISTRATOR}")
@agreement_file
@as_administrator
@click.option(
    "--anyway", is_flag=True, help="Close even if the two databases hold too different people."
)
@as_json
def close(agreement: Path, at: Administered, anyway: bool, as_json: bool) -> None:
    """Stop collecting, without publishing anything yet. This cannot be undone."""
    from blurfit.agreement.plan import Plan
    from blurfit.service.sides import counts_at, refuse_if_uneven

    agreed = load_agreed(agreement)
    if isinstance(agreed, Plan):
        raise InvalidValueError(
            "Expected an agreement: a plan closes its waves by itself. `blurfit hold` stops it "
            "before the next release, and `blurfit publish --early` ends it."
        )
    if agreed.databases and not anyway:
        refuse_if_uneven(agreed, counts_at(agreed))
    with at.database() as database:
        state = database.close_collection(agreed)
    answer(state, in_words(state), as_json=as_json)
    next_step(f"`blurfit publish {agreement} {at}` learns and publishes.", quiet=as_json)


@click.command(
    epilog=f"Example: blurfit publish {_AS_ADMINISTRATOR} --out model.json --moments moments.json"
)
@agreement_file
@as_administrator
@out_file("Where the model is written.", default=Path("model.json"), show_default=True)
@moments_file
@click.option("--early", is_flag=True, help="End a plan now, with the best model so far.")
@as_json
def publish(
    agreement: Path,
    at: Administered,
    out: Path,
    moments: Path | None,
    early: bool,
    as_json: bool,
) -> None:
    """Close the collection, learn its model and publish it. This can be done once.

    A plan of waves publishes by itself: this then fetches its model, or ends the plan (--early).
    """
    from blurfit.agreement.plan import Plan
    from blurfit.commands.fit import after_learning, refuse_moments_of_input, show_model
    from blurfit.commands.steer import publish_plan

    agreed = load_agreed(agreement)
    if not isinstance(agreed, Plan):
        refuse_moments_of_input(agreed, moments)
    elif moments is not None:
        raise InvalidValueError("Expected no --moments: each wave of a plan has its own.")
    with at.database() as database:
        if isinstance(agreed, Plan):
            model = publish_plan(database, agreed, early=early)
        elif agreed.sends != "everything":
            _publish_sums(database, agreed, moments or Path("moments.json"), as_json=as_json)
            return
        else:
            model = database.publish(agreed)
            if moments is not None:
                database.moments(agreed).save(moments)
    page = at.page("m", model.fingerprint)
    show_model(model, out, moments, as_json=as_json, page=page)
    next_step(after_learning(out, moments), quiet=as_json)


def _publish_sums(database: Any, agreement: "Agreement", place: Path, *, as_json: bool) -> None:
    """Publish products with the target, from which a model follows beside public rows."""
    from blurfit.model.moments import WITHOUT_PUBLIC_ROWS

    moments = database.publish_sums(agreement)
    moments.save(place)
    words = (
        f"Published the sums of {moments.count:,} contributions, and wrote {place}. "
        f"{WITHOUT_PUBLIC_ROWS}"
    )
    answer({"count": moments.count, "moments": str(place)}, words, as_json=as_json)


def closes_in_words(closes: int | None) -> str:
    """A sentence about when it closes; nothing where there is no date."""
    return "" if closes is None else f" It closes at {dates.in_words(closes)}."


def in_words(state: dict[str, Any]) -> str:
    """How far a collection is, or a plan."""
    if "waves" in state:
        from blurfit.commands.steer import plan_state_in_words

        return plan_state_in_words(state)
    at, count, other = state["closes"], state["count"], state.get("awaits")
    missing = state["quorum"] - count
    needed = f"{missing:,} more are needed" if missing > 0 else "the quorum is reached"
    came = f"Collecting from anyone: {count:,} submissions have come"
    if state["invited"]:
        came = f"Collecting from those who are invited: {count:,} have contributed"
    closed, published = "", ""
    if other is not None:
        closed = (
            f" {other} publishes for both databases: ask its administrator to run `blurfit "
            "publish` there. Until then nothing is published here either."
        )
        published = f" {other} does not have it yet: publish again, and it is sent again."
    if state["state"] == "closed" and state["sums"]:
        return f"Published, from {count:,} contributions: sums, and no model of them.{published}"
    since = "" if at is None else f" since {dates.in_words(at)}"
    return {
        "collecting": f"{came}, {needed}.{closes_in_words(at)}",
        "paused": f"Paused with {count:,} contributions, {needed}.{closes_in_words(at)}",
        "closed": f"Closed{since} with {count:,} contributions; nothing is published.{closed}",
        "published": f"Published, from {count:,} contributions.{published}",
    }[state["state"]]
