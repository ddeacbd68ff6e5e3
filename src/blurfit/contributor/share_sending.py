"""A contributor's side where trust is split: one share to each database, until both have theirs.

A record counts when both databases have its shares; a share that the other never got is left out of
the sums, and says nothing. So each is sent again until it is acknowledged, and the receipt says
which database has its share. The seed goes first, and the share only once the seed has arrived:
whoever gives up half-way leaves a seed behind and no share, so that the first database has nobody
to leave out of its sums, and refuses a set that leaves many out (`blurfit.store.commitment`). What
was shared is kept until both have it (in the journal for a table): to share a record anew would
count it twice.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2 as httpx

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.client import (
    BINARY,
    BYTES_AT_ONCE,
    INVITED_AT_ONCE,
    ROWS_AT_ONCE,
    default_journal,
)
from blurfit.contributor.journal import Journal
from blurfit.contributor.share import SharedRecords, share
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.protocol.http import PATIENCE, Exchange
from blurfit.schema.table_files import TableFile

_LENGTH = struct.Struct("<Q")
Messages = tuple[bytes, bytes]  # for the first database, and for the second


@dataclass(frozen=True)
class SplitReceipt:
    """What a contributor keeps: which of the databases have stored their share, under one name."""

    fingerprint: str
    identifier: str
    held_by: tuple[str, ...]
    failures: dict[str, BlurfitError] = field(default_factory=dict, compare=False)

    @property
    def complete(self) -> bool:
        """Whether both have it, so that the record counts."""
        return not self.failures


def _nobody_watches(_done: int, _of: int) -> None:
    pass


class SplitClient:
    """The two databases of an agreement, at the addresses that it names.

    Args:
        agreement: what everyone agreed on; it is verified first.
        patience: for how many seconds to go on trying, for each of the two.
        transports: how bytes travel to each; tests let services answer in the same process.
        options: more arguments for `blurfit.protocol.http.Exchange`.
    """

    def __init__(
        self,
        agreement: Agreement,
        *,
        patience: float = PATIENCE,
        transports: Sequence[httpx.BaseTransport | None] = (None, None),
        **options: Any,
    ) -> None:
        agreement.verify()
        if not agreement.databases:
            raise InvalidValueError(
                "Expected an agreement with trust='split': under this one everything goes to one "
                "database, with blurfit.contributor.client.Client."
            )
        self.agreement = agreement
        self._exchanges = [
            Exchange(database.url, patience=patience, transport=transport, **options)
            for database, transport in zip(agreement.databases, transports, strict=True)
        ]

    def check(self) -> None:
        """Make sure that both services collect under this very agreement."""
        for exchange in self._exchanges:
            text = exchange.get(f"/collections/{self.agreement.fingerprint}/agreement")
            Agreement.from_json(text).verify(self.agreement.fingerprint)

    def contribute(self, record: Any, *, invitations: Sequence[str] = ()) -> SplitReceipt:
        """Blur one record, share it and send the shares; the receipt says which database has it.

        If one of them cannot be reached the record does not count. To go on later with the same
        shares use `blurfit.contributor.share.share` and `submit`.
        """
        return self.submit(share(self.agreement, record), invitations=invitations)

    def submit(self, shared: SharedRecords, *, invitations: Sequence[str] = ()) -> SplitReceipt:
        """Send what is shared already; again is safe. `invitations`: one for each database."""
        if invitations and len(invitations) != 2:
            raise InvalidValueError(
                f"Expected two invitations, one from each database, and got {len(invitations)}."
            )
        messages = shared.first.to_bytes(), shared.second.to_bytes()
        failures = self._send(messages, [[one] for one in invitations] or [[], []])
        held = tuple(one.name for one in self.agreement.databases if one.name not in failures)
        return SplitReceipt(self.agreement.fingerprint, shared.identifier, held, failures)

    def contribute_table(
        self,
        table: str | Path,
        *,
        journal: str | Path | None = None,
        invitations: Sequence[Sequence[str]] = ((), ()),
        progress: Callable[[int, int], object] = _nobody_watches,
    ) -> int:
        """Blur, share and send every row of a CSV or Parquet file; how many is returned.

        As `Client.contribute_table`: both shares of a part are in the journal before either is
        sent, and are forgotten when both are received. `invitations` are two lists.
        """
        agreement, file = self.agreement, TableFile(Path(table), self.agreement.schema)
        rows = file.check()
        given = [list(dict.fromkeys(some)) for some in invitations]
        for database, some in zip(agreement.databases, given, strict=True):
            if some and len(some) < rows:
                raise InvalidValueError(
                    f"Expected an invitation of {database.name} for each of {rows} rows, and got "
                    f"{len(some)} different ones. `blurfit invite` makes more."
                )
        place = Path(journal) if journal else default_journal(Path(table), agreement)
        with Journal(place, agreement.fingerprint, file.digest(), rows) as kept:
            for start, count, messages in self._parts(file, kept, any(given)):
                tokens = [some[start : start + count] for some in given]
                for failure in self._send(messages, tokens).values():
                    raise failure
                kept.acknowledge(start)
                progress(start + count, rows)
        progress(rows, rows)
        return rows

    def _parts(
        self, file: TableFile, kept: Journal, invited: bool
    ) -> Iterator[tuple[int, int, Messages]]:
        """What was shared before but perhaps not received, and then the rest, shared now."""
        layout = self.agreement.layout
        for start, message in kept.pending():
            messages = _apart(message)
            # A single share has no head of a batch, which is shorter than any remainder.
            yield start, max(1, len(messages[0]) // layout.size), messages
        at_once = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE // layout.size))
        if invited:
            at_once = min(at_once, INVITED_AT_ONCE)
        start = kept.blurred()
        for part in file.chunks(at_once, skip=start):
            shared = share(self.agreement, part)
            messages = shared.first.to_bytes(), shared.second.to_bytes()
            kept.record(start, len(shared), _together(messages))
            yield start, len(shared), messages
            start += len(shared)

    def _send(
        self, messages: Messages, invitations: Sequence[Sequence[str]]
    ) -> dict[str, BlurfitError]:
        """The seed, and then the share; why it failed for those that do not have theirs."""
        failures: dict[str, BlurfitError] = {}
        parts = zip(self.agreement.databases, self._exchanges, messages, invitations, strict=True)
        for database, exchange, message, tokens in reversed(list(parts)):
            if failures:  # no seed, no share
                failures[database.name] = failures[self.agreement.databases[1].name]
                break
            headers = {"blurfit-invitation": ",".join(tokens)} if tokens else {}
            try:
                exchange.post(
                    f"/collections/{self.agreement.fingerprint}/submissions",
                    message,
                    content_type=BINARY,
                    headers=headers,
                )
            except BlurfitError as error:
                failures[database.name] = error
        return failures

    def close(self) -> None:
        """Hang up."""
        for exchange in self._exchanges:
            exchange.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _together(messages: Messages) -> bytes:
    """Both messages as one, for the journal."""
    return _LENGTH.pack(len(messages[0])) + messages[0] + messages[1]


def _apart(message: bytes) -> Messages:
    (length,) = _LENGTH.unpack_from(message)
    first = message[_LENGTH.size : _LENGTH.size + length]
    return first, message[_LENGTH.size + length :]
