"""All experiments by name, in the order in which the page shows them."""

from blurfit_lab.experiments.beyond import ExcessRisk, LocalTarget, PublicNumbers
from blurfit_lab.experiments.figures import FIGURES
from blurfit_lab.experiments.head_to_head import RIVALS_2026
from blurfit_lab.experiments.reliability import Reliability
from blurfit_lab.experiments.rivals import RIVALS, UTILITY
from blurfit_lab.experiments.runner import Experiment

PAPER: tuple[str, ...] = tuple(figure.name for figure in FIGURES)

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *FIGURES,
        ExcessRisk(),
        PublicNumbers("noise"),
        LocalTarget(),
        RIVALS,
        UTILITY,
        Reliability(),
        RIVALS_2026,
    )
}

# What `blurfit-lab reproduce` runs if nothing is named, for docs/experiments.md; the head to head
# has a page of its own.
ONE_PAGE: tuple[str, ...] = tuple(name for name in EXPERIMENTS if name != RIVALS_2026.name)
