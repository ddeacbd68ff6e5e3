"""A plan learnt from files, wave by wave, is the plan learnt from its releases."""

import shutil

import numpy as np
import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.sending import blur_table
from blurfit.errors import BelowQuorumError, ConflictError, InvalidValueError, NotCertifiedError
from blurfit.files.engines import Threads
from blurfit.files.learn import release_plan
from blurfit.model.course import learn_plan, next_agreement
from support.plans import people, plan, rows, written

PLAN = plan("label", waves=2, quorum=600)
NAMES = ("age", "education", "region", "married", "income")


def collect(tmp_path, short: int = 0) -> list[tuple[Agreement, list[str]]]:
    """Everyone blurs a table of her wave's people into a file; `short` are missing in the last."""
    everyone, engine = people(600, 4), Threads()
    found: list[tuple[Agreement, list[str]]] = []
    at = 0
    for number, quorum in enumerate(PLAN.quorums, start=1):
        agreement = next_agreement(PLAN, release_plan(PLAN, found, engine) if found else ())
        folder = tmp_path / f"wave{number}"
        folder.mkdir()
        missing = short if number == len(PLAN) else 0
        table = written(folder / "people.csv", rows(everyone, at, at + quorum - missing), NAMES)
        out = folder / "blurred.parquet"
        assert blur_table(agreement, table, out) == quorum - missing
        found.append((agreement, [str(out)]))
        at += quorum
    return found


def test_files_give_the_model_of_their_releases(tmp_path) -> None:
    collected = collect(tmp_path)
    model = learn_plan(PLAN, release_plan(PLAN, collected, Threads()))
    releases = release_plan(PLAN, collected, Threads())
    assert learn_plan(PLAN, releases).to_json() == model.to_json()
    assert tuple(one.count for one in model.waves) == PLAN.quorums
    clean = collected[1][0].exact(rows(people(600, 4), PLAN.quorums[0], 600)).sum(axis=0)
    noise = (releases[1].sums - clean) / np.sqrt(len(clean))
    (part,) = collected[1][0].parts
    assert np.abs(noise / part.deviations).max() < 6 * np.sqrt(PLAN.quorums[1] / len(clean))


def test_a_wave_below_its_quorum_is_not_released(tmp_path) -> None:
    collected = collect(tmp_path, short=1)
    with pytest.raises(BelowQuorumError):
        release_plan(PLAN, collected, Threads())
    assert not list((tmp_path / "wave2").glob("*.release.json"))


def test_a_released_wave_takes_no_more(tmp_path) -> None:
    collected = collect(tmp_path)
    release_plan(PLAN, collected, Threads())
    late = written(tmp_path / "late.csv", people(3, 9), NAMES)
    blur_table(collected[0][0], late, tmp_path / "wave1" / "late.parquet")
    with pytest.raises(ConflictError, match="other files"):
        release_plan(PLAN, [(collected[0][0], [str(tmp_path / "wave1")])], Threads())


def test_an_agreement_that_does_not_follow_is_refused_before_files_are_read(tmp_path) -> None:
    collected = collect(tmp_path)
    with pytest.raises(NotCertifiedError):
        release_plan(PLAN, collected[1:], Threads())
    with pytest.raises(NotCertifiedError):
        release_plan(plan("label", waves=2), [(collected[0][0], ["nowhere"])], Threads())
    with pytest.raises(InvalidValueError, match="first wave"):
        release_plan(PLAN, [], Threads())


def test_a_cluster_gives_the_same_to_the_last_bit(tmp_path, cluster) -> None:
    """Another machine's copy of the files, without receipts, added up by Dask."""
    collected = collect(tmp_path)
    expected = learn_plan(PLAN, release_plan(PLAN, collected, Threads()))
    copies = []
    for number, (agreement, (file,)) in enumerate(collected, start=1):
        folder = tmp_path / "elsewhere" / f"wave{number}"
        folder.mkdir(parents=True)
        copies.append((agreement, [str(shutil.copy(file, folder))]))
    assert learn_plan(PLAN, release_plan(PLAN, copies, cluster)).to_json() == expected.to_json()
