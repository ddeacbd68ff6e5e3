"""Goals are compared in the right direction, and leads by pairs of trials."""

from blurfit_lab.experiments.figures import MOMENT, NO_PRIVACY, OBJECTIVE, OUTPUT, WAVES
from blurfit_lab.experiments.runner import Row
from blurfit_lab.experiments.standings import (
    GOALS,
    PRIVATE_RIVALS,
    Goal,
    Key,
    Mean,
    goals_table,
    leads,
    standings,
    verdict,
)


def test_goals() -> None:
    found = {}
    for line, value in ((NO_PRIVACY, 0.2), (MOMENT, 0.201)):
        found[Key(line, "linear", 1.0, 2**13)] = Mean(value, 0.001, 20)
        found[Key(line, "logistic", 1.0, 2**13)] = Mean(1 - value, 0.001, 20)
    assert Goal(MOMENT, "linear", 1.0, 2**13, 1.01).measured(found)[2]
    assert not Goal(MOMENT, "linear", 1.0, 2**13, 1.001).measured(found)[2]
    assert Goal(MOMENT, "logistic", 1.0, 2**13, 0.79).measured(found)[2]
    assert not Goal(MOMENT, "logistic", 1.0, 2**13, 0.8).measured(found)[2]
    assert Goal(MOMENT, "logistic", 1.0, 2**13, -0.002).measured(found)[2]
    assert not Goal(MOMENT, "logistic", 1.0, 2**13, -0.0005).measured(found)[2]
    assert "| 20 | yes |" in goals_table(found)
    assert len(GOALS) == 31


def rows(problem: str, **values: tuple[float, ...]) -> list[Row]:
    names = {"waves": WAVES, "objective": OBJECTIVE, "output": OUTPUT}
    return [
        Row(names[name], problem, 1.0, 2**13, trial, value)
        for name, trials in values.items()
        for trial, value in enumerate(trials)
    ]


def test_leads_are_paired() -> None:
    # all trials differ much, and the pairs by nearly the same amount
    waves, objective = (0.1, 0.2, 0.3), (0.111, 0.210, 0.309)
    (cell,) = leads(
        WAVES, PRIVATE_RIVALS, rows("linear", waves=waves, objective=objective)
    ).values()
    assert [(one.rival, one.verdict, one.trials) for one in cell] == [(OBJECTIVE, "ahead", 3)]
    (cell,) = leads(
        WAVES, PRIVATE_RIVALS, rows("logistic", waves=waves, objective=objective)
    ).values()
    assert cell[0].verdict == "behind"
    (cell,) = leads(
        WAVES, PRIVATE_RIVALS, rows("linear", waves=waves, objective=(0.3, 0.2, 0.1))
    ).values()
    assert cell[0].verdict == "even"
    assert not leads(WAVES, PRIVATE_RIVALS, rows("linear", waves=waves, output=waves), 2**14)


def test_the_verdict_names_who_is_ahead_of_us() -> None:
    found = rows(
        "linear", waves=(0.1, 0.2, 0.3), objective=(0.09, 0.191, 0.289), output=(0.5, 0.6, 0.7)
    )
    assert "behind in 1: objective" in verdict(WAVES, found)
    assert "**behind**" in standings(WAVES, found)
    assert "ahead of **output (Laplace)** in 1 of 1" in verdict(WAVES, found, OUTPUT)
    assert "behind in none" in verdict(WAVES, found[:3] + found[6:])
