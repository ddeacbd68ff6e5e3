"""What is shown must not say more than what was promised for it."""

import re
from dataclasses import replace

from rich.console import Console

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.statement import either_in_words, together_in_words
from blurfit.cli._reports import agreement_report
from blurfit.schema.schema import Numeric, Schema

SCHEMA = Schema([Numeric(f"x{i}", -1, 1) for i in range(6)], Numeric("y", -1, 1))


def test_at_most_is_rounded_up():
    agreement = Agreement.propose(SCHEMA, epsilon=1.000004, delta=1e-6, quorum=1003)
    local = agreement.calibration.local
    words = together_in_words(local)
    stated = float(words.split("μ = ")[1].split()[0])
    assert stated >= local.mu, (stated, local.mu)


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
