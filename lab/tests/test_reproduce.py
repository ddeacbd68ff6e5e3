"""`blurfit-lab reproduce` from data to page, on made-up people."""

import pytest
from click.testing import CliRunner

from blurfit_lab.cli import main
from blurfit_lab.experiments.pages import EXPERIMENTS

SMALL = ["--trials", "2", "--workers", "1", "--rows", "5000"]


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("BLURFIT_DATA", str(tmp_path / "none"))


def invoke(*arguments: str):
    return CliRunner().invoke(main, ["reproduce", *arguments], catch_exceptions=False)


def test_from_nothing_to_a_plot(tmp_path) -> None:
    out = tmp_path / "out"
    result = invoke("fig1a", *SMALL, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == {"fig1a.csv", "fig1a.png", "provenance.json"}
    picture = (out / "fig1a.png").read_bytes()
    (out / "fig1a.png").unlink()
    again = invoke("fig1a", "--plot-only", "--out", str(out))
    assert again.exit_code == 0, again.output
    assert (out / "fig1a.png").read_bytes() == picture


def test_unknown_figures_and_missing_data_are_named(tmp_path) -> None:
    assert "fig9" in invoke("fig9").output
    result = invoke("fig1a", "--data", str(tmp_path / "nowhere"))
    assert result.exit_code == 2
    assert "nowhere" in result.output


def test_help_names_every_experiment() -> None:
    text = invoke("--help").output
    assert all(name in text for name in EXPERIMENTS)
