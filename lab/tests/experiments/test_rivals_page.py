"""The head to head's text and picture, from made-up rows."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from blurfit_lab.experiments.figures import CERTIFIED_OBJECTIVE, MOMENT
from blurfit_lab.experiments.head_to_head import LINES, PRIVATE_MEAN, PUBLIC_FEATURES, WAVES
from blurfit_lab.experiments.plots import (
    BEGIN,
    END,
    NAME,
    draw,
    draw_rivals,
    measured_text,
    write_rivals_page,
)
from blurfit_lab.experiments.runner import Provenance, Row, write_csv


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    return [
        Row(line, f"{data}, {relation}", epsilon, 100, trial, generator.uniform(0.2, 0.21))
        for data in ("yacht", "solar")
        for relation in ("replace", "zero-out")
        for epsilon in (0.1, 1.0)
        for trial in range(8)
        for line in LINES
        if line not in (PUBLIC_FEATURES, CERTIFIED_OBJECTIVE)
    ]


def test_the_text_answers_first(rows) -> None:
    better = [
        Row(r.line, r.variant, r.epsilon, r.n, r.trial, r.value * (0.5 if r.line == MOMENT else 1))
        for r in rows
    ]
    text = measured_text(better, Provenance("a survey", synthetic=False, rows=9, trials=8))
    assert f"blurfit-lab reproduce {NAME} --trials 8" in text
    assert "2 sets (yacht, solar; the people are real)" in text
    assert text.index("zero-out, their relation") < text.index("replace, ours")
    assert "| numbers, zero-out | moment |" in text
    assert "| 4 / 0 / 0 | 0 (0) of 4 | 0 (0) of 4 |" in text
    assert "| yacht | moment |" in text
    assert f"| {WAVES} |" in text
    assert PUBLIC_FEATURES not in text  # nobody ran it
    assert PRIVATE_MEAN in text


def test_labels_have_a_section_of_their_own(rows) -> None:
    labels = [Row(r.line, r.variant.replace("yacht", "Adult 2¹³, income"), *_rest(r)) for r in rows]
    text = measured_text(labels, Provenance("a survey", synthetic=False, rows=9, trials=8))
    assert text.index("### Numbers: replace") < text.index("### Labels: zero-out")
    assert "Share of mistakes" in text


def test_the_picture_is_of_all_sets(rows) -> None:
    figure = Figure()
    draw_rivals(figure, rows)
    assert figure.get_suptitle() == f"{NAME} · 2 sets"


def _rest(row: Row) -> tuple[float, int, int, float]:
    return row.epsilon, row.n, row.trial, row.value


def test_the_page_keeps_what_people_wrote(rows, tmp_path) -> None:
    write_csv(tmp_path / f"{NAME}.csv", rows)
    draw(NAME, rows, tmp_path / f"{NAME}.png", "made up")
    page = tmp_path / "docs" / "rivals.md"
    page.parent.mkdir()
    page.write_text(f"# Rivals\n\n{BEGIN}\noutdated\n{END}\n\nBelow.\n", encoding="utf-8")
    facts = Provenance("made-up people", synthetic=True, rows=9, trials=8)
    write_rivals_page(page, tmp_path, facts)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Rivals\n")
    assert text.endswith("\n\nBelow.\n")
    assert "outdated" not in text
    assert "made up" in text
    write_rivals_page(page, tmp_path, facts)
    assert page.read_text(encoding="utf-8") == text
    picture = page.parent / "figures" / f"{NAME}.png"
    assert 2_000 < picture.stat().st_size < 100_000
