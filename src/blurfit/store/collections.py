"""A collection: what never changes about it, worked out once and handed from request to
transaction.
"""

import re
import time
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import AnyArray, ByteArray
from blurfit.errors import UnknownCollectionError
from blurfit.learning.sums import Screen, block_sums, rows_that_add_exactly
from blurfit.messages.shares import KIND_OF, Role, ShareLayout, sum_of_masks
from blurfit.messages.submissions import Layout
from blurfit.store import closing, tables

Numbers = AnyArray  # float64, or uint64 for shares
State = Literal["collecting", "paused", "closed", "published"]

LARGEST = 4096  # rows of a block
LARGEST_PROVED = 1024  # where rows have proofs, of 11 to 18 kB each
_FINGERPRINT = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class Collection:
    """What never changes about a collection.

    `guests` is the key under which its invitations are kept: its own, or that of its plan's first
    wave, so that an invitation is one to the plan; it is used up, once, in the wave of its lot.
    """

    key: int
    agreement: Agreement
    screen: Screen | None  # of shares nothing can be told
    exact_rows: int
    role: Role
    layout: Layout
    guests: int

    @classmethod
    def of(
        cls,
        key: int,
        agreement: Agreement,
        *,
        role: Role = "whole",
        guests: int | None = None,
    ) -> "Collection":
        """The collection of an agreement, with what follows from it worked out once."""
        guests = key if guests is None else guests
        if role != "whole":
            layout = agreement.share_layout(KIND_OF[role])
            most = LARGEST_PROVED if agreement.proofs else LARGEST
            return cls(key, agreement, None, most, role, layout, guests)
        screen = Screen.of(agreement)
        exact_rows = rows_that_add_exactly(agreement, screen.largest_steps())
        return cls(key, agreement, screen, exact_rows, role, agreement.layout, guests)

    @property
    def fingerprint(self) -> str:
        """The agreement's."""
        return self.agreement.fingerprint

    @property
    def invited(self) -> bool:
        """Whether each submission needs an invitation, as the agreement says."""
        return self.agreement.admission == "invited"

    def numbers(self, rows: ByteArray) -> Numbers:
        """What some rows hold: blurred numbers, or the words of shares."""
        layout = self.layout
        return layout.words(rows) if isinstance(layout, ShareLayout) else layout.numbers(rows)

    def sums(self, numbers: Numbers) -> Numbers:
        """The sums of some rows; those of shares are mod 2⁶⁴, those of seeds are of their masks.

        Shares with proofs have more to them than what is added up (`blurfit.store.proved_sums`):
        there the words are added as they are, so that damage is seen.
        """
        if self.role == "first" or self.agreement.proofs:
            return np.asarray(numbers.sum(axis=0, dtype=np.uint64))
        if isinstance(self.layout, ShareLayout):
            return sum_of_masks(numbers, self.layout.mask_width)
        return block_sums(self.agreement, numbers)

    @property
    def block_rows(self) -> int:
        """How many rows a block may have: so many that its sums are exact, wherever that can be."""
        return min(LARGEST, self.exact_rows) if self.exact_rows > 1 else LARGEST


def begin(
    connection: Connection, agreement: Agreement, closes: int | None = None
) -> tuple[int, bool]:
    """The key of an agreement's collection, and whether it is new."""
    c = tables.collections.c
    values = {
        "fingerprint": agreement.fingerprint,
        "agreement": agreement.to_json(),
        "state": "collecting",
        "opened": int(time.time() // 3600),
        "closes": closes,
    }
    insert = tables.insert_if_absent(connection, tables.collections)
    new = connection.scalar(insert.values(values).returning(c.key)) is not None
    key = connection.scalars(sa.select(c.key).where(c.fingerprint == agreement.fingerprint)).one()
    return key, new


def is_fingerprint(text: str) -> bool:
    """Whether a text may be a fingerprint at all: 64 hexadecimal digits."""
    return _FINGERPRINT.fullmatch(text) is not None


def find(connection: Connection, fingerprint: str) -> Collection:
    """The collection under a fingerprint, if there is one."""
    c, role = tables.collections.c, tables.sharing.c.role
    shared = tables.sharing.c.collection == c.key
    query = sa.select(c.key, c.agreement, role).outerjoin(tables.sharing, shared)
    row = None
    if is_fingerprint(fingerprint):  # others are no text that every database takes
        row = connection.execute(query.where(c.fingerprint == fingerprint)).first()
    if row is None:
        raise UnknownCollectionError(
            f"Nothing is collected under fingerprint={fingerprint!r} here. Is this the service "
            "that you were invited to, and has the collection been opened?"
        )
    agreement = Agreement.from_json(row.agreement)
    return Collection.of(
        row.key,
        agreement,
        role=row.role or "whole",
        guests=_first_of_plan(connection, agreement),
    )


def _first_of_plan(connection: Connection, agreement: Agreement) -> int | None:
    """The key of the first wave of the plan that was begun here, if it is one of a plan."""
    if agreement.wave is None:
        return None
    w = tables.waves.c
    query = sa.select(w.collection).where((w.plan == agreement.wave.plan) & (w.number == 1))
    found: int | None = connection.scalar(query)
    return found


def fingerprints(connection: Connection) -> list[str]:
    """Those of all collections, in the order in which they were opened."""
    c = tables.collections.c
    return list(connection.scalars(sa.select(c.fingerprint).order_by(c.key)))


def state(connection: Connection, collection: Collection) -> State:
    """How far a collection is."""
    c = tables.collections.c
    found: State = connection.scalars(sa.select(closing.STATE).where(c.key == collection.key)).one()
    return found


_c = tables.collections.c
_SHOWN = sa.select(closing.STATE, _c.opened, _c.closes, _c.moments.is_not(None)).where(
    _c.key == sa.bindparam("key")
)


class Shown(NamedTuple):
    """What a collection's row tells of how it stands."""

    state: State
    opened: int | None  # the hour since 1970
    closes: int | None  # the second since 1970
    has_sums: bool  # whether its blurred sums are published


def shown(connection: Connection, collection: Collection) -> Shown:
    """How a collection stands, by one look."""
    row = connection.execute(_SHOWN, {"key": collection.key}).one()
    return Shown(row[0], row[1], row[2], bool(row[3]))
