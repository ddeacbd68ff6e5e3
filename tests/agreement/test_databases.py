from dataclasses import replace

import numpy as np
import pytest

from blurfit import Agreement, InfeasibleError, InvalidValueError, Numeric, Schema
from blurfit.agreement.numbers import coarsest_step
from blurfit.agreement.terms import Database, largest_steps, refuse_unless_shareable
from blurfit.errors import NotCertifiedError
from blurfit.messages.submissions import new_key, public_key

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
TWO = [("Office", "https://first.example"), ("University", "https://second.example:8443")]


def propose(**changes) -> Agreement:
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 20, "databases": TWO, "proofs": False}
    return Agreement.propose(SCHEMA, **promise | changes)


@pytest.mark.parametrize(
    "url",
    [
        *("https://a.example", "https://a.example:8443", "http://127.0.0.1:8000"),
        *("http://localhost", "http://[::1]:8080", "https://[2001:db8::1]"),
    ],
)
def test_addresses_that_are_origins(url: str) -> None:
    assert Database("Office", url).url == url


@pytest.mark.parametrize(
    "url",
    [
        *("http://a.example", "https://a.example/", "https://a.example/path", "https://A.example"),
        *("ftp://a.example", "https://", "a.example", "https://me@a.example"),
        *("https://a.example:0",),
        *("https://a.example:99999", "https://a.example:443", "http://localhost:80", 7, None),
        *("https://a.example ", "https://a.example\n", "http://10.0.0.1", "https://[::1"),
    ],
)
def test_other_addresses_are_refused(url) -> None:
    with pytest.raises(InvalidValueError, match="https"):
        Database("Office", url)


@pytest.mark.parametrize("name", ["", "  ", " Office", "two\nlines", "x" * 101, 7])
def test_names_are_one_line(name) -> None:
    with pytest.raises(InvalidValueError, match="name="):
        Database(name, "https://a.example")


@pytest.mark.parametrize(
    "databases",
    [
        TWO[:1],
        [*TWO, ("Third", "https://third.example")],
        [TWO[0], TWO[0]],
        [TWO[0], ("University", TWO[0][1])],
        [TWO[0], ("Office", TWO[1][1])],
    ],
)
def test_two_different_databases_are_needed(databases) -> None:
    with pytest.raises(InvalidValueError, match="two databases"):
        propose(databases=databases)


def test_shares_are_sealed_to_both_by_different_keys_or_to_neither() -> None:
    keys = [public_key(new_key()) for _ in range(2)]

    def sealed(*keys: str | None) -> Agreement:
        return propose(databases=[Database(*one, key) for one, key in zip(TWO, keys, strict=True)])

    again = Agreement.from_json(sealed(*keys).to_json())
    assert [one.key for one in again.databases] == keys
    for wrong in ((keys[0], None), (None, keys[1]), (keys[0], keys[0])):
        with pytest.raises(InvalidValueError, match="a different key for each"):
            sealed(*wrong)


@pytest.mark.parametrize(("databases", "draws"), [((), 1), (TWO, 2)])
def test_each_database_adds_the_noise_of_a_whole_honest_quorum(databases, draws) -> None:
    agreement = propose(databases=databases, database_noise=True)
    (part,) = agreement.parts
    assert (agreement.database_draws, propose().database_draws) == (draws, 0)
    deviations = agreement.database_ratios * part.step * np.sqrt(part.counts)
    assert deviations == pytest.approx(agreement.calibration.sigma)


def test_the_databases_are_part_of_the_contract() -> None:
    agreement = propose()
    assert agreement.trust == "shared"
    assert agreement.databases == tuple(Database(*one) for one in TWO)
    again = Agreement.from_json(agreement.to_json())
    again.verify(agreement.fingerprint)
    assert again == agreement
    prints = {
        propose(databases=given).fingerprint
        for given in (TWO, TWO[::-1], [TWO[0], ("University", "https://other.example")])
    }
    assert len(prints) == 3, "other databases, or another order, are another contract"


@pytest.mark.parametrize(
    "change",
    [
        {"trust": "one"},
        {"databases": [{"name": "Office", "url": "https://first.example"}]},
        {"databases": [{"name": "Office"}, {"name": "University"}]},
        {"databases": 7},
        {"databases": None},
        {"version": 2},
    ],
)
def test_damaged_documents_are_refused(change) -> None:
    with pytest.raises(InvalidValueError):
        Agreement.from_dict(propose().to_dict() | change).verify()


@pytest.mark.parametrize("quorum", [2, 20, 5000, 2**21, 10**9])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_noise_spans_the_grid_and_sums_stay_in_range(quorum, epsilon, neighbours) -> None:
    agreement = propose(quorum=quorum, epsilon=epsilon, neighbours=neighbours)
    agreement.verify()
    calibration, step = agreement.calibration, agreement.step
    (part,) = agreement.parts
    assert part.deviations.min() >= 1024 * step
    largest = largest_steps(calibration, step)
    assert largest * 2**32 < 2**63
    corners = agreement.exact({"age": [0, 0, 100, 100], "income": [0, 100, 0, 100]})
    reached = np.abs(corners).max() + 40 * part.deviations.max() + step
    assert largest * step >= reached


def test_grids_of_one_database_and_too_coarse_ones_are_refused() -> None:
    agreement = propose(quorum=2**21)
    calibration = agreement.calibration
    step = calibration.noise / 1000
    with pytest.raises(InfeasibleError, match="1024 steps"):
        refuse_unless_shareable(calibration, step)
    one = coarsest_step(calibration, size=agreement.form.size)  # as for one database
    assert one != agreement.step
    with pytest.raises(NotCertifiedError, match="step"):
        replace(agreement, step=one).verify()
    with pytest.raises(NotCertifiedError, match="step"):
        Agreement.from_dict(agreement.to_dict() | {"databases": []}).verify()
    with pytest.raises(InfeasibleError, match="local_epsilon"):
        propose(local_epsilon=1e-6, local_delta=1e-9)
