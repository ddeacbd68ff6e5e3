"""Blur a table that one party holds (a hospital's records) into a file, before anything leaves.

The file is there as a whole or not at all: parts wait in the journal until all of the table is
blurred. When the file is complete the journal forgets the numbers, and keeps the fact: the table is
not blurred again, into another file or for a service.
"""

from pathlib import Path
from typing import Any

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import ByteArray, FloatArray
from blurfit.contributor.journal import Journal, Messages, Portion
from blurfit.contributor.perturb import blur
from blurfit.contributor.receipt import Signatures
from blurfit.contributor.sending import send_table
from blurfit.errors import ConflictError, InvalidValueError
from blurfit.messages.submission_files import SUFFIXES, open_submissions, rows_at_once
from blurfit.messages.submission_writer import Writer
from blurfit.messages.submissions import Submissions


def blur_table(agreement: Agreement, table: str | Path, out: str | Path, **options: Any) -> int:
    """Blur every row of a CSV or Parquet file into a file of submissions; how many is returned.

    Args:
        agreement: what everyone agreed on; it is verified first.
        table: a .csv or .parquet file with a column for each of the schema's.
        out: a new .parquet or .arrow file.
        options: those of `blurfit.contributor.sending.send_table`.
    """
    agreement.verify()
    path = Path(out)
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidValueError(f"Expected --out {str(path)!r} to end in {' or '.join(SUFFIXES)}.")
    if path.exists() and path.samefile(table):
        raise InvalidValueError(f"Expected --out {str(path)!r} to be another file than the table.")
    return send_table(agreement, table, _File(agreement, path), **options)


class _File:
    """A file of submissions, written when all of them are in the journal."""

    kind = "file"
    moves_on = False
    services: tuple[str, ...] = ()

    def __init__(self, agreement: Agreement, path: Path) -> None:
        self._agreement, self._path = agreement, path
        self.rows_at_once = rows_at_once(agreement.layout)
        self.where = f"the file {path.name}"

    def agreement(self) -> Agreement:
        return self._agreement

    def begin(self, rows: int) -> None:
        """Any number of rows will do."""

    def blur(self, exact: FloatArray, identifiers: ByteArray | None) -> Messages:
        return (blur(self._agreement, exact, identifiers).to_bytes(),)

    def send(self, part: Portion) -> Signatures | None:  # noqa: ARG002
        return None

    def finish(self, journal: Journal, rows: int) -> None:
        if journal.finished():
            self._refuse_unless_there(journal, rows)
            return
        with Writer(self._path, self._agreement.layout, held=True) as writer:
            for part in journal.pending():
                writer.add(Submissions.from_bytes(*part.messages))
        journal.acknowledge_all()

    def _refuse_unless_there(self, journal: Journal, rows: int) -> None:
        if self._path.exists():
            with open_submissions(self._path, self._agreement.layout) as written:
                if written.all_rows() == rows:
                    return
        raise ConflictError(
            f"These rows have been blurred and written to a file already, as {str(journal.path)!r} "
            "says: a second blur of the same people would let their noise be averaged. Copy the "
            "file that was written then."
        )
