"""Learn from files of submissions: a lake that was exported from several databases, or that bulk
contributors wrote.

    files ─ scan (check, add) ─► sums, suspects ─ tell apart ─► totals ─ learn ─► receipts

Every row is checked as the service checks an arrival (`Screen`), every identifier counts once, and
sums are exact, so the model is the one that a store would publish of the same submissions, to the
last bit, whatever the files, their order, and who did the work. And there is one release, as from a
store (`blurfit.model.release`, `blurfit.files.receipts`). Where the agreement has noise of the
database itself, whoever learns draws it, once, and the receipt says so: of two that learn at the
same time one receipt stays, and with it one noise.

**Waves.** Each wave of a plan is released once, like any collection of files. Its agreement is the
announced one, which its files carry; it is checked to follow from the plan and from the releases
before (`blurfit.model.course`).
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.errors import (
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    Progress,
    silent,
)
from blurfit.files.receipts import Receipts
from blurfit.files.scan import (
    Engine,
    Identity,
    Stretch,
    agreed,
    find,
    identify,
    open_stream,
    tell_apart,
)
from blurfit.learning.sums import Totals, total
from blurfit.messages.files import SubmissionFile, rows_at_once
from blurfit.model.course import Course
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments, Release
from blurfit.randomness import with_database_noise

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


def totals(agreement: Agreement, plan: Work, engine: Engine, progress: Progress = silent) -> Totals:
    """Return what all submissions in the files come to, each counted once.

    For `input` they must not be shown: learn one model from them, and record it.
    """
    text = agreement.to_json()
    parts, suspects = engine.scan(text, plan.tasks, progress)
    if suspects is None or len(suspects):
        again = tell_apart(engine.records(text, plan.tasks, suspects), plan.tasks, plan.rows)
        if again:
            tasks = [
                replace(
                    task,
                    repeated={
                        group: again[task.file, group]
                        for group in range(task.first, task.last)
                        if (task.file, group) in again
                    },
                )
                for task in plan.tasks
            ]
            # From the start, without them: nothing is ever subtracted.
            parts, _ = engine.scan(text, tasks, silent)
    return total(agreement, parts, agreed(text)[2])


def learn_files(
    agreement: Agreement, words: Iterable[str], engine: Engine, **options: Any
) -> PublishedModel:
    """Return the one model of some files; arguments as for `release_files`."""
    return PublishedModel.from_json(release_files(agreement, words, engine, **options).text())


def release_files(
    agreement: Agreement,
    words: Iterable[str],
    engine: Engine,
    *,
    receipt: Path | None = None,
    progress: Progress = silent,
) -> Release:
    """Return the one release of some files, its model and, for `moment`, its moments: learned and
    recorded now, or what was recorded before.

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
    receipts = Receipts.of(agreement.fingerprint, places, files, receipt)
    if (found := receipts.find()) is not None:
        return found
    plan = Work.of(agreement, places, files)
    done = 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done, plan.rows)

    found_totals = totals(agreement, plan, engine, count)
    for place, before in zip(places, files, strict=True):
        if identify(place) != before:
            raise ConflictError(
                f"Expected {place!r} to stay as it was, but it was written to meanwhile. Nothing "
                "was published; let whoever writes it finish, and run the same command again."
            )
    if agreement.database_noise and plan.marks:
        raise ConflictError(
            "A model has been published from some of these submissions before they were exported, "
            "with noise of the database that is not in the files. Use that model: another one, "
            "with other noise, would be a second release."
        )
    release = Release.of(agreement, with_database_noise(agreement, found_totals), held=plan.held)
    shown = release.model or release.moments
    if plan.marks and (shown is None or plan.marks != {release.mark()}):
        raise ConflictError(
            "A model has been published from some of these submissions before they were exported, "
            "and these files together are not the same people. A second release would give away "
            "whom the two differ in; learn from exactly the submissions that the published one is "
            "from, or collect under a new agreement."
        )
    return receipts.record(release, database_noise=agreement.database_noise)


def release_plan(
    plan: Plan, collected: Sequence[tuple[Agreement, Iterable[str]]], engine: Engine, **options: Any
) -> tuple[PublishedMoments, ...]:
    """Return the release of each wave, in their order; `learn_plan` makes a model of them.

    `collected` has for each wave so far its announced agreement, and the words for its files; the
    options are those of `release_files`.

    Nothing of a wave is released if its agreement does not follow, or below its quorum; what was
    released of the waves before stays.
    """
    if not collected:
        raise InvalidValueError("Expected the agreement and the files of the first wave at least.")
    course = Course.of(plan, ())
    for agreement, words in collected:
        course.require(agreement)
        found = release_files(agreement, words, engine, **options)
        if found.moments is None:
            raise InfeasibleError(found.refusal or "This wave has no sums.")
        course = course.then(PublishedMoments.from_json(found.moments))
    return course.releases
