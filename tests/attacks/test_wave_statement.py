"""A plan's model must state the conditions and the promise of every wave, not those of the last."""

from dataclasses import replace

import numpy as np
import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.errors import NotCertifiedError
from blurfit.model.course import follows, learn_plan, next_agreement
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.model.statement import as_markdown
from blurfit.schema.schema import Numeric, Schema
from blurfit.theory.gaussian import epsilon_of
from blurfit.theory.maps import ResidualMap, Whitening

TERMS = {"epsilon": 2, "delta": 1e-6, "quorum": 1000}
WHITE = Whitening([0.0, 0.0], np.eye(2), [0.0, 0.0], 0.0)
SCHEMA = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)], Numeric("y", 0, 1))


def _learned(first: int, second: int) -> tuple[PublishedModel, list[PublishedMoments]]:
    plain = Plan.propose(SCHEMA, waves=2, epsilon=2, delta=1e-6, quorum=first + second)
    plan = Plan.of(SCHEMA, plain.terms, plain.task, plain.kinds, (first, second))
    generator = np.random.default_rng(0)
    releases: list[PublishedMoments] = []
    for quorum in plan.quorums:
        agreement = next_agreement(plan, releases)
        agreement.verify()
        a, b, e = generator.uniform(size=(3, quorum))
        exact = agreement.exact({"a": a, "b": b, "y": 0.3 * a + 0.5 * b + 0.1 * e})
        (part,) = agreement.parts
        noise = generator.normal(size=agreement.width) * part.deviations * np.sqrt(quorum)
        releases.append(PublishedMoments(agreement, quorum, exact.sum(axis=0) + noise))
    return learn_plan(plan, releases), releases


def test_the_statement_asks_for_enough_honest_people_in_every_wave():
    model, releases = _learned(300, 700)
    text = as_markdown(model)
    # With 700 honest people, all of them in wave 2, somebody in wave 1 has her own noise alone.
    alone = epsilon_of(releases[0].agreement.calibration.local.mu, 1e-6)
    assert alone > 60  # where the statement says ε = 2 under "at least 700 … were honest"
    assert "at least 270 in wave 1 and 630 in wave 2 of" in text.split("## How")[0]


def test_the_statement_says_which_share_is_covered_and_who_draws_the_lot():
    model, _ = _learned(300, 700)
    text = " ".join(as_markdown(model).split())
    assert "released when at least 300 in wave 1 and 700 in wave 2 have taken part" in text
    assert "honest: if at most 10 % of any group collude. A lot decides" in text
    first = Plan.propose(SCHEMA, waves=2, admission="anyone", colluders=0, **TERMS).first()
    open_to_all = PublishedMoments(first, first.quorum, np.zeros(first.width))
    text = " ".join(as_markdown(open_to_all).split())
    assert "as many must be honest. Everybody's own coin decides" in text
    assert "whoever lies can choose their group" in text


def test_the_statement_tells_the_largest_mu_of_a_submission():
    model, releases = _learned(900, 100)
    mus = [release.agreement.calibration.local.mu for release in releases]
    assert mus[0] > 2.9 * mus[1]
    assert f"μ = {mus[0]:.4g}" in as_markdown(model)


def test_a_plan_that_states_other_noise_than_it_promises_is_refused():
    """Whoever changes the first wave's quorum, promise or noise alone, in a plan's own text."""
    document = Plan.propose(SCHEMA, waves=2, epsilon=2, delta=1e-6, quorum=1000).to_dict()
    waves = [
        {"kind": "joint", "quorum": 900, "honest": 810},
        {"kind": "residual", "quorum": 100, "honest": 90},
    ]
    for change, wrong in (
        ({"waves": waves}, "honest people"),
        ({"epsilon": 1.0}, "promise"),
        ({"neighbours": "zero-out"}, "promise"),
        ({"local_epsilon": 0.5, "local_delta": 1e-6}, r"local\.epsilon"),
        ({"local_delta": 1e-5}, r"local\.delta"),
    ):
        with pytest.raises(NotCertifiedError, match=f"first wave's {wrong}"):
            Plan.from_dict(document | change)
    less = document["calibration"] | {"sigma": document["calibration"]["sigma"] / 2}
    with pytest.raises(NotCertifiedError):
        Plan.from_dict(document | {"calibration": less}).first().verify()
    more = document["calibration"] | {"mu": document["calibration"]["mu"] / 2}
    with pytest.raises(NotCertifiedError, match="first wave's noise"):
        Plan.from_dict(document | {"calibration": more})


@pytest.mark.parametrize(
    "databases", [(), (("A", "https://a.example"), ("B", "https://b.example"))]
)
def test_what_a_map_was_made_of_is_an_assumption(databases):
    """A map with other digits is taken: there is room for what earlier submissions said."""
    plan = Plan.propose(SCHEMA, waves=2, databases=databases, proofs=False, **TERMS)
    first = PublishedMoments(plan.first(), plan.quorums[0], np.zeros(plan.first().width))
    honest = plan.following((first.mark,), ResidualMap(WHITE, 1.0, 1.0, 1.0))
    document = honest.to_dict()
    document["wave"]["map"]["mean"][0] += 1.234567890123e-3
    altered = Agreement.from_dict(document)
    follows(plan, [first], altered)
    second = PublishedMoments(altered, plan.quorums[1], np.zeros(altered.width))
    for release in (first, second):
        text = " ".join(as_markdown(release).split())
        assert "follows from published sums alone" not in text
        assert "(its map) was made of published sums alone. Nobody can check that" in text
        assert ("is the database's word" in text) is not bool(databases)
        assert ("is A's word" in text) is bool(databases)
    held = as_markdown(replace(first, held=True)) if not databases else ""
    assert "its map" not in held
