"""A contributor's side of the network: fetch the agreement, verify it, blur, send once.

Nothing is sent, nor even computed from a record, under an agreement that promises more than its
noise keeps, or that has another fingerprint than the one that the contributor was invited with.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx2 as httpx

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.journal import Journal
from blurfit.contributor.perturb import perturb, perturb_table
from blurfit.errors import InvalidValueError
from blurfit.messages.submissions import Submission, Submissions
from blurfit.protocol.http import PATIENCE, Exchange, decoded
from blurfit.schema.table_files import TableFile

BINARY = "application/vnd.blurfit.submission"
ROWS_AT_ONCE, BYTES_AT_ONCE = 1000, 16 * 2**20
INVITED_AT_ONCE = 100  # invitations travel in a header, which must not be long


@dataclass(frozen=True)
class Receipt:
    """What a contributor keeps: the service has stored the submission under this name."""

    url: str
    fingerprint: str
    identifier: str


def _nobody_watches(_done: int, _of: int) -> None:
    pass


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
        headers = {"blurfit-invitation": ",".join(invitations)} if invitations else {}
        answer = self._exchange.post(
            f"/collections/{submission.fingerprint}/submissions",
            submission.to_bytes(),
            content_type=BINARY,
            headers=headers,
        )
        return int(decoded(answer)["new"])

    def contribute_table(
        self,
        agreement: Agreement,
        table: str | Path,
        *,
        journal: str | Path | None = None,
        invitations: Sequence[str] = (),
        progress: Callable[[int, int], object] = _nobody_watches,
    ) -> int:
        """Blur and send every row of a CSV or Parquet file; how many rows were sent is returned.

        What was blurred is written to a journal beside the file before it is sent. So whatever
        happens in between, each row is blurred once and counted once: run it again, and it goes on.

        Args:
            agreement: what everyone agreed on; it is verified first.
            table: a .csv or .parquet file with a column for each of the schema's.
            journal: where to keep track; by default beside the table.
            invitations: one for each row, if the collection needs them.
            progress: is told how many rows of how many have been sent.
        """
        agreement.verify()
        file = TableFile(Path(table), agreement.schema)
        rows = file.check()
        invitations = list(dict.fromkeys(invitations))
        if invitations and len(invitations) < rows:
            raise InvalidValueError(
                f"Expected an invitation for each of {rows} rows, and got {len(invitations)} "
                "different ones. `blurfit invite` makes more."
            )
        place = Path(journal) if journal else default_journal(Path(table), agreement)
        with Journal(place, agreement.fingerprint, file.digest(), rows) as kept:
            for start, part in self._parts(agreement, file, kept, bool(invitations)):
                self.submit(part, invitations=invitations[start : start + len(part)])
                kept.acknowledge(start)
                progress(start + len(part), rows)
        progress(rows, rows)
        return rows

    def _parts(
        self,
        agreement: Agreement,
        file: TableFile,
        kept: Journal,
        invited: bool,
    ) -> Iterator[tuple[int, Submissions]]:
        """What was blurred before but perhaps not received, and then the rest, blurred now."""
        for start, message in kept.pending():
            yield start, Submissions.from_bytes(message)
        at_once = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE // agreement.layout.size))
        if invited:
            at_once = min(at_once, INVITED_AT_ONCE)
        start = kept.blurred()
        for part in file.chunks(at_once, skip=start):
            table = perturb_table(agreement, part)
            kept.record(start, len(table), table.to_bytes())
            yield start, table
            start += len(table)

    def close(self) -> None:
        """Hang up."""
        self._exchange.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def default_journal(table: Path, agreement: Agreement) -> Path:
    """Where `contribute_table` keeps track: beside the table, under the agreement's fingerprint."""
    return table.with_name(f"{table.name}.{agreement.fingerprint[:12]}.journal")
