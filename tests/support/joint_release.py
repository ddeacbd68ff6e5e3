"""A release of people whose truth is known, for tests of what can be asked of one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from blurfit import Agreement, PublishedMoments, Schema
from blurfit.model.release import moments_of
from blurfit.simulation import exact_totals, sampler_for
from support.plans import FEATURES, TARGETS, people

__all__ = ["SCHEMA", "TRUTH", "drawn", "people", "release"]
SCHEMA = Schema(FEATURES, TARGETS["number"])
TRUTH = {"age": 300.0, "education": 1500.0, "region=south": 0.0, "region=west": 5000.0}


def release(
    count: int = 20_000, epsilon: float = 1.0, seed: int = 0, schema: Schema = SCHEMA
) -> PublishedMoments:
    """Blurred moments of so many of them."""
    return drawn(schema, people(count, seed), seed + 1, epsilon=epsilon)


def drawn(
    schema: Schema, table: Mapping[str, Any], seed: int | np.random.Generator, **terms: Any
) -> PublishedMoments:
    """Blurred moments of the people in a table, as many as the quorum, in one draw."""
    count = len(next(iter(table.values())))
    agreement = Agreement.propose(schema, **{"epsilon": 1, "delta": 1e-6, "quorum": count} | terms)
    totals = sampler_for(agreement, exact_totals(agreement, table))
    return moments_of(agreement, totals.draw(np.random.default_rng(seed)))
