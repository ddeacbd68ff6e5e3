"""Text that Prometheus's own parser reads."""

import itertools

import pytest
from prometheus_client.parser import text_string_to_metric_families

from blurfit.service.answers import Metrics, for_strangers, shown
from blurfit.store.collections import Status, WaveStatus


def status(state: str, count: int, quorum: int) -> Status:
    """A collection of one wave."""
    wave = WaveStatus(
        1, "joint", quorum, "released" if state == "published" else state, count, "ab"
    )
    return Status("ab", state, count, quorum, invited=True, waves=(wave,))


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
    found = samples(metrics.text([status("collecting", 7, 20)], exact=True))
    assert found["blurfit_submissions_total", "new"] == 7
    assert found["blurfit_submissions_total", "again"] == 4
    assert found["blurfit_refusals_total", "conflict"] == 1
    assert found["blurfit_collection_submissions", "ab", "collecting"] == 7
    assert found["blurfit_collection_quorum", "ab"] == 20
    later = samples(metrics.text([status("published", 9, 20)], exact=True))
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
        one = status("collecting", count, 2000)
        seen.append(samples(metrics.text([one], exact=False)))
        metrics.accepted(1, 1)
    assert [one["blurfit_collection_submissions", "ab", "collecting"] for one in seen] == [
        1900,
        2000,
    ]
    assert [one["blurfit_submissions_total", "new"] for one in seen] == [1200, 1200]
    exact = samples(metrics.text([], exact=True))
    assert exact["blurfit_submissions_total", "new"] == 1236


# ---- counts for strangers: no single arrival shows, and a quorum that is reached does


@pytest.mark.parametrize("quorum", [1, 150, 2000, 10**6])
def test_what_is_told_of_every_count(quorum) -> None:
    told = [shown(count, quorum) for count in range(5000)]
    assert told == sorted(told)
    for count, one in enumerate(told):
        assert (one >= quorum) is (count >= quorum)
        assert one <= count
        assert count - one <= max(0, count // 10)
    changes = sum(one != other for one, other in itertools.pairwise(told[100:]))
    assert changes <= 90 + 40 + 1, "90 steps to a thousand, 40 from there, and the quorum"


def test_states_keep_everything_else() -> None:
    assert for_strangers(status("collecting", 1234, 2000)) == status("collecting", 1200, 2000)
    done = status("published", 1234, 1000)
    assert for_strangers(done) == done, "the model says it anyway"
    waves = (
        WaveStatus(1, "joint", 1000, "released", 1234, "ab"),
        WaveStatus(2, "newton", 2000, "collecting", 567, "cd"),
        WaveStatus(3, "newton", 3000),
    )
    told = for_strangers(Status("ef", "collecting", 567, 2000, True, waves=waves))
    assert [wave.count for wave in told.waves] == [1234, 560, 0]
    assert told.count == 560
