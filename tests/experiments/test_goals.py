"""Goals are compared in the right direction."""

from blurfit.experiments.goals import GOALS, Goal, goals_table, losses_against, standings
from blurfit.experiments.methods import INPUT, MOMENT, NO_PRIVACY, OBJECTIVE
from blurfit.experiments.summary import Key, Mean


def results(**values: float):
    """Linear RMSE at ε = 1 and n = 2¹³ of each line, and its accuracy as one less that."""
    names = {"none": NO_PRIVACY, "input": INPUT, "moment": MOMENT, "objective": OBJECTIVE}
    found = {}
    for name, value in values.items():
        found[Key(names[name], "linear", 1.0, 2**13)] = Mean(value, 0.001, 20)
        found[Key(names[name], "logistic", 1.0, 2**13)] = Mean(1 - value, 0.001, 20)
    return found


def test_goals() -> None:
    found = results(none=0.2, moment=0.201)
    assert Goal(MOMENT, "linear", 1.0, 2**13, 1.01).measured(found)[2]
    assert not Goal(MOMENT, "linear", 1.0, 2**13, 1.001).measured(found)[2]
    assert Goal(MOMENT, "logistic", 1.0, 2**13, 0.79).measured(found)[2]
    assert not Goal(MOMENT, "logistic", 1.0, 2**13, 0.8).measured(found)[2]
    assert Goal(MOMENT, "logistic", 1.0, 2**13, -0.002).measured(found)[2]
    assert not Goal(MOMENT, "logistic", 1.0, 2**13, -0.0005).measured(found)[2]
    assert "| yes |" in goals_table(found)
    assert len(GOALS) == 16


def test_losses_name_the_rival() -> None:
    found = results(none=0.2, input=0.22, moment=0.25, objective=0.21)
    worse = losses_against(INPUT, (OBJECTIVE,), found, 2**13)
    assert {(rival, problem) for rival, problem, *_ in worse} == {
        (OBJECTIVE, "linear"),
        (OBJECTIVE, "logistic"),
    }
    assert losses_against(INPUT, (OBJECTIVE,), found, 2**14) == []
    assert OBJECTIVE in standings(found)
    ahead = results(none=0.2, input=0.205, moment=0.201, objective=0.21)
    assert standings(ahead).count("never behind") == 2
