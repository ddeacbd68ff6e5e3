"""A contributor's side where trust is shared: one share to each database, until both have theirs.

A record counts when both databases have its shares; a share that the other never got is left out of
the sums, and says nothing. So each is sent again until it is acknowledged, and the receipt says
which database has its share. The seed goes first, and the share only once the seed has arrived:
whoever gives up half-way leaves a seed behind and no share, so that the first database has nobody
to leave out of its sums, and refuses a set that leaves many out (`blurfit.store.commitment`). What
was shared is kept until both have it (in the journal for a table): to share a record anew would
count it twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import ByteArray, FloatArray
from blurfit.contributor.journal import Journal, Messages, Portion
from blurfit.contributor.noise import new_secret
from blurfit.contributor.receipt import Part, Receipt, Signatures, checked
from blurfit.contributor.sending import invitations_for, rows_in_a_request, send_table
from blurfit.contributor.share import SharedRecords, share, share_exact
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.messages.sealing import seal
from blurfit.messages.shares import Role
from blurfit.protocol.http import PATIENCE, Closeable, Exchange
from blurfit.protocol.wire import path_of


@dataclass(frozen=True)
class SharedReceipt:
    """Which databases have stored their share, under one identifier.

    `receipt` is what the contributor keeps: it lets her withdraw what she sent with `contribute`.
    """

    fingerprint: str
    identifier: str
    held_by: tuple[str, ...]
    failures: dict[str, BlurfitError] = field(default_factory=dict, compare=False)
    receipt: Receipt | None = None

    @property
    def complete(self) -> bool:
        """Whether both have it, so that the record counts."""
        return not self.failures


class SharedClient(Closeable):
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
                "Expected an agreement with trust='shared': under this one everything goes to one "
                "database, with blurfit.contributor.client.Client."
            )
        self.agreement = agreement
        self.exchanges = [
            Exchange(database.url, patience=patience, transport=transport, **options)
            for database, transport in zip(agreement.databases, transports, strict=True)
        ]

    def check(self) -> None:
        """Make sure that both services collect under this very agreement."""
        for exchange in self.exchanges:
            text = exchange.get(f"{path_of(self.agreement.fingerprint)}/agreement")
            Agreement.from_json(text).verify(self.agreement.fingerprint)

    def contribute(self, record: Any, *, invitations: Sequence[str] = ()) -> SharedReceipt:
        """Blur one record, share it and send the shares; the receipt says which database has it.

        If one of them cannot be reached the record does not count. To go on later with the same
        shares use `blurfit.contributor.share.share` and `submit`. A wave is refused: that one takes
        part in a plan once must be remembered (`blurfit.contributor.shared_plan`).
        """
        if self.agreement.wave is not None:
            raise InvalidValueError(
                f"Expected an agreement that stands alone, and this is wave "
                f"{self.agreement.wave.number} of the plan {self.agreement.wave.plan}: contribute "
                "under the plan, with blurfit.contributor.shared_plan.SharedPlanClient, which "
                "remembers who took part."
            )
        secret = new_secret()
        shared = share(self.agreement, record, secret=secret)
        if len(shared) != 1:
            raise InvalidValueError("Expected one record; send a table with contribute_table.")
        return self.submit(shared, invitations=invitations, secret=secret)

    def submit(
        self,
        shared: SharedRecords,
        *,
        invitations: Sequence[str] = (),
        secret: str | None = None,
    ) -> SharedReceipt:
        """Send what is shared already; to send it again is safe. `invitations`: one for each
        database.

        `secret` is the one that the identifiers follow from, if there shall be a receipt.
        """
        mark = self.agreement.fingerprint
        tokens = one_of_each(invitations)
        failures, signatures = self.post(mark, shared.to_bytes(), len(shared), tokens)
        held = tuple(one.name for one in self.agreement.databases if one.name not in failures)
        found = None
        if secret is not None:
            found = Receipt(self.services, secret, (Part(0, len(shared), mark, signatures),))
        return SharedReceipt(mark, shared.identifier, held, failures, found)

    @property
    def services(self) -> tuple[str, ...]:
        """Where the two databases are."""
        return tuple(one.url for one in self.agreement.databases)

    def contribute_table(
        self,
        table: str | Path,
        *,
        invitations: Sequence[Sequence[str]] = ((), ()),
        **options: Any,
    ) -> int:
        """Blur, share and send every row of a CSV or Parquet file; how many is returned.

        Both shares of a part are in the journal before either is sent, and are forgotten when both
        are received. `invitations` are two lists; the other options are those of
        `blurfit.contributor.sending.send_table`.
        """
        return send_table(self.agreement, table, TwoServices(self, invitations), **options)

    def post(
        self,
        fingerprint: str,
        messages: Messages,
        rows: int,
        invitations: Sequence[Sequence[str]],
    ) -> tuple[dict[str, BlurfitError], Signatures]:
        """Send the seed, and then the share; the reason is returned for each that did not arrive,
        and what the databases signed that have theirs.
        """
        failures: dict[str, BlurfitError] = {}
        signatures: dict[Role, str | None] = {}
        roles: tuple[Role, ...] = ("first", "second")
        parts = zip(roles, self.agreement.databases, messages, invitations, strict=True)
        for role, database, message, tokens in reversed(list(parts)):
            if failures:  # no seed, no share
                failures[database.name] = failures[self.agreement.databases[1].name]
                break
            try:
                signatures[role] = self.post_one(role, fingerprint, message, rows, tokens)
            except BlurfitError as error:
                failures[database.name] = error
        return failures, (signatures.get("first"), signatures.get("second"))

    def post_one(
        self, role: Role, fingerprint: str, message: bytes, rows: int, invitations: Sequence[str]
    ) -> str | None:
        """Send one database its shares of so many records, sealed to it if it has a key; what it
        signed, if that was agreed.
        """
        place = int(role == "second")
        key, sealed = self.agreement.databases[place].key, message
        if key is not None:
            sealed = seal(message, key, fingerprint, role)
        found = self.exchanges[place].submit(fingerprint, sealed, rows, invitations)
        return checked(found, self.agreement.signing_keys, fingerprint, role, message)

    def close(self) -> None:
        """Hang up."""
        for exchange in self.exchanges:
            exchange.close()


def one_of_each(invitations: Sequence[str]) -> list[list[str]]:
    """Two invitations, one of each database, or none, as lists for one record."""
    if invitations and len(invitations) != 2:
        raise InvalidValueError(
            f"Expected two invitations, one from each database, and got {len(invitations)}."
        )
    return [[one] for one in invitations] or [[], []]


class TwoServices:
    """Two services, each of which gets one share of every record."""

    kind = "service"
    moves_on = False

    def __init__(self, both: SharedClient, invitations: Sequence[Sequence[str]]) -> None:
        self._both, self._agreement, self._invitations = both, both.agreement, invitations
        self.rows_at_once = rows_in_a_request(both.agreement, invited=any(invitations))
        self.services = both.services
        self.where = " and ".join(self.services)

    def agreement(self) -> Agreement:
        """What the next part is blurred under."""
        return self._agreement

    def begin(self, rows: int) -> None:
        """Refuse too few invitations of either database."""
        given = zip(self._agreement.databases, self._invitations, strict=True)
        self._invitations = [
            invitations_for(rows, some, f"of {database.name} ") for database, some in given
        ]

    def blur(self, exact: FloatArray, identifiers: ByteArray | None) -> Messages:
        """Both shares of some rows."""
        return share_exact(self._agreement, exact, identifiers).to_bytes()

    def send(self, part: Portion) -> Signatures | None:
        """The seeds, and then the shares."""
        tokens = [some[part.start : part.stop] for some in self._invitations]
        failures, signatures = self._both.post(part.under, part.messages, part.rows, tokens)
        for failure in failures.values():
            raise failure
        return signatures

    def finish(self, journal: Journal, rows: int) -> None:
        """Nothing remains: both have everything."""
