"""A contributor's side of the network: fetch the agreement, verify it, blur, send once.

Nothing is sent, nor even computed from a record, under an agreement that promises more than its
noise keeps, or that has another fingerprint than the one that the contributor was invited with.

Under a **plan of waves** the client asks which wave collects before it blurs anything, and checks
that the wave's agreement follows from the plan and from the releases so far, and that it is the one
in which a lot has put the person (`blurfit.agreement.lot`). So a record is blurred for a wave that
is open; if that closes while it is on its way, it is left out and said so
(`blurfit.contributor.journal` has the proof that it must not be blurred again).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.wave import require_group
from blurfit.arrays import ByteArray, FloatArray, IntArray
from blurfit.contributor.journal import Journal, Messages, Portion
from blurfit.contributor.ledger import Entry, Ledger
from blurfit.contributor.noise import new_secret
from blurfit.contributor.once import Turn, take_part
from blurfit.contributor.perturb import blur, perturb
from blurfit.contributor.receipt import Part, Receipt, Signatures, checked
from blurfit.contributor.sending import (
    groups_of,
    invitations_for,
    rows_in_a_request,
    send_table,
)
from blurfit.errors import InvalidValueError, UnknownCollectionError, WaveClosedError
from blurfit.messages.submissions import Submission, Submissions
from blurfit.model.course import follows
from blurfit.model.moments import PublishedMoments
from blurfit.protocol.http import Caller, Exchange, decoded, texts_in
from blurfit.protocol.wire import path_of, plan_path


class Client(Caller):
    """A service as contributors see it; arguments as for `blurfit.protocol.http.Exchange`."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self.url = url
        self._keys: dict[str, tuple[str, ...]] = {}  # of agreements, by fingerprint
        self._followed: set[tuple[str, str]] = set()  # plans, and agreements that follow from them

    def agreement(self, fingerprint: str) -> Agreement:
        """The agreement that one was invited to, verified; another is refused."""
        text = self._exchange.get(f"{path_of(fingerprint)}/agreement")
        agreement = Agreement.from_json(text)
        agreement.verify(fingerprint)
        return self._known(agreement)

    def _known(self, agreement: Agreement) -> Agreement:
        self._keys[agreement.fingerprint] = agreement.signing_keys
        return agreement

    def _keys_of(self, fingerprint: str) -> tuple[str, ...]:
        """The keys that an agreement names; its fingerprint says that it is the right one."""
        if fingerprint not in self._keys:
            found = Agreement.from_json(self._exchange.get(f"{path_of(fingerprint)}/agreement"))
            if found.fingerprint != fingerprint:
                raise InvalidValueError(
                    f"Expected the agreement {fingerprint}, and the service sent "
                    f"{found.fingerprint}."
                )
            self._known(found)
        return self._keys[fingerprint]

    def plan(self, fingerprint: str) -> Plan:
        """The plan that one was invited to; another is refused."""
        plan = Plan.from_json(self._exchange.get(f"{plan_path(fingerprint)}/plan"))
        if plan.fingerprint != fingerprint:
            raise InvalidValueError(
                f"Expected the plan {fingerprint}, and the service sent {plan.fingerprint}."
            )
        return plan

    def current(self, plan: Plan) -> Agreement:
        """The agreement of the wave that collects now, checked to follow from plan and releases.

        Raises ClosedError if the plan has come to its end.
        """
        return self._known(announced(self._exchange, plan, self._followed))

    def contribute(
        self,
        agreement: Agreement | Plan | str,
        record: Any,
        *,
        invitation: str | None = None,
        person: str = "",
    ) -> Receipt:
        """Blur one record and send it, under an agreement, a plan, or the fingerprint of either.

        The receipt lets her withdraw it until the collection closes: keep it with `Receipt.save`.

        If the connection breaks for good, an error is raised, and the record may have arrived or
        not. Under a plan, call it again: the same bytes are sent, and `person` is remembered to
        have taken part (`blurfit.contributor.once`). Without one, use `perturb` and `submit` to try
        again later without a second blur.
        """
        agreed = self._agreed(agreement) if isinstance(agreement, str) else agreement
        tokens = [invitation] if invitation else []
        if isinstance(agreed, Agreement) and agreed.wave is None:
            secret = new_secret()
            message = _one(self._known(agreed), record, secret).to_bytes()
            _, signature = self._post(agreed.fingerprint, message, 1, tokens)
            part = Part(0, 1, agreed.fingerprint, (signature,))
            return Receipt((self._exchange.url,), secret, (part,))
        once = agreed.fingerprint if isinstance(agreed, Plan) else agreed.once

        def blur_for_the_current_wave(secret: str, turn: Turn) -> Portion:
            wave = self.current(agreed) if isinstance(agreed, Plan) else self.still_open(agreed)
            turn(wave, tokens)
            one = _one(self._known(wave), record, secret)
            Ledger().note(Entry.of(wave, 1, self._exchange.url), one.identifier)
            return Portion(0, 1, (one.to_bytes(),), wave.fingerprint)

        def send(part: Portion) -> Signatures:
            (message,) = part.messages
            return (self._post(part.under, message, 1, tokens)[1],)

        return take_part(once, person, blur_for_the_current_wave, send, (self._exchange.url,))

    def count(self, agreement: Agreement) -> int:
        """At least how many have contributed: a service rounds the count for strangers."""
        return int(decoded(self._exchange.get(path_of(agreement.fingerprint)))["count"])

    def still_open(self, wave: Agreement) -> Agreement:
        """A wave's agreement, if the wave still collects: asked before anything is blurred."""
        state = decoded(self._exchange.get(path_of(wave.fingerprint)))
        if wave.wave is not None and state.get("state") != "collecting":
            raise WaveClosedError(
                f"Wave {wave.wave.number} has closed, and nothing was blurred or sent. Contribute "
                f"under the plan {wave.wave.plan}: it tells which wave collects now."
            )
        return wave

    def _agreed(self, fingerprint: str) -> Agreement | Plan:
        try:
            return self.agreement(fingerprint)
        except UnknownCollectionError:
            return self.plan(fingerprint)

    def submit(
        self, submission: Submission | Submissions, *, invitations: Sequence[str] = ()
    ) -> int:
        """Send what is blurred already; how many were new to the service is returned.

        To send the same again is safe: it is counted once.
        """
        rows = 1 if isinstance(submission, Submission) else len(submission)
        return self.post(submission.fingerprint, submission.to_bytes(), rows, invitations)

    def post(
        self, fingerprint: str, message: bytes, rows: int, invitations: Sequence[str] = ()
    ) -> int:
        """Send the bytes of so many submissions; how many were new is returned."""
        return self._post(fingerprint, message, rows, invitations)[0]

    def _post(
        self, fingerprint: str, message: bytes, rows: int, invitations: Sequence[str]
    ) -> tuple[int, str | None]:
        """How many were new, and the signature, which is checked where the agreement has a key."""
        keys = self._keys_of(fingerprint)
        found = self._exchange.submit(fingerprint, message, rows, invitations)
        return found.new, checked(found, keys, fingerprint, "whole", message)

    def contribute_table(
        self,
        agreement: Agreement | Plan,
        table: str | Path,
        *,
        invitations: Sequence[str] = (),
        **options: Any,
    ) -> int:
        """Blur and send every row of a CSV or Parquet file; how many rows were sent is returned.

        Whatever happens in between, each row is blurred once and counted once: run it again, and it
        goes on. Under a plan a lot decides which wave each row is in; rows of later waves wait
        until it is run again (`blurfit.contributor.sending`).
        `invitations` has one for each row, if the collection needs them; the other options are
        those of `blurfit.contributor.sending.send_table`.
        """
        if isinstance(agreement, Plan):
            moving = _CurrentWave(self, agreement, invitations)
            return send_table(agreement.first(), table, moving, **options)
        agreement.verify()
        self._known(agreement)
        return send_table(agreement, table, _OneService(self, agreement, invitations), **options)


class _OneService:
    """A service that gets whole submissions."""

    kind = "service"
    moves_on = False

    def __init__(self, client: Client, agreement: Agreement, invitations: Sequence[str]) -> None:
        self._client, self._agreement, self._invitations = client, agreement, invitations
        self.rows_at_once = rows_in_a_request(agreement, invited=bool(invitations))
        self.where = client.url
        self.services: tuple[str, ...] = (client._exchange.url,)

    def agreement(self) -> Agreement:
        pinned = self._agreement
        return pinned if pinned.wave is None else self._client.still_open(pinned)

    def begin(self, rows: int) -> None:
        self._invitations = invitations_for(rows, self._invitations)
        wave = self._agreement.wave
        if wave is not None and self._invitations and not self.moves_on:
            groups = groups_of(wave, [self._invitations], rows, self._agreement.admission)
            require_group(wave, groups.tolist())

    def blur(self, exact: FloatArray, identifiers: ByteArray | None) -> Messages:
        return (blur(self._agreement, exact, identifiers).to_bytes(),)

    def send(self, part: Portion) -> Signatures | None:
        tokens, (message,) = self._invitations[part.start : part.stop], part.messages
        return (self._client._post(part.under, message, part.rows, tokens)[1],)

    def finish(self, journal: Journal, rows: int) -> None:
        """Nothing remains: everything was received."""


class _CurrentWave(_OneService):
    """A service that gets whole submissions for whichever wave of a plan collects."""

    moves_on = True

    def __init__(self, client: Client, plan: Plan, invitations: Sequence[str]) -> None:
        super().__init__(client, plan.first(), invitations)
        self._plan, self._most = plan, self.rows_at_once
        self._sent: dict[str, int] = {}  # rows, by wave

    def groups(self, rows: int) -> ByteArray:
        wave = self.agreement().wave
        assert wave is not None
        return groups_of(wave, [self._invitations], rows, self._plan.terms.admission)

    def sort(self, order: IntArray) -> None:
        if self._invitations:
            self._invitations = [self._invitations[row] for row in order]

    def agreement(self) -> Agreement:
        """The wave that collects now; it gets no more rows at once than it waits for.

        A service tells strangers rounded counts, so what was sent from here is counted here.
        """
        self._agreement = wave = self._client.current(self._plan)
        come = max(self._client.count(wave), self._sent.get(wave.fingerprint, 0))
        missing = wave.quorum - come
        self.rows_at_once = min(self._most, missing) if missing > 0 else self._most
        return wave

    def send(self, part: Portion) -> Signatures | None:
        received = super().send(part)
        self._sent[part.under] = self._sent.get(part.under, 0) + part.rows
        return received


def announced(exchange: Exchange, plan: Plan, followed: set[tuple[str, str]]) -> Agreement:
    """The wave that a service says collects now, if it follows from the plan and the releases.

    `followed` has the plans and agreements for which that is known.
    """
    path = plan_path(plan.fingerprint)
    found = Agreement.from_json(exchange.get(f"{path}/agreement"))
    if (seen := (plan.fingerprint, found.fingerprint)) not in followed:
        before = 0 if found.wave is None else found.wave.number - 1
        texts = texts_in(exchange.get(f"{path}/releases"))[:before] if before else []
        follows(plan, [PublishedMoments.from_json(text) for text in texts], found)
        followed.add(seen)
    return found


def _one(agreement: Agreement, record: Any, secret: str) -> Submission:
    submission = perturb(agreement, record, secret=secret)
    if not isinstance(submission, Submission):
        raise InvalidValueError("Expected one record; send a table with contribute_table.")
    return submission
