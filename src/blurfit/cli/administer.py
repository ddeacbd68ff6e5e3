"""What administrators and operators type: to collect, to steer what is under way, to publish, and
to look after tokens, backups and exports of a store.
"""

import datetime as dt
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import blurfit as bf
from blurfit import dates
from blurfit.cli._common import (
    ANY_FILE,
    EXISTING_FILE,
    Administered,
    RefusedError,
    agreement_file,
    answer,
    as_administrator,
    as_json,
    load_agreed,
    load_agreement,
    moments_file,
    next_step,
    out_file,
    service,
    store_option,
    token_option,
    watched,
    with_default,
)
from blurfit.cli.use import after_learning, refuse_moments_of_input, show_model
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.messages.shares import Role
    from blurfit.store.access import Right


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
    agreement: Path, at: Administered, role: "Role | None", until: str | None, as_json: bool
) -> None:
    """Start collecting under an AGREEMENT, or under a plan of waves.

    Each submission needs an invitation, unless the agreement says that anyone may take part
    (`blurfit agree --anyone`). A plan moves from wave to wave by itself: as soon as a wave has its
    quorum, its sums are published and the next wave opens. On its closing date the plan ends, with
    the best model of what was released.
    """
    from blurfit.agreement.statement import premise_in_words

    agreed = load_agreed(agreement)
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
            for one in state["waves"]:
                if one["fingerprint"] is not None and one["state"] in ("collecting", "fixed"):
                    one["halves"] = database.halves(one["fingerprint"])
                    words += f"\n{one['halves']['told']}"
    answer(state, words, as_json=as_json)
    reached = state["count"] >= state["quorum"] and not isinstance(agreed, bf.Plan)
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
    from blurfit.service.remote import counts_at, refuse_if_uneven

    agreed = load_agreed(agreement)
    if isinstance(agreed, bf.Plan):
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
    agreement: Path, at: Administered, out: Path, moments: Path | None, early: bool, as_json: bool
) -> None:
    """Close the collection, learn its model and publish it. This can be done once.

    A plan of waves publishes by itself: this then fetches its model, or ends the plan (--early).
    """
    agreed = load_agreed(agreement)
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
    next_step(after_learning(out, moments), quiet=as_json)


def _publish_sums(database: Any, agreement: "bf.Agreement", place: Path, *, as_json: bool) -> None:
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
    """Return a sentence about when it closes; nothing where there is no date."""
    return "" if closes is None else f" It closes at {dates.in_words(closes)}."


def in_words(state: dict[str, Any]) -> str:
    """Say how far a collection is, or a plan."""
    if state["waves"][0]["fingerprint"] != state["fingerprint"]:  # of one that stands alone
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
_plan_file = click.argument("plan", type=EXISTING_FILE)
NEVER = "never"
_WAVES = {
    "planned": "waits for {quorum:,}",
    "collecting": "has {count:,} of {quorum:,}",
    "fixed": "is being published, from {count:,}",
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
        state = database.move_date(agreed, None if date == NEVER else date)
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


@click.command(epilog=f"Example: blurfit pause {_AS_ADMINISTRATOR}")
@agreement_file
@as_administrator
@as_json
def pause(agreement: Path, at: Administered, as_json: bool) -> None:
    """Take no submissions under an AGREEMENT or a plan until it is resumed.

    Nothing is released by itself meanwhile. Whoever is refused may send the same again later.
    """
    _change("pause", agreement, at, as_json=as_json)
    next_step(f"`blurfit resume {agreement} {at}` lets it go on.", quiet=as_json)


@click.command(epilog=f"Example: blurfit resume {_AS_ADMINISTRATOR}")
@agreement_file
@as_administrator
@as_json
def resume(agreement: Path, at: Administered, as_json: bool) -> None:
    """Resume what was paused, or a plan that was held."""
    _change("resume", agreement, at, as_json=as_json)
    next_step(f"`blurfit status {agreement} --to {at.url}`.", quiet=as_json)


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
        "paused": "Paused: nothing is taken, and no wave is released, until it is resumed.",
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


def _change(what: str, agreement: Path, at: Administered, *, as_json: bool) -> None:
    agreed = load_agreed(agreement)
    if what == "hold" and not isinstance(agreed, bf.Plan):
        raise InvalidValueError(
            f"Expected a plan of waves, and {str(agreement)!r} is an agreement: nothing of it is "
            "released before you publish it. To take nothing for a while, use `blurfit pause`."
        )
    with at.database() as database:
        state = getattr(database, what)(agreed)
    answer(state, in_words(state), as_json=as_json)


_RIGHTS = ("open", "invite", "publish", "read")  # of `blurfit.store.access`, without its imports


@click.command(epilog="Example: blurfit token --name 'mail office' --right invite --out mail.txt")
@store_option()
@click.option("--name", help="The name of the token's holder.")
@click.option("--right", type=click.Choice(_RIGHTS), help="What the new token allows.")
@out_file("Where the new token is written; no copy is kept.")
@click.option("--revoke", is_flag=True, help="Revoke the token of that name.")
@as_json
def token(
    place: str,
    name: str | None,
    right: "Right | None",
    out: Path | None,
    revoke: bool,
    as_json: bool,
) -> None:
    """Grant or revoke a token for one kind of task; without options, list all tokens.

    This takes effect at once, without restarting any service. To rotate a token, grant another
    under a new name, and revoke the first one when nobody uses it any more.
    """
    from blurfit.protocol import tokens

    with bf.Store(place) as store:
        if name is None:
            found = store.granted()
            lines = [f"{one}: {may}" for one, may in found.items()] or ["There are none."]
            answer({"tokens": found}, "\n".join(lines), as_json=as_json)
            return
        if revoke:
            store.revoke(name)
            answer({"revoked": name}, f"The token of {name!r} is revoked.", as_json=as_json)
            return
        if right is None or out is None:
            raise InvalidValueError("Expected --right and --out with --name, or --revoke.")
        if out.exists():
            raise InvalidValueError(
                f"Expected --out {str(out)!r} to be a new file: the existing one may hold a token."
            )
        secret = tokens.new_token()
        tokens.write_token(out, secret)
        try:
            store.grant(name, right, tokens.hashed(secret))
        except BaseException:
            out.unlink()
            raise
    sentence = f"Wrote a token for {name!r} to {out}: it allows `{right}`."
    answer({"name": name, "right": right, "out": str(out)}, sentence, as_json=as_json)


@click.command(epilog="Example: blurfit deeds --store sqlite:///collection.db")
@store_option()
@with_default("--most", 50, "How many to list.", type=click.IntRange(1))
@as_json
def deeds(place: str, most: int, as_json: bool) -> None:
    """List what administrators did, newest first: when, who, what, and the outcome."""
    with bf.Store(place) as store:
        found = store.audit_log(most)
    lines = [
        f"{dt.datetime.fromtimestamp(one.second, dt.UTC):%Y-%m-%d %H:%M:%S}Z  {one.outcome}  "
        f"{one.name}: {one.what} {one.fingerprint or ''}".rstrip()
        for one in found
    ]
    facts = {"deeds": [asdict(one) for one in found]}
    answer(facts, "\n".join(lines) or "Nothing yet.", as_json=as_json)


@click.command(epilog="Example: blurfit backup --store sqlite:///collection.db --out monday.db")
@store_option()
@out_file("The backup, a new file.", required=True)
@as_json
def backup(place: str, out: Path, as_json: bool) -> None:
    """Copy a store while it is in use, as of one moment, and check the copy.

    A plain copy of the file lacks whatever is still in SQLite's log, which may be everything. Back
    up PostgreSQL with pg_dump.
    """
    from blurfit.store.backup import backup as copy

    found = copy(place, out)
    facts = {"out": str(out), "collections": found.collections, "submissions": found.submissions}
    sentence = (
        f"Wrote {out}: {found.collections:,} collections with {found.submissions:,} submissions, "
        "each sum compared with its checksum."
    )
    answer(facts, sentence, as_json=as_json)


@click.command(epilog="Example: blurfit restore monday.db --store sqlite:///collection.db")
@click.argument("file", required=False, type=ANY_FILE)
@store_option("The new store.")
@click.option(
    "--original-lost",
    is_flag=True,
    help="Declare that the original is lost, and that it published and exported nothing after the "
    "backup: collections of `moment` with one database then go on. Plans of waves end anyway.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="The store exists already, filled by pg_restore: close what must not publish again.",
)
@as_json
def restore(
    file: Path | None, place: str, original_lost: bool, in_place: bool, as_json: bool
) -> None:
    """Restore a store from a backup FILE, so that nothing can be published a second time.

    What was published stays. Collections that had published nothing are closed for good, because
    the original may have published since then, from other people; see --original-lost.
    """
    from blurfit.store.backup import Copied, mark_restored
    from blurfit.store.backup import restore as copy
    from blurfit.store.database import file_of

    if in_place == (file is not None):
        raise InvalidValueError("Expected the FILE of a backup, or --in-place without one.")
    if file is None:
        found = Copied(0, 0, mark_restored(place, original_lost=original_lost))
        sentence = f"Marked {place} as restored."
    else:
        target = file_of(place)
        if target is None:
            raise InvalidValueError(
                f"Expected --store to be a file in SQLite, and got {place!r}. Fill PostgreSQL with "
                "pg_restore, then use --in-place."
            )
        found = copy(file, target, original_lost=original_lost)
        sentence = (
            f"Wrote {target}: {found.collections:,} collections with {found.submissions:,} "
            "submissions."
        )
    if found.closed:
        sentence += (
            f" {len(found.closed):,} of them are closed for good, because the original may have "
            f"published since: {', '.join(one[:12] for one in found.closed)}."
        )
    facts = {
        "store": place,
        "collections": found.collections,
        "submissions": found.submissions,
        "closed": list(found.closed),
    }
    answer(facts, sentence, as_json=as_json)
    next_step(f"`blurfit serve --store {place} …`.", quiet=as_json)


@click.command(
    epilog="Example: blurfit export agreement.json --store sqlite:///collection.db "
    "--out submissions.parquet"
)
@agreement_file
@click.option(
    "--store", "place", required=True, help="sqlite:///file, or postgresql://user@host/name."
)
@out_file("Where they are written: a .parquet or .arrow file.", required=True)
@as_json
def export(agreement: Path, place: str, out: Path, as_json: bool) -> None:
    """Write the submissions of a closed collection to a file, for `blurfit learn`.

    If no model has been published yet, from now on it is learned from this file, alone or with
    others: the store publishes none, and exports to no second place. A copy of the file is enough
    to break this: keep only one.
    """
    from blurfit.files.learn import export as write

    agreed = load_agreement(agreement)
    with bf.Store(place) as store, watched("export", quiet=as_json) as watch:
        rows = write(store, agreed.fingerprint, out, watch)
    answer(
        {"rows": rows, "fingerprint": agreed.fingerprint, "out": str(out)},
        f"Wrote {rows:,} submissions to {out}.",
        as_json=as_json,
    )
    next_step(f"`blurfit learn {agreement} {out}`.", quiet=as_json)
