"""All experiments by name, in the order in which the page shows them."""

from blurfit.experiments.beyond import ExcessRisk, LocalTarget, PublicNumbers
from blurfit.experiments.figures import FIGURES
from blurfit.experiments.rivals import RIVALS, UTILITY
from blurfit.experiments.runner import Experiment

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
    )
}
