"""Every experiment has a name, a picture and a section."""

from blurfit.experiments.catalogue import EXPERIMENTS, PAPER
from blurfit.experiments.page import TITLES


def test_names() -> None:
    assert PAPER == ("fig1a", "fig1b", "fig2a", "fig2b")
    assert set(EXPERIMENTS) == set(TITLES)
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())
