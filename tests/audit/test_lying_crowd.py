"""All others lie: without noise of the database the promise is broken, with it it holds."""

import pytest

from blurfit.audit import agreements
from blurfit.audit.agreements import audit_agreement, exact_mu, lying_crowd
from blurfit.theory.moments import total_deviation
from support.broken import small_agreement

TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))


@pytest.mark.parametrize(
    ("terms", "draws"),
    [({}, 0), ({"database_noise": True}, 1), ({"database_noise": True, "databases": TWO}, 2)],
)
def test_the_exact_privacy_of_the_one_honest_person(terms, draws) -> None:
    agreement = small_agreement(2, quorum=4, **terms)
    calibration = agreement.calibration
    found = exact_mu(agreement, lying_crowd(agreement))
    unknown = total_deviation(calibration.sigma, agreement.quorum, 1, draws)
    most = calibration.reach.sums / unknown
    assert 0.95 * most < found <= most
    assert (found <= calibration.mu) is bool(draws)


def test_both_are_shown(monkeypatch) -> None:
    """By the sums, of which models are made: those are few, and attacked all the same."""
    monkeypatch.setattr(agreements, "CHEAP", 150)
    plain, noisy = (small_agreement(2, quorum=4, database_noise=noise) for noise in (False, True))
    lying = {}
    for name, agreement in (("plain", plain), ("noisy", noisy)):
        found = audit_agreement(agreement, trials=100, confidence=0.9999, seed=3, liars=True)
        lying[name] = [one for one in found if one.pair == "all others lie"]
        assert len(lying[name]) == 2, "of the sums, and of the model"
        assert not any(one.broken for one in found if one.pair != "all others lie")
    assert any(one.broken for one in lying["plain"])
    assert not any(one.broken for one in lying["noisy"])
    promised = plain.epsilon
    assert max(one.audited for one in lying["plain"]) > promised
    assert max(one.audited for one in lying["noisy"]) <= promised
