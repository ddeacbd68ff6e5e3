"""What administrators and operators type: to collect, to steer what is under way, to publish, and
to look after tokens, backups and exports of a store.
"""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import blurfit as bf
from blurfit import dates, private_files
from blurfit.cli import RefusedError
from blurfit.cli import _common as common
from blurfit.cli.use import after_learning, refuse_moments_of_input, show_model
from blurfit.errors import InvalidValueError
from blurfit.optional import optional

if TYPE_CHECKING:
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
@common.agreement_file
@common.as_administrator
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
@common.as_json
def open_collection(
    agreement: Path, at: common.Administered, role: "Role | None", until: str | None, as_json: bool
) -> None:
    """Start collecting under an AGREEMENT, or under a plan of waves.

    Each submission needs an invitation, unless the agreement says that anyone may take part
    (`blurfit agree --anyone`). A plan moves from wave to wave by itself: as soon as a wave has its
    quorum, its sums are published and the next wave opens. On its closing date the plan ends, with
    the best model of what was released.
    """
    from blurfit.agreement.statement import premise_in_words

    agreed = common.load_agreed(agreement)
    with at.database() as database:
        state = database.open(agreed, role=role or "whole", until=until)
    page = at.page("c", agreed.fingerprint)
    sentence = f"{in_words(state)} The page for contributors: {page}"
    if agreed.databases:
        sentence += f"\n{_WITH_INVITATIONS if state['invited'] else _WITHOUT_INVITATIONS}"
        sentence += f"\n{ONE_DATE}" if state["closes"] is not None else ""
    elif not state["invited"]:
        sentence += (
            f"\n{premise_in_words(agreed.first() if isinstance(agreed, bf.Plan) else agreed)}"
        )
    common.answer(state | {"page": page}, sentence, as_json=as_json)
    if state["invited"]:
        step = (
            f"`blurfit invite {agreement} {at} --count N --links --out links.txt` writes a link "
            "for each of N people."
        )
    else:
        typed = f"{agreement} TABLE --to {at.url}"
        step = f"share that link, or send a table: `blurfit contribute {typed}`."
    common.next_step(step, quiet=as_json)


@click.command(epilog=f"Example: blurfit status {_EXAMPLE} --json")
@common.agreement_file
@common.service
@common.token_option(
    "The administrator's token: also tell whether contributors look honest (one database).",
    required=False,
)
@common.as_json
def status(
    agreement: Path, url: str, patience: float, token_file: Path | None, as_json: bool
) -> None:
    """Tell how many have contributed under an AGREEMENT, or to each wave of a plan.

    With the administrator's token, those who came first are compared with those who came later: if
    the two differ by more than chance, contributors may be lying together.
    """
    from blurfit.protocol import tokens
    from blurfit.service.remote import RemoteDatabase

    agreed = common.load_agreed(agreement)
    token = None if token_file is None else tokens.read_token(token_file)
    with RemoteDatabase(url, token=token, patience=patience) as database:
        state = database.status(agreed)
        words = in_words(state)
        if token is not None and not agreed.databases:
            waves = (one for one in state.get("waves", ()) if one["state"] == "collecting")
            for one in waves if "waves" in state else (state,):
                one["halves"] = database.halves(one["fingerprint"])
                words += f"\n{one['halves']['told']}"
    common.answer(state, words, as_json=as_json)
    reached = "quorum" in state and state["count"] >= state["quorum"]  # a plan goes on by itself
    if reached and state["state"] == "collecting":
        typed = f"{agreement} --to {url} --admin-token-file FILE"
        common.next_step(f"`blurfit publish {typed}`, or wait for more.", quiet=as_json)


@click.command(epilog=f"Example: blurfit close {_AS_ADMINISTRATOR}")
@common.agreement_file
@common.as_administrator
@click.option(
    "--anyway", is_flag=True, help="Close even if the two databases hold too different people."
)
@common.as_json
def close(agreement: Path, at: common.Administered, anyway: bool, as_json: bool) -> None:
    """Stop collecting, without publishing anything yet. This cannot be undone."""
    from blurfit.service.sides import counts_at, refuse_if_uneven

    agreed = common.load_agreed(agreement)
    if isinstance(agreed, bf.Plan):
        raise InvalidValueError(
            "Expected an agreement: a plan closes its waves by itself. `blurfit hold` stops it "
            "before the next release, and `blurfit publish --early` ends it."
        )
    if agreed.databases and not anyway:
        refuse_if_uneven(agreed, counts_at(agreed))
    with at.database() as database:
        state = database.close_collection(agreed)
    common.answer(state, in_words(state), as_json=as_json)
    common.next_step(f"`blurfit publish {agreement} {at}` learns and publishes.", quiet=as_json)


@click.command(
    epilog=f"Example: blurfit publish {_AS_ADMINISTRATOR} --out model.json --moments moments.json"
)
@common.agreement_file
@common.as_administrator
@common.out_file("Where the model is written.", default=Path("model.json"), show_default=True)
@common.moments_file
@click.option("--early", is_flag=True, help="End a plan now, with the best model so far.")
@common.as_json
def publish(
    agreement: Path,
    at: common.Administered,
    out: Path,
    moments: Path | None,
    early: bool,
    as_json: bool,
) -> None:
    """Close the collection, learn its model and publish it. This can be done once.

    A plan of waves publishes by itself: this then fetches its model, or ends the plan (--early).
    """
    agreed = common.load_agreed(agreement)
    if not isinstance(agreed, bf.Plan):
        refuse_moments_of_input(agreed, moments)
    elif moments is not None:
        raise InvalidValueError("Expected no --moments: each wave of a plan has its own.")
    with at.database() as database:
        if isinstance(agreed, bf.Plan):
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
    common.next_step(after_learning(out, moments), quiet=as_json)


def _publish_sums(database: Any, agreement: "bf.Agreement", place: Path, *, as_json: bool) -> None:
    """Publish products with the target, from which a model follows beside public rows."""
    from blurfit.model.moments import WITHOUT_PUBLIC_ROWS

    moments = database.publish_sums(agreement)
    moments.save(place)
    words = (
        f"Published the sums of {moments.count:,} contributions, and wrote {place}. "
        f"{WITHOUT_PUBLIC_ROWS}"
    )
    common.answer({"count": moments.count, "moments": str(place)}, words, as_json=as_json)


def closes_in_words(closes: int | None) -> str:
    """Return a sentence about when it closes; nothing where there is no date."""
    return "" if closes is None else f" It closes at {dates.in_words(closes)}."


def in_words(state: dict[str, Any]) -> str:
    """Say how far a collection is, or a plan."""
    if "waves" in state:
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


_EXAMPLE = "plan.json --to http://127.0.0.1:8000 --admin-token-file token.txt"
_plan_file = click.argument("plan", type=common.EXISTING_FILE)
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
@common.agreement_file
@click.argument("date")
@common.as_administrator
@common.as_json
def until(agreement: Path, date: str, at: common.Administered, as_json: bool) -> None:
    """Move the DATE at which a collection or a plan closes by itself.

    DATE is a date (through its end in UTC), a time with its zone such as 2027-01-31T18:00+01:00, or
    "never". Once its date has come, a collection is closed for good.
    """
    agreed = common.load_agreed(agreement)
    with at.database() as database:
        state = database.move_closing(agreed, None if date == NEVER else date)
    words = in_words(state)
    common.answer(state, f"{words}\n{ONE_DATE}" if agreed.databases else words, as_json=as_json)


@click.command(epilog=f"Example: blurfit hold {_EXAMPLE}")
@_plan_file
@common.as_administrator
@common.as_json
def hold(plan: Path, at: common.Administered, as_json: bool) -> None:
    """Release no wave of a PLAN until it is resumed; the open wave goes on collecting."""
    _change("hold", plan, at, as_json=as_json)
    common.next_step(f"`blurfit resume {plan} {at}` lets it go on.", quiet=as_json)


@click.command(epilog=f"Example: blurfit resume {_EXAMPLE}")
@_plan_file
@common.as_administrator
@common.as_json
def resume(plan: Path, at: common.Administered, as_json: bool) -> None:
    """Resume a PLAN that was held."""
    _change("resume", plan, at, as_json=as_json)
    common.next_step(f"`blurfit status {plan} --to {at.url}`.", quiet=as_json)


def publish_plan(database: Any, plan: "bf.Plan", *, early: bool) -> "bf.PublishedModel":
    """Return the model of a plan, and end the plan first only if it is to end early."""
    state = database.status(plan)
    if state["state"] != "ended" and not early:
        raise RefusedError(
            f"{plan_state_in_words(state)} It publishes its model by itself after the last wave. "
            "To end it now with the best model so far, add --early."
        )
    found: bf.PublishedModel = database.publish(plan)
    return found


def plan_state_in_words(state: dict[str, Any]) -> str:
    """Say how far a plan is, wave by wave."""
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
    """Say what to do about a plan in which the next step is the other database's."""
    if other is None:
        return ""
    return (
        f"The next step is {other}'s, and is tried again by itself. If this does not change, its "
        "service is not running, or the two cannot reach each other: ask its administrator."
    )


def _change(what: str, plan: Path, at: common.Administered, *, as_json: bool) -> None:

    agreed = common.load_agreed(plan)
    if not isinstance(agreed, bf.Plan):
        raise InvalidValueError(f"Expected a plan of waves, and {str(plan)!r} is an agreement.")
    with at.database() as database:
        state = getattr(database, what)(agreed)
    common.answer(state, plan_state_in_words(state), as_json=as_json)


# ---- invitations

Form = Literal["tokens", "links", "csv", "codes"]
_CALLED = {
    "tokens": "invitations",
    "links": "links",
    "csv": "links in a table",
    "codes": "QR codes",
}

_COLUMNS, _IN_GROUPS = ("number", "link"), ("number", "group", "link")

_FRAGMENT = "#invitation="
_SHEET = """<!doctype html><meta charset="utf-8"><title>Invitations</title>
<style>
body {{display: grid; grid-template-columns: repeat(auto-fill, 5cm); gap: 1cm}}
figure {{margin: 0; break-inside: avoid; text-align: center}}
svg {{width: 5cm; height: 5cm}}
</style>
{codes}
"""


@click.command(
    epilog="Example: blurfit invite agreement.json --to http://127.0.0.1:8000 "
    "--admin-token-file token.txt --count 20000 --out invitations.txt"
)
@common.agreement_file
@common.as_administrator
@click.option("--count", type=click.IntRange(1), required=True, help="How many invitations.")
@common.out_file("Where they are written, one per line; no copy is kept.", required=True)
@click.option(
    "--tokens",
    "form",
    flag_value="tokens",
    default="tokens",
    help="As bare tokens, for programs (default).",
)
@click.option("--links", "form", flag_value="links", help="As links to the contributors' page.")
@click.option("--csv", "form", flag_value="csv", help="As a table of links, for mail merge.")
@click.option("--qr", "form", flag_value="codes", help="As QR codes to print, in an HTML page.")
@click.option(
    "--both",
    "other_token_file",
    type=common.EXISTING_FILE,
    help="Join each with one from the agreement's other database; this file holds the token of its "
    "administrator.",
)
@common.as_json
def invite(
    agreement: Path,
    at: common.Administered,
    count: int,
    out: Path,
    form: Form,
    other_token_file: Path | None,
    as_json: bool,
) -> None:
    """Make one-time invitations for a collection or a plan, one for each person.

    An invitation to a plan is good in one of its waves, which a lot decides when it is made: with
    --csv the table has the group of each. Choose who gets which without looking at it, and write to
    a group when its turn comes. In a link, the invitation comes after #, which browsers never send.
    """
    from blurfit.protocol.tokens import hashed, joined
    from blurfit.service.remote import lot_of

    agreed = common.load_agreed(agreement)
    if out.exists():
        raise InvalidValueError(
            f"Expected --out {str(out)!r} to be a new file: the existing one may hold invitations."
        )
    if form == "codes":
        optional("segno")  # before any invitation is made
    made: list[list[str]] = []
    shares: list[int] = []
    for place in [at] if other_token_file is None else _both(agreed, at, other_token_file):
        with place.database() as database:
            shares = shares or database.shares(agreed, count)
            made.append(database.invite(agreed, count, shares))
    lot = lot_of(agreed)
    pairs = joined(made, lot)
    groups = [] if lot is None else [lot.group_of(hashed(first)) for first, *_ in pairs]
    page = at.page("c", agreed.fingerprint)
    text = written(form, list(map(",".join, pairs)), page, groups)
    private_files.write(out, text, only_new=True)
    sentence = f"Wrote {count:,} {_CALLED[form]} to {out}. Give each to one person."
    if groups:
        each = ", ".join(f"{n:,} for group {k}" for k, n in enumerate(shares, start=1))
        sentence += f" The lot has drawn {each}."
    facts = {"count": count, "out": str(out)} | ({"groups": shares} if groups else {})
    common.answer(facts, sentence, as_json=as_json)


def written(form: Form, tokens: Sequence[str], page: str, groups: Sequence[int] = ()) -> str:
    """Return the file's text; `groups` are those of a plan's invitations.

    >>> print(written("links", ["abc"], "https://first.example/c/00"), end="")
    https://first.example/c/00#invitation=abc
    """
    if form == "tokens":
        return "".join(f"{token}\n" for token in tokens)
    links = [f"{page}{_FRAGMENT}{token}" for token in tokens]
    if form == "links":
        return "".join(f"{link}\n" for link in links)
    if form == "csv":
        table = io.StringIO()
        columns = [groups, links] if groups else [links]
        rows = zip(range(1, len(links) + 1), *columns, strict=True)
        common.write_csv(table, [_IN_GROUPS if groups else _COLUMNS, *rows])
        return table.getvalue()
    names = [
        f"{at}, group {groups[at - 1]}" if groups else f"{at}" for at in range(1, len(links) + 1)
    ]
    return _SHEET.format(codes="\n".join(map(_code, names, links)))


def read(text: str) -> list[list[str]]:
    """Read what `written` wrote, except QR codes: in each line one invitation for each database.

    >>> read(written("csv", ["abc", "first,second"], "https://first.example/c/00"))
    [['abc'], ['first', 'second']]
    """
    headings = (",".join(_COLUMNS), ",".join(_IN_GROUPS))
    lines = [line for line in text.split() if line not in headings]
    return [line.rpartition(_FRAGMENT)[2].rstrip('"').split(",") for line in lines]


def _code(name: str, link: str) -> str:
    picture = optional("segno").make(link, error="m", micro=False).svg_inline(border=4)
    return f"<figure>{picture}<figcaption>{name}</figcaption></figure>"


def _both(
    agreed: "bf.Agreement | bf.Plan", at: common.Administered, other: Path
) -> list[common.Administered]:
    """Return the agreement's two databases in order, each with its administrator's token."""
    url, addresses = at.url.rstrip("/"), [one.url for one in agreed.databases]
    if url not in addresses:
        raise InvalidValueError(
            f"Expected --to {at.url!r} to be one of the agreement's two databases with --both, and "
            f"it has {addresses or 'only one database'}."
        )
    files = {url: at.token_file}
    return [replace(at, url=one, token_file=files.get(one, other)) for one in addresses]
