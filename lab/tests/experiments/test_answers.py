"""Coverage of tables, groups and weights: people are what they are said to be, all is asked."""

import numpy as np
import pytest

from blurfit_lab.experiments.answers import (
    COEFFICIENTS,
    KINDS,
    LEVELS,
    NAMES,
    PEOPLE,
    QUESTIONS,
    drawn,
    grouped,
    groups_contest,
    selected,
    tables_contest,
    truth,
    truths,
    weights_contest,
)
from blurfit_lab.experiments.lines import Collections


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_true_is_the_people_s_own(kind: str) -> None:
    people = drawn(kind, 50_000, np.random.default_rng(1))
    found = truths(people)
    assert set(found) == {*QUESTIONS, "curve"}
    assert found["shares"].sum() == pytest.approx(1)
    assert found["cells"].sum() == pytest.approx(1)
    assert found["means"] @ found["shares"] == pytest.approx(people["pay"].mean())
    assert found["curve"] == pytest.approx([30, 38.5, 42, 38.5, 30], abs=1.5)


def test_few_trials_tell_every_question_and_both_tests() -> None:
    found = tables_contest(Collections([4096], [1.0], 12), kinds=["even"])
    assert list(found.columns[:3]) == ["people", "n", "epsilon"]
    assert set(QUESTIONS) < set(found.columns)
    assert (found[list(QUESTIONS)].to_numpy() > 0.7).all()
    assert (found["curve"].to_numpy() > 0.7).all()
    tests = ["χ² rejects", "equal means rejects", "nested F rejects"]
    assert (found[tests].to_numpy() < 0.5).all()


@pytest.mark.parametrize("kind", PEOPLE)
def test_the_line_is_true_in_each_group(kind: str) -> None:
    people = grouped(kind, 6, 60_000, np.random.default_rng(1))
    coefficients, means = truth(6)
    for place, name in enumerate(LEVELS):
        own = people["group"] == name
        x = np.column_stack([people[one][own] for one in NAMES])
        assert x.mean(axis=0) == pytest.approx(means[place], abs=0.03)
        design = np.column_stack([np.ones(own.sum()), x])
        found = np.linalg.lstsq(design, people["y"][own], rcond=None)[0]
        assert found == pytest.approx(coefficients[place], abs=0.03)


def test_weights_undo_the_selection() -> None:
    people = selected(50_000, np.random.default_rng(2))
    assert abs(people["y"].mean() - COEFFICIENTS[0]) > 0.06
    weighted = np.average(people["y"], weights=people["weight"])
    assert weighted == pytest.approx(COEFFICIENTS[0], abs=0.01)
    assert people["weight"].max() <= 1


def test_few_trials_tell_everything() -> None:
    found = groups_contest(Collections([8192], [4.0], 6), kinds=["even"])
    assert len(found) == 3
    assert (found["coefficients"] > 0.8).all()
    assert (found["told"] > 0.5).all()
    weighted = weights_contest(Collections([4096], [4.0], 6))
    assert weighted["gone"][0] > 0.8
