"""What attackers see is what contributors send and databases sum, by whichever way it is drawn."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from blurfit import Agreement, Numeric, Schema, Statistics, learn
from blurfit.audit import releases as module
from blurfit.audit.releases import (
    Crowd,
    Record,
    models,
    noise_scales,
    noiseless,
    packed_sums,
    submissions,
    sums,
)

SCHEMA = Schema([Numeric("a", -1, 1), Numeric("b", -1, 1)], Numeric("y", -1, 1), intercept=False)
RECORD = Record(np.array([0.6, -0.8]), np.array([0.3, -0.4]))
MECHANISMS = pytest.mark.parametrize("mechanism", ["moment", "input"])


def agreement(mechanism) -> Agreement:
    return Agreement.propose(
        SCHEMA, epsilon=1, delta=1e-5, quorum=12, mechanism=mechanism, weight_bound=1.0
    )


@MECHANISMS
def test_submissions_are_the_record_and_noise_of_the_stated_scale(mechanism) -> None:
    made = agreement(mechanism)
    seen = (submissions(made, RECORD, 20_000) - noiseless(made, RECORD)) / noise_scales(made)
    assert np.abs(seen.mean(axis=0)).max() < 5 / np.sqrt(20_000)
    assert seen.std(axis=0) == pytest.approx(1, abs=0.03)


@pytest.mark.statistical
@MECHANISMS
def test_both_ways_of_drawing_the_crowd_agree(mechanism, monkeypatch) -> None:
    made, crowd = agreement(mechanism), Crowd(11, np.array([0.5, 0.0]))
    seen = []
    for affordable in (1e9, 0):
        monkeypatch.setattr(module, "NUMBERS_AFFORDABLE", affordable)
        gram, moment = sums(made, RECORD, crowd, 3000, np.random.default_rng(1))
        seen.append((gram[:, 0, 0], gram[:, 0, 1], np.linalg.det(gram), moment[:, 0]))
    for one, other in zip(*seen, strict=True):
        assert ks_2samp(one, other, method="asymp").pvalue > 1e-4


@pytest.mark.parametrize("affordable", [1e9, 0])
def test_sums_are_multiples_of_the_grid(affordable: float, monkeypatch) -> None:
    monkeypatch.setattr(module, "NUMBERS_AFFORDABLE", affordable)
    made = agreement("moment")
    seen = packed_sums(made, RECORD, Crowd(11, np.zeros(2)), 50, np.random.default_rng(1))
    assert not (seen[:, :3] % made.grid.quadratic).any()
    assert not (seen[:, 3:] % made.grid.linear).any()


@MECHANISMS
def test_models_are_what_the_database_publishes(mechanism, monkeypatch) -> None:
    made, crowd = agreement(mechanism), Crowd(11, np.zeros(2))
    kept = {}
    inner = module.sums

    def remember(*arguments):
        kept["sums"] = inner(*arguments)
        return kept["sums"]

    monkeypatch.setattr(module, "sums", remember)
    found = models(made, RECORD, crowd, 20, np.random.default_rng(1))
    for weights, gram, moment in zip(found, *kept["sums"], strict=True):
        assert (weights == learn(made, Statistics(12, gram, moment)).weights).all()
