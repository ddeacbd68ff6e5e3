"""The page is written from CSVs, marks made-up people, and shows what is there."""

import pytest

from blurfit_lab.experiments.beyond import MORE_LINES, ExcessRisk, PublicNumbers
from blurfit_lab.experiments.figures import LINES, MOMENT, NO_PRIVACY, WAVES
from blurfit_lab.experiments.page import ONE_PAGE, QUESTIONS, TITLES, write_page
from blurfit_lab.experiments.plots import draw
from blurfit_lab.experiments.runner import Provenance, Row, read_csv, run, write_csv

pytestmark = pytest.mark.usefixtures("short_chains")


def test_the_page_shows_what_is_there(people, tmp_path) -> None:
    for experiment in (ExcessRisk(quorums=(128, 512)), PublicNumbers("noise", (128, 512))):
        path = run(experiment, people, trials=2, workers=1, out=tmp_path)
        draw(experiment.name, read_csv(path), path.with_suffix(".png"), "title")
    page = tmp_path / "docs" / "experiments.md"
    page.parent.mkdir()
    write_page(page, tmp_path, Provenance(people.name, synthetic=True, rows=len(people), trials=2))
    text = page.read_text(encoding="utf-8")
    assert "The people are made up" in text
    assert "Do not edit" in text
    assert "Who is ahead" not in text  # nothing of it was run
    assert "(experiments-paper.md)" in text
    text = (page.parent / "experiments-paper.md").read_text(encoding="utf-8")
    assert "Do not edit" in text
    assert TITLES["risk"] in text
    assert TITLES["noise"] in text
    assert TITLES["fig1a"] not in text
    assert "figures/risk.png" in text
    assert "(experiments.md#how-it-was-measured)" in text
    assert (page.parent / "figures" / "noise.png").exists()
    write_page(page, tmp_path, Provenance("a survey", synthetic=False, rows=len(people), trials=2))
    assert "Real people" in page.read_text(encoding="utf-8")


def test_everything_has_a_question() -> None:
    asked = [name for question in QUESTIONS for name in question.experiments]
    assert sorted(asked) == sorted(ONE_PAGE)


def test_answers_and_tables_of_comparisons(tmp_path) -> None:
    """Made-up numbers: everybody's error is 0.2, and ours 0.19."""
    lines = (*LINES, *MORE_LINES)
    results = {
        "utility": [
            Row(line, problem, epsilon, 2**13, trial, (0.19 if line == WAVES else 0.2) + trial)
            for line in lines
            for problem in ("linear", "logistic")
            for epsilon in (0.1, 1.0)
            for trial in range(2)
        ],
        "reliability": [
            Row(line, variant, 1.0, 2**13, 0, 0.02)
            for line in (NO_PRIVACY, MOMENT, WAVES)
            for variant in ("predicted 03", "observed 03", "weight 03", "error")
        ],
    }
    for name, rows in results.items():
        write_csv(tmp_path / f"{name}.csv", rows)
        (tmp_path / f"{name}.png").write_bytes(b"a picture, which is copied")
    page = tmp_path / "page.md"
    other = tmp_path / "other"
    Provenance("somebody", synthetic=False, rows=100).write(other)
    write_csv(other / "utility.csv", results["utility"])
    write_page(page, tmp_path, Provenance("nobody", synthetic=True, rows=100, trials=2), [other])
    text = page.read_text(encoding="utf-8")
    assert "**waves** is ahead of every rival in 2 of 4 cells" in text
    assert "and behind in 2: output" in text  # an accuracy of 0.19 is worse than 0.2
    assert "On another population, somebody: **waves** is ahead of every rival in 2 of 4" in text
    assert "off by 0.020" in text
    rivals = (tmp_path / "page-rivals.md").read_text(encoding="utf-8")
    assert "| linear | 0.1 | 2¹³ | output (Laplace) | +0.01000 ± 0.00000 | 2 | ahead |" in rivals
    assert "Trials: 2." in rivals
    assert "## Elsewhere: somebody\n\n100 rows of real people" in rivals
    assert (tmp_path / "figures" / "utility.png").read_bytes() == b"a picture, which is copied"
    assert "calibration error" in (tmp_path / "page-probabilities.md").read_text(encoding="utf-8")
