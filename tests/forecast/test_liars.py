"""How far liars could move a coefficient: by pushing the sums themselves."""

import math

import numpy as np
import pytest

from blurfit import Agreement, InfeasibleError
from blurfit.agreement.radius import radii
from blurfit.forecast.liars import moved_by_liars
from blurfit.forecast.population import Population
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.schema.vectors import units, values

SCHEMA = Schema([Numeric("age", 0, 100), Binary("married")], Numeric("income", 0, 200_000))
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 5000}
TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))


@pytest.fixture(scope="module")
def population() -> Population:
    generator = np.random.default_rng(1)
    age, married = generator.uniform(20, 80, 3000), generator.integers(0, 2, 3000)
    income = 20_000 + 800 * age + 9000 * married + generator.normal(0, 9000, 3000)
    table = {"age": age, "married": married, "income": np.clip(income, 0, 200_000)}
    return Population.of_values(SCHEMA, values(SCHEMA, table), "people")


def coefficients(form, sums) -> np.ndarray:
    w = np.linalg.solve(sums[:-1, :-1], sums[:-1, -1])
    return units(SCHEMA, "income", ["age", "married"]).apply(w * form.scale[:-1] / form.scale[-1])


def test_no_push_moves_more_and_one_moves_as_much(population) -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE)
    form, (radius,), share = agreement.form, radii(agreement), 1e-5
    found = np.array(list(moved_by_liars(agreement, population, share).values()))
    clean = form.scale[:, None] * population.products * form.scale
    before, generator = coefficients(form, clean), np.random.default_rng(2)
    largest = np.zeros_like(found)
    for _ in range(3000):
        push = generator.normal(size=clean.shape)
        push = push + push.T
        push *= share * radius / np.linalg.norm(push)
        largest = np.maximum(largest, np.abs(coefficients(form, clean + push) - before))
    assert (largest <= found * 1.001).all()
    assert (largest > 0.3 * found).all(), "random pushes come near, in so few dimensions"
    # along the symmetric part of auᵀ, by finite differences of the coefficient itself
    for place in range(len(found)):
        slope = np.zeros_like(clean)
        for i in range(len(clean)):
            for j in range(len(clean)):
                bump = np.zeros_like(clean)
                bump[i, j] += 0.5e-7
                bump[j, i] += 0.5e-7
                slope[i, j] = (coefficients(form, clean + bump)[place] - before[place]) / 1e-7
        assert share * radius * np.linalg.norm(slope) == pytest.approx(found[place], rel=1e-3)


def test_it_is_proportional_and_worse_under_a_local_promise(population) -> None:
    plain = moved_by_liars(Agreement.propose(SCHEMA, **PROMISE), population)
    double = moved_by_liars(Agreement.propose(SCHEMA, **PROMISE), population, 0.02)
    local = Agreement.propose(SCHEMA, **PROMISE, local_epsilon=1.0, local_delta=1e-6)
    louder = moved_by_liars(local, population)
    for name, one in plain.items():
        assert double[name] == pytest.approx(2 * one)
        assert louder[name] > 3 * one
    shared = Agreement.propose(SCHEMA, **PROMISE, databases=TWO)
    assert set(moved_by_liars(shared, population).values()) == {math.inf}
    with pytest.raises(InfeasibleError):
        by_input = Agreement.propose(SCHEMA, **PROMISE, mechanism="input", weight_bound=1.0)
        moved_by_liars(by_input, population)
