"""A contributor's side of a plan between two databases: one wave, one share to each, once.

    both name the same wave ─► it follows ─► blur, share ─► journal ─► seed ─► journal ─► share

Before anything is blurred **both** databases are asked which wave collects, and must name the same
agreement, which must follow from the plan and from what was published
(`blurfit.model.course.follows`): so neither can announce a map of its own, and nobody blurs for a
wave that only one of them has open. While the two publish a wave there is none, and the client
waits.

A wave closes at the second database first. Whoever is late is refused where her seed goes, which is
random bytes, before anything that depends on her record has left: nobody has seen anything of it.
From the moment when the share may have left they never are (`blurfit.contributor.journal` has
the proof).
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.arrays import ByteArray, IntArray
from blurfit.contributor.client import announced
from blurfit.contributor.journal import Messages, Portion
from blurfit.contributor.ledger import Entry, Ledger
from blurfit.contributor.once import Turn, take_part
from blurfit.contributor.receipt import Receipt, Signatures
from blurfit.contributor.sending import groups_of, send_table
from blurfit.contributor.share import SharedRecords, share
from blurfit.contributor.shared_client import SharedClient, TwoServices, one_of_each
from blurfit.errors import BetweenWavesError, InvalidValueError, NotCertifiedError
from blurfit.messages.shares import Role
from blurfit.protocol.http import PATIENCE, Closeable, decoded
from blurfit.protocol.wire import path_of, plan_path

LONGEST_MOMENT = 10.0  # seconds that a full wave is given to close
_PAUSE = 0.2  # seconds, before the databases are asked again which wave collects


class SharedPlanClient(Closeable):
    """The two databases of a plan, at the addresses it names; arguments as for `SharedClient`."""

    def __init__(
        self,
        plan: Plan,
        *,
        patience: float = PATIENCE,
        transports: Sequence[httpx.BaseTransport | None] = (None, None),
        pause: Callable[[float], object] = time.sleep,
        **options: Any,
    ) -> None:
        self.plan = plan
        self.both = SharedClient(
            plan.first(), patience=patience, transports=transports, pause=pause, **options
        )
        self._patience, self._pause = patience, pause
        self.moment = min(patience, LONGEST_MOMENT)
        self._followed: set[tuple[str, str]] = set()  # the plan, and what follows from it

    def check(self) -> None:
        """Make sure that both services have this very plan."""
        for exchange in self.both.exchanges:
            found = Plan.from_json(exchange.get(f"{plan_path(self.plan.fingerprint)}/plan"))
            if found.fingerprint != self.plan.fingerprint:
                raise InvalidValueError(
                    f"Expected the plan {self.plan.fingerprint} at {exchange.url}, and the "
                    f"service sent {found.fingerprint}."
                )

    def current(self) -> Agreement:
        """The agreement of the wave that collects now at both, checked to follow.

        Raises ClosedError if the plan has come to its end, BetweenWavesError if the two are not at
        the same wave for as long as there is patience, and NotCertifiedError if what they announce
        does not follow.
        """
        deadline = time.monotonic() + self._patience
        while True:
            one, other = (
                announced(exchange, self.plan, self._followed) for exchange in self.both.exchanges
            )
            if one.fingerprint == other.fingerprint:
                return one
            if _number(one) == _number(other):
                raise NotCertifiedError(
                    f"The two databases announce different agreements for wave {_number(one)}, "
                    f"{one.fingerprint} and {other.fingerprint}. Nothing has left. Send nothing "
                    "under either."
                )
            if time.monotonic() > deadline:
                raise BetweenWavesError(
                    f"{self.plan.databases[0].name} is at wave {_number(one)} and "
                    f"{self.plan.databases[1].name} at wave {_number(other)}. Nothing was blurred; "
                    "try again when both are at the same."
                )
            self.wait()

    def wait(self) -> None:
        """A short while, before the databases are asked again."""
        self._pause(_PAUSE)

    def contribute(
        self, record: Any, *, invitations: Sequence[str] = (), person: str = ""
    ) -> Receipt:
        """Blur one record for the wave that collects, share it, and send both shares, once.

        If a connection breaks for good an error is raised: call it again, and the same bytes are
        sent. `invitations` are one of each database. `person` is remembered to have taken part
        (`blurfit.contributor.once`).
        """
        tokens = one_of_each(invitations)
        signing = _BothSigned(self)

        def blur_for_the_current_wave(secret: str, turn: Turn) -> Portion:
            wave = self.current()
            turn(wave, [one for some in tokens for one in some])
            one = share(wave, record, secret=secret)
            if len(one) != 1:
                raise InvalidValueError("Expected one record; send a table with contribute_table.")
            where = " and ".join(self.both.services)
            Ledger().note(Entry.of(wave, 1, where), one.identifier)
            return Portion(0, 1, one.to_bytes(), wave.fingerprint)

        return take_part(
            self.plan.fingerprint,
            person,
            blur_for_the_current_wave,
            lambda part: signing.send(part, *tokens),
            self.both.services,
            lambda part: signing.announce(part, tokens[1]),
        )

    def contribute_table(
        self,
        table: str | Path,
        *,
        invitations: Sequence[Sequence[str]] = ((), ()),
        **options: Any,
    ) -> int:
        """Blur, share and send every row of a CSV or Parquet file, each part for the wave that
        collects then; how many is returned.

        `invitations` are two lists; the other options are those of
        `blurfit.contributor.sending.send_table`.
        """
        return send_table(self.plan.first(), table, _CurrentWave(self, invitations), **options)

    def submit(self, shared: SharedRecords) -> None:
        """Send what is shared already for a wave, the seeds first; again is safe."""
        part = Portion(0, len(shared), shared.to_bytes(), shared.first.layout.fingerprint)
        for role in ("second", "first"):
            self.send(role, part, ())

    def send(self, role: Role, part: Portion, invitations: Sequence[str]) -> str | None:
        """Give one database its shares of a part; what it signed, if that was agreed."""
        message = part.messages[role == "second"]
        return self.both.post_one(role, part.under, message, part.rows, invitations)

    def come(self, wave: Agreement) -> int:
        """How many have contributed to a wave, at least: strangers are told a rounded number."""
        answer = self.both.exchanges[0].get(path_of(wave.fingerprint))
        return int(decoded(answer)["count"])

    def is_held(self) -> bool:
        """Whether no wave is released for now."""
        answer = self.both.exchanges[0].get(plan_path(self.plan.fingerprint))
        return bool(decoded(answer)["state"] == "held")

    def close(self) -> None:
        """Hang up."""
        self.both.close()


class _BothSigned:
    """Sends the two messages of a part one after the other, and keeps what is signed of each."""

    def __init__(self, client: SharedPlanClient) -> None:
        self._client = client
        self._of_seeds: dict[Messages, str | None] = {}  # of the part that is being sent

    def announce(self, part: Portion, invitations: Sequence[str]) -> None:
        self._of_seeds = {part.messages: self._client.send("second", part, invitations)}

    def send(
        self, part: Portion, first: Sequence[str], second: Sequence[str]
    ) -> tuple[str | None, str | None]:
        """The share; and the seeds again, if the run that sent them has not kept the signature."""
        signature = self._client.send("first", part, first)
        if part.messages not in self._of_seeds:
            self.announce(part, second)
        return signature, self._of_seeds[part.messages]


class _CurrentWave(TwoServices):
    """Two services that get shares for whichever wave of a plan collects."""

    moves_on = True

    def __init__(self, client: SharedPlanClient, invitations: Sequence[Sequence[str]]) -> None:
        super().__init__(client.both, invitations)
        self._client, self._most = client, self.rows_at_once
        self._signing = _BothSigned(client)
        self._sent: dict[str, int] = {}  # rows, by wave
        self._waited: set[str] = set()  # for the end of these waves, in vain

    def groups(self, rows: int) -> ByteArray:
        """Which wave each row is in: at both databases the same."""
        wave = self.agreement().wave
        assert wave is not None
        return groups_of(wave, self._invitations, rows, self._agreement.admission)

    def sort(self, order: IntArray) -> None:
        """Both databases' invitations in the order in which the rows are sent."""
        lists = self._invitations
        self._invitations = [[some[row] for row in order] if some else [] for some in lists]

    def agreement(self) -> Agreement:
        """The wave that collects now; it gets no more rows at once than it waits for.

        One that is full is about to close, if the plan is not held: the next one is waited for, for
        a moment and once. What comes beyond a quorum does no harm, but is missing in later waves.
        """
        wave, missing = self._current()
        deadline = time.monotonic() + self._client.moment
        while missing <= 0 and wave.fingerprint not in self._waited:
            if time.monotonic() >= deadline or self._client.is_held():
                self._waited.add(wave.fingerprint)
                break
            self._client.wait()
            wave, missing = self._current()
        self._agreement = wave
        self.rows_at_once = min(self._most, missing) if missing > 0 else self._most
        return wave

    def _current(self) -> tuple[Agreement, int]:
        """The wave that collects, and how many it waits for, as far as is known here."""
        wave = self._client.current()
        come = max(self._client.come(wave), self._sent.get(wave.fingerprint, 0))
        return wave, wave.quorum - come

    def announce(self, part: Portion) -> None:
        self._signing.announce(part, self._invitations[1][part.start : part.stop])

    def send(self, part: Portion) -> Signatures | None:
        first, second = (some[part.start : part.stop] for some in self._invitations)
        signed = self._signing.send(part, first, second)
        self._sent[part.under] = self._sent.get(part.under, 0) + part.rows
        return signed


def _number(agreement: Agreement) -> int:
    return 1 if agreement.wave is None else agreement.wave.number
