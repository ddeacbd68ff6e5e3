"""Coverage of tables: truths of the population, and every question is asked."""

import numpy as np
import pytest

from blurfit_lab.experiments.answers import KINDS, QUESTIONS, drawn, tables_contest, truths


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_true_is_the_people_s_own(kind: str) -> None:
    people = drawn(kind, 50_000, np.random.default_rng(1))
    found = truths(people)
    assert set(found) == {*QUESTIONS, "curve", "marginal effects"}
    assert found["shares"].sum() == pytest.approx(1)
    assert found["cells"].sum() == pytest.approx(1)
    assert found["means"] @ found["shares"] == pytest.approx(people["pay"].mean())
    assert found["curve"] == pytest.approx([30, 38.5, 42, 38.5, 30], abs=1.5)
    effect = people["member"][people["east"]].mean() - people["member"][~people["east"]].mean()
    assert found["marginal effects"][0] == pytest.approx(effect, abs=0.02)


def test_few_trials_tell_every_question_and_both_tests() -> None:
    found = tables_contest([4096], [1.0], trials=12, kinds=["even"])
    assert list(found.columns[:3]) == ["people", "n", "epsilon"]
    assert set(QUESTIONS) < set(found.columns)
    assert (found[list(QUESTIONS)].to_numpy() > 0.7).all()
    assert (found[["curve", "marginal effects"]].to_numpy() > 0.7).all()
    tests = ["χ² rejects", "equal means rejects", "nested F rejects"]
    assert (found[tests].to_numpy() < 0.5).all()
