"""Text that Prometheus's own parser reads."""

from prometheus_client.parser import text_string_to_metric_families

from blurfit.service.metrics import Metrics
from blurfit.store.store import Status


def samples(text: bytes) -> dict:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_counters_and_gauges() -> None:
    metrics = Metrics()
    metrics.accepted(10, 7)
    metrics.accepted(1, 0)
    metrics.refused("conflict")
    found = samples(metrics.text([Status("ab", "collecting", 7, 20, invited=False)], exact=True))
    assert found["blurfit_submissions_total", "new"] == 7
    assert found["blurfit_submissions_total", "again"] == 4
    assert found["blurfit_refusals_total", "conflict"] == 1
    assert found["blurfit_collection_submissions", "ab", "collecting"] == 7
    assert found["blurfit_collection_quorum", "ab"] == 20
    later = samples(metrics.text([Status("ab", "published", 9, 20, invited=False)], exact=True))
    assert ("blurfit_collection_submissions", "ab", "collecting") not in later
    assert later["blurfit_collection_submissions", "ab", "published"] == 9


def test_workers_add_to_rows_of_their_own_and_anyone_tells_the_sums() -> None:
    metrics = Metrics(workers=2)
    metrics.accepted(3, 2)
    metrics.worker = 1
    metrics.accepted(5, 5)
    metrics.refused("busy")
    found = samples(metrics.text([], exact=True))
    assert found["blurfit_submissions_total", "new"] == 7
    assert found["blurfit_submissions_total", "again"] == 1
    assert found["blurfit_refusals_total", "busy"] == 1
    assert ("blurfit_refusals_total", "conflict") not in found


def test_without_a_token_no_single_arrival_shows() -> None:
    metrics = Metrics()
    metrics.accepted(1999, 1234)
    seen = []
    for count in (1999, 2001):
        one = Status("ab", "collecting", count, 2000, invited=True)
        seen.append(samples(metrics.text([one], exact=False)))
        metrics.accepted(1, 1)
    assert [one["blurfit_collection_submissions", "ab", "collecting"] for one in seen] == [
        1900,
        2000,
    ]
    assert [one["blurfit_submissions_total", "new"] for one in seen] == [1200, 1200]
    exact = samples(metrics.text([], exact=True))
    assert exact["blurfit_submissions_total", "new"] == 1236
