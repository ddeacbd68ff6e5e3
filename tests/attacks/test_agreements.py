"""Agreements that `propose` or `verify` lets pass, and that do not hold what they say."""

import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError
from blurfit.schema.schema import Numeric, Schema

SCHEMA = Schema([Numeric("x", 0, 100)], Numeric("y", 0, 1))


def test_no_column_takes_the_constants_name():
    """Else its weight would be written over the constant's: two contracts, one fingerprint."""
    with pytest.raises(InvalidValueError, match="twice"):
        Schema([Numeric("x", 0, 100)], Numeric("(intercept)", 0, 1))


def test_the_promise_is_not_rounded_down():
    agreement = Agreement.propose(SCHEMA, epsilon=1.0000000000004, delta=1e-6, quorum=100)
    agreement.verify()
    assert agreement.epsilon >= agreement.calibration.model.epsilon


def test_the_largest_quorum_has_a_fingerprint():
    assert Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2**53 - 1).fingerprint
    with pytest.raises(InvalidValueError, match="below"):
        Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2**53)


def test_whether_a_record_can_be_sent_does_not_depend_on_it():
    """Numbers of more steps than can be added exactly are refused before any record is read."""
    with pytest.raises(InfeasibleError, match="fewer than"):
        Agreement.propose(SCHEMA, epsilon=1e10, delta=1e-6, quorum=2**53 - 1)


def test_noise_that_nobody_can_draw_is_refused_beforehand():
    with pytest.raises(InfeasibleError):
        Agreement.propose(
            SCHEMA, epsilon=1, delta=1e-6, quorum=1000, local_epsilon=1e-9, local_delta=1e-12
        )


def test_a_delta_below_what_the_bits_are_worth_is_refused():
    """A submission's AES bits are at a distance of up to 1e-37 from chance (bits.words)."""
    with pytest.raises(BlurfitError):
        Agreement.propose(SCHEMA, epsilon=1, delta=1e-40, quorum=100).verify()


def test_what_is_no_mapping_is_refused_in_words():
    with pytest.raises(InvalidValueError):
        Agreement.from_dict([])


@pytest.mark.parametrize("change", [{"databases": ""}, {"databases": {}}])
def test_one_fingerprint_has_one_text(change):
    """Other readers, such as the page in a browser, may take the other text for something else."""
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=100)
    with pytest.raises(InvalidValueError):
        Agreement.from_document(agreement.to_document() | change)
