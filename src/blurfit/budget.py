"""A budget for several fits to the same people: what they add up to, and where it ends.

    with blurfit.Budget(epsilon=3, delta=1e-6) as budget:
        scores = cross_val_score(MomentPerturbationRegressor(…), X, y, error_score="raise")
    print(budget)

Each fit inside the block spends what its own release costs, before it draws noise; one that would
go beyond is refused, and nothing of it is computed. A cross-validation in five folds is five
releases of almost the same people, and a grid search many more.

Guarantee (`docs/theory/budget.md`). μ_i-GDP releases compose to √Σμ_i²-GDP, and the (ε_i, δ_i) of
input perturbation are added; all must be about one neighbouring relation:

    δ = δ_GDP(√Σμ_i², ε − Σε_i) + Σδ_i.

A block counts the fits of its process, in any thread. As long as it is open, fits are refused in
the workers of its process, in whatever any of them started, and by an estimator that was sent away
from within it. Use `n_jobs=1`, or `joblib.parallel_config(backend="threading")`. A program that is
started separately counts for itself.

A process marks its open blocks by an empty file in the folder that was for temporary files when
blurfit was imported. The environment has the names of these files, of every process from which one
descends: a program that is started without this environment is not seen.

Scores of held-out rows, such as those of a cross-validation, are computed from the rows as they
are: no budget covers publishing them. Tests: `tests/test_budget.py`.
"""

import math
import multiprocessing
import os
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from blurfit import errors, private_files
from blurfit.theory import gaussian
from blurfit.theory.moments import NEIGHBOURS, Neighbours, at_most

_MARKS = "BLURFIT_BUDGET"  # the environment's word for the files of processes with open blocks
_FOLDER = tempfile.gettempdir()  # at import: whoever changes it later leaves no mark elsewhere
_ROUNDING = 1 + 1e-9  # what is kept is evaluated at a little more than was spent


class BudgetExceededError(errors.BlurfitError):
    """A fit would spend more than is left."""


@dataclass(frozen=True)
class Expense:
    """What one fit spent: μ of a Gaussian mechanism, or (ε, δ) of anything else."""

    what: str
    mu: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0


@dataclass(eq=False)
class Budget:
    """(ε, δ) for everything that is fitted inside the block.

    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> budget.spend(Expense("a model", mu=0.1), "replace")
    >>> round(budget.spent().epsilon, 3)
    0.397
    """

    epsilon: float
    delta: float
    expenses: list[Expense] = field(default_factory=list, init=False)
    neighbours: Neighbours | None = field(default=None, init=False)
    _outer: "Budget | None" = field(default=None, init=False, repr=False)
    _process: int = field(default_factory=os.getpid, init=False, repr=False)

    def __post_init__(self) -> None:
        errors.positive(epsilon=self.epsilon)
        errors.inside_unit_interval(delta=self.delta)

    def __enter__(self) -> Self:
        with _lock:
            if self in _open:
                raise errors.InvalidValueError("Expected a budget that is not open already.")
            self._outer = _open[-1] if _open else None
            if not _open:
                private_files.create(_mark_of(os.getpid()))
            _open.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _lock:
            _open.remove(self)
            if not _open and self._process == os.getpid():  # and not in a copy of the process
                _mark_of(self._process).unlink(missing_ok=True)

    def spend(self, expense: Expense, neighbours: Neighbours) -> None:
        """Write an expense down, in the outer budgets too; refuse it if it is more than is left."""
        errors.nonnegative(mu=expense.mu, epsilon=expense.epsilon, delta=expense.delta)
        errors.one_of(NEIGHBOURS, neighbours=neighbours)
        with _lock:
            for budget in self._chain():
                refuse_elsewhere(budget._process)
                budget._refuse_unless_left(expense, neighbours)
            for budget in self._chain():
                budget.expenses.append(expense)
                budget.neighbours = neighbours

    def spent(self) -> Expense:
        """Return what all adds up to so far: ε at the budget's δ, and μ of its Gaussian part."""
        return _total("all", self.expenses, self.delta)

    @property
    def remaining(self) -> float:
        """ε that is left at the budget's δ. Fits do not add up in ε, so whether one more is allowed
        is found by trying.
        """
        return max(0.0, self.epsilon - self.spent().epsilon)

    def __str__(self) -> str:
        count, found = len(self.expenses), self.spent()
        return (
            f"{count} fit{'s' * (count != 1)} in this process spent ε = {at_most(found.epsilon)} "
            f"of {self.epsilon:g} at δ = {self.delta:g}."
        )

    def _chain(self) -> "list[Budget]":
        return [self, *(self._outer._chain() if self._outer is not None else [])]

    def _refuse_unless_left(self, expense: Expense, neighbours: Neighbours) -> None:
        if self.neighbours not in (None, neighbours):
            raise errors.InvalidValueError(
                f"Expected neighbours={neighbours!r} to be {self.neighbours!r}, as in earlier "
                "fits: promises about different neighbours do not add up."
            )
        total = _total("all", [*self.expenses, expense], self.delta)
        if not total.epsilon <= self.epsilon:
            raise BudgetExceededError(
                f"{expense.what} would bring what is spent to ε = {at_most(total.epsilon)} at "
                f"δ = {self.delta:g}, and the budget is {self.epsilon:g}. {self} Nothing was "
                "computed. Fit fewer models, each with a smaller epsilon, or allow more."
            )


@dataclass(eq=False)
class Tally:
    """How many fits a process has made, of any rows, and what they cost if all were of the same."""

    fits: int = 0
    mu_squared: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0
    neighbours: set[Neighbours] = field(default_factory=set)

    def add(self, expense: Expense, neighbours: Neighbours) -> None:
        """Count one more fit."""
        with _lock:
            self.fits += 1
            self.mu_squared += expense.mu**2
            self.epsilon += expense.epsilon
            self.delta += expense.delta
            self.neighbours.add(neighbours)

    def in_words(self, delta: float) -> str | None:
        """Say how many fits there were, and what all cost together at this δ; None of a single one.

        Whose rows they were is not looked at: it would take the rows to know.
        """
        if self.fits < 2:
            return None
        spent = Expense("all", math.sqrt(self.mu_squared), self.epsilon, self.delta)
        cost = "what they cost together is not known, as they promise about different neighbours"
        if len(self.neighbours) == 1:
            total = _total("all", [spent], delta).epsilon
            cost = f"they cost ε = {at_most(total)} at δ = {delta:g} together"
            if math.isinf(total):
                cost = f"no ε holds for all of them together at δ = {delta:g}"
        return (
            f"This process has made {self.fits:,} fits so far. If they were of the same people, "
            f"{cost}. blurfit.Budget limits that."
        )


def spend(expense: Expense, neighbours: Neighbours) -> None:
    """Spend from the budget of the block that the process is in, if it is in one; and count it."""
    budget = _innermost()
    if budget is not None:
        budget.spend(expense, neighbours)
    tally.add(expense, neighbours)


def open_in() -> int | None:
    """Return the process whose open block we are in, for what may be sent to another."""
    budget = _innermost()
    return None if budget is None else budget._process


def refuse_elsewhere(process: int | None) -> None:
    """Refuse to fit in a process that an open block of another would never hear from.

    Args:
        process: whose block the fit was sent away from, if it was.
    """
    marks = [Path(one) for one in _above]
    if (parent := multiprocessing.parent_process()) is not None and parent.pid is not None:
        marks.append(_mark_of(parent.pid))
    if process not in (None, os.getpid()) or any(mark.exists() for mark in marks):
        raise BudgetExceededError(
            "This fit is in another process than the Budget that it was sent from, which cannot "
            "count it there. Nothing was computed. Use n_jobs=1, or threads: "
            'joblib.parallel_config(backend="threading"). If a process with an open Budget was '
            f"killed, remove the file that it left: {_mark_of('*')}."
        )


def _mark_of(process: int | str) -> Path:
    return Path(_FOLDER, f"blurfit-budget-{process}")


def _descend() -> None:
    """Note from which processes this one descends, and tell those that will descend from it."""
    above = [one for one in os.environ.get(_MARKS, "").split(os.pathsep) if one]
    if (parent := multiprocessing.parent_process()) is not None and parent.pid is not None:
        above.append(str(_mark_of(parent.pid)))
    own = str(_mark_of(os.getpid()))
    _above[:] = [one for one in dict.fromkeys(above) if one != own]
    os.environ[_MARKS] = os.pathsep.join([*_above, own])


def _innermost() -> Budget | None:
    with _lock:
        return _open[-1] if _open else None


def _total(what: str, expenses: list[Expense], delta: float) -> Expense:
    """Return ε of all of them at δ; infinite if their own δ's exceed it."""
    mu = math.sqrt(math.fsum(one.mu**2 for one in expenses)) * _ROUNDING
    epsilon = math.fsum(one.epsilon for one in expenses)
    left = delta - math.fsum(one.delta for one in expenses)
    if mu == 0 and left >= 0:
        return Expense(what, 0.0, epsilon, delta)
    if left <= 0:
        return Expense(what, mu, math.inf, delta)
    return Expense(what, mu, epsilon + gaussian.epsilon_of(mu, left), delta)


_above: list[str] = []  # the files of the processes from which this one descends
_open: list[Budget] = []  # the process's own, so that no thread escapes it
_lock = threading.RLock()
tally = Tally()  # of this process
_descend()
if hasattr(os, "register_at_fork"):  # which Windows has not
    os.register_at_fork(after_in_child=_descend)
