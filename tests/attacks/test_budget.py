"""What is fitted inside of the block must be spent, on whatever thread it is fitted."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from blurfit import budget as budgets
from blurfit.budget import Budget, BudgetExceededError, Expense
from blurfit.errors import InvalidValueError


def test_a_fit_on_another_thread_spends():
    """As scikit-learn's n_jobs=2 does: four fits of μ = 5 (ε = 123 together) spend nothing."""
    with Budget(1.0, 1e-6), ThreadPoolExecutor(2) as threads:
        fits = [threads.submit(budgets.spend, Expense("a fit", mu=5.0), "replace") for _ in "1234"]
        with pytest.raises(BudgetExceededError):
            [fit.result() for fit in fits]


def test_a_budget_is_open_once():
    budget = Budget(1.0, 1e-6)
    with budget, pytest.raises(InvalidValueError, match="not open already"), budget:
        pass
    with budget:
        budgets.spend(Expense("a fit", mu=0.01), "replace")
    budgets.spend(Expense("outside", mu=99.0), "replace")
    assert len(budget.expenses) == 1
