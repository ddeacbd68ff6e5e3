"""The administrator of one database is told when contributors do not look honest."""

import numpy as np
import pytest

from blurfit import Agreement, Store, perturb_table
from blurfit.messages.submissions import Submissions
from blurfit.model.release import PublishedMoments
from blurfit.schema.schema import Numeric, Schema
from support.lying import climbing

SCHEMA = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 100))
PROMISE = {"epsilon": 1, "delta": 1e-6}
AGREEMENT = Agreement.propose(SCHEMA, **PROMISE, quorum=10_000)
LIARS = 100


def people(count, seed=1):
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(50, 15, count), 0, 100)
    return {"age": age, "income": np.clip(30 + 0.4 * age + rng.normal(0, 8, count), 0, 100)}


@pytest.fixture(scope="module")
def honest() -> np.ndarray:
    return perturb_table(AGREEMENT, people(10_000)).numbers


@pytest.fixture(scope="module")
def false(honest) -> np.ndarray:
    """100 submissions that move the slope of 10,000 others as far down as they can."""

    def slope(sums) -> float:
        return PublishedMoments(AGREEMENT, 10_100, sums).fit().estimates()[1].value

    row = climbing(AGREEMENT, honest.sum(axis=0), slope, LIARS, -1, steps=2)
    return np.tile(row, (LIARS, 1))


def modest(numbers) -> np.ndarray:
    """The same lies, a fifth shorter."""
    step = AGREEMENT.grid.quadratic
    return np.trunc(0.8 * numbers / step) * step


def look(agreement, *arrivals):
    """What is told of numbers that came one group after the other."""
    rng = np.random.default_rng(4)
    with Store() as store:
        for numbers in arrivals:
            names = rng.integers(0, 256, (len(numbers), 16), dtype=np.uint8)
            store.add(agreement, Submissions(names, agreement.fingerprint, numbers))
        return store.compare_halves(agreement.fingerprint)


def test_honest_people_raise_no_alarm(honest) -> None:
    found = look(AGREEMENT, *np.split(honest, 10))
    assert (found.people, found.disagree, found.long) == (10_000, False, 0)
    assert "Liars who come evenly and are not greedy cannot be seen" in found.told


def test_liars_who_come_together_are_seen_wherever_it_is(honest, false) -> None:
    for place in (0, 3, 9):
        arrivals = np.split(honest, 10)
        arrivals.insert(place, modest(false))
        found = look(AGREEMENT, *arrivals)
        assert found.disagree
        assert found.long == 0, "they are not greedy"
        assert "contributors may be lying together" in found.told
        assert "collect anew" in found.told


def test_liars_who_come_evenly_are_seen_by_their_greed_alone(honest, false) -> None:
    each = [np.vstack(both) for both in zip(np.split(honest, 10), np.split(false, 10), strict=True)]
    found = look(AGREEMENT, *each)
    assert not found.disagree
    assert found.long == LIARS
    assert "100 of 10,100 submissions are longer than honest ones are" in found.told
    few = np.split(modest(false), 10)
    shorter = [np.vstack(both) for both in zip(np.split(honest, 10), few, strict=True)]
    found = look(AGREEMENT, *shorter)
    assert not found.disagree
    assert found.long == 0, "and so nothing shows: the statement says what they could do"


def test_people_who_differ_honestly_by_when_they_come_raise_it_too() -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=2000)
    young, old = people(1000), people(1000, seed=2)
    young["age"] = young["age"] / 2
    found = look(agreement, *(perturb_table(agreement, one).numbers for one in (young, old)))
    assert found.disagree
    assert "as long as when somebody comes has nothing to do with what they answer" in found.told


def test_of_very_many_numbers_combinations_are_compared() -> None:
    schema = Schema([Numeric(f"x{k}", 0, 1) for k in range(22)], Numeric("y", 0, 1))
    agreement = Agreement.propose(schema, **PROMISE, quorum=2000)
    assert agreement.width > 256
    rng = np.random.default_rng(6)
    table = {name: rng.uniform(0, 1, 2000) for name in schema.columns} | {"y": rng.random(2000)}
    numbers = perturb_table(agreement, table).numbers
    found = look(agreement, *np.split(numbers, 2))
    assert (found.people, found.disagree) == (2000, False)
    table = {name: np.where(np.arange(2000) < 1000, 0.2, 0.8) for name in table}
    assert look(agreement, *np.split(perturb_table(agreement, table).numbers, 2)).disagree


def test_too_few_are_not_compared() -> None:
    assert look(AGREEMENT, perturb_table(AGREEMENT, people(40)).numbers).people == 0
    with Store() as store:
        store.open(AGREEMENT)
        found = store.compare_halves(AGREEMENT.fingerprint)
    assert found.told == "0 people are too few to compare one half with the other."
