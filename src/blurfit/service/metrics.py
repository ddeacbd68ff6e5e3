"""What Prometheus reads: how much was accepted and refused, and how far each collection is.

Whoever asks without a token gets counts rounded as everywhere (`blurfit.service.shown_counts`), so
that no single arrival shows; with one that is good for `read` they are exact.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from blurfit.service.shown_counts import for_strangers, shown
from blurfit.store.store import Status


class Metrics:
    """Counters of one service process, and gauges that are read from the store when asked for."""

    MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._submissions = _Submissions()
        self._registry.register(self._submissions)
        self._refusals = Counter(
            "blurfit_refusals",
            "Requests that were refused, by kind",
            ["kind"],
            registry=self._registry,
        )
        self._count = Gauge(
            "blurfit_collection_submissions",
            "Submissions in a collection",
            ["fingerprint", "state"],
            registry=self._registry,
        )
        self._quorum = Gauge(
            "blurfit_collection_quorum",
            "Submissions that a collection needs",
            ["fingerprint"],
            registry=self._registry,
        )

    def accepted(self, count: int, new: int) -> None:
        """Some submissions are on disk, and some of them are new."""
        self._submissions.new += new
        self._submissions.again += count - new

    def refused(self, kind: str) -> None:
        """A request was refused."""
        self._refusals.labels(kind).inc()

    def text(self, statuses: list[Status], *, exact: bool) -> bytes:
        """Everything, in Prometheus's text format; rounded as `shown_counts` does unless exact."""
        self._submissions.exact = exact
        self._count.clear()
        for one in statuses if exact else map(for_strangers, statuses):
            self._count.labels(one.fingerprint, one.state).set(one.count)
            self._quorum.labels(one.fingerprint).set(one.quorum)
        return generate_latest(self._registry)


class _Submissions(Collector):
    """How many were acknowledged; rounded down, a counter still never falls."""

    def __init__(self) -> None:
        self.new = self.again = 0
        self.exact = False

    def collect(self) -> Iterator[CounterMetricFamily]:
        """What Prometheus is told."""
        words = "Submissions that are on disk, by whether they had been there before"
        found = CounterMetricFamily("blurfit_submissions", words, labels=["kind"])
        for kind, count in (("new", self.new), ("again", self.again)):
            found.add_metric([kind], count if self.exact else shown(count, count + 1))
        yield found
