"""A budget across fits: exact for Gaussian mechanisms, added for others, and never exceeded."""

import math

import pytest

from blurfit.budget import Budget, BudgetExceededError, Expense, spend
from blurfit.errors import InvalidValueError
from blurfit.theory import gaussian


def test_gaussian_privacy_adds_in_squares() -> None:
    budget = Budget(epsilon=5, delta=1e-6)
    for _ in range(9):
        budget.spend(Expense("a model", mu=0.1), "replace")
    assert budget.spent().mu == pytest.approx(0.3, rel=1e-8)
    assert budget.spent().epsilon == pytest.approx(gaussian.epsilon_of(0.3, 1e-6), rel=1e-6)
    assert budget.spent().epsilon < 9 * gaussian.epsilon_of(0.1, 1e-6)


def test_the_two_kinds_add_up_to_what_composition_allows() -> None:
    budget = Budget(epsilon=10, delta=1e-5)
    budget.spend(Expense("moment", mu=0.5), "replace")
    budget.spend(Expense("input", epsilon=1.0, delta=4e-6), "replace")
    expected = 1.0 + gaussian.epsilon_of(0.5 * (1 + 1e-9), 1e-5 - 4e-6)
    assert budget.spent().epsilon == pytest.approx(expected)


def test_what_would_exceed_it_is_refused_and_not_written_down() -> None:
    budget = Budget(epsilon=1, delta=1e-6)
    mu = gaussian.mu_of(1, 1e-6)
    budget.spend(Expense("a model", mu=0.9 * mu), "replace")
    with pytest.raises(BudgetExceededError, match="a second model would bring"):
        budget.spend(Expense("a second model", mu=0.9 * mu), "replace")
    assert len(budget.expenses) == 1
    assert 0 < budget.remaining < 1
    assert "1 fit in this process spent" in str(budget)


def test_what_is_spent_is_rounded_up() -> None:
    budget = Budget(epsilon=5, delta=1e-6)
    budget.spend(Expense("a model", epsilon=1.00001, delta=0.0), "replace")
    assert "spent ε = 1.001 of 5" in str(budget)


def test_deltas_that_exceed_its_own_are_refused() -> None:
    budget = Budget(epsilon=100, delta=1e-6)
    with pytest.raises(BudgetExceededError):
        budget.spend(Expense("input", epsilon=1.0, delta=1e-6), "replace") or budget.spend(
            Expense("another", epsilon=1.0, delta=1e-6), "replace"
        )


def test_blocks_nest_and_end() -> None:
    with Budget(epsilon=9, delta=1e-6) as outer:
        spend(Expense("a", mu=0.1), "replace")
        with Budget(epsilon=1, delta=1e-6) as inner:
            spend(Expense("b", mu=0.1), "replace")
        spend(Expense("c", mu=0.1), "replace")
    spend(Expense("outside", mu=99.0), "replace")
    assert [one.what for one in outer.expenses] == ["a", "b", "c"]
    assert [one.what for one in inner.expenses] == ["b"]


def test_an_inner_block_cannot_spend_more_than_the_outer_has() -> None:
    with Budget(epsilon=0.5, delta=1e-6) as outer, Budget(epsilon=9, delta=1e-6) as inner:
        with pytest.raises(BudgetExceededError):
            spend(Expense("much", mu=1.0), "replace")
        assert not outer.expenses + inner.expenses


def test_different_neighbours_do_not_add_up() -> None:
    budget = Budget(epsilon=9, delta=1e-6)
    budget.spend(Expense("a", mu=0.1), "replace")
    with pytest.raises(InvalidValueError, match="do not add up"):
        budget.spend(Expense("b", mu=0.1), "zero-out")


@pytest.mark.parametrize("wrong", [{"epsilon": 0, "delta": 0.1}, {"epsilon": 1, "delta": 1}])
def test_a_budget_is_a_promise(wrong) -> None:
    with pytest.raises(InvalidValueError):
        Budget(**wrong)


def test_nothing_spent_is_nothing() -> None:
    assert Budget(epsilon=1, delta=1e-6).spent().epsilon == 0
    assert math.isclose(Budget(epsilon=1, delta=1e-6).remaining, 1)
