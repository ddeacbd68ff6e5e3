"""Tables and means of a release with weights are those of the weighted people."""

import numpy as np
import pytest

from blurfit import Agreement, Binary, Categorical, Numeric, PublishedMoments, Schema
from blurfit.model.release import moments_of
from blurfit.simulation.sampler import exact_totals, sampler_for

FACTORS = {"a": 1.0, "b": 0.5, "c": 0.2}
SCHEMA = Schema(
    [Categorical("r", list(FACTORS)), Binary("e"), Numeric("x", 0, 1)], Numeric("y", 0, 1)
)


def released(epsilon: float) -> tuple[PublishedMoments, dict[str, np.ndarray], np.ndarray]:
    generator = np.random.default_rng(1)
    r, x = generator.integers(0, 3, 6000), generator.random(6000)
    people = {
        "r": np.array(list(FACTORS))[r],
        "e": generator.random(6000) < 0.3 + 0.3 * (r == 0),
        "x": x,
        "y": 0.1 + 0.2 * r + 0.3 * x,
    }
    agreement = Agreement.propose(
        SCHEMA, epsilon=epsilon, delta=1e-6, quorum=6000, weighting="r", factors=FACTORS
    )
    sampler = sampler_for(agreement, exact_totals(agreement, people))
    found = moments_of(agreement, sampler.draw(np.random.default_rng(2)))
    return PublishedMoments.from_json(found.to_json()), people, np.array([*FACTORS.values()])[r]


def test_every_answer_is_weighted() -> None:
    moments, people, weight = released(1e5)
    share = {one: weight[people["r"] == one].sum() / weight.sum() for one in FACTORS}
    assert moments.table("r").answer.values == pytest.approx(list(share.values()), abs=2e-3)
    yes = np.average(people["e"], weights=weight)
    assert moments.mean("e").answer.values == pytest.approx([yes], abs=2e-3)
    assert moments.mean("y").answer.values == pytest.approx(
        [np.average(people["y"], weights=weight)], abs=2e-3
    )
    cells = [
        weight[(people["r"] == one) & (people["e"] == answer)].sum() / weight.sum()
        for one in FACTORS
        for answer in (True, False)
    ]
    assert moments.table("r", "e").answer.values == pytest.approx(cells, abs=3e-3)
    effective = weight.sum() ** 2 / np.sum(weight**2)
    assert moments.joint.count == pytest.approx(effective, rel=1e-2)
    assert moments.fit("y ~ x").inference[0].count == moments.joint.count
    assert "weighted (0.57 on average)" in str(moments.describe())


def test_all_of_it_is_told_with_noise_too() -> None:
    """Seen before: rounding made a variance of 0 negative, and shares of a yes were refused."""
    moments, people, weight = released(2.0)
    for found, true in (
        (moments.mean("e"), np.average(people["e"], weights=weight)),
        (moments.mean("y"), np.average(people["y"], weights=weight)),
    ):
        row = found.to_frame().iloc[0]
        assert abs(row["estimate"] - true) < 5 * row["standard_error"]
    assert moments.table("r", "e").test().p_value < 1e-4
