"""Each rule refuses what it is about, and names the value."""

import pytest

from blurfit.agreement.databases import Database
from blurfit.agreement.terms import (
    LEAST_DELTA,
    MOST_EPSILON_BEHIND_NOISE,
    require_database_noise,
    require_delta,
    require_digest,
    require_proofs,
    require_sends,
    require_signing_keys,
)
from blurfit.errors import InvalidValueError

TWO = (Database("A", "https://a.example"), Database("B", "https://b.example"))


def test_what_is_in_order_passes() -> None:
    require_delta(LEAST_DELTA)
    require_database_noise(True, MOST_EPSILON_BEHIND_NOISE)
    require_database_noise(False, 10 * MOST_EPSILON_BEHIND_NOISE)
    require_digest(None)
    require_digest("0a" * 32)
    require_sends("everything", None)
    require_sends("targets", "0a" * 32)
    assert require_proofs(True, databases=TWO)
    assert not require_proofs(False, databases=())
    require_signing_keys((), databases=TWO)


@pytest.mark.parametrize(
    ("rule", "arguments", "message"),
    [
        (require_delta, (1e-31,), "delta=1e-31"),
        (require_database_noise, (1, 1.0), "database_noise=1"),
        (require_database_noise, (True, 501.0), r"epsilon=501\.0"),
        (require_digest, ("0A" * 32,), "lower case"),
        (require_digest, (b"0a" * 32,), "SHA-256"),
        (require_sends, ("nothing", None), "sends='nothing'"),
        (require_sends, ("targets", None), "public_rows with sends='targets'"),
    ],
)
def test_everything_else_is_refused(rule, arguments, message) -> None:
    with pytest.raises(InvalidValueError, match=message):
        rule(*arguments)


def test_proofs_and_keys_are_for_the_databases_that_there_are() -> None:
    with pytest.raises(InvalidValueError, match="proofs='yes'"):
        require_proofs("yes", databases=TWO)
    with pytest.raises(InvalidValueError, match="two databases with proofs=True"):
        require_proofs(True, databases=())
    with pytest.raises(InvalidValueError, match="signing key"):
        require_signing_keys(("00" * 32,), databases=())
