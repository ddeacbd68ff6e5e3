"""The estimate beside the form: against simulated collections of the people that it assumes."""

import math

import numpy as np
import pytest

from blurfit import Agreement, Binary, Categorical, Numeric, Schema
from blurfit.learning.outlook import EXPLAINED, SPREAD, epsilon_needed, outlook, people_needed
from blurfit.learning.shrinkage import linear_bayes
from blurfit.model.release import moments_of
from blurfit.schema.schema import values
from blurfit.simulation import exact_totals, sampler_for

FEATURES = [Numeric("age", 18, 80), Binary("married"), Categorical("region", ["n", "s", "e"])]
SCHEMA = Schema(FEATURES, Numeric("income", 0, 200_000))
KEPT = ["age", "married", "region=n", "region=s"]


def propose(quorum: int, epsilon: float = 1.0, schema: Schema = SCHEMA) -> Agreement:
    return Agreement.propose(schema, epsilon=epsilon, delta=1e-6, quorum=quorum)


def people(count: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """As the formula assumes: independent, and 0.3 of the target's variance explained."""
    reach = math.sqrt(3 * SPREAD)
    age = generator.uniform(-reach, reach, count).clip(-1, 1)
    married = generator.integers(0, 2, count)
    region = generator.choice(["n", "s", "e"], count)
    parts = [age / age.std(), 2.0 * married - 1, ((region == "n") - 1 / 3) / math.sqrt(2 / 9)]
    line = sum(parts) * math.sqrt(EXPLAINED * SPREAD / 3)
    left = math.sqrt(3 * (1 - EXPLAINED) * SPREAD)
    income = (line + generator.uniform(-left, left, count)).clip(-1, 1)
    told = {"age": 18 + 31 * (age + 1), "married": married.astype(bool), "region": region}
    return told | {"income": 100_000 * (income + 1)}


def design(table: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    v = values(SCHEMA, table)
    return np.column_stack([np.ones(len(v)), v[:, :4]]), v[:, -1]


@pytest.mark.statistical
@pytest.mark.parametrize("quorum", [500, 2000, 16_000])
def test_simulated_collections_are_as_far_off(quorum: int) -> None:
    """30 of each: the formula is within a third of their root mean square."""
    agreement = propose(quorum)
    generator = np.random.default_rng(quorum)
    x, y = design(people(100_000, generator))
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    squares = []
    for _ in range(30):
        clean = exact_totals(agreement, people(quorum, generator))
        release = moments_of(agreement, sampler_for(agreement, clean).draw(generator))
        found = linear_bayes(release.joint.submodel("income", KEPT)).coefficients
        squares.append(np.mean((x @ (found - best)) ** 2))
    simulated = 100_000 * math.sqrt(float(np.mean(squares)))
    assert 0.67 < outlook(agreement).off / simulated < 1.5


def test_more_people_and_a_weaker_promise_bring_it_nearer() -> None:
    offs = [outlook(propose(quorum)).off for quorum in (300, 1000, 3000, 30_000)]
    assert offs == sorted(offs, reverse=True)
    offs = [outlook(propose(2000, epsilon)).off for epsilon in (0.1, 0.5, 1, 4)]
    assert offs == sorted(offs, reverse=True)
    promise = {"epsilon": 1.0, "delta": 1e-6, "quorum": 2000, "database_noise": True}
    assert outlook(Agreement.propose(SCHEMA, **promise)).off > outlook(propose(2000)).off
    found = outlook(propose(2000))
    assert found.without_privacy < found.off < found.spread
    # without privacy: √(coefficients/n) of what the model leaves open
    left = found.spread * math.sqrt(1 - EXPLAINED)
    assert found.without_privacy == pytest.approx(left * math.sqrt(5 / 2000), rel=0.15)
    assert found.spread == pytest.approx(100_000 * math.sqrt(SPREAD))


def test_what_it_takes() -> None:
    wanted = outlook(propose(3000)).off
    needed = people_needed(propose, wanted)
    assert needed is not None
    assert 0.97 * 3000 <= needed <= 1.03 * 3000
    epsilon = epsilon_needed(lambda one: propose(3000, one), wanted)
    assert epsilon is not None
    assert 0.97 <= epsilon <= 1.1
    assert epsilon_needed(lambda one: propose(30, one), 1e-3) is None
    assert people_needed(propose, 1e-9) is None


def test_sums_of_labels_and_classes_are_told_as_shares() -> None:
    label = outlook(propose(2000, schema=Schema(FEATURES, Binary("smokes"))))
    assert label.spread == pytest.approx(0.5)
    assert 0 < label.off < 0.5
    party = Categorical("party", ["red", "green", "blue", "none"])
    classes = outlook(propose(2000, schema=Schema(FEATURES, party)))
    assert classes.spread == pytest.approx(math.sqrt(3 / 16))
    assert 0 < classes.off < classes.spread
