"""What is shown must not say more than what was promised for it."""

import re
from dataclasses import replace

import numpy as np
from rich.console import Console

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.statement import either_in_words, relation_in_words, together_in_words
from blurfit.cli._reports import agreement_facts, agreement_report, doubts
from blurfit.model.release import released_weights, statistics_of
from blurfit.schema.schema import Numeric, Schema
from blurfit.simulation import exact_totals, sampler_for

SCHEMA = Schema([Numeric(f"x{i}", -1, 1) for i in range(6)], Numeric("y", -1, 1))


def test_released_weights_have_no_signed_zeros():
    """Their sign is no part of the lattice that the grid pays for, and `Release.mark` ignores it:
    two releases with one mark may show different bytes.
    """
    agreement = Agreement.propose(
        SCHEMA, epsilon=50, delta=1e-3, quorum=2000, mechanism="input", weight_bound=1.0, l1=500.0
    )
    generator = np.random.default_rng(0)
    records = {f"x{i}": generator.uniform(-1, 1, 2000) for i in range(6)}
    records["y"] = generator.uniform(-0.01, 0.01, 2000)
    totals = sampler_for(agreement, exact_totals(agreement, records)).draw(generator)
    weights = released_weights(agreement, statistics_of(agreement, totals))
    assert not np.signbit(weights[weights == 0]).any()


def test_at_most_is_rounded_up():
    agreement = Agreement.propose(SCHEMA, epsilon=1.000004, delta=1e-6, quorum=1003)
    local = agreement.calibration.local
    words = together_in_words(local)
    stated = float(words.split("μ = ")[1].split()[0])
    assert stated >= local.mu, (stated, local.mu)


def test_blanking_out_is_told_for_both_mechanisms():
    """Under 'moment' nobody sends q and p: u = 0, and the constant and N stay."""
    assert "q = 0" not in relation_in_words("zero-out")


def test_every_number_of_a_promise_is_rounded_up(capsys):
    """In words, reports and representations, as in a release's own papers."""
    databases = [("A", "https://a.example"), ("B", "https://b.example")]
    terms = {"epsilon": 1.0000004, "delta": 1.0000004e-6, "quorum": 20_000}
    agreement = Agreement.propose(SCHEMA, databases=databases, **terms)
    Console(width=10_000).print(agreement_report(agreement))
    plan = Plan.propose(SCHEMA, waves=2, **terms)
    told = [either_in_words(agreement), repr(agreement), repr(plan), capsys.readouterr().out]
    for text in told:
        assert {"1.00001", "1.00001e-06"} <= set(re.findall(r"[0-9.]+(?:e-[0-9]+)?", text)), text
    local = replace(agreement.calibration.local, delta=1.234e-6)
    assert "δ = 1.24e-06" in together_in_words(local)


def test_an_agreement_that_is_not_proved_shows_no_number():
    """Nor does the condition for scripts speak of what would be needed for a promise."""
    agreement = Agreement.propose(
        SCHEMA,
        epsilon=3,
        delta=1e-3,
        quorum=2000,
        mechanism="input",
        weight_bound=1.0,
        rule="published",
    )
    assert "input, nothing is promised, quorum" in repr(agreement)
    assert agreement_facts(agreement)["condition"].startswith("Nothing is promised.")
    assert not [one for one in doubts(agreement) if "ε" in one or "δ" in one]
