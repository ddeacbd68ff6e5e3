"""What an agreement refuses, one rule a test."""

import math
from dataclasses import replace

import numpy as np
import pytest

from blurfit import Agreement, Numeric, Schema
from blurfit.agreement.agreement import refuse_unless_blurrable
from blurfit.agreement.numbers import promised_in_all
from blurfit.errors import InfeasibleError, NotCertifiedError

SCHEMA = Schema([Numeric("x", 0, 1)], Numeric("y", 0, 1))
INPUT = {"epsilon": 1, "delta": 1e-6, "quorum": 500, "mechanism": "input", "weight_bound": 2.0}


def test_what_is_promised_is_never_less_than_what_is_kept() -> None:
    generator = np.random.default_rng(1)
    for kept in 10 ** generator.uniform(-9, 3, 2000):
        for share in (0.0, 1e-3, 2.0**-10):
            found = promised_in_all(kept, share)
            assert found * (1 - share) >= kept * (1 - 1e-15)
            assert found == pytest.approx(kept / (1 - share), rel=1.1e-11)
    assert promised_in_all(1.0 * (1 - 1e-3), 1e-3) == 1.0


def test_the_papers_rule_is_refused_and_the_theorem_is_not() -> None:
    Agreement.propose(SCHEMA, **INPUT).verify()
    published = Agreement.propose(SCHEMA, **INPUT, rule="published")
    published.verify(allow_unproved=True)
    with pytest.raises(NotCertifiedError, match="is what is proved"):
        published.verify()


@pytest.mark.parametrize("bound", ["q_bound", "p_bound"])
def test_noise_for_shorter_records_is_refused(bound) -> None:
    agreement = Agreement.propose(SCHEMA, **INPUT)
    short = replace(agreement.calibration.setting, **{bound: 0.999})
    with pytest.raises(NotCertifiedError, match=bound):
        replace(agreement, calibration=replace(agreement.calibration, setting=short)).verify()
    other = Schema([Numeric("x", 0, 1), Numeric("z", 0, 1)], Numeric("y", 0, 1))
    with pytest.raises(NotCertifiedError, match="dimension"):
        replace(agreement, schema=other).verify()


def test_numbers_and_noise_must_fit_their_steps() -> None:
    (part,) = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=500).parts
    refuse_unless_blurrable((part,))
    with pytest.raises(InfeasibleError, match="fewer than"):
        refuse_unless_blurrable((replace(part, bound=2.0**52 * part.step),))
    for factor in (2.0**60, 2.0**-60, math.nan):
        with pytest.raises(InfeasibleError, match="draw it exactly"):
            refuse_unless_blurrable((replace(part, deviations=part.deviations * factor),))
