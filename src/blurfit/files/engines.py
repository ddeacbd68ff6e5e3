"""Run the tasks of a scan: on the cores of this machine, or on a Dask cluster.

An engine maps a pure function over tasks and yields the results in the order of the tasks. What a
task does, and what follows from the results, is the same for both engines (`blurfit.files.scan`,
`blurfit.files.learn`), and so are the bytes of the release. A Dask scheduler runs the task of a
worker that died on another worker.

The caller receives, for each task, the sums and the first eight bytes of each identifier.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, Self, TypeVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from blurfit.errors import ServiceError, optional
from blurfit.files.scan import Stretch

RETRIES = 3  # of a task whose worker died
AHEAD = 4  # tasks for each worker of a cluster that are submitted before their results are needed
PATIENCE = 20.0  # seconds until a scheduler has answered

# The environment of workers: one thread each for BLAS, and memory that a task releases stays for
# the next task. With Dask's own settings the same tasks take about twice as long (docs/scale.md).
_ENVIRONMENT = {
    "OMP_NUM_THREADS": 1,
    "OPENBLAS_NUM_THREADS": 1,
    "MKL_NUM_THREADS": 1,
    "MALLOC_TRIM_THRESHOLD_": 2**27,
    "MALLOC_MMAP_THRESHOLD_": 2**25,
}

Result = TypeVar("Result")


class Engine(Protocol):
    """Runs a function on all tasks."""

    def map(
        self, function: Callable[[Stretch], Result], tasks: Sequence[Stretch]
    ) -> Iterator[Result]:
        """Yield the results in the order of the tasks."""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_order(
    submit: Callable[[Stretch], Any], tasks: Sequence[Stretch], at_once: int
) -> Iterator[Any]:
    """Yield the results of futures in order; `at_once` tasks and the next one are submitted."""
    running: deque[Any] = deque()
    try:
        for task in tasks:
            running.append(submit(task))
            if len(running) > at_once:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()


@dataclass(frozen=True)
class Threads:
    """Threads of this process; by default one for each core."""

    count: int = field(default_factory=_cores)

    def map(
        self, function: Callable[[Stretch], Result], tasks: Sequence[Stretch]
    ) -> Iterator[Result]:
        """See `Engine`."""
        # Each thread multiplies for itself: those of BLAS would get in each other's way.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(self.count) as pool:
            yield from _in_order(lambda task: pool.submit(function, task), tasks, self.count)


@dataclass
class Cluster:
    """The cluster of a scheduler, like tcp://127.0.0.1:8786; or a new one on this machine."""

    scheduler: str | None = None
    workers: int | None = None

    def __enter__(self) -> Self:
        distributed = optional("distributed")
        self._local = None
        if self.scheduler is None:
            with optional("dask").config.set({"distributed.nanny.pre-spawn-environ": _ENVIRONMENT}):
                self._local = distributed.LocalCluster(
                    n_workers=self.workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
                )
        try:
            self.client = distributed.Client(self._local or self.scheduler, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            self._close_local()
            raise ServiceError(
                f"Expected a Dask scheduler at {self.scheduler!r}: {error}. Start one with `dask "
                "scheduler`, and its workers with `dask worker ADDRESS`."
            ) from error
        return self

    def __exit__(self, *_error: object) -> None:
        self.client.close()
        self._close_local()

    def _close_local(self) -> None:
        if self._local is not None:
            self._local.close()

    def map(
        self, function: Callable[[Stretch], Result], tasks: Sequence[Stretch]
    ) -> Iterator[Result]:
        """See `Engine`."""
        delayed = optional("dask").delayed

        def submit(task: Stretch) -> Any:
            # Without arguments, of which Dask would look through every field.
            work = delayed(partial(function, task), pure=False)()
            return self.client.compute(work, retries=RETRIES)

        with _killed():
            workers = len(self.client.scheduler_info()["workers"])
            yield from _in_order(submit, tasks, AHEAD * max(1, workers))


@contextmanager
def _killed() -> Iterator[None]:
    """Report workers that died again and again, and a cluster without workers."""
    distributed = optional("distributed")
    try:
        yield
    except (distributed.KilledWorker, distributed.client.FutureCancelledError) as error:
        raise ServiceError(
            f"The cluster gave up: {error} Nothing was published. Look into the workers' logs, "
            "give them more memory, and run the same command again."
        ) from error
