"""Numbers beyond the paper's figures, against the note on its mathematics."""

import pytest

from blurfit_lab.experiments.beyond import BIASED, DEBIASED, ExcessRisk, LocalTarget, PublicNumbers
from blurfit_lab.experiments.figures import INPUT, NO_PRIVACY, PUBLISHED_INPUT
from blurfit_lab.experiments.standings import Key, means

pytestmark = pytest.mark.usefixtures("short_chains")


def test_excess_risk_is_positive_and_falls(people) -> None:
    experiment = ExcessRisk(quorums=(128, 2048))
    found = means(
        row for cell in experiment.cells(people, 4) for row in experiment.compute(people, cell, {})
    )
    assert all(mean.value > 0 for mean in found.values())
    for key, mean in found.items():
        if key.n == 2048 and key.epsilon == 1.0:
            assert mean.value < found[Key(key.line, "", 1.0, 128)].value


def test_public_numbers_are_those_of_the_note(people) -> None:
    """n = 2²¹, δ = 0.01, d = 14, R_q = R_p = η = 1."""
    found = means(PublicNumbers("noise", (2**21,)).compute(people, "all", {}))

    def value(line: str, variant: str, epsilon: float) -> float:
        return found[Key(line, variant, epsilon, 2**21)].value

    assert value(PUBLISHED_INPUT, "sigma_b", 0.1) == pytest.approx(139.0, abs=0.1)
    assert value(INPUT, "sigma_b", 0.1) == pytest.approx(36.49, abs=0.01)
    assert value(PUBLISHED_INPUT, "sigma_b", 1.0) == pytest.approx(14.41, abs=0.01)
    assert value(INPUT, "sigma_b", 1.0) == pytest.approx(6.99, abs=0.01)
    assert value(PUBLISHED_INPUT, "Corollary 1", 0.1) == pytest.approx(2.1e3, rel=0.05)
    assert value(PUBLISHED_INPUT, "exact local epsilon", 0.1) == pytest.approx(2.1e5, rel=0.05)


def test_a_local_target_costs_and_debiasing_is_another_model(people) -> None:
    experiment = LocalTarget(quorums=(2048,))
    cells = experiment.cells(people, 3)
    assert len(cells) == 5
    found = means(
        row for cell in (cells[0], cells[-1]) for row in experiment.compute(people, cell, {})
    )
    plain = found[Key(NO_PRIVACY, "1", 1.0, 2048)].value
    assert found[Key(DEBIASED, "1", 1.0, 2048)].value > plain
    biased = found[Key(BIASED, "16", 1.0, 2048)].value
    assert biased < found[Key(BIASED, "1", 1.0, 2048)].value + 0.1
