"""Run the functions of `blurfit.files.scan` on all tasks: by threads, or on a Dask cluster.

Both give the same bytes. Every function is pure: run again, on another machine, it gives the same.
And sums are exact (`blurfit.learning.sums`), so the order in which they are merged does not show.

On a cluster tasks go where there is room, and again where a worker died. Sums are merged in a tree
of eight at a time, on the workers. So are identifiers: each task's prefixes are cut apart by their
value, and each partition is gathered and sorted on one worker. Nothing that grows with the number
of rows comes to the caller, unless identifiers repeat.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter, itemgetter
from time import process_time
from typing import Protocol, Self, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from blurfit.data import WordArray
from blurfit.errors import Progress, ServiceError, optional
from blurfit.files.scan import (
    Parts,
    Records,
    Scanned,
    Spill,
    Stretch,
    apart,
    merge,
    partitions_for,
    records,
    repeated,
    scan,
    suspects,
)


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
