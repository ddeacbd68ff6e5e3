"""A collection: what never changes about it, worked out once and handed from request to
transaction.
"""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import AnyArray, ByteArray
from blurfit.errors import ConflictError, UnknownCollectionError
from blurfit.learning.admission import Screen
from blurfit.learning.sums import block_sums, rows_that_add_exactly
from blurfit.messages.layout import Layout
from blurfit.messages.masks import sum_of_masks
from blurfit.messages.shares import PART_OF, Role, ShareLayout
from blurfit.store import tables

Numbers = AnyArray  # float64, or uint64 for shares
State = Literal["collecting", "closed", "published"]

LARGEST = 4096  # rows of a block
LARGEST_PROVED = 1024  # where rows have proofs, of some 20 kB each
_FINGERPRINT = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class Collection:
    """What never changes about a collection."""

    key: int
    agreement: Agreement
    screen: Screen | None  # of shares nothing can be told
    exact_rows: int
    invited: bool
    role: Role
    layout: Layout

    @classmethod
    def of(
        cls, key: int, agreement: Agreement, *, invited: bool, role: Role = "whole"
    ) -> "Collection":
        """The collection of an agreement, with what follows from it worked out once."""
        if role != "whole":
            layout = agreement.share_layout(PART_OF[role])
            most = LARGEST_PROVED if agreement.proofs else LARGEST
            return cls(key, agreement, None, most, invited, role, layout)
        screen = Screen.of(agreement)
        exact_rows = rows_that_add_exactly(agreement, screen.largest_steps())
        return cls(key, agreement, screen, exact_rows, invited, role, agreement.layout)

    @property
    def fingerprint(self) -> str:
        """The agreement's."""
        return self.agreement.fingerprint

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


def begin(connection: Connection, agreement: Agreement, *, invited: bool) -> tuple[int, bool]:
    """The key of an agreement's collection, and whether it is new."""
    c = tables.collections.c
    values = {
        "fingerprint": agreement.fingerprint,
        "agreement": agreement.to_json(),
        "invited": invited,
        "state": "collecting",
    }
    insert = tables.insert_if_absent(connection, tables.collections)
    new = connection.scalar(insert.values(values).returning(c.key)) is not None
    key, before = connection.execute(
        sa.select(c.key, c.invited).where(c.fingerprint == agreement.fingerprint)
    ).one()
    if before != invited:
        raise ConflictError(
            f"Expected invited={invited} to be {before}, as when the collection was opened: that "
            "cannot be changed afterwards."
        )
    return key, new


def find(connection: Connection, fingerprint: str) -> Collection:
    """The collection under a fingerprint, if there is one."""
    c, role = tables.collections.c, tables.sharing.c.role
    shared = tables.sharing.c.collection == c.key
    query = sa.select(c.key, c.agreement, c.invited, role).outerjoin(tables.sharing, shared)
    row = None
    if _FINGERPRINT.fullmatch(fingerprint):  # others are no text that every database takes
        row = connection.execute(query.where(c.fingerprint == fingerprint)).first()
    if row is None:
        raise UnknownCollectionError(
            f"Nothing is collected under fingerprint={fingerprint!r} here. Is this the service "
            "that you were invited to, and has the collection been opened?"
        )
    agreement = Agreement.from_json(row.agreement)
    return Collection.of(row.key, agreement, invited=row.invited, role=row.role or "whole")


def fingerprints(connection: Connection) -> list[str]:
    """Those of all collections, in the order of their opening."""
    c = tables.collections.c
    return list(connection.scalars(sa.select(c.fingerprint).order_by(c.key)))


def state(connection: Connection, collection: Collection) -> State:
    """How far a collection is."""
    c = tables.collections.c
    found: State = connection.scalars(sa.select(c.state).where(c.key == collection.key)).one()
    return found
