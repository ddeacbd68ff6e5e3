"""A contributor's side of the network: fetch the agreement, verify it, blur, send once.

Nothing is sent, nor even computed from a record, under an agreement that promises more than its
noise keeps, or that has another fingerprint than the one that the contributor was invited with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx2 as httpx

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.contributor.journal import Journal, Messages, Part
from blurfit.contributor.perturb import blur, perturb
from blurfit.contributor.sending import invitations_for, rows_in_a_request, send_table
from blurfit.errors import InvalidValueError
from blurfit.messages.submissions import Submission, Submissions
from blurfit.protocol.http import PATIENCE, Exchange, acknowledged
from blurfit.protocol.wire import BINARY, INVITATION


@dataclass(frozen=True)
class Receipt:
    """What a contributor keeps: the service has stored the submission under this identifier."""

    url: str
    fingerprint: str
    identifier: str


class Client:
    """A service as contributors see it; arguments as for `blurfit.protocol.http.Exchange`."""

    def __init__(
        self,
        url: str,
        *,
        patience: float = PATIENCE,
        transport: httpx.BaseTransport | None = None,
        **options: Any,
    ) -> None:
        self.url = url
        self._exchange = Exchange(url, patience=patience, transport=transport, **options)

    def agreement(self, fingerprint: str) -> Agreement:
        """The agreement that one was invited to, verified; another is refused."""
        text = self._exchange.get(f"/collections/{fingerprint}/agreement")
        agreement = Agreement.from_json(text)
        agreement.verify(fingerprint)
        return agreement

    def contribute(
        self, agreement: Agreement | str, record: Any, *, invitation: str | None = None
    ) -> Receipt:
        """Blur one record and send it, under an agreement or the fingerprint of one.

        If the connection breaks for good, an error is raised, and the record may have arrived or
        not. To try again later without a second blur, use `perturb` and `submit`.
        """
        agreed = self.agreement(agreement) if isinstance(agreement, str) else agreement
        submission = perturb(agreed, record)
        if not isinstance(submission, Submission):
            raise InvalidValueError("Expected one record; send a table with contribute_table.")
        self.submit(submission, invitations=[invitation] if invitation else [])
        return Receipt(self._exchange.url, agreed.fingerprint, submission.identifier)

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
        headers = {INVITATION: ",".join(invitations)} if invitations else {}
        answer = self._exchange.post(
            f"/collections/{fingerprint}/submissions",
            message,
            content_type=BINARY,
            headers=headers,
        )
        return acknowledged(answer, rows)

    def contribute_table(
        self,
        agreement: Agreement,
        table: str | Path,
        *,
        invitations: Sequence[str] = (),
        **options: Any,
    ) -> int:
        """Blur and send every row of a CSV or Parquet file; how many rows were sent is returned.

        Whatever happens in between, each row is blurred once and counted once: run it again, and it
        goes on. `invitations` has one for each row, if the collection needs them; the other options
        are those of `blurfit.contributor.sending.send_table`.
        """
        agreement.verify()
        return send_table(agreement, table, _OneService(self, agreement, invitations), **options)

    def close(self) -> None:
        """Hang up."""
        self._exchange.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class _OneService:
    """A service that gets whole submissions."""

    kind = "service"

    def __init__(self, client: Client, agreement: Agreement, invitations: Sequence[str]) -> None:
        self._client, self._agreement, self._invitations = client, agreement, invitations
        self.rows_at_once = rows_in_a_request(agreement, invited=bool(invitations))
        self.where = client.url

    def begin(self, rows: int) -> None:
        self._invitations = invitations_for(rows, self._invitations)

    def blur(self, exact: FloatArray) -> Messages:
        return (blur(self._agreement, exact).to_bytes(),)

    def send(self, part: Part) -> bool:
        tokens, (message,) = self._invitations[part.start : part.stop], part.messages
        self._client.post(part.under, message, part.stop - part.start, tokens)
        return True

    def finish(self, journal: Journal, rows: int) -> None:
        """Nothing remains: everything was received."""
