"""On what the promise depends, in words, and why: the arithmetic of a crowd that lies."""

import math

import numpy as np
import pytest

from blurfit import Agreement
from blurfit.agreement.statement import counted_in_words, premise_in_words
from blurfit.contributor.blur import perturb_table
from blurfit.theory.gaussian import epsilon_of
from support.stores import SCHEMA

PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 2000}


@pytest.mark.parametrize("admission", ["invited", "anyone"])
def test_the_words_name_the_premise(admission) -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, admission=admission)
    words = premise_in_words(agreement)
    assert "2,000" in words
    assert ("Nobody can check" in words) is (admission == "anyone")
    assert ("invited" in words) is (admission == "invited")
    assert ("submissions" in counted_in_words(admission, 5)) is (admission == "anyone")


def test_with_other_submissions_of_no_noise_her_own_is_all_that_protects_her() -> None:
    """Why the premise is there: what is left is the noise of one, √quorum times too small."""
    agreement = Agreement.propose(SCHEMA, **PROMISE)
    calibration = agreement.calibration
    alone = epsilon_of(calibration.reach.sums / calibration.noise, calibration.model.delta)
    kept = epsilon_of(calibration.reach.sums / calibration.sigma, calibration.model.delta)
    assert kept <= 1.000001
    assert alone > 100
    assert calibration.noise == pytest.approx(calibration.sigma / math.sqrt(2000))
    record = {"age": [50.0] * 400, "income": [20.0] * 400}
    seen = perturb_table(agreement, record).numbers - agreement.exact(record)
    diagonal = np.asarray(agreement.form.counts) == 1
    spread = seen[:, diagonal].std()
    assert spread == pytest.approx(calibration.noise, rel=0.2)
