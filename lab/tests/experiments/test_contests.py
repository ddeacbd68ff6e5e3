"""Rows of a trial: trained on, tested on, public; never two of these."""

import numpy as np

from blurfit.schema.columns import Categorical
from blurfit.simulation import make_census
from blurfit_lab.experiments import head_to_head
from blurfit_lab.experiments.head_to_head import Contest, plain


def test_rows_are_those_of_the_trial(people, monkeypatch) -> None:
    monkeypatch.setattr(head_to_head, "TESTED", 128)
    monkeypatch.setattr(head_to_head, "PUBLIC", 100)
    contest = Contest("people", head_to_head._numbers, training=256)
    first, again, other = (contest.drawn(people, trial) for trial in (4, 4, 5))
    assert np.array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)
    assert (len(first.x), len(first.test_x), len(first.public)) == (256, 128, 100)


def test_nobody_is_trained_and_tested_on_or_public(monkeypatch) -> None:
    monkeypatch.setattr(head_to_head, "TESTED", 30)
    monkeypatch.setattr(head_to_head, "PUBLIC", 20)
    for contest in (
        Contest("a", head_to_head._numbers),
        Contest("b", head_to_head._labels, training=40),
    ):
        for trial in range(5):
            parts = contest._places(0, 100, trial)
            joined = np.concatenate(parts)
            assert len(set(joined.tolist())) == len(joined)
            assert joined.max() < 100
    assert [len(part) for part in Contest("a", head_to_head._numbers)._places(0, 100, 0)] == [
        80,
        20,
        0,
    ]


def test_sets_without_files_are_left_out(people, monkeypatch) -> None:
    monkeypatch.delenv("BLURFIT_DATA", raising=False)
    monkeypatch.setattr(head_to_head, "TESTED", 128)
    monkeypatch.setattr(head_to_head, "PUBLIC", 100)
    monkeypatch.setattr(head_to_head, "LARGE", 512)
    names = list(head_to_head.contests(people))
    assert names == [name for name in names if name.startswith("people")]
    assert any(one.label for one in head_to_head.contests(people).values())


def test_a_plain_census_has_no_categories() -> None:
    census = plain(make_census(50, 0))
    assert not any(isinstance(one, Categorical) for one in census.schema.features)
    assert len(census) == 50
