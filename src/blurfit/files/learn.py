"""Learn from files of submissions: a lake that was exported from several databases, or that bulk
contributors wrote.

    files ─ scan (check, add) ─► sums, suspects ─ tell apart ─► totals ─ learn ─► record

Every row is checked as the service checks an arrival (`Screen`), every identifier counts once, and
sums are exact, so the model is the one that a store would publish of the same submissions, to the
last bit, whatever the files, their order, and who did the work. And there is one release, as from a
store (`blurfit.model.release`, `blurfit.release_record`). Where the agreement has noise of the
database itself, whoever learns draws it, once: of two that learn at the same time one receipt
stays, and with it one noise.

**Waves.** Each wave of a plan is released once, like any collection of files. Its agreement is the
announced one, which its files carry; it is checked to follow from the plan and from the releases
before (`blurfit.model.course`).
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.errors import ConflictError, Progress, silent
from blurfit.files.engines import Engine
from blurfit.files.scan import (
    Parts,
    Spill,
    Stretch,
    agreed,
    find,
    identify,
    merge,
    open_stream,
    partitions_for,
    records,
    scan,
    suspects,
    tell_apart,
)
from blurfit.learning.sums import Totals, total
from blurfit.messages.files import SubmissionFile, rows_at_once
from blurfit.model.release import Release
from blurfit.randomness import with_database_noise
from blurfit.release_record import Identity, ReleaseRecord

GROUPS_AT_ONCE = 4  # as large as ours are: 32 MiB of rows a task


@dataclass(frozen=True)
class Work:
    """Tasks, how many rows they have, the marks of earlier releases, and whether whoever wrote a
    file held the records in it.
    """

    tasks: list[Stretch]
    rows: int
    marks: frozenset[str]
    held: bool

    @classmethod
    def of(
        cls, agreement: Agreement, places: Sequence[str], files: Sequence[Identity] | None = None
    ) -> "Work":
        """Open every file, and refuse one that is not what it should be."""
        files = [identify(place) for place in places] if files is None else files
        tasks: list[Stretch] = []
        marks, held = set(), False
        for number, (place, identity) in enumerate(zip(places, files, strict=True)):
            with SubmissionFile(place, open_stream(place), agreement.layout) as file:
                if file.released is not None:
                    marks.add(file.released)
                held = held or file.held
                tasks.extend(_tasks(number, place, identity, file, agreement))
        return cls(tasks, sum(task.rows for task in tasks), frozenset(marks), held)


def _tasks(
    number: int, place: str, identity: Identity, file: SubmissionFile, agreement: Agreement
) -> Iterator[Stretch]:
    most = GROUPS_AT_ONCE * rows_at_once(agreement.layout)
    first, rows = 0, 0
    for group in range(file.groups):
        here = file.rows(group)
        if rows and rows + here > most:
            yield Stretch(number, place, first, group, rows, identity)
            first, rows = group, 0
        rows += here
    if rows:
        yield Stretch(number, place, first, file.groups, rows, identity)


@contextmanager
def scanned(
    agreement: Agreement, work: Work, engine: Engine, progress: Progress = silent
) -> Iterator[tuple[Totals, Spill]]:
    """Add up all submissions in the files, each counted once.

    Args:
        agreement: The agreement of the files.
        work: The tasks.
        engine: Runs the tasks.
        progress: Receives how many rows of how many were read.

    Yields:
        The totals, and the first eight bytes of all identifiers in temporary files.
    """
    text, tasks = agreement.to_json(), work.tasks
    with Spill(partitions_for(work.rows), np.dtype("<u8")) as names:
        parts: Parts = []
        rows = 0
        for task, part in zip(tasks, engine.map(partial(scan, text), tasks), strict=True):
            parts = merge(text, parts, part.parts)
            names.add(part.prefixes, part.prefixes)
            rows += task.rows
            progress(rows, work.rows)
        twice = suspects(names)
        if twice is None or len(twice):
            batches = engine.map(partial(records, text, suspects=twice), tasks)
            if repeated := tell_apart(batches, tasks, work.rows):
                # From the start, without them: nothing is ever subtracted.
                fewer = [task.without(repeated) for task in tasks]
                parts = []
                for part in engine.map(partial(scan, text), fewer):
                    parts = merge(text, parts, part.parts)
        yield total(agreement, parts, agreed(text)[2]), names


def release_files(
    agreement: Agreement,
    words: Iterable[str],
    engine: Engine,
    *,
    receipt: Path | None = None,
    progress: Progress = silent,
) -> Release:
    """Return the one release of some files, its model and its moments: learned and recorded
    now, or what was recorded before.

    `words` are paths, folders, patterns and URLs of files. The release is recorded in every folder
    that holds some of the files, in what this account remembers, and at `receipt`: a file, or a
    folder in which each agreement has its own, needed as soon as one of the files is on another
    machine. `progress` is told how many rows of how many have been looked at.

    Below the quorum an error is raised and nothing is recorded: more files may be added.
    """
    agreement.verify()
    places = find(words)
    with ThreadPoolExecutor(8) as pool:
        files = list(pool.map(identify, places))
    record = ReleaseRecord.of_files(agreement.fingerprint, places, files, receipt)
    if (found := record.find()) is not None:
        return found
    work = Work.of(agreement, places, files)
    with scanned(agreement, work, engine, progress) as (totals, _):
        for place, before in zip(places, files, strict=True):
            if identify(place) != before:
                raise ConflictError(
                    f"Expected {place!r} to stay as it was, but it was written to meanwhile. "
                    "Nothing was published; let whoever writes it finish, and run the same command "
                    "again."
                )
        release = _release(agreement, work, totals)
        return record.record(release)


def _release(agreement: Agreement, work: Work, totals: Totals) -> Release:
    """Learn from the totals, unless a store released something else of these submissions."""
    if agreement.database_noise and work.marks:
        raise ConflictError(
            "A model has been published from some of these submissions before they were exported, "
            "with noise of the database that is not in the files. Use that model: another one, "
            "with other noise, would be a second release."
        )
    release = Release.of(agreement, with_database_noise(agreement, totals), held=work.held)
    shown = release.model or release.moments
    if work.marks and (shown is None or work.marks != {release.mark()}):
        raise ConflictError(
            "A model has been published from some of these submissions before they were exported, "
            "and these files together are not the same people. A second release would give away "
            "whom the two differ in; learn from exactly the submissions that the published one is "
            "from, or collect under a new agreement."
        )
    return release
