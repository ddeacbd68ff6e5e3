"""The page is written from CSVs, marks made-up people, and shows what is there."""

from blurfit.experiments.beyond import ExcessRisk, PublicNumbers
from blurfit.experiments.facts import Facts
from blurfit.experiments.page import TITLES, write_page
from blurfit.experiments.plots import draw
from blurfit.experiments.runner import run
from blurfit.experiments.trials import read_csv


def test_the_page_shows_what_is_there(people, tmp_path) -> None:
    for experiment in (ExcessRisk(quorums=(128, 512)), PublicNumbers("noise", (128, 512))):
        path = run(experiment, people, trials=2, workers=1, out=tmp_path)
        draw(experiment.name, read_csv(path), path.with_suffix(".png"), "title")
    page = tmp_path / "docs" / "experiments.md"
    page.parent.mkdir()
    write_page(page, tmp_path, Facts(people.name, synthetic=True, rows=len(people), trials=2))
    text = page.read_text(encoding="utf-8")
    assert "The people are made up" in text
    assert "Do not edit" in text
    assert TITLES["risk"] in text
    assert TITLES["noise"] in text
    assert TITLES["fig1a"] not in text
    assert "figures/risk.png" in text
    assert (page.parent / "figures" / "noise.png").exists()
    write_page(page, tmp_path, Facts("a survey", synthetic=False, rows=len(people), trials=2))
    assert "Real people" in page.read_text(encoding="utf-8")
