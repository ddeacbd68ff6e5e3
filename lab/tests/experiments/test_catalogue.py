"""Every experiment has a name, a picture and a section."""

from blurfit_lab.experiments.page import EXPERIMENTS, ONE_PAGE, PAPER, SECTIONS, TITLES


def test_names() -> None:
    assert PAPER == ("fig1a", "fig1b", "fig2a", "fig2b")
    assert set(ONE_PAGE) == set(TITLES) == set(SECTIONS)
    assert set(EXPERIMENTS) - set(ONE_PAGE) == {"rivals2026"}
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())
