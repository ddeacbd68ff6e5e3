"""What Prometheus reads: how much was accepted and refused, and how far each collection is."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from blurfit.store.store import Status


class Metrics:
    """Counters of one service process, and gauges that are read from the store when asked for."""

    MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counted = Counter(
            "blurfit_submissions",
            "Submissions that are on disk, by whether they had been there before",
            ["kind"],
            registry=self._registry,
        )
        self._new, self._again = counted.labels("new"), counted.labels("again")
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
        if new:
            self._new.inc(new)
        if count > new:
            self._again.inc(count - new)

    def refused(self, kind: str) -> None:
        """A request was refused."""
        self._refusals.labels(kind).inc()

    def text(self, statuses: list[Status]) -> bytes:
        """Everything, in Prometheus's text format."""
        self._count.clear()
        for one in statuses:
            self._count.labels(one.fingerprint, one.state).set(one.count)
            self._quorum.labels(one.fingerprint).set(one.quorum)
        return generate_latest(self._registry)
