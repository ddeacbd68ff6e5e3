"""How many have come, as strangers and Prometheus are told.

Whoever watches an exact count sees when each person sends, to the millisecond, and may know who was
at her device then. So from a hundred on a count is told in two digits, rounded down: it changes
with every tenth to hundredth arrival, and then tells that somebody came, and not who. Two facts are
never rounded away: that a quorum is reached, and how many are in what is published, which the model
says anyway. (Below a hundred there is no crowd to hide in, and counts are told as they are.)
Prometheus gets rounded counts, too, unless it sends a token that is good for `read`.

Counters stand in memory that forked processes share: each worker of a service adds to a row of its
own, and whichever of them is asked tells the sums (`blurfit.service.server`). A worker that takes
the place of one that died goes on with its row, so no count ever falls while the service runs.
"""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, Metric

from blurfit.protocol import problems
from blurfit.protocol.problems import Kind
from blurfit.store.collections import Status


def shown(count: int, quorum: int) -> int:
    """Return two digits of a count, rounded down, but never below a quorum that is reached.

    >>> shown(87, 2000), shown(1999, 2000), shown(2044, 2000), shown(123_456, 2000)
    (87, 1900, 2000, 120000)
    """
    step: int = 10 ** max(0, len(str(count)) - 2)
    rounded = count - count % step
    return max(rounded, quorum) if count >= quorum else rounded


def for_strangers(status: Status) -> Status:
    """Round the counts of a state, but those of waves that are released."""
    waves = [
        one if one.state == "released" else replace(one, count=shown(one.count, one.quorum))
        for one in status.waves
    ]
    newest = [one for one in waves if one.fingerprint is not None][-1]
    return replace(status, count=newest.count, waves=tuple(waves))


ACCEPTED = ("new", "again")
REFUSED = tuple(one.name for one in vars(problems).values() if isinstance(one, Kind))
_PLACES = {name: place for place, name in enumerate((*ACCEPTED, *REFUSED))}


@dataclass(eq=False)
class Metrics:
    """Counters of a service of so many processes, and gauges that are read from the store when
    asked for.
    """

    workers: int = 1
    worker: int = 0  # which of them counts here
    _counts: "memoryview[int]" = field(init=False, repr=False)
    _exact: bool = field(default=False, init=False, repr=False)

    MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

    def __post_init__(self) -> None:
        memory = mmap.mmap(-1, 8 * self.workers * len(_PLACES))
        self._counts = memoryview(memory).cast("Q")

    def accepted(self, count: int, new: int) -> None:
        """Some submissions are on disk, and some of them are new."""
        self._add("new", new)
        self._add("again", count - new)

    def refused(self, kind: str) -> None:
        """A request was refused."""
        self._add(kind, 1)

    def collect(self) -> Iterator[Metric]:
        """The counters, summed over all workers, as Prometheus's library asks for them."""
        submissions = CounterMetricFamily(
            "blurfit_submissions",
            "Submissions that are on disk, by whether they had been there before",
            labels=["kind"],
        )
        refusals = CounterMetricFamily(
            "blurfit_refusals", "Requests that were refused, by kind", labels=["kind"]
        )
        for name in ACCEPTED:
            count = self._sum(name)
            submissions.add_metric([name], count if self._exact else shown(count, count + 1))
        for name in REFUSED:
            if refused := self._sum(name):
                refusals.add_metric([name], refused)
        yield submissions
        yield refusals

    def text(self, statuses: list[Status], *, exact: bool) -> bytes:
        """Everything, in Prometheus's text format; rounded as `shown_counts` does unless exact."""
        self._exact = exact
        registry = CollectorRegistry()
        registry.register(self)
        count = Gauge(
            "blurfit_collection_submissions",
            "Submissions in a collection",
            ["fingerprint", "state"],
            registry=registry,
        )
        quorum = Gauge(
            "blurfit_collection_quorum",
            "Submissions that a collection needs",
            ["fingerprint"],
            registry=registry,
        )
        for one in statuses if exact else map(for_strangers, statuses):
            count.labels(one.fingerprint, one.state).set(one.count)
            quorum.labels(one.fingerprint).set(one.quorum)
        return generate_latest(registry)

    def _add(self, name: str, count: int) -> None:
        self._counts[self.worker * len(_PLACES) + _PLACES[name]] += count

    def _sum(self, name: str) -> int:
        return sum(self._counts[_PLACES[name] :: len(_PLACES)])
