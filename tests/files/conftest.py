"""One cluster for all tests that only work with it: to start one takes seconds."""

from collections.abc import Iterator

import pytest

from blurfit.files.engines.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster(workers=1) as running:
        yield running
