"""Blur a table that one party holds (a hospital's records) into a file, before anything leaves.

What is blurred goes to the journal first, part by part, and when all of it is there, to the file:
so a run that was stopped goes on where it was, and no record is ever blurred twice. When the file
is complete the journal forgets the numbers, and keeps the fact: the table is not blurred again,
into another file or for a service.
"""

from collections.abc import Callable
from pathlib import Path

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.client import default_journal
from blurfit.contributor.journal import Journal
from blurfit.contributor.perturb import perturb_table
from blurfit.errors import ConflictError, InvalidValueError
from blurfit.messages.submission_files import (
    SUFFIXES,
    Writer,
    open_submissions,
    rows_at_once,
)
from blurfit.messages.submissions import Submissions
from blurfit.schema.table_files import TableFile


def _nobody_watches(_done: int, _of: int) -> None:
    pass


def blur_table(
    agreement: Agreement,
    table: str | Path,
    out: str | Path,
    *,
    journal: str | Path | None = None,
    progress: Callable[[int, int], object] = _nobody_watches,
) -> int:
    """Blur every row of a CSV or Parquet file into a file of submissions; how many is returned.

    Args:
        agreement: what everyone agreed on; it is verified first.
        table: a .csv or .parquet file with a column for each of the schema's.
        out: a new .parquet or .arrow file.
        journal: where to keep track; by default beside the table.
        progress: is told how many rows of how many have been blurred.
    """
    agreement.verify()
    path = Path(out)
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidValueError(f"Expected --out {str(path)!r} to end in {' or '.join(SUFFIXES)}.")
    if path.exists() and path.samefile(table):
        raise InvalidValueError(f"Expected --out {str(path)!r} to be another file than the table.")
    file = TableFile(Path(table), agreement.schema)
    rows = file.check()
    place = Path(journal) if journal else default_journal(Path(table), agreement)
    with Journal(place, agreement.fingerprint, f"file {file.digest()}", rows) as kept:
        if kept.finished() and kept.blurred() == rows:
            _refuse_unless_there(agreement, path, place, rows)
            return rows
        start = kept.blurred()
        progress(start, rows)
        for part in file.chunks(rows_at_once(agreement.layout), skip=start):
            blurred = perturb_table(agreement, part)
            kept.record(start, len(blurred), blurred.to_bytes())
            start += len(blurred)
            progress(start, rows)
        with Writer(path, agreement.layout) as writer:
            for _, message in kept.pending():
                writer.add(Submissions.from_bytes(message))
        kept.acknowledge_all()
    return rows


def _refuse_unless_there(agreement: Agreement, path: Path, journal: Path, rows: int) -> None:
    if path.exists():
        with open_submissions(path, agreement.layout) as written:
            if written.all_rows() == rows:
                return
    raise ConflictError(
        f"These rows have been blurred and written to a file already, as {str(journal)!r} says: a "
        "second blur of the same people would let their noise be averaged. Copy the file that was "
        "written then."
    )
