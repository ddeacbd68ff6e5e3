"""What the paper claims, against the note on its mathematics; its page and its pictures."""

import pytest

from blurfit import InvalidValueError
from blurfit_lab.experiments.figures import (
    BIASED,
    DEBIASED,
    INPUT,
    LINES,
    MOMENT,
    NO_PRIVACY,
    PUBLISHED_INPUT,
    ExcessRisk,
    LocalTarget,
    PublicNumbers,
)
from blurfit_lab.experiments.pages import EXPERIMENTS, PAPER, draw, means, power, slope, write_page
from blurfit_lab.experiments.runner import Provenance, Row, write_csv


def test_excess_risk_is_positive_and_falls(people) -> None:
    experiment = ExcessRisk(quorums=(128, 2048))
    found = means(
        row for cell in experiment.cells(people, 4) for row in experiment.compute(people, cell, {})
    )
    assert (found.value > 0).all()
    at = found.value.xs(1.0, level="epsilon").unstack("n")
    assert (at[2048] < at[128]).all()


def test_public_numbers_are_those_of_the_note(people) -> None:
    """n = 2²¹, δ = 0.01, d = 14, R_q = R_p = η = 1."""
    found = means(PublicNumbers(quorums=(2**21,)).compute(people, "all", {}))

    def value(line: str, variant: str, epsilon: float) -> float:
        return found.value[line, variant, epsilon, 2**21]

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
    plain = found.value[NO_PRIVACY, "1", 1.0, 2048]
    assert found.value[DEBIASED, "1", 1.0, 2048] > plain
    biased = found.value[BIASED, "16", 1.0, 2048]
    assert biased < found.value[BIASED, "1", 1.0, 2048] + 0.1


def made_up(name: str) -> list[Row]:
    """Rows like those of an experiment: everybody's value is about 0.2, input's a little less."""
    variants = {
        "risk": ("",),
        "noise": (
            *("sigma_b", "sigma_u", "exact local epsilon"),
            *("Corollary 1", "certified excess risk"),
        ),
        "target": ("1", "16"),
    }
    epsilons = (0.1, 1.0) if name in variants else (1.0 if name.endswith("b") else 0.1,)
    return [
        Row(line, variant, 1.0 if name == "target" else epsilon, n, trial, value + 1 / n)
        for line in ((PUBLISHED_INPUT, INPUT, MOMENT) if name == "noise" else LINES)
        for variant in variants.get(name, ("default", "tuned"))
        for epsilon in epsilons
        for n in (2**13, 2**17)
        for trial, value in enumerate((0.19, 0.21) if line == INPUT else (0.2, 0.23))
    ]


def test_the_page_has_every_table_and_says_whose_data_they_are(tmp_path) -> None:
    page = tmp_path / "docs" / "experiments.md"
    with pytest.raises(InvalidValueError, match="fig1a"):
        write_page(page, tmp_path, Provenance())
    for name in EXPERIMENTS:
        rows = made_up(name)
        write_csv(tmp_path / f"{name}.csv", rows)
        draw(name, rows, tmp_path / f"{name}.png", "made up")
        assert 2_000 < (tmp_path / f"{name}.png").stat().st_size < 100_000
    write_page(page, tmp_path, Provenance("nobody", synthetic=True, rows=100, trials=2))
    text = page.read_text(encoding="utf-8")
    assert "The people are made up" in text
    assert "| input (certified) | default | 0.2001 | 0.2000 |" in text
    assert "*Input approaches no privacy as n grows*: yes" in text
    assert "{" not in text
    for name in EXPERIMENTS:
        assert (page.parent / "figures" / f"{name}.png").exists()
    write_page(page, tmp_path, Provenance("a survey", synthetic=False, rows=100, trials=2))
    assert "Real people" in page.read_text(encoding="utf-8")


def test_pictures_are_the_same_each_time(tmp_path) -> None:
    for path in (tmp_path / "a.png", tmp_path / "b.png"):
        draw("fig1a", made_up("fig1a"), path, "made up")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_names_means_and_slopes() -> None:
    assert PAPER == ("fig1a", "fig1b", "fig2a", "fig2b")
    rows = [Row("a", "", 1.0, 128, trial, value) for trial, value in enumerate([1.0, 2.0, 3.0])]
    found = means([*rows, Row("b", "", 1.0, 128, 0, 5.0)])
    assert tuple(found.loc["a", "", 1.0, 128]) == pytest.approx((2.0, 1 / 3**0.5, 3))
    assert found.error["b", "", 1.0, 128] == 0.0
    assert slope([(1, 1.0), (10, 0.01), (100, 0.0001), (1000, -1.0)]) == pytest.approx(-2)
    assert (power(2**17), power(100)) == ("2¹⁷", "100")
