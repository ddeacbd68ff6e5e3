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

**Export.** A closed collection becomes a file, and what belongs to its one release goes along:

| collection | its file |
| --- | --- |
| still collecting | is refused: whoever came in between two exports could be told |
| published | carries the release's mark: files allow that very release, and no other |
| closed, not published | takes the release over: the store never publishes, nor exports again |
| of shares | is refused: they mean nothing without the other database |

**Engines** run the functions of `blurfit.files.scan` on all tasks: by threads, or on a Dask
cluster. Both give the same bytes. Every function is pure: run again, on another machine, it gives
the same. And sums are exact (`blurfit.learning.sums`), so the order in which they are merged does
not show.

On a cluster tasks go where there is room, and again where a worker died. Sums are merged in a tree
of eight at a time, on the workers. So are identifiers: each task's prefixes are cut apart by their
value, and each partition is gathered and sorted on one worker. Nothing that grows with the number
of rows comes to the caller, unless identifiers repeat.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.data import WordArray
from blurfit.errors import (
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotPublishedError,
    Progress,
    ServiceError,
    optional,
    silent,
)
from blurfit.files.receipts import Receipts
from blurfit.files.scan import (
    Identity,
    Parts,
    Records,
    Scanned,
    Spill,
    Stretch,
    agreed,
    apart,
    find,
    identify,
    merge,
    open_stream,
    partitions_for,
    records,
    repeated,
    scan,
    suspects,
    tell_apart,
)
from blurfit.learning.sums import Totals, total
from blurfit.messages.files import SubmissionFile, Writer, rows_at_once
from blurfit.model.course import Course
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments, Release
from blurfit.randomness import with_database_noise

if TYPE_CHECKING:
    from blurfit.store.store import Store

# ---- engines


class Engine(Protocol):
    """Runs the functions of `blurfit.files.scan` on all tasks."""

    def scan(
        self, text: str, tasks: Sequence[Stretch], progress: Progress
    ) -> tuple[Parts, WordArray | None]:
        """Return the parts of all tasks' sums, and the prefixes of identifiers that occur twice.

        These are None if they are too many to be listed. `progress` is told how many more rows have
        been looked at.
        """

    def records(
        self, text: str, tasks: Sequence[Stretch], suspects: WordArray | None
    ) -> Iterator[Records]:
        """Yield the rows whose identifiers begin with one of the suspects, task by task."""


_Result = TypeVar("_Result")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Threads:
    """Work with so many threads; by default one for each core."""

    count: int = field(default_factory=_cores)

    def scan(
        self, text: str, tasks: Sequence[Stretch], progress: Progress
    ) -> tuple[Parts, WordArray | None]:
        """See `Engine`."""
        partitions = partitions_for(sum(task.rows for task in tasks))
        parts: Parts = []
        with Spill(partitions, np.dtype("<u8")) as spill:
            for task, found in zip(tasks, self._map(partial(scan, text), tasks), strict=True):
                parts = merge(text, [parts, found.parts])
                for number, some in enumerate(apart(found.prefixes, found.prefixes, partitions)):
                    spill.append(number, some)
                progress(task.rows)
            twice = self._map(lambda number: repeated([spill.read(number)]), range(partitions))
            return parts, suspects(twice)

    def records(
        self, text: str, tasks: Sequence[Stretch], suspects: WordArray | None
    ) -> Iterator[Records]:
        """See `Engine`."""
        return self._map(partial(records, text, suspects=suspects), tasks)

    def _map(
        self, function: Callable[..., _Result], items: "Sequence[Stretch] | range"
    ) -> Iterator[_Result]:
        """Results in order, no more at a time than there are threads, and one that waits."""
        # Each thread multiplies for itself: those of BLAS would get in each other's way.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(self.count) as pool:
            running: deque[Future[_Result]] = deque()
            try:
                for item in items:
                    running.append(pool.submit(function, item))
                    if len(running) > self.count:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            finally:
                for future in running:
                    future.cancel()


FAN_IN, RETRIES = 8, 3
PATIENCE = 20.0  # seconds until a scheduler has answered

# What workers are started with: one thread each for BLAS; and memory that a task gives back is kept
# for the next one. Dask's own settings return it to the system, and fetching it again takes longer
# than adding the rows.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": 1,
    "OPENBLAS_NUM_THREADS": 1,
    "MKL_NUM_THREADS": 1,
    "MALLOC_TRIM_THRESHOLD_": 2**27,
    "MALLOC_MMAP_THRESHOLD_": 2**25,
}


@dataclass
class Cluster:
    """The cluster of a scheduler, like tcp://127.0.0.1:8786; or a new one on this machine."""

    scheduler: str | None = None
    workers: int | None = None

    def __enter__(self) -> Self:
        distributed = optional("distributed")
        if self.scheduler is None:
            with optional("dask").config.set({"distributed.nanny.pre-spawn-environ": _ENVIRONMENT}):
                self._local = distributed.LocalCluster(
                    n_workers=self.workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
                )
        else:
            self._local = None
        try:
            self._client = distributed.Client(self._local or self.scheduler, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            self._close_local()
            raise ServiceError(
                f"Expected a Dask scheduler at {self.scheduler!r}: {error}. Start one with `dask "
                "scheduler`, and its workers with `dask worker ADDRESS`."
            ) from error
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()
        self._close_local()

    def _close_local(self) -> None:
        if self._local is not None:
            self._local.close()

    def scan(
        self, text: str, tasks: Sequence[Stretch], progress: Progress
    ) -> tuple[Parts, WordArray | None]:
        """See `Engine`."""
        # Fewer and larger ones than in temporary files: each is a task for each task.
        client, partitions = self._client, partitions_for(sum(task.rows for task in tasks) // 4)
        options = {"pure": False, "retries": RETRIES}
        with _killed():
            scans = [client.submit(scan, text, task, **options) for task in tasks]
            level = [client.submit(attrgetter("parts"), one, **options) for one in scans]
            cut = [client.submit(_cut, one, partitions, **options) for one in scans]
            del scans  # so that workers forget what nobody waits for
            twice = [
                client.submit(
                    repeated,
                    [client.submit(itemgetter(number), one, **options) for one in cut],
                    **options,
                )
                for number in range(partitions)
            ]
            del cut
            sizes = {one.key: task.rows for one, task in zip(level, tasks, strict=True)}
            first = list(level)
            while len(level) > 1:
                level = [
                    client.submit(merge, text, level[start : start + FAN_IN], **options)
                    for start in range(0, len(level), FAN_IN)
                ]
            for done in optional("distributed").as_completed(first, raise_errors=False):
                if done.status == "error":
                    done.result()
                progress(sizes[done.key])
            parts: Parts = level[0].result() if level else []
            return parts, suspects(future.result() for future in twice)

    def processor_seconds(self) -> float:
        """Return how much processor time the workers have used so far, all together."""
        return float(sum(self._client.run(process_time).values()))

    def records(
        self, text: str, tasks: Sequence[Stretch], suspects: WordArray | None
    ) -> Iterator[Records]:
        """See `Engine`."""
        with _killed():
            at_once = 4 * max(1, len(self._client.scheduler_info()["workers"]))
            for start in range(0, len(tasks), at_once):
                futures = [
                    self._client.submit(records, text, task, suspects, pure=False, retries=RETRIES)
                    for task in tasks[start : start + at_once]
                ]
                for future in futures:
                    yield future.result()


def _cut(found: Scanned, partitions: int) -> list[WordArray]:
    return apart(found.prefixes, found.prefixes, partitions)


@contextmanager
def _killed() -> Iterator[None]:
    """Say what it means that workers died again and again, or that all are gone."""
    distributed = optional("distributed")
    try:
        yield
    except (distributed.KilledWorker, distributed.client.FutureCancelledError) as error:
        raise ServiceError(
            f"The cluster gave up: {error} Nothing was published. Look into the workers' logs, "
            "give them more memory, and run the same command again."
        ) from error


# ---- learning

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


def export(store: "Store", fingerprint: str, path: Path, progress: Progress = silent) -> int:
    """Write a closed collection to a .parquet or .arrow file; return how many rows it has."""
    status, collection = store.status(fingerprint), store.collection(fingerprint)
    if status.state != "collecting" and not status.count:
        raise NotPublishedError(f"Nobody has contributed under {fingerprint}.")
    path = path.resolve()
    release, complete = store.hand_over(collection, str(path))
    if complete is not None:
        path.with_name(complete).replace(path)
        return status.count
    mark = None if release is None else release.mark()

    def finish(name: str) -> None:
        store.complete_handover(collection, name)

    before = finish if release is None else None
    with Writer(path, collection.agreement.layout, mark, before=before) as writer:
        for table in store.submissions(fingerprint):
            writer.add(table)
            progress(writer.rows, status.count)
    return writer.rows
