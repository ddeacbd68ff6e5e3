"""A release of people whose truth is known, for tests of what can be asked of one."""

import numpy as np

from blurfit import Agreement, PublishedMoments, Schema
from blurfit.model.release import moments_of
from blurfit.simulation.sampler import exact_totals, sampler_for
from support.plans import FEATURES, TARGETS, people

__all__ = ["SCHEMA", "TRUTH", "people", "release"]
SCHEMA = Schema(FEATURES, TARGETS["number"])
TRUTH = {"age": 300.0, "education": 1500.0, "region=south": 0.0, "region=west": 5000.0}


def release(
    count: int = 20_000, epsilon: float = 1.0, seed: int = 0, schema: Schema = SCHEMA
) -> PublishedMoments:
    """Blurred moments of so many of them."""
    agreement = Agreement.propose(schema, epsilon=epsilon, delta=1e-6, quorum=count)
    clean = exact_totals(agreement, people(count, seed))
    drawn = sampler_for(agreement, clean).draw(np.random.default_rng(seed + 1))
    return moments_of(agreement, drawn)
