"""Terms: what a forecast says of choices before anyone is asked."""

import pytest

from blurfit import Agreement, InfeasibleError
from blurfit.forecast import choices as module
from blurfit.forecast.choices import advise
from blurfit.forecast.population import Population
from blurfit.forecast.sweep import propose_terms
from blurfit.simulation import make_census


@pytest.fixture(scope="module")
def census():
    return make_census(40_000, seed=1)


@pytest.fixture(scope="module")
def people(census) -> Population:
    return Population.of_table(census.schema, census.table, census.name)


@pytest.fixture(autouse=True)
def shorter_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of what a search gains, it gains early, and all candidates meet the same luck."""
    monkeypatch.setattr(module, "EVALUATIONS", 20)
    monkeypatch.setattr(module, "TUNING_DRAWS", 12)


@pytest.mark.parametrize(
    ("mechanism", "gain", "names"),
    [("moment", 1.005, {"constant", "weights"}), ("input", 1.01, {"weight_bound", "split", "l2"})],
)
def test_chosen_terms_lower_the_error(census, people, mechanism, gain: float, names) -> None:
    found = advise(
        census.schema, people, contributors=2048, epsilon=1.0, mechanism=mechanism, seed=3
    )
    assert found.before.error / found.after.error > gain
    assert set(found.terms) == names
    asked = propose_terms(census.schema, mechanism, 1.0, None, found.terms)
    Agreement.propose(census.schema, quorum=2048, **asked).verify()  # they are terms as any


def test_fixed_weights_stay_as_they_are_and_mistakes_are_named(census, people) -> None:
    names = [*(one.name for one in census.schema.features), census.schema.target.name]
    terms = {"weights": dict.fromkeys(names, 0.3)}
    asked = {"contributors": 2048, "epsilon": 1.0, "mechanism": "moment"}
    found = advise(census.schema, people, terms=terms, **asked)
    assert set(found.terms) <= {"constant"}
    with pytest.raises(InfeasibleError, match="nothing is left to try"):
        advise(census.schema, people, terms=terms | {"constant": 0.5}, **asked)
    with pytest.raises(InfeasibleError, match="quorum=10"):
        advise(census.schema, people, contributors=10, epsilon=1.0, mechanism="input")


def test_a_local_target_shares_its_budget_by_the_forecast(census, people) -> None:
    asked = {"contributors": 2**21, "epsilon": 10.0, "mechanism": "input", "local_epsilon": 8.0}
    found = advise(census.schema, people, terms={"weight_bound": 3.7}, seed=3, **asked)
    assert found.after.error <= found.before.error
    assert set(found.terms) <= {"l2", "split", "local_share"}
    assert found.after.submission_epsilon == pytest.approx(8)


def test_defaults_that_are_not_beaten_are_kept(census, people, monkeypatch) -> None:
    monkeypatch.setattr(module, "descend", lambda function, start, **_: start + 5.0)
    found = advise(census.schema, people, contributors=4000, epsilon=1.0, mechanism="moment")
    assert found.terms == {}
    assert found.before == found.after
