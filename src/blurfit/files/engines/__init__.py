"""Who does the work on files: threads of this process, or a Dask cluster. Both do the same."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from blurfit.arrays import WordArray
from blurfit.files.scan import Parts, Records, Stretch
from blurfit.progress import Progress


class Engine(Protocol):
    """Runs the functions of `blurfit.files.scan` on all tasks."""

    def scan(
        self, text: str, tasks: Sequence[Stretch], progress: Progress
    ) -> tuple[Parts, WordArray | None]:
        """The parts of all tasks' sums; and the prefixes of identifiers that occur twice.

        These are None if they are too many to be listed. `progress` is told how many more rows have
        been looked at.
        """

    def records(
        self, text: str, tasks: Sequence[Stretch], suspects: WordArray | None
    ) -> Iterator[Records]:
        """The rows whose identifiers begin with one of the suspects, task by task."""
