"""Agreements that `propose` or `verify` lets pass, and that do not hold what they say."""

from dataclasses import replace

import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import PublicWeights
from blurfit.contributor.perturb import perturb
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError
from blurfit.schema.schema import Numeric, Schema

SCHEMA = Schema([Numeric("x", 0, 100)], Numeric("y", 0, 1))


@pytest.mark.xfail(strict=True, reason="the target's weight is written over the constant's")
def test_the_fingerprint_covers_the_constant_whatever_the_target_is_called():
    schema = Schema([Numeric("x", 0, 100)], Numeric("(intercept)", 0, 1))
    weights = {"x": 1.0, "(intercept)": 0.5}
    one = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=100, weights=weights, constant=1)
    other = replace(one, weights=PublicWeights(0.9, one.weights.columns))
    assert one.fingerprint != other.fingerprint
    Agreement.from_json(one.to_json()).verify()  # which refuses what was just proposed


@pytest.mark.xfail(strict=True, reason="12 digits are rounded to the nearest, so down as well")
def test_the_promise_is_not_rounded_down():
    agreement = Agreement.propose(SCHEMA, epsilon=1.0000000000004, delta=1e-6, quorum=100)
    agreement.verify()
    assert agreement.epsilon >= agreement.calibration.model.epsilon


@pytest.mark.xfail(strict=True, reason="canonical JSON ends at 2**53 - 1")
def test_the_largest_quorum_has_a_fingerprint():
    assert Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2**53).fingerprint


@pytest.mark.xfail(strict=True, reason="verify does not look at how many steps a number may have")
def test_whether_a_record_can_be_sent_does_not_depend_on_it():
    agreement = Agreement.propose(SCHEMA, epsilon=1e10, delta=1e-6, quorum=2**53 - 1)
    agreement.verify()
    perturb(agreement, {"x": 50, "y": 0.5})  # is sent
    try:
        perturb(agreement, {"x": 100, "y": 1})
    except InvalidValueError as error:
        pytest.fail(f"refused for its value: {error}")


@pytest.mark.xfail(strict=True, reason="the sampler's range is checked when a record is blurred")
def test_noise_that_nobody_can_draw_is_refused_beforehand():
    with pytest.raises(InfeasibleError):
        Agreement.propose(
            SCHEMA, epsilon=1, delta=1e-6, quorum=1000, local_epsilon=1e-9, local_delta=1e-12
        )


@pytest.mark.xfail(strict=True, reason="no lower bound on delta")
def test_a_delta_below_what_the_bits_are_worth_is_refused():
    """A submission's AES bits are at a distance of up to 1e-37 from chance (bits.words)."""
    with pytest.raises(BlurfitError):
        Agreement.propose(SCHEMA, epsilon=1, delta=1e-40, quorum=100).verify()


@pytest.mark.xfail(strict=True, reason="a list has no get", raises=AttributeError)
def test_what_is_no_mapping_is_refused_in_words():
    with pytest.raises(InvalidValueError):
        Agreement.from_dict([])


@pytest.mark.xfail(strict=True, reason="what is read is written anew before it is compared")
@pytest.mark.parametrize("change", [{"databases": ""}, {"databases": {}}])
def test_one_fingerprint_has_one_text(change):
    """Other readers, such as the page in a browser, may take the other text for something else."""
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=100)
    with pytest.raises(InvalidValueError):
        Agreement.from_document(agreement.to_document() | change)
