"""A release of people whose truth is known, for tests of what can be asked of one."""

import numpy as np

from blurfit import Agreement, Binary, Categorical, Numeric, PublishedMoments, Schema
from blurfit.model.release import moments_of
from blurfit.simulation.sampler import exact_totals, sampler_for

SCHEMA = Schema(
    features=[
        Numeric("age", 18, 90),
        Numeric("education", 0, 20),
        Categorical("region", ["north", "south", "west"]),
        Binary("married"),
    ],
    target=Numeric("income", 0, 100_000),
)
TRUTH = {"age": 300.0, "education": 1500.0, "region=south": 0.0, "region=west": 5000.0}


def people(count: int, seed: int) -> dict[str, np.ndarray]:
    """Incomes that are linear in the features, with even noise of 8,000."""
    generator = np.random.default_rng(seed)
    age, education = generator.uniform(18, 90, count), generator.integers(0, 21, count)
    region = generator.choice(["north", "south", "west"], count)
    married = generator.integers(0, 2, count)
    income = 8000 + 300 * age + 1500 * education + 5000 * (region == "west") + 3000 * married
    return {
        "age": age,
        "education": education,
        "region": region,
        "married": married,
        "income": np.clip(income + generator.normal(0, 8000, count), 0, 100_000),
    }


def release(
    count: int = 20_000, epsilon: float = 1.0, seed: int = 0, schema: Schema = SCHEMA
) -> PublishedMoments:
    """Blurred moments of so many of them."""
    agreement = Agreement.propose(schema, epsilon=epsilon, delta=1e-6, quorum=count)
    clean = exact_totals(agreement, people(count, seed))
    drawn = sampler_for(agreement, clean).draw(np.random.default_rng(seed + 1))
    return moments_of(agreement, drawn)
