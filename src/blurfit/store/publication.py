"""One release from each collection: its set is fixed, learned from, and what was found is kept.

    collecting ─ fix ─► closed ─ keep ─► published          and never back
                          └─ hand over ─► exported

`fix` and `keep` are short transactions. Learning, which takes seconds where there are many columns,
happens between them, beside whoever writes: nobody who sends to another collection waits for it.

**One set.** Let S be the submissions of a collection when `fix` commits. Whatever changes a
collection's submissions holds its row, shared or alone, and refuses unless the state that it reads
there is `collecting` or `paused`: arrivals (`blurfit.store.arrivals`, which alone put blocks
together) and withdrawals (`blurfit.store.withdrawal`). `fix` holds the row alone, checks that S has
the quorum, and writes `closed`; nothing leads from there back to `collecting` or `paused`, a
restored store included (`blurfit.store.backup`). So every later transaction reads S, whichever
process it is in. Noise of the database itself, D, is drawn by the first `fix` and written with it.
What is learned is a function of S, D and the agreement, so every publisher finds the same, but for
how its machine rounds, whether it comes second, runs beside the first, or continues after a kill; a
date that has passed, or a closing by hand, only fixes S earlier. `keep` holds the row and writes
only where nothing is written, and nothing is shown but what it returns: what is written. So there
is one release, of one set.

Killed before `fix` commits, nothing happened. Killed between the two, the collection is closed, and
whoever publishes again continues with S; so too if the store failed, or is damaged and is mended.
Killed after `keep`, whoever asks again finds the release. Below the quorum `fix` changes nothing,
and the collection goes on.

A collection that is exported before it is published is handed over: its one release comes from the
exported file, together with other files or alone (`blurfit.model.release` has the proof that
there is only one). That is written down before the file is, with the place where it is written:
killed in between, the export may be repeated to the same place. When the file is complete, and
before it takes its name, that is written down too, once: from then on there is a file, which may be
moved and learned from at any time, and the store never writes a second one. An export that comes
between `fix` and `keep` takes the release over, and what was learned is thrown away by `keep`,
unseen.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.arrays import WordArray
from blurfit.errors import ClosedError, ConflictError, InfeasibleError, NotPublishedError
from blurfit.learning.sums import Totals
from blurfit.model.release import Release, refuse_below_quorum
from blurfit.randomness.database import blurred, words
from blurfit.store import blocks, closing
from blurfit.store.collections import Collection
from blurfit.store.tables import collections, waves
from blurfit.store.transactions import Transactions

Write = Callable[..., Any]  # `Transactions.write`, or what does the same when its turn comes

_HELD = (
    sa.select(
        *(one for one in collections.c if one is not collections.c.state),
        closing.STATE.label("state"),
    )
    .where(collections.c.key == sa.bindparam("key"))
    .with_for_update()
)


def close(connection: Connection, collection: Collection) -> None:
    """Close a collection, if it is not: nothing more is accepted, and nothing is published yet."""
    refuse_if_planned(connection, collection)
    shut(connection, collection)


def shut(connection: Connection, collection: Collection) -> None:
    """Accept nothing more, whoever decides so: an administrator, or the plan of a wave.

    A plan's date is kept with its waves, and so outlasts each of them.
    """
    c = collections.c
    keeps_date = is_planned(connection, collection)
    connection.execute(
        sa.update(collections)
        .where((c.key == collection.key) & c.state.in_(("collecting", "paused")))
        .values(state="closed", closes=c.closes if keeps_date else closing.CLOSES_IF_PAST)
    )


def move_closing(connection: Connection, collection: Collection, closes: int | None) -> None:
    """Let a collection that takes submissions close at another moment, or at none."""
    refuse_if_planned(connection, collection)
    closing.move(connection, collection.key, closes)


def pause(connection: Connection, collection: Collection, *, resume: bool = False) -> None:
    """Take nothing for a while, or go on; a collection that is closed stays so.

    Whoever was refused meanwhile may send the same again. Whether a collection is paused depends on
    nobody's answers, and nothing is published of what it holds, so no promise changes.
    """
    refuse_if_planned(connection, collection)
    before, after = ("paused", "collecting") if resume else ("collecting", "paused")
    row = held(connection, collection)
    if row.state not in (before, after):
        raise ClosedError("The collection is closed: it can be neither paused nor resumed.")
    here = collections.c.key == collection.key
    connection.execute(sa.update(collections).where(here).values(state=after))


def publish(store: Transactions, collection: Collection, write: Write | None = None) -> Release:
    """Learn the model, or find that there is none; what was found before stays.

    Below the quorum an error is raised, and the collection goes on. Shares are not for this: their
    sums mean nothing without the other database (`blurfit.store.joint_publication`). `write` is the
    store's, or does the same when its turn comes.
    """
    in_turn = write or store.write
    if (before := in_turn(fix, collection)) is not None:
        return before
    return in_turn(keep, collection, _learned(collection, *store.read(_fixed, collection)))


def fix(connection: Connection, collection: Collection) -> Release | None:
    """Close a collection, and so fix its set; or what it has come to, if that is known already.

    Below the quorum an error is raised, and nothing changes.
    """
    require_whole(collection)
    refuse_if_planned(connection, collection)
    row = held(connection, collection)
    if (before := _decided(row)) is not None:
        return before
    refuse_below_quorum(collection.agreement, blocks.count(connection, collection))
    shut(connection, collection)
    if row.noise is None and collection.agreement.database_noise:
        noise = words(collection.agreement).astype("<u8").tobytes()
        here = collections.c.key == collection.key
        connection.execute(sa.update(collections).where(here).values(noise=noise))
    return None


def _fixed(connection: Connection, collection: Collection) -> tuple[Totals, WordArray | None]:
    """What the set that was fixed comes to, and the noise that was drawn for it, if any was."""
    totals = blocks.totals(connection, collection)
    drawn = connection.scalar(
        sa.select(collections.c.noise).where(collections.c.key == collection.key)
    )
    return totals, None if drawn is None else np.frombuffer(drawn, "<u8").astype(np.uint64)


def _learned(collection: Collection, totals: Totals, drawn: WordArray | None) -> Release:
    """What comes of a set that was fixed. No transaction is open: this may take long."""
    try:
        totals = blurred(collection.agreement, totals, drawn)
    except InfeasibleError as error:  # too many to add exactly: there will never be fewer
        return Release(refusal=str(error))
    return Release.of(collection.agreement, totals)


def keep(connection: Connection, collection: Collection, release: Release) -> Release:
    """Write down what a collection's set has come to; what was written before stays."""
    if (before := _decided(held(connection, collection))) is not None:
        return before
    return record(connection, collection, release)


def _decided(row: Any) -> Release | None:
    """What a collection has come to, if it has; an error if its release was left to a file."""
    if row.model is not None or row.refusal is not None:
        return Release(row.model, row.moments, row.refusal)
    if row.handed_over is not None:
        raise InfeasibleError(
            f"This collection was exported to {row.handed_over!r}, and its model is learned from "
            "that file (`blurfit learn`). Another one from here could be of other people, and the "
            "two would give away whom they differ in."
        )
    return None


def record(connection: Connection, collection: Collection, release: Release) -> Release:
    """Write down what a collection has come to, in the transaction that holds its row."""
    connection.execute(
        sa.update(collections)
        .where(collections.c.key == collection.key)
        .values(
            state="closed" if release.model is None else "published",
            model=release.model,
            moments=release.moments,
            refusal=release.refusal,
            closes=closing.CLOSES_IF_PAST,
        )
    )
    return release


def hand_over(
    connection: Connection, collection: Collection, place: str
) -> tuple[Release | None, str | None]:
    """What was published, to be told in the exported file; None if the release is left to it.

    Beside it, the name of a complete file that an export was killed with before it was renamed.

    Refused while more may come; where a model was tried and could not be, which is for good; where
    it was left to a file before, unless that was never completed, at the same place; and before
    publication where the database adds noise of its own, which a second export could have drawn a
    second time.
    """
    require_whole(collection)
    refuse_if_planned(connection, collection)
    row = held(connection, collection)
    if row.state in ("collecting", "paused"):
        raise NotPublishedError(
            f"Expected a collection that is closed, and {collection.fingerprint} is still "
            "collecting. Close it first (`blurfit close`); that cannot be undone."
        )
    if row.refusal is not None:
        raise InfeasibleError(row.refusal)
    if row.model is not None:
        return Release(row.model, row.moments), None
    if collection.agreement.database_noise:
        raise InfeasibleError(
            "This agreement has the database add noise of its own, once: publish here. Whoever "
            "learned from an exported file, and again from another export of it, would draw that "
            "noise twice for the same people."
        )
    if row.handed_over not in (None, place):
        raise ConflictError(
            f"Expected {place!r} to be {row.handed_over!r}, where this collection was exported "
            "before: models learned from two exports, each with other files, would give away whom "
            "they differ in. Learn from that file."
        )
    if row.handed_in is not None:
        if not Path(place).with_name(row.handed_in).exists():
            raise _handed_over(row)
        return None, row.handed_in
    here = collections.c.key == collection.key
    values = {"handed_over": place, "state": "closed"}  # for good, also where a date closed it
    connection.execute(sa.update(collections).where(here).values(values))
    return None, None


def complete_handover(connection: Connection, collection: Collection, name: str) -> None:
    """Write down that the exported file is complete under this name: of several only the first."""
    row = held(connection, collection)
    if row.handed_in is not None:
        raise _handed_over(row)
    here = collections.c.key == collection.key
    connection.execute(sa.update(collections).where(here).values(handed_in=name))


def _handed_over(row: Any) -> ConflictError:
    return ConflictError(
        f"This collection was exported to {row.handed_over!r}, and is not exported again: models "
        "learned from two copies, each with other files, would give away whom they differ in. "
        "Learn from that file, wherever it is now."
    )


def model(connection: Connection, collection: Collection) -> str:
    """The published model, always the same text."""
    return _published(connection, collection, collections.c.model)


def moments(connection: Connection, collection: Collection) -> str:
    """The blurred sums that were published with a `moment` model; further models are free."""
    if not collection.agreement.shows_sums:
        raise NotPublishedError(
            "The sums of an 'input' collection are never shown: a second model from them would "
            "undo the noise of the first. Use mechanism='moment' where they are needed."
        )
    return _published(connection, collection, collections.c.moments)


def _published(connection: Connection, collection: Collection, column: sa.Column[Any]) -> str:
    text = connection.scalar(sa.select(column).where(collections.c.key == collection.key))
    if text is None and (wave := collection.agreement.wave) is not None:
        raise NotPublishedError(
            f"This is wave {wave.number} of the plan {wave.plan}. Its sums are published when "
            f"{collection.agreement.quorum:,} have contributed, and a model from all waves when "
            "the plan has come to its end."
        )
    if text is None:
        raise NotPublishedError(
            "The model of this collection has not been published. Its administrator does that, "
            f"once, when at least {collection.agreement.quorum:,} have contributed."
        )
    return str(text)


def held(connection: Connection, collection: Collection) -> Any:
    """The collection's row, for which everyone else who would change it waits."""
    return connection.execute(_HELD, {"key": collection.key}).one()


def is_planned(connection: Connection, collection: Collection) -> bool:
    """Whether this is a wave of a plan that was begun here."""
    here = sa.select(waves.c.number).where(waves.c.collection == collection.key)
    return collection.agreement.wave is not None and connection.scalar(here) is not None


def refuse_if_planned(connection: Connection, collection: Collection) -> None:
    """A wave is closed and published by its plan alone, in the transaction that opens the next."""
    if is_planned(connection, collection):
        assert collection.agreement.wave is not None
        raise InfeasibleError(
            f"This is wave {collection.agreement.wave.number} of the plan "
            f"{collection.agreement.wave.plan}, which publishes it when its quorum is reached. "
            "Hold the plan, or end it early (`blurfit hold`, `blurfit publish` with the plan)."
        )


def require_whole(collection: Collection) -> None:
    """Refuse shares, whose sums mean nothing without the other database."""
    if collection.role != "whole":
        raise InfeasibleError(
            "Expected a collection of whole submissions: this one holds shares, and is published "
            "together with the agreement's other database, through the service."
        )
