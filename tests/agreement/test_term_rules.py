"""Each rule refuses what it is about, and names the value."""

from dataclasses import replace

import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import (
    LEAST_DELTA,
    MOST_EPSILON_BEHIND_NOISE,
    Database,
    Terms,
    require_database_noise,
    require_delta,
    require_digest,
    require_signing_keys,
)
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.schema.schema import Numeric, Schema

PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 5000}
SCHEMA = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 200_000))
INPUT = {"mechanism": "input", "weight_bound": 2.0}
ROWS = "0a" * 32
TWO = (Database("A", "https://a.example"), Database("B", "https://b.example"))


def test_what_is_in_order_passes() -> None:
    require_delta(LEAST_DELTA)
    require_database_noise(True, MOST_EPSILON_BEHIND_NOISE)
    require_database_noise(False, 10 * MOST_EPSILON_BEHIND_NOISE)
    require_digest(None)
    require_digest("0a" * 32)
    require_signing_keys((), databases=TWO)


@pytest.mark.parametrize(
    ("rule", "arguments", "message"),
    [
        (require_delta, (1e-31,), "delta=1e-31"),
        (require_database_noise, (1, 1.0), "database_noise=1"),
        (require_database_noise, (True, 501.0), r"epsilon=501\.0"),
        (require_digest, ("0A" * 32,), "lower case"),
        (require_digest, (b"0a" * 32,), "SHA-256"),
    ],
)
def test_everything_else_is_refused(rule, arguments, message) -> None:
    with pytest.raises(InvalidValueError, match=message):
        rule(*arguments)


def test_proofs_and_keys_are_for_the_databases_that_there_are() -> None:
    with pytest.raises(InvalidValueError, match="proofs='yes'"):
        Terms(**PROMISE, databases=TWO, proofs="yes")
    with pytest.raises(InvalidValueError, match="signing key"):
        require_signing_keys(("00" * 32,), databases=())


@pytest.mark.parametrize(
    ("choices", "waves", "reason"),
    [
        (INPUT, True, "sums that are published"),
        (INPUT | {"databases": TWO}, False, "only what adds can be shared"),
        ({"proofs": True}, False, "how long a submission is"),
        ({"proofs": True, "databases": TWO}, True, "one wave alone, so far"),
        ({"sends": "targets"}, False, "public_rows with sends='targets'"),
        ({"sends": "targets", "public_rows": ROWS}, True, "features' own products"),
    ],
)
def test_what_cannot_be_had_together_is_refused_with_its_reason(choices, waves, reason) -> None:
    with pytest.raises(InfeasibleError, match=reason):
        (Plan if waves else Agreement).propose(SCHEMA, **PROMISE | choices)


@pytest.mark.parametrize(
    "change",
    [{"databases": TWO}, {"database_noise": True}, {"public_rows": ROWS}, {"proofs": True}],
)
def test_an_agreement_that_says_so_is_refused_too(change) -> None:
    with pytest.raises(InfeasibleError):
        replace(Agreement.propose(SCHEMA, **PROMISE, **INPUT), **change).verify()


def test_all_else_goes_together() -> None:
    """Public rows and noise of the databases with waves, at one database and at two."""
    for databases in ((), TWO):
        choices = {"databases": databases, "public_rows": ROWS, "database_noise": True}
        plan = Plan.propose(SCHEMA, waves=2, admission="anyone", **PROMISE, **choices)
        again = Plan.from_json(plan.to_json())
        assert again.first().public_rows == ROWS
        assert again.first().weights == Plan.propose(SCHEMA, waves=2, **PROMISE).first().weights
        again.verify()
