"""Terms and liars: what a forecast says of choices before anyone is asked."""

import math

import numpy as np
import pytest

from blurfit import Agreement, Binary, InfeasibleError, Numeric, Schema
from blurfit.agreement.numbers import push_of_liars, radii
from blurfit.agreement.plan import Plan
from blurfit.forecast import choices as module
from blurfit.forecast.choices import (
    advise,
    moved_by_liars,
    moved_in_waves,
)
from blurfit.forecast.population import Population
from blurfit.forecast.sweep import propose_terms
from blurfit.schema.schema import units, values
from blurfit.simulation import make_census

# ---- liars
SCHEMA_LIARS = Schema([Numeric("age", 0, 100), Binary("married")], Numeric("income", 0, 200_000))
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 5000}
TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))


@pytest.fixture(scope="module")
def population() -> Population:
    generator = np.random.default_rng(1)
    age, married = generator.uniform(20, 80, 3000), generator.integers(0, 2, 3000)
    income = 20_000 + 800 * age + 9000 * married + generator.normal(0, 9000, 3000)
    table = {"age": age, "married": married, "income": np.clip(income, 0, 200_000)}
    return Population.of_values(SCHEMA_LIARS, values(SCHEMA_LIARS, table), "people")


def coefficients(form, sums) -> np.ndarray:
    w = np.linalg.solve(sums[:-1, :-1], sums[:-1, -1])
    return units(SCHEMA_LIARS, "income", ["age", "married"]).apply(
        w * form.scale[:-1] / form.scale[-1]
    )


def slope_of(form, sums, place) -> np.ndarray:
    """By finite differences of the coefficient itself."""
    found, before = np.zeros_like(sums), coefficients(form, sums)[place]
    for i in range(len(sums)):
        for j in range(len(sums)):
            bump = np.zeros_like(sums)
            bump[i, j] += 0.5e-7
            bump[j, i] += 0.5e-7
            found[i, j] = (coefficients(form, sums + bump)[place] - before) / 1e-7
    return found


def test_no_push_moves_more_and_one_moves_as_much(population) -> None:
    agreement = Agreement.propose(SCHEMA_LIARS, **PROMISE)
    form, share = agreement.form, 1e-5
    push = push_of_liars(agreement, 1, share)  # of the sums of one person, on average
    found = np.array(list(moved_by_liars(agreement, population, share).values()))
    clean = form.scale[:, None] * population.products * form.scale
    before, generator = coefficients(form, clean), np.random.default_rng(2)
    largest = np.zeros_like(found)
    for _ in range(3000):
        way = generator.normal(size=clean.shape)
        way = way + way.T
        way *= push / np.linalg.norm(way)
        largest = np.maximum(largest, np.abs(coefficients(form, clean + way) - before))
    assert (largest <= found * 1.001).all()
    assert (largest > 0.3 * found).all(), "random pushes come near, in so few dimensions"
    for place in range(len(found)):
        reached = push * np.linalg.norm(slope_of(form, clean, place))
        assert reached == pytest.approx(found[place], rel=2e-3), "along the slope, if they are few"


def test_it_bounds_what_many_liars_do_who_climb_and_not_only_the_first_step(population) -> None:
    agreement, share = Agreement.propose(SCHEMA_LIARS, **PROMISE), 0.01
    form, push = agreement.form, push_of_liars(agreement, 1, share)
    found = np.array(list(moved_by_liars(agreement, population, share).values()))
    clean = form.scale[:, None] * population.products * form.scale
    before = coefficients(form, clean)
    beyond = []
    for place in range(3):
        first, reached = push * np.linalg.norm(slope_of(form, clean, place)), []
        for sign in (-1, 1):
            way = np.zeros_like(clean)
            for _ in range(15):
                slope = slope_of(form, clean + way, place)
                way = sign * push * slope / np.linalg.norm(slope)
            reached.append(abs(coefficients(form, clean + way)[place] - before[place]))
        assert 0.5 * found[place] < max(reached) <= found[place]
        beyond.append(max(reached) / first)
    assert max(beyond) > 1.1, "the slope alone would promise too much"


def test_a_liar_is_counted_and_her_numbers_reach_the_radius() -> None:
    agreement = Agreement.propose(SCHEMA_LIARS, **PROMISE)
    (radius,), form = radii(agreement), agreement.form
    known = form.matrix(np.zeros(form.width), 1)
    assert known[0, 0] == form.constant**2
    assert push_of_liars(agreement, 500, 0.02) == pytest.approx(
        10 * math.sqrt(radius**2 + (known**2).sum())
    )
    proved = Agreement.propose(SCHEMA_LIARS, **PROMISE, databases=TWO, proofs=True)
    circuit, (part,) = proved.proving.circuit, proved.parts
    longest = math.sqrt(circuit.ceiling) * part.step  # counts are whole, so nothing is rounded down
    assert longest < push_of_liars(proved, 100) < 1.1 * longest


def test_it_grows_with_their_share_without_bound_where_nothing_varies(population) -> None:
    plain = moved_by_liars(Agreement.propose(SCHEMA_LIARS, **PROMISE), population)
    double = moved_by_liars(Agreement.propose(SCHEMA_LIARS, **PROMISE), population, 0.02)
    local = Agreement.propose(SCHEMA_LIARS, **PROMISE, local_epsilon=1.0, local_delta=1e-6)
    louder = moved_by_liars(local, population)
    for name, one in plain.items():
        assert double[name] > 2 * one
        assert louder[name] > 3 * one
    assert set(moved_by_liars(local, population, 0.5).values()) == {math.inf}
    shared = Agreement.propose(SCHEMA_LIARS, **PROMISE, databases=TWO, proofs=False)
    assert set(moved_by_liars(shared, population).values()) == {math.inf}
    with pytest.raises(InfeasibleError):
        by_input = Agreement.propose(SCHEMA_LIARS, **PROMISE, mechanism="input", weight_bound=1.0)
        moved_by_liars(by_input, population)
    rows = population.rows[:, 1:].copy()
    rows[:, 0] = 0.5
    still = Population.of_values(SCHEMA_LIARS, rows, "of one age")
    found = moved_by_liars(Agreement.propose(SCHEMA_LIARS, **PROMISE), still)
    assert set(found.values()) == {math.inf}


def test_of_a_plan_the_simulated_models_say_it(population) -> None:
    plan = Plan.propose(SCHEMA_LIARS, **PROMISE | {"quorum": 20_000}, waves=2)
    found = moved_in_waves(plan, population)
    assert list(found) == ["(intercept)", "age", "married"]
    one = moved_by_liars(
        Agreement.propose(SCHEMA_LIARS, **PROMISE | {"quorum": 20_000}), population
    )
    assert all(0 < found[name] < 16 * one[name] for name in one)  # which cuts hardly anybody
    with pytest.raises(InfeasibleError, match="standard errors"):
        moved_in_waves(Plan.propose(SCHEMA_LIARS, **PROMISE | {"quorum": 40}, waves=2), population)


# ---- tuning
@pytest.fixture(scope="module")
def census():
    return make_census(40_000, seed=1)


@pytest.fixture(scope="module")
def people(census) -> Population:
    return Population.of_table(census.schema, census.table, census.name)


@pytest.fixture(autouse=True)
def shorter_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of what a search gains, it gains early, and all candidates meet the same luck."""
    monkeypatch.setattr(module, "EVALUATIONS", 20)
    monkeypatch.setattr(module, "TUNING_DRAWS", 12)


@pytest.mark.parametrize(
    ("mechanism", "gain", "names"),
    [("moment", 1.005, {"constant", "weights"}), ("input", 1.01, {"weight_bound", "split", "l2"})],
)
def test_chosen_terms_lower_the_error(census, people, mechanism, gain: float, names) -> None:
    found = advise(
        census.schema, people, contributors=2048, epsilon=1.0, mechanism=mechanism, seed=3
    )
    assert found.before.error / found.after.error > gain
    assert set(found.terms) == names
    asked = propose_terms(census.schema, mechanism, 1.0, None, found.terms)
    Agreement.propose(census.schema, quorum=2048, **asked).verify()  # they are terms as any


def test_fixed_weights_stay_as_they_are_and_mistakes_are_named(census, people) -> None:
    names = [*(one.name for one in census.schema.features), census.schema.target.name]
    terms = {"weights": dict.fromkeys(names, 0.3)}
    asked = {"contributors": 2048, "epsilon": 1.0, "mechanism": "moment"}
    found = advise(census.schema, people, terms=terms, **asked)
    assert set(found.terms) <= {"constant"}
    with pytest.raises(InfeasibleError, match="nothing is left to try"):
        advise(census.schema, people, terms=terms | {"constant": 0.5}, **asked)
    with pytest.raises(InfeasibleError, match="quorum=10"):
        advise(census.schema, people, contributors=10, epsilon=1.0, mechanism="input")


def test_a_local_target_shares_its_budget_by_the_forecast(census, people) -> None:
    asked = {"contributors": 2**21, "epsilon": 10.0, "mechanism": "input", "local_epsilon": 8.0}
    found = advise(census.schema, people, terms={"weight_bound": 3.7}, seed=3, **asked)
    assert found.after.error <= found.before.error
    assert set(found.terms) <= {"l2", "split", "local_share"}
    assert found.after.submission_epsilon == pytest.approx(8)


def test_defaults_that_are_not_beaten_are_kept(census, people, monkeypatch) -> None:
    monkeypatch.setattr(module, "descend", lambda function, start, **_: start + 5.0)
    found = advise(census.schema, people, contributors=4000, epsilon=1.0, mechanism="moment")
    assert found.terms == {}
    assert found.before == found.after
