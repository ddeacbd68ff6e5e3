"""Clusters, whose workers start at once."""

import logging
from collections.abc import Iterator

import dask
import pytest

from blurfit.files.engines import Cluster


@pytest.fixture(scope="session", autouse=True)
def forked() -> Iterator[None]:
    """Workers are forked, as all `support.processes` are; a command starts them from nothing."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """For tests that only work with it; it ends with them, because it is busy even with nothing."""
    with Cluster(workers=1) as running:
        # Tasks that fail on purpose are no news, and workers would write theirs over pytest's own.
        running.client.run(logging.getLogger("distributed.worker").setLevel, logging.CRITICAL)
        yield running
