"""What an administrator types while something is collected: opening, steering, inviting,
publishing.

With two databases a person needs an invitation from each, and gets both in one link. Usually nobody
holds both administrators' tokens: then one side writes its invitations to a file (`--tokens`), and
the other joins them with its own (`--join`), as the page for administrators does.
"""

import io
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import click

import blurfit as bf
from blurfit import private_files
from blurfit.cli import RefusedError
from blurfit.cli import _common as common
from blurfit.cli._common import (
    Administered,
    Answer,
    AtLeastOne,
    ExistingFile,
    Out,
    Together,
    command,
)
from blurfit.cli.contribute import COLUMNS, FRAGMENT, IN_GROUPS, joining_line, read_invitations
from blurfit.cli.use import after_learning, shown_model
from blurfit.errors import InvalidValueError, in_words, optional

if TYPE_CHECKING:
    from blurfit.agreement.plan import Agreed

_WITH_INVITATIONS = (
    "Now give out invitations, one to each person: `blurfit invite`. The other database gives out "
    "its own."
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


@command("open", _AS_ADMINISTRATOR)
def open_collection(
    agreement: ExistingFile,
    at: Administered,
    *,
    as_: Literal["first", "second"] | None,
    until: str | None,
) -> Answer:
    """Start collecting under an AGREEMENT, or under a plan of waves.

    Each submission needs an invitation, unless the agreement says that anyone may take part
    (`blurfit agree --anyone`). A plan moves from wave to wave by itself: as soon as a wave has its
    quorum, its sums are published and the next wave opens. On its closing date the plan ends, with
    the best model of what was released.

    Options:
        as_: Which of the agreement's two databases this is, if it has two.
        until (DATE): When it closes by itself: a date (through its end in UTC), or a time with its
            zone, such as 2027-01-31T18:00+01:00. `blurfit until` moves it.
    """
    from blurfit.agreement.statement import premise_in_words

    agreed = common.load_agreed(agreement)
    with at.database() as database:
        state = database.open(agreed, role=as_ or "whole", until=until)
    page = at.page("c", agreed.fingerprint)
    if state["state"] not in (*OPEN, "held"):  # somebody opened it before, and it is over
        return Answer(state | {"page": page}, state_in_words(state))
    words = f"{state_in_words(state)} The page for contributors: {page}"
    if agreed.databases:
        words += f"\n{_WITH_INVITATIONS if state['invited'] else _WITHOUT_INVITATIONS}"
        words += f"\n{ONE_DATE}" if state["closes"] is not None else ""
    elif not state["invited"]:
        words += f"\n{premise_in_words(agreed.first())}"
    step = f"share that link, or send a table: `blurfit contribute {agreement} TABLE --to {at.to}`."
    if state["invited"]:
        typed = f"`blurfit invite {agreement} {at} --count {state['quorum']}"
        links, theirs = "--links --out links.txt`", "second-invitations.txt"
        step = f"{typed} {links} writes a link for each person."
        if as_ == "second":
            step = f"{typed} --out {theirs}`, and give that file to the first database."
        elif as_ == "first":
            step = (
                f"get {theirs} from the second database, which says there how it is written; then "
                f"{typed} --join {theirs} {links} writes a link for each person."
            )
    return Answer(state | {"page": page}, words, step)


@command("status", f"{_EXAMPLE} --json")
def status(agreement: ExistingFile, at: common.Asked) -> Answer:
    """Tell how many have contributed under an AGREEMENT, or to each wave of a plan."""
    agreed = common.load_agreed(agreement)
    with at.database() as database:
        state = database.status(agreed)
        words = state_in_words(state)
    # A plan goes on by itself.
    reached = state["count"] >= state["quorum"] and not isinstance(agreed, bf.Plan)
    if not (reached and state["state"] == "collecting"):
        return Answer(state, words)
    token = f"--admin-token-file {at.admin_token_file or 'token.txt'}"
    step = f"`blurfit publish {agreement} --to {at.to} {token}`, or wait for more."
    if agreed.databases:
        step = f"{_publish_jointly(agreed, agreement)} Or wait for more."
    return Answer(state, words, step)


def _publish_jointly(agreed: "Agreed", agreement: Path) -> str:
    """Say how two databases publish: each administrator has a token of their own, in token.txt."""
    first, second = (
        f"{agreement} --to {one.url} --admin-token-file token.txt" for one in agreed.databases
    )
    return f"`blurfit close {second}` at the second database, then `blurfit publish {first}`."


@command("close", _AS_ADMINISTRATOR)
def close(agreement: ExistingFile, at: Administered, *, anyway: bool) -> Answer:
    """Stop collecting, without publishing anything yet. This cannot be undone.

    Options:
        anyway: Close even below the quorum, so that nothing can ever be published, or if the two
            databases hold too different people.
    """
    from blurfit.protocol import counts_at, refuse_if_uneven

    agreed = common.load_agreed(agreement)
    if isinstance(agreed, bf.Plan):
        raise InvalidValueError(
            "Expected an agreement: a plan closes its waves by itself. `blurfit hold` stops it "
            "before the next release, and `blurfit publish --early` ends it."
        )
    if agreed.databases and not anyway:
        refuse_if_uneven(agreed, counts_at(agreed))
    with at.database() as database:
        state = database.status(agreed)
        is_short = state["count"] < state["quorum"]
        if is_short and not anyway and state["state"] in OPEN:
            raise RefusedError(
                f"{state_in_words(state)} Once closed it stays closed, and nothing could ever "
                "be published here. Wait for more people, or close it with --anyway."
            )
        state = database.close_collection(agreed)
    step = f"`blurfit publish {agreement} {at}` learns and publishes."
    if agreed.databases and state.get("awaits"):
        step = f"the first database publishes: {_publish_jointly(agreed, agreement)}"
    return Answer(state, state_in_words(state), "" if is_short else step)


@command("publish", f"{_AS_ADMINISTRATOR} --out model.json --moments moments.json")
def publish(
    agreement: ExistingFile,
    at: Administered,
    *,
    out: Out = Path("model.json"),
    moments: common.MomentsOut | None,
    early: bool,
) -> Answer:
    """Close the collection, learn its model and publish it. This can be done once.

    A plan of waves publishes by itself: this then fetches its model, or ends the plan (--early).

    Options:
        out: Where the model is written.
        early: End a plan now, with the best model so far.
    """
    agreed = common.load_agreed(agreement)
    with at.database() as database:
        if isinstance(agreed, bf.Plan):
            if moments is not None:
                raise InvalidValueError("Expected no --moments: each wave of a plan has its own.")
            state = database.status(agreed)
            if state["state"] != "ended" and not early:
                raise RefusedError(
                    f"{state_in_words(state)} It publishes its model by itself after the last "
                    "wave. To end it now with the best model so far, add --early."
                )
        elif agreed.sums_alone:
            return _publish_sums(database, agreed, moments or Path("moments.json"))
        model = database.publish(agreed)
        if moments is not None:
            database.moments(agreed).save(moments)
    page = at.page("m", model.fingerprint)
    return shown_model(model, out, moments, after_learning(out, moments), page=page)


def _publish_sums(database: Any, agreement: "bf.Agreement", place: Path) -> Answer:
    """Publish sums from which a model is asked for afterwards."""
    from blurfit.model.release import OF_EXITS

    moments = database.publish_sums(agreement)
    moments.save(place)
    words = f"Published the sums of {moments.count:,} contributions, and wrote {place}. {OF_EXITS}"
    return Answer({"count": moments.count, "moments": str(place)}, words)


@command("until", _AS_ADMINISTRATOR.replace(".json ", ".json 2027-02-28 "))
def until(agreement: ExistingFile, date: str, at: Administered) -> Answer:
    """Move the DATE at which a collection or a plan closes by itself.

    DATE is a date (through its end in UTC), a time with its zone such as 2027-01-31T18:00+01:00, or
    "never". Once its date has come, a collection is closed for good.
    """
    agreed = common.load_agreed(agreement)
    with at.database() as database:
        state = database.move_date(agreed, None if date == "never" else date)
    return Answer(state, state_in_words(state) + (f"\n{ONE_DATE}" if agreed.databases else ""))


@command("hold", _AS_ADMINISTRATOR.replace("agreement", "plan"))
def hold(plan: ExistingFile, at: Administered) -> Answer:
    """Release no wave of a PLAN until it is resumed; the open wave goes on collecting."""
    return _change("hold", plan, at, f"`blurfit resume {plan} {at}` lets it go on.")


@command("pause", _AS_ADMINISTRATOR)
def pause(agreement: ExistingFile, at: Administered) -> Answer:
    """Take no submissions under an AGREEMENT or a plan until it is resumed.

    Nothing is released by itself meanwhile. Whoever is refused may send the same again later.
    """
    return _change("pause", agreement, at, f"`blurfit resume {agreement} {at}` lets it go on.")


@command("resume", _AS_ADMINISTRATOR)
def resume(agreement: ExistingFile, at: Administered) -> Answer:
    """Resume what was paused, or a plan that was held."""
    return _change("resume", agreement, at, f"`blurfit status {agreement} --to {at.to}`.")


def _change(what: str, agreement: Path, at: Administered, step: str) -> Answer:
    agreed = common.load_agreed(agreement)
    if what == "hold" and not isinstance(agreed, bf.Plan):
        raise InvalidValueError(
            f"Expected a plan of waves, and {str(agreement)!r} is an agreement: nothing of it is "
            "released before you publish it. To take nothing for a while, use `blurfit pause`."
        )
    with at.database() as database:
        state = database.steer(agreed, what)
    return Answer(state, state_in_words(state), step)


# ---- states in words

OPEN = ("collecting", "paused")  # the states of a collection in which it can still be closed
_WAVES = {
    "planned": "waits for {quorum:,}",
    "collecting": "has {count:,} of {quorum:,}",
    "fixed": "is being published, from {count:,}",
    "released": "released, from {count:,}",
    "dropped": "never released: {count:,} of {quorum:,} had come",
}


def state_in_words(state: dict[str, Any]) -> str:
    """Say how far a collection is, or a plan, wave by wave."""
    at, other = state["closes"], state.get("awaits")
    closes = "" if at is None else f" It closes at {in_words(at)}."
    if state["waves"][0]["fingerprint"] != state["fingerprint"]:  # of one that stands alone
        return _plan_in_words(state, closes, other)
    count = state["count"]
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
    since = "" if at is None else f" since {in_words(at)}"
    if state["state"] == "closed" and missing > 0:
        return (
            f"Closed{since} with {count:,} contributions, {missing:,} too few: nothing can ever be "
            "published here."
        )
    return {
        "collecting": f"{came}, {needed}.{closes}",
        "paused": f"Paused with {count:,} contributions, {needed}.{closes}",
        "closed": f"Closed{since} with {count:,} contributions; nothing is published.{closed}",
        "published": f"Published, from {count:,} contributions.{published}",
    }[state["state"]]


def _plan_in_words(state: dict[str, Any], closes: str, other: str | None) -> str:
    who = "those who are invited" if state["invited"] else "anyone"
    heads = {
        "collecting": f"Collecting from {who}, in {len(state['waves'])} waves.",
        "held": "Held: no wave is released until it is resumed.",
        "paused": "Paused: nothing is taken or released until it is resumed.",
        "ended": "Ended.",
    }
    waves = [
        f"Wave {one['number']} {_WAVES[one['state']].format(**one)}." for one in state["waves"]
    ]
    told = [heads[state["state"]], *waves]
    told += [closes.strip() if state["state"] != "ended" else "", state["reason"]]
    if other is not None:
        told.append(
            f"The next step is {other}'s, and is tried again by itself. If this does not change, "
            "its service is not running, or the two cannot reach each other: ask its administrator."
        )
    if state["invited"] and state["state"] == "collecting":
        told.append(
            "If a group does not fill, invite more people: a lot puts some of them into it."
        )
    return " ".join(filter(None, told))


# ---- invitations

_FORMS = {  # by option: what the file is called, and the option's help
    "tokens": ("invitations", "As bare tokens, for programs (default)."),
    "links": ("links", "As links to the contributors' page."),
    "csv": ("links in a table", "As a table of links, for mail merge."),
    "qr": ("QR codes", "As QR codes to print, in an HTML page."),
}
_FORM_OPTIONS = [
    click.Option([f"--{form}", "form"], flag_value=form, default="tokens", help=said)
    for form, (_, said) in _FORMS.items()
]
_SHEET = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>
body {{font: 10pt sans-serif}}
main {{display: grid; grid-template-columns: repeat(auto-fill, 5cm); gap: 1cm}}
figure {{margin: 0; break-inside: avoid; text-align: center}}
svg {{width: 5cm; height: 5cm}}
</style>
<h1>{title}</h1>
<p>Give each code to one person, who scans it with a phone and takes part once. It opens
{site}.</p>
<main>
{codes}
</main>
"""


@command("invite", f"{_AS_ADMINISTRATOR} --count 20000 --out invitations.txt")
def invite(
    agreement: ExistingFile,
    at: Administered,
    *,
    count: AtLeastOne,
    out: Out,
    form: Annotated[str, Together(_FORM_OPTIONS, lambda form: form)],
    join: ExistingFile | None,
    both: ExistingFile | None,
) -> Answer:
    """Make one-time invitations for a collection or a plan, one for each person.

    An invitation to a plan is good in one of its waves, which a lot decides when it is made: with
    --csv the table has the group of each. Choose who gets which without looking at it, and write to
    a group when its turn comes. In a link, the invitation comes after #, which browsers never send.

    Options:
        count: How many invitations.
        out: Where they are written, one per line; no copy is kept.
        join: With two databases: join each with one of the other database's, which this file holds
            as its administrator wrote them (`blurfit invite`, as many).
        both: With two databases: ask the other one as well; this file holds the token of its
            administrator.
    """
    from blurfit.messages.submissions import KIND_OF
    from blurfit.protocol import RemoteDatabase, hashed, joined

    agreed = common.load_agreed(agreement)
    if out.exists():
        raise InvalidValueError(
            f"Expected --out {str(out)!r} to be a new file: the existing one may hold invitations."
        )
    if form == "qr":
        optional("segno")  # before any invitation is made
    addresses = [one.url for one in agreed.databases]
    own = at.to.rstrip("/")
    if form != "tokens" and addresses and join is None and both is None:
        raise InvalidValueError(
            "Expected --join FILE or --both TOKEN-FILE for links: with two databases each person "
            "needs an invitation from both, in one link. Let the other administrator run `blurfit "
            f"invite … --count {count} --out theirs.txt`, and join that file."
        )
    if join and both:
        raise InvalidValueError(
            "`--join` cannot be combined with `--both`: either has both halves."
        )
    if (addresses or join or both) and own not in addresses:
        raise InvalidValueError(
            f"Expected --to {own!r} to be one of the agreement's two databases, and it has "
            f"{addresses or 'only one database'}."
        )
    roles, place = tuple(KIND_OF), addresses.index(own) if addresses else 0
    theirs: list[str] = []
    if join is not None:
        theirs = _theirs(join, agreed, roles[1 - place], count)
        with at.database() as database:  # first: one's own are good at no other database
            database.refuse_pairs(agreed, theirs)
        with RemoteDatabase(addresses[1 - place], patience=at.patience) as database:
            database.refuse_unusable(agreed, theirs)
    made: list[list[str]] = []
    shares: list[int] = []
    for address in addresses if both else [own]:
        file = both if both and address != own else at.admin_token_file
        with replace(at, to=address, admin_token_file=file).database() as database:
            shares = shares or database.shares(agreed, count)
            made.append(database.invite(agreed, count, shares, theirs))
    if theirs:
        made.insert(1 - place, theirs)
    lot = agreed.lot
    pairs = joined(made, lot)
    groups = [lot.group_of(hashed(first)) for first, *_ in pairs] if len(lot.people) > 1 else []
    page = at.page("c", agreed.fingerprint)
    title = str(agreed.schema.about.title or "Invitations")
    text = written(form, list(map(",".join, pairs)), page, groups, title=title)
    sentence = f"Wrote {count:,} {_FORMS[form][0]} to {out}."
    if addresses and len(made) == 1:
        text = f"{joining_line(agreed.fingerprint, roles[place])}\n{text}"
        other = agreed.databases[1 - place].name
        sentence += (
            f" Give the file to the administrator of {other}, who joins it with as many of their "
            f"own: `blurfit invite {agreement} --to {addresses[1 - place]} … --count {count} "
            f"--join {out.name}`."
        )
    else:
        sentence += " Give each to one person."
    private_files.write(out, text, only_new=True)
    if groups:
        each = ", ".join(f"{n:,} for group {k}" for k, n in enumerate(shares, start=1))
        sentence += f" The lot has drawn {each}."
    facts = {"count": count, "out": str(out)} | ({"groups": shares} if groups else {})
    if form != "tokens" and urlsplit(at.to).hostname in common.LOOPBACK:
        click.echo(
            f"Warning: these links are to {at.to}, which only this machine can open. For phones, "
            "run the service behind HTTPS (`blurfit serve --public-url`), and invite with --to and "
            "that address.",
            err=True,
        )
    return Answer(facts, sentence)


def written(
    form: str,
    tokens: Sequence[str],
    page: str,
    groups: Sequence[int] = (),
    *,
    title: str = "Invitations",
) -> str:
    """Write the text of a file of invitations.

    Args:
        form: One of `_FORMS`.
        tokens: An invitation for each person; with two databases both, with a comma between them.
        page: The address of the contributors' page.
        groups: The group of each invitation to a plan.
        title: What a sheet of codes is called.

    >>> print(written("links", ["abc"], "https://first.example/c/00"), end="")
    https://first.example/c/00#invitation=abc
    """
    if form == "tokens":
        return "".join(f"{token}\n" for token in tokens)
    links = [f"{page}{FRAGMENT}{token}" for token in tokens]
    if form == "links":
        return "".join(f"{link}\n" for link in links)
    if form == "csv":
        table = io.StringIO()
        columns = [groups, links] if groups else [links]
        rows = zip(range(1, len(links) + 1), *columns, strict=True)
        common.write_csv(table, [IN_GROUPS if groups else COLUMNS, *rows])
        return table.getvalue()
    names = [
        f"{at}, group {groups[at - 1]}" if groups else f"{at}" for at in range(1, len(links) + 1)
    ]
    codes = "\n".join(map(_code, names, links))
    return _SHEET.format(title=escape(title), site=escape(page.partition("/c/")[0]), codes=codes)


def _code(name: str, link: str) -> str:
    picture = optional("segno").make(link, error="m", micro=False)
    picture = picture.svg_inline(border=4, omitsize=True)  # with a viewBox, so that CSS scales it
    return f"<figure>{picture}<figcaption>{name}</figcaption></figure>"


def _theirs(file: Path, agreed: "Agreed", role: str, count: int) -> list[str]:
    """Read the invitations of the other database for a collection, one for each of ours."""
    from blurfit.protocol import is_new_token

    text = file.read_text(encoding="utf-8", errors="replace")
    if text.partition("\n")[0].strip() != joining_line(agreed.fingerprint, role):
        raise InvalidValueError(
            f"Expected {str(file)!r} to begin with the line that `blurfit invite` writes at the "
            f"{role} database for this collection: it is of another collection, of your own "
            "database, or no file of invitations."
        )
    rows = read_invitations(text)
    tokens = {token for row in rows for token in row if is_new_token(token)}
    if not len(rows) == len(tokens) == count or any(len(row) != 1 for row in rows):
        raise InvalidValueError(
            f"Expected {str(file)!r} to hold {count:,} different invitations of the other "
            f"database, one in each line, and it holds {len(tokens):,} in {len(rows):,} lines."
        )
    return [token for (token,) in rows]
