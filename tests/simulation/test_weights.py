"""The short way to a model's weights against `learn`."""

import numpy as np
import pytest

from blurfit import Agreement, Categorical, Numeric, Schema, learn
from blurfit.simulation.sampler import exact_totals, sampler_for, weights_of

FEATURES = [Numeric("a", -1, 1), Numeric("b", 0, 5), Categorical("c", ["x", "y", "z"])]
SCHEMAS = {
    "number": Schema(FEATURES, Numeric("y", -1, 1)),
    "label": Schema(FEATURES, Numeric("y", -1, 1).above(0)),
    "classes": Schema(FEATURES[:2], FEATURES[2]),
}


def people(count: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    a, b = generator.uniform(-1, 1, count), generator.uniform(0, 5, count)
    y = np.clip(0.4 * a - 0.1 * b + generator.normal(0, 0.2, count), -1, 1)
    return {"a": a, "b": b, "y": y, "c": generator.choice(["x", "y", "z"], count)}


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize(("mechanism", "quorum"), [("moment", 40), ("moment", 900), ("input", 900)])
def test_the_weights_are_those_that_would_be_published(kind: str, mechanism: str, quorum) -> None:
    if (kind, mechanism) == ("classes", "input"):
        pytest.skip("input has no classes")
    bound = {"weight_bound": 2.0} if mechanism == "input" else {}
    agreement = Agreement.propose(
        SCHEMAS[kind], epsilon=8, delta=1e-3, quorum=quorum, mechanism=mechanism, **bound
    )
    sampler = sampler_for(agreement, exact_totals(agreement, people(quorum)))
    totals = sampler.draw(np.random.default_rng(2))
    model = learn(agreement, totals)
    assert np.array_equal(weights_of(agreement, totals), model.weights)
    sampled = model.method.endswith("to the posterior mean")
    assert sampled == (quorum == 40)
    quick = weights_of(agreement, totals, sampled=False)
    assert np.array_equal(quick, model.weights) == (not sampled)
