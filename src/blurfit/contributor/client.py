"""A contributor's side of the network: ask what is collected, verify it, blur, send once.

    what collects now? ─ verify ─► blur ─► journal ─► the last … first database ─► receipt

Everything here is written for one database or two, and for an agreement or a plan of waves.

**Verified first.** Nothing is sent, nor even computed from a record, under an agreement that
promises more than its noise keeps, or that has another fingerprint than the contributor's
invitation. Under a plan all databases must name the same agreement, which must follow from the plan
and from the releases so far.

**The order.** Each database gets its message, from the last to the first: the seed before the
share. A record counts when both have it; until then the same bytes are sent again. A record that is
late for its wave is left out, and the client says so. `docs/theory/blurred-once.md` has the reasons
and the proofs, and how a person's part in a plan is remembered: by the name that the program gives,
by default the account. Tested by `server/tests/contributor`.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx

from blurfit import errors
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import require_group
from blurfit.agreement.plan import Agreed, Plan, read_agreed
from blurfit.contributor import sending
from blurfit.contributor.blur import Portion, SharedRecords, message_of_one, named, roles
from blurfit.contributor.journal import Journal, Part, Receipt, Signatures, agreement_at
from blurfit.contributor.sending import (
    Account,
    Destination,
    Entry,
    Invitations,
    groups_of,
    send_table,
)
from blurfit.messages.signing import about_submissions, is_signed
from blurfit.messages.submissions import BATCH_MAGIC, Role, Submission, Submissions, rows_in, seal
from blurfit.model.course import follows
from blurfit.model.release import PublishedMoments
from blurfit.protocol import (
    PATIENCE,
    Acknowledgement,
    Closeable,
    Exchange,
    path_of,
    state_in,
    texts_in,
)
from blurfit.randomness import new_secret

LONGEST_MOMENT = 10.0  # seconds that a full wave is given to close
PAUSE = 0.2  # seconds, before databases are asked again which wave collects

TOOK_PART = (
    "{who} took part in this plan before, and nobody takes part twice: what was sent then counts, "
    "and nothing was sent now."
)
LEFT_OUT = (
    "The wave that this was blurred for closed before it arrived. It is left out, and cannot be "
    "blurred again for a later wave: what has been on its way may have been seen, and a second "
    "blur would break the promise."
)


class Client(Closeable):
    """The database that collects, or the two, as contributors see them.

    Args:
        urls: where they are; of two, as the agreement names them. `Client.of` reads them there.
        patience: for how many seconds to go on trying, for each of them.
        transports: how bytes travel to each; tests let services answer in the same process.
        pause: how to wait.
    """

    def __init__(
        self,
        *urls: str,
        patience: float = PATIENCE,
        transports: Sequence[httpx.BaseTransport | None] = (),
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        if len(urls) not in (1, 2):
            raise errors.InvalidValueError(
                f"Expected the address of one database, or of two, and got {len(urls)}."
            )
        self.exchanges = [
            Exchange(url, patience=patience, transport=transport, pause=pause)
            for url, transport in zip(urls, transports or [None] * len(urls), strict=True)
        ]
        self.services = tuple(one.url for one in self.exchanges)
        self.patience, self.pause = patience, pause
        self._agreements: dict[str, Agreement] = {}  # by fingerprint
        self._followed: set[tuple[str, str]] = set()  # plans, and agreements that follow from them

    @classmethod
    def of(cls, agreed: Agreed, url: str | None = None, **options: Any) -> "Client":
        """For the two databases that an agreement or a plan names, or else the one at `url`."""
        named_there = [one.url for one in agreed.databases]
        if url is not None and named_there:
            raise errors.InvalidValueError(
                f"Expected no --to {url}: the agreement names its two databases, "
                f"{' and '.join(named_there)}."
            )
        found = cls(*(named_there or [url or ""]), **options)
        found._known(agreed.first())
        return found

    def close(self) -> None:
        """Hang up."""
        for exchange in self.exchanges:
            exchange.close()

    # ---- asking

    def agreed(self, fingerprint: str) -> Agreed:
        """Return what one was invited to, verified: every database has it; another is refused."""
        for exchange in self.exchanges:
            found = read_agreed(exchange.get(f"{path_of(fingerprint)}/document"))
            found.verify(fingerprint)
        self._known(found.first())
        return found

    def agreement(self, fingerprint: str) -> Agreement:
        """Return what a record is to be blurred under now, verified: see `agreed` and `current`."""
        return self.current(self.agreed(fingerprint))

    def current(self, agreed: Agreed) -> Agreement:
        """Return what a record is to be blurred under now: the agreement, or the open wave's.

        Raises ClosedError if a plan has come to its end, WaveClosedError if the wave that was asked
        for has closed, BetweenWavesError if two databases are not at the same wave for as long as
        there is patience, and NotCertifiedError if what they announce does not follow.
        """
        if isinstance(agreed, Agreement):
            if (wave := agreed.wave) is not None:
                path = path_of(agreed.fingerprint)
                states = {state_in(one.get(path))["state"] for one in self.exchanges}
                if states != {"collecting"}:
                    raise errors.WaveClosedError(
                        f"Wave {wave.number} has closed, and nothing was blurred or sent. "
                        f"Contribute under the plan {wave.plan}: it tells which wave collects now."
                    )
            return self._known(agreed)
        deadline = time.monotonic() + self.patience
        while True:
            found = [self._announced(exchange, agreed) for exchange in self.exchanges]
            if len({one.fingerprint for one in found}) == 1:
                return self._known(found[0])
            waves = [1 if one.wave is None else one.wave.number for one in found]
            if len(set(waves)) == 1:
                raise errors.NotCertifiedError(
                    f"The two databases announce different agreements for wave {waves[0]}, "
                    f"{' and '.join(one.fingerprint for one in found)}. Nothing has left. Send "
                    "nothing under either."
                )
            if time.monotonic() > deadline:
                one, other = (database.name for database in agreed.databases)
                raise errors.BetweenWavesError(
                    f"{one} is at wave {waves[0]} and {other} at wave {waves[1]}. Nothing was "
                    "blurred; try again when both are at the same."
                )
            self.pause(PAUSE)

    def count(self, agreement: Agreement) -> int:
        """At least how many have contributed: a service rounds the count for strangers."""
        return int(state_in(self.exchanges[0].get(path_of(agreement.fingerprint)))["count"])

    def _announced(self, exchange: Exchange, plan: Plan) -> Agreement:
        """The wave that a database says collects now, if it follows from plan and releases."""
        path = path_of(plan.fingerprint)
        found = Agreement.from_json(exchange.get(f"{path}/agreement"))
        if (seen := (plan.fingerprint, found.fingerprint)) not in self._followed:
            before = 0 if found.wave is None else found.wave.number - 1
            texts = texts_in(exchange.get(f"{path}/releases"))[:before] if before else []
            follows(plan, [PublishedMoments.from_json(text) for text in texts], found)
            self._followed.add(seen)
        return found

    def _known(self, agreement: Agreement) -> Agreement:
        """Remember an agreement, and refuse one that is for other databases than these."""
        there = tuple(one.url for one in agreement.databases)
        if there != self.services if there else len(self.services) != 1:
            raise errors.InvalidValueError(
                f"Expected a client for {' and '.join(there) or 'one database'}, and this "
                f"one is for {' and '.join(self.services)}: Client.of(agreement) makes it."
            )
        return self._agreements.setdefault(agreement.fingerprint, agreement)

    def _under(self, fingerprint: str) -> Agreement:
        """The agreement of something that was blurred."""
        if fingerprint not in self._agreements:
            self._known(agreement_at(self.exchanges[0], fingerprint))
        return self._agreements[fingerprint]

    # ---- sending

    def contribute(
        self,
        agreed: Agreed | str,
        record: Any,
        *,
        invitations: Sequence[str] = (),
        person: str = "",
    ) -> Receipt:
        """Blur one record and send it, under an agreement, a plan, or the fingerprint of either.

        `invitations` has one of each database. The receipt lets the contributor withdraw until the
        collection closes: keep it with `Receipt.save`.

        If a connection breaks for good, an error is raised, and the record may have arrived or
        not. Under a plan, call it again: the same bytes are sent, and `person` is remembered to
        have taken part. Without one, use `blurfit.contributor.blur` and `submit` to try again
        later without a second blur.
        """
        if isinstance(agreed, str):
            agreed = self.agreed(agreed)
        first = self._known(agreed.first())
        services = _Services(self, agreed, self._each([[one] for one in invitations]))
        if first.wave is not None:
            return self._take_part(agreed, record, person, services)
        secret, under = new_secret(), first.fingerprint
        part = Portion(0, 1, message_of_one(first, record, secret), under)
        return Receipt(self.services, secret, (Part(0, 1, under, services.send(part)),))

    def contribute_table(
        self, agreed: Agreed, table: str | Path, *, invitations: Invitations = (), **options: Any
    ) -> int:
        """Blur and send every row of a CSV or Parquet file; how many rows were sent is returned.

        Whatever happens in between, each row is blurred once and counted once: run it again, and it
        goes on (`blurfit.contributor.sending`, whose `send_table` has the other options).
        `invitations` has a list for each database, with one for each row, if they are needed.
        """
        first = self._known(agreed.first())
        first.verify()
        services = _Services(self, agreed, self._each(invitations))
        return send_table(first, table, services, **options)

    def submit(
        self, blurred: Submission | Submissions | SharedRecords, *, invitations: Invitations = ()
    ) -> int:
        """Send what is blurred already; how many were new to the first database is returned.

        To send the same again is safe: it is counted once. `invitations` has a list for each
        database, with one for each record.
        """
        rows = 1 if isinstance(blurred, Submission) else len(blurred)
        if isinstance(blurred, SharedRecords):
            part = Portion(0, rows, blurred.to_bytes(), blurred.first.layout.fingerprint)
        else:
            part = Portion(0, rows, (blurred.to_bytes(),), blurred.fingerprint)
        given, new = self._each(invitations), 0
        for place in reversed(range(len(self.exchanges))):
            new, _ = self.post(place, part, given[place])
        return new

    def post(self, place: int, part: Portion, invitations: Sequence[str]) -> tuple[int, str | None]:
        """Give a database its message of a part, sealed to it if it has a key: how many were new,
        and the signature, which is checked where the agreement names a key.
        """
        agreement = self._under(part.under)
        role, message = roles(agreement)[place], part.messages[place]
        key = agreement.databases[place].key if agreement.databases else None
        sealed = message if key is None else seal(message, key, part.under, role)
        found = self.exchanges[place].submit(part.under, sealed, part.rows, invitations)
        return found.new, checked(found, agreement.signing_keys, part.under, role, message)

    def _each(self, invitations: Invitations) -> Invitations:
        """Invitations of every database, or none of any."""
        wanted = len(self.exchanges)
        if invitations and (
            len(invitations) != wanted or any(isinstance(one, str) for one in invitations)
        ):
            raise errors.InvalidValueError(
                f"Expected {'one invitation' if wanted == 1 else 'two invitations'} for each "
                f"record, one from each database, and got {len(invitations)}: for a table, a list "
                "from each database."
            )
        return invitations or [[]] * wanted

    def _take_part(
        self, agreed: Agreed, record: Any, person: str, services: "_Services"
    ) -> Receipt:
        """See to it that a person's record is sent to a wave of a plan, once: refuse who took part
        before, whose group's turn it is not, and what came too late for its wave.
        """
        once, account = agreed.once, Account()
        name = hashlib.blake2b(f"{once}\n{person}".encode(), key=account.key, digest_size=16)
        path = account.folder / f"{name.hexdigest()}.journal"
        with Journal(path, once, services.kind, "", 1) as kept:
            pending = list(kept.pending())
            if kept.blurred() and not pending:
                raise errors.ConflictError(TOOK_PART.format(who=repr(person) if person else "You"))
            while True:
                if pending:
                    part = pending.pop()
                else:
                    kept.keep_secret()
                    part = self._blurred_now(agreed, record, kept, services)
                    kept.record(part, has_left=services.announce is None)
                outcome = kept.hand_over(part, services.send, services.announce)
                if outcome == "taken back":
                    continue
                found = kept.receipt(self.services)
                kept.forget_secret()
                if outcome == "late":
                    raise errors.WaveClosedError(LEFT_OUT)
                return found

    def _blurred_now(
        self, agreed: Agreed, record: Any, kept: Journal, services: "_Services"
    ) -> Portion:
        """One record, blurred for the wave that collects, if that is the person's."""
        agreement, secret = self.current(agreed), str(kept.secret)
        groups = kept.groups(lambda: groups_of(agreement, services.invitations, 1))
        assert agreement.wave is not None
        require_group(agreement.wave, groups.tolist())
        messages = message_of_one(agreement, record, secret)
        Account().note(Entry.of(agreement, 1, services.where), named(secret, 0, 1).tobytes().hex())
        return Portion(0, 1, messages, agreement.fingerprint)


def checked(
    found: Acknowledgement, keys: Sequence[str], fingerprint: str, role: Role, message: bytes
) -> str | None:
    """Return the signature of an acknowledgement, if the agreement names keys; refuse one that is
    not by the right one, as nobody could hold the service to its word.
    """
    if not keys:
        return None
    key = keys[role == "second"]
    signed = about_submissions("receipt", fingerprint, role, _identifiers(message))
    if not is_signed(signed, key, found.signature):
        raise errors.ServiceError(
            f"Expected an acknowledgement that is signed with the key of the agreement, {key}, and "
            "got one that is not: something else answered in place of the service. Nothing counts "
            "as stored; send the same again when the service is back."
        )
    return found.signature


def _identifiers(message: bytes) -> bytes:
    """Return the identifiers in a message: of one submission, or of a batch, whole or shares."""
    body, count = rows_in(message) if message[:6] == BATCH_MAGIC else (memoryview(message), 1)
    size = len(body) // count
    return b"".join(body[start + 8 : start + 24] for start in range(0, size * count, size))


class _Services(Destination):
    """The client's databases: each gets its message of a part, from the last to the first."""

    kind = "service"

    def __init__(self, client: Client, agreed: Agreed, invitations: Invitations) -> None:
        self._client, self._agreed, self.invitations = client, agreed, invitations
        self.moves_on = isinstance(agreed, Plan)
        first = agreed.first()
        size = (first.share_layout("masked") if first.proofs else first.layout).size
        most = sending.INVITED_AT_ONCE if any(invitations) else sending.ROWS_AT_ONCE
        self._most = self.rows_at_once = max(1, min(most, sending.BYTES_AT_ONCE // size))
        self.services, self.where = client.services, " and ".join(client.services)
        self.announce = self._announce if len(client.exchanges) > 1 else None
        self._signed: dict[int, str | None] = {}  # by those that have what was announced
        self._sent: Counter[str] = Counter()  # rows, by agreement
        self._waited: set[str] = set()  # for the end of these waves, in vain

    def agreement(self) -> Agreement:
        """What the next part is to be blurred under; a wave gets no more rows than it waits for.

        One that is full is about to close, if the plan is not held: the next one is waited for, for
        a moment and once. What comes beyond a quorum does no harm, but is missing in later waves.
        """
        if not isinstance(self._agreed, Plan):
            return self._client.current(self._agreed)
        wave, missing = self._collecting(self._agreed)
        deadline = time.monotonic() + min(self._client.patience, LONGEST_MOMENT)
        while missing <= 0 and wave.fingerprint not in self._waited:
            about = self._client.exchanges[0].get(path_of(self._agreed.fingerprint))
            goes_on = state_in(about)["state"] == "collecting"  # it is neither held nor paused
            if time.monotonic() >= deadline or not goes_on:
                self._waited.add(wave.fingerprint)
                break
            self._client.pause(PAUSE)
            wave, missing = self._collecting(self._agreed)
        self.rows_at_once = min(self._most, missing) if missing > 0 else self._most
        return wave

    def _collecting(self, plan: Plan) -> tuple[Agreement, int]:
        """The wave that collects, and how many it waits for: a service tells strangers rounded
        counts, so what was sent from here is counted here.
        """
        wave = self._client.current(plan)
        return wave, wave.quorum - max(self._client.count(wave), self._sent[wave.fingerprint])

    def _announce(self, part: Portion) -> None:
        """Send all but the first message: what says nothing of the records."""
        for place in reversed(range(1, len(part.messages))):
            self._signed[place] = self._post(place, part)

    def send(self, part: Portion) -> Signatures:
        """Send the first message, after the others if this run has not kept their signatures."""
        signed, self._signed = self._signed, {}
        for place in reversed(range(len(part.messages))):
            if place not in signed:
                signed[place] = self._post(place, part)
        self._sent[part.under] += part.rows
        return tuple(signed[place] for place in range(len(part.messages)))

    def _post(self, place: int, part: Portion) -> str | None:
        given = self.invitations[place][part.start : part.stop]
        return self._client.post(place, part, given)[1]
