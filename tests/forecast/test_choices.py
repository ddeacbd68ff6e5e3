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


def test_chosen_terms_lower_the_error(census, people) -> None:
    found = advise(census.schema, people, contributors=2048, epsilon=1.0, seed=3)
    assert found.before.error / found.after.error > 1.005
    assert set(found.terms) == {"constant", "weights"}
    asked = propose_terms(1.0, None, found.terms)
    Agreement.propose(census.schema, quorum=2048, **asked).verify()  # they are terms as any


def test_fixed_weights_stay_as_they_are_and_mistakes_are_named(census, people) -> None:
    names = [*(one.name for one in census.schema.features), census.schema.target.name]
    terms = {"weights": dict.fromkeys(names, 0.3)}
    asked = {"contributors": 2048, "epsilon": 1.0}
    found = advise(census.schema, people, terms=terms, **asked)
    assert set(found.terms) <= {"constant"}
    with pytest.raises(InfeasibleError, match="nothing is left to try"):
        advise(census.schema, people, terms=terms | {"constant": 0.5}, **asked)


def test_defaults_that_are_not_beaten_are_kept(census, people, monkeypatch) -> None:
    monkeypatch.setattr(module, "descend", lambda function, start, **_: start + 5.0)
    found = advise(census.schema, people, contributors=4000, epsilon=1.0)
    assert found.terms == {}
    assert found.before == found.after
