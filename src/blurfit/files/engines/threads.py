"""All cores of this machine: reading, checking and adding let go of the interpreter."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from blurfit.arrays import WordArray
from blurfit.files.duplicates import Spill, partitions_for, suspects
from blurfit.files.scan import (
    Parts,
    Records,
    Stretch,
    apart,
    merge,
    records,
    repeated,
    scan,
)
from blurfit.progress import Progress

_Result = TypeVar("_Result")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Threads:
    """So many threads; by default one for each core."""

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
