"""What was sent from an account: written down before it leaves, once, and added up exactly."""

import math

import pytest

from blurfit import About, Agreement, Numeric, Schema
from blurfit.contributor.account import Entry, Ledger, total
from blurfit.contributor.sending import blur_table
from blurfit.theory.gaussian import delta_of

TERMS = {"epsilon": 1, "delta": 1e-6, "quorum": 500}


def agreement(purpose: str | None = None, **terms) -> Agreement:
    schema = Schema(
        [Numeric("age", 0, 100)],
        Numeric("income", 0, 1000),
        about=About(purpose=purpose, organiser="The Office" if purpose else None),
    )
    return Agreement.propose(schema, **{**TERMS, **terms})


@pytest.fixture
def ledger(tmp_path, monkeypatch) -> Ledger:
    monkeypatch.setenv("BLURFIT_HOME", str(tmp_path / "home"))
    return Ledger()


def test_a_table_is_one_entry_however_often_it_is_run(ledger, tmp_path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("age,income\n" + "30,400\n" * 3)
    assert ledger.entries() == []
    agreed = agreement("health")
    for _ in range(2):
        blur_table(agreed, table, tmp_path / "blurred.arrow")
    (entry,) = ledger.entries()
    assert (entry.rows, entry.where, entry.title) == (3, "the file blurred.arrow", "income")
    assert (entry.organiser, entry.mu) == ("The Office", agreed.calibration.mu)
    assert "30" not in entry.purpose
    assert ledger.path.stat().st_mode & 0o077 == 0
    assert ledger.erase() == 1
    assert ledger.entries() == []


def test_the_same_purpose_under_another_agreement(ledger) -> None:
    first, second, other = agreement("health"), agreement("health", epsilon=2), agreement("wealth")
    ledger.note(Entry.of(first, 10, "there"), "journal")
    assert ledger.earlier(second).fingerprint == first.fingerprint
    assert ledger.earlier(first) is None
    assert ledger.earlier(other) is None
    assert ledger.earlier(agreement()) is None


def test_gaussian_promises_add_up_exactly() -> None:
    """√Σμ², by the profile: at the ε that is told, δ is the one asked for."""
    made = [agreement(str(n), epsilon=n) for n in (1, 2, 3)]
    entries = [Entry.of(one, 1, "") for one in made]
    (epsilon,) = total(entries).values()
    mu = math.sqrt(sum(one.calibration.mu**2 for one in made))
    assert delta_of(mu, epsilon) == pytest.approx(1e-6, rel=1e-4)
    assert delta_of(mu, epsilon) <= 1e-6
    assert 3 < epsilon < 6  # not 1 + 2 + 3


def test_waves_count_once_and_relations_are_told_apart() -> None:
    one = Entry.of(agreement("a"), 1, "")
    wave = Entry(**{**one.__dict__, "fingerprint": "other", "mu": 0.9 * one.mu})
    assert total([one, wave]) == total([one]) == total([wave, one])
    blank = Entry.of(agreement("a", neighbours="zero-out"), 1, "")
    assert set(total([one, blank])) == {"replace", "zero-out"}


def test_other_mechanisms_add() -> None:
    plain = Entry.of(agreement("a", mechanism="input", weight_bound=1, delta=1e-7), 1, "")
    twice = Entry(**{**plain.__dict__, "once": "other"})
    assert plain.mu is None
    assert total([plain, twice]) == {"replace": pytest.approx(2 * plain.epsilon)}
    assert total([plain], delta=1e-8) == {"replace": math.inf}
