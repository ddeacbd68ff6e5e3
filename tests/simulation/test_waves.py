"""A plan in one process is the plan of contributors and database."""

import numpy as np
import pytest

from blurfit.errors import BelowQuorumError
from blurfit.model.course import learn_plan
from blurfit.schema.schema import values
from blurfit.simulation import fit_in_waves
from support.plans import people, plan


@pytest.mark.parametrize("task", ["number", "label", "count"])
def test_everyone_is_in_one_wave_and_the_model_follows_from_the_releases(task: str) -> None:
    chosen = plan(task, waves=3)
    rows = values(chosen.schema, people(40_123, 2))
    found = fit_in_waves(chosen, rows, np.random.default_rng(1))
    assert sum(one.count for one in found.model.waves) == 40_123
    assert all(one.count >= one.quorum for one in found.model.waves)
    assert tuple(one.quorum for one in found.model.waves) == chosen.quorums
    assert learn_plan(chosen, found.releases).to_json() == found.model.to_json()


def test_sums_are_those_of_the_people() -> None:
    """Over draws with one order of people, the mean of the first release is their exact sum."""
    chosen = plan("number", quorum=400, waves=2)
    rows = values(chosen.schema, people(400, 3))
    first = chosen.first()
    order = np.random.default_rng(5).permutation(400)[: chosen.quorums[0]]
    exact = first.form.products(rows[order]).sum(axis=0)
    got = fit_in_waves(chosen, rows, np.random.default_rng(5)).releases[0]
    (part,) = first.parts
    noise = (got.sums - exact) / (part.deviations * np.sqrt(chosen.quorums[0]))
    assert np.abs(noise).max() < 5
    assert 0.5 < noise.std() < 1.6


def test_a_record_of_the_last_wave_changes_nothing_before_it() -> None:
    chosen = plan("label", quorum=600, waves=2)
    rows = values(chosen.schema, people(600, 4))
    last = np.random.default_rng(7).permutation(600)[-1]
    other = rows.copy()
    other[last] = -rows[last]
    one, two = (fit_in_waves(chosen, v, np.random.default_rng(7)).releases for v in (rows, other))
    assert one[0].to_json() == two[0].to_json()
    assert one[1].agreement.fingerprint == two[1].agreement.fingerprint
    moved = one[1].sums - two[1].sums
    counts = one[1].agreement.form.counts
    assert 0 < np.sqrt(moved**2 @ counts) <= one[1].agreement.form.reach("replace").sums


@pytest.mark.parametrize("count", [400, 401, 403, 1001])
def test_every_wave_has_its_quorum_whatever_the_count(count: int) -> None:
    chosen = plan("number", quorum=400, waves=3)
    rows = values(chosen.schema, people(count, 3))
    found = fit_in_waves(chosen, rows, np.random.default_rng(1))
    assert sum(one.count for one in found.model.waves) == count


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(BelowQuorumError):
        fit_in_waves(plan("number"), np.zeros((10, 7)), np.random.default_rng(1))
