"""The store: submissions in SQLite or PostgreSQL, each counted once, and one model from each
collection.

A submission is stored under its random identifier. What comes again under it is acknowledged and
counted once, so a sender who is not sure may simply send again; the first one stays, whatever the
numbers of a later one are. What was accepted is on disk.

What must happen together is one transaction: identifiers, numbers, sums and used invitations of a
group of arrivals; the closing of a collection, which fixes its set; its model, and the moments that
are published with it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import exc
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InvalidValueError, StorageError, UnknownCollectionError
from blurfit.messages.shares import Role
from blurfit.messages.submissions import Submission, Submissions
from blurfit.model.model import PublishedModel
from blurfit.model.moments import PublishedMoments
from blurfit.store import (
    awaited,
    blocks,
    closing,
    collections,
    connecting,
    credentials,
    migrations,
    publication,
    roles,
)
from blurfit.store.arrivals import (
    Arrival,
    Group,
    Outcome,
    SomeAreKnownError,
    receive_new,
    receive_one_by_one,
)
from blurfit.store.backup import refuse_backup
from blurfit.store.collections import Collection, State
from blurfit.store.taken import settle
from blurfit.store.transactions import Transactions

Receiver = Callable[[Connection, Collection, Group], tuple[list[Outcome], int]]
_MOST_RECENT = 2**15  # identifiers that wait to be put in order


@dataclass(frozen=True)
class Status:
    """What anyone may know of a collection."""

    fingerprint: str
    state: State
    count: int
    quorum: int
    invited: bool
    opened: int | None = None  # the hour since 1970
    closes: int | None = None  # the second since 1970 from which nothing is taken, if one was set
    awaits: str | None = None  # the other of two databases, if it has the next step
    sums: bool = False  # whether blurred sums are published, beside a model or without one


class Store(Transactions):
    """Any number of collections, each under its agreement's fingerprint.

    Args:
        place: a file for SQLite, a URL (sqlite:///collection.db, postgresql://user@host/name), or
            ":memory:" for one that lasts as long as this object.
        connections: how many there may be at once to PostgreSQL.
    """

    def __init__(
        self, place: str | Path = ":memory:", *, connections: int = connecting.CONNECTIONS
    ) -> None:
        super().__init__(place, connections)
        self._collections: dict[str, Collection] = {}
        # How much has come since it was last put in order; what came before this process waits.
        self._small: dict[int, int] = {}
        self._recent = 0
        try:
            with self._writing() as connection:
                migrations.migrate(connection)
                refuse_backup(connection, str(place))
        except (StorageError, exc.DatabaseError) as error:
            self._engine.dispose()
            raise InvalidValueError(
                f"Expected {str(self._engine.url)!r} to be a store that can be opened: {error} "
                "Does its folder exist, and is the server running?"
            ) from error
        except BaseException:
            self._engine.dispose()
            raise

    # ---- collections

    def open(
        self,
        agreement: Agreement,
        *,
        role: Role = "whole",
        allow_unproved: bool = False,
        closes: int | None = None,
    ) -> bool:
        """Start collecting under an agreement, which is verified; whether it is new is returned.

        To open it again changes nothing. Whether each submission needs an invitation is in the
        agreement. `role` says which of the two databases this is, where trust is shared;
        `allow_unproved` is as in `Agreement.verify`. From the second `closes` since 1970 on nothing
        is taken any more (`blurfit.store.closing`).
        """
        agreement.verify(allow_unproved=allow_unproved)
        roles.refuse_unless_fitting(agreement, role)
        with self._writing() as connection:
            key, new = collections.begin(connection, agreement)
            if role != "whole":
                roles.take_role(connection, key, role)
            closing.begin(connection, key, closes, new=new)
        return new

    def move_closing(self, fingerprint: str, closes: int | None) -> Status:
        """Let an open collection close at another moment, or at none."""
        collection = self.collection(fingerprint)
        self.write(publication.move_closing, collection, closes)
        return self.read(_status, collection)

    def collection(self, fingerprint: str) -> Collection:
        """What never changes about a collection, read once."""
        if found := self._collections.get(fingerprint):
            return found
        with self._reading() as connection:
            found = collections.find(connection, fingerprint)
        self._collections[fingerprint] = found
        return found

    def known(self, fingerprint: str) -> Collection | None:
        """A collection that was read before, without a wait; None if it was not."""
        return self._collections.get(fingerprint)

    def status(self, fingerprint: str) -> Status:
        """State, count and quorum of a collection."""
        return self.read(_status, self.collection(fingerprint))

    def statuses(self) -> list[Status]:
        """Those of all collections, in the order of their opening."""
        return [self.status(one) for one in self.read(collections.fingerprints)]

    def history(self, fingerprint: str) -> list[tuple[int, int]]:
        """How many came in which hour since 1970."""
        return self.read(blocks.history, self.collection(fingerprint))

    # ---- submissions

    def receive(self, collection: Collection, arrivals: Sequence[Arrival]) -> list[Outcome]:
        """Take a group of arrivals in one transaction; each succeeds or fails on its own.

        Raises StorageError if the transaction as a whole failed: then nothing was kept, or, if the
        connection broke at the very end, the same arrivals may be given again and count once.
        """
        group = Group.of(collection, arrivals)
        return group.outcomes(self._keep(collection, group) if group.spans else [])

    def _keep(self, collection: Collection, group: Group) -> list[Outcome]:
        if not collection.invited or all(span.vouched for span in group.spans):
            try:
                return self._receive(receive_new, collection, group)
            except SomeAreKnownError:
                pass
        return self._receive(receive_one_by_one, collection, group)

    def _receive(self, take: Receiver, collection: Collection, group: Group) -> list[Outcome]:
        with self._writing() as connection:
            outcomes, small = take(connection, collection, group)
            waiting = self._small.get(collection.key, 0) + small
            if waiting >= blocks.MANY:
                blocks.put_together(connection, collection)
                waiting = 0
            recent = self._recent + sum(one for one in outcomes if isinstance(one, int))
            if recent >= _MOST_RECENT and connection.dialect.name == "sqlite":
                settle(connection)
                recent = 0
        self._small[collection.key], self._recent = waiting, recent
        return outcomes

    def add(self, agreement: Agreement, received: Submission | Submissions) -> int:
        """Keep what was received, all of it or nothing; how many were new is returned.

        The collection is opened if it is not there yet. No invitation is needed: whoever holds the
        store, and calls this, vouches for what is added (`blurfit.agreement.statement`).
        """
        if not isinstance(received, Submission | Submissions):
            raise InvalidValueError(
                f"Expected a Submission or Submissions, and got {type(received).__name__}: "
                "records are blurred by their contributors, with perturb."
            )
        batch = received if isinstance(received, Submissions) else Submissions.gather([received])
        rows = batch.rows(agreement.layout)
        try:
            collection = self.collection(agreement.fingerprint)
        except UnknownCollectionError:
            self.open(agreement)
            collection = self.collection(agreement.fingerprint)
        (outcome,) = self.receive(collection, [Arrival(rows.data, vouched=True)])
        if isinstance(outcome, BlurfitError):
            raise outcome
        return outcome

    def count(self, agreement: Agreement) -> int:
        """How many different submissions there are under the agreement."""
        try:
            return self.status(agreement.fingerprint).count
        except UnknownCollectionError:
            return 0

    def submissions(self, fingerprint: str) -> Iterator[Submissions]:
        """Everything that a collection holds: for a backup, or to check its sums."""
        collection = self.collection(fingerprint)
        with self._reading() as connection:
            yield from blocks.submissions(connection, collection)

    # ---- publication

    def close_collection(self, fingerprint: str) -> Status:
        """Accept nothing more, and publish nothing yet."""
        collection = self.collection(fingerprint)
        self.write(publication.close, collection)
        return self.read(_status, collection)

    def publish(self, agreement: Agreement | str) -> PublishedModel:
        """Learn the model, once: it closes the collection, and is the same for ever."""
        fingerprint = agreement if isinstance(agreement, str) else agreement.fingerprint
        release = publication.publish(self, self.collection(fingerprint))
        return PublishedModel.from_json(release.text())

    def publish_text(self, fingerprint: str, write: publication.Write | None = None) -> str:
        """Learn the model, once, as a text that is always the same bytes; or publish sums, where
        they have no model of their own. `write` is as in `blurfit.store.publication`.
        """
        return publication.publish(self, self.collection(fingerprint), write).shown()

    def release(self, agreement: Agreement | str) -> PublishedMoments:
        """Publish the sums of a `moment` collection, once, with its model if it has one of its own:
        a later wave has none.
        """
        fingerprint = agreement if isinstance(agreement, str) else agreement.fingerprint
        publication.publish(self, self.collection(fingerprint))
        return self.moments(fingerprint)

    def model(self, fingerprint: str) -> str:
        """The published model, always the same text."""
        return self.read(publication.model, self.collection(fingerprint))

    def moments(self, agreement: Agreement | str) -> PublishedMoments:
        """The blurred sums that were published with a `moment` model; further models are free."""
        fingerprint = agreement if isinstance(agreement, str) else agreement.fingerprint
        return PublishedMoments.from_json(self.moments_text(fingerprint))

    def moments_text(self, fingerprint: str) -> str:
        """The blurred sums as they were stored, always the same text."""
        return self.read(publication.moments, self.collection(fingerprint))

    # ---- credentials

    def invite(self, fingerprint: str, hashes: Iterable[bytes]) -> int:
        """Keep the hashes of new invitations; how many were new is returned."""
        return self.write(credentials.invite, self.collection(fingerprint), hashes)

    def invitations(self, fingerprint: str) -> int:
        """How many invitations nobody has used yet."""
        return self.read(credentials.unused, self.collection(fingerprint))

    def administrator(self) -> bytes | None:
        """The hash of the administrator's token, if there is one."""
        return self.read(credentials.administrator)

    def appoint(self, token_hash: bytes, *, replace: bool = False) -> bool:
        """Keep the hash of the administrator's token, if there is none or it is to be replaced."""
        return self.write(credentials.appoint, token_hash, replace=replace)


def _status(connection: Connection, collection: Collection) -> Status:
    state, opened, closes, sums = collections.shown(connection, collection)
    count = blocks.count(connection, collection)
    quorum, invited = collection.agreement.quorum, collection.invited
    awaits = awaited.in_collection(connection, collection)
    return Status(
        collection.fingerprint, state, count, quorum, invited, opened, closes, awaits, sums
    )
