"""Sections belong to experiments; what they tell is tested in `test_page`."""

from blurfit_lab.experiments.page import EXPERIMENTS, SECTIONS, TITLES


def test_every_section_has_a_title_and_an_experiment() -> None:
    assert set(SECTIONS) == set(TITLES) <= set(EXPERIMENTS)
