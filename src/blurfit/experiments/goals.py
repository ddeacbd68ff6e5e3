"""The goals for public defaults on real data, each beside what was measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from blurfit.experiments.methods import (
    CERTIFIED_OBJECTIVE,
    INPUT,
    MOMENT,
    NO_PRIVACY,
    OBJECTIVE,
    OUTPUT,
)
from blurfit.experiments.rivals import (
    ADASSP,
    EXACT_ADASSP,
    FUNCTIONAL,
    GRADIENT,
    LAPLACE_OBJECTIVE,
)
from blurfit.experiments.summary import Key, Mean, power, table

Means = Mapping[Key, Mean]
PRIVATE_RIVALS = (
    OUTPUT,
    OBJECTIVE,
    CERTIFIED_OBJECTIVE,
    LAPLACE_OBJECTIVE,
    FUNCTIONAL,
    ADASSP,
    EXACT_ADASSP,
    GRADIENT,
    INPUT,
)


@dataclass(frozen=True)
class Goal:
    """RMSE at most `bound` times the non-private one; accuracy of at least `bound`, or, if it is
    negative, at most so much below the non-private one.
    """

    line: str
    problem: str
    epsilon: float
    n: int
    bound: float

    def measured(self, found: Means) -> tuple[float, float, bool]:
        """The value, its standard error, and whether the goal is reached."""
        mean = found[Key(self.line, self.problem, self.epsilon, self.n)]
        plain = found[Key(NO_PRIVACY, self.problem, self.epsilon, self.n)].value
        if self.problem == "linear":
            ratio = mean.value / plain
            return ratio, mean.error / plain, ratio <= self.bound
        if self.bound < 0:
            return mean.value - plain, mean.error, mean.value - plain >= self.bound
        return mean.value, mean.error, mean.value >= self.bound

    def first(self, found: Means) -> float:
        """What `measured` tells first, over the first 20 trials alone."""
        plain = Key(NO_PRIVACY, self.problem, self.epsilon, self.n)
        mine = Key(self.line, self.problem, self.epsilon, self.n)
        alone = {key: replace(found[key], value=found[key].first) for key in (plain, mine)}
        return self.measured(alone)[0]


GOALS = (
    Goal(INPUT, "linear", 1.0, 2**15, 1.005),
    Goal(INPUT, "linear", 1.0, 2**17, 1.001),
    Goal(INPUT, "linear", 0.1, 2**15, 1.06),
    Goal(INPUT, "linear", 0.1, 2**17, 1.01),
    Goal(INPUT, "logistic", 1.0, 2**15, -0.007),
    Goal(MOMENT, "linear", 0.1, 2**9, 1.315),
    Goal(MOMENT, "linear", 0.1, 2**11, 1.175),
    Goal(MOMENT, "linear", 0.1, 2**13, 1.045),
    Goal(MOMENT, "linear", 0.1, 2**15, 1.009),
    Goal(MOMENT, "linear", 1.0, 2**9, 1.15),
    Goal(MOMENT, "linear", 1.0, 2**11, 1.04),
    Goal(MOMENT, "linear", 1.0, 2**13, 1.0075),
    Goal(MOMENT, "linear", 1.0, 2**15, 1.001),
    Goal(MOMENT, "logistic", 0.1, 2**11, 0.73),
    Goal(MOMENT, "logistic", 0.1, 2**13, 0.777),
    Goal(MOMENT, "logistic", 1.0, 2**11, 0.778),
)


def goals_table(found: Means) -> str:
    """Each goal whose numbers are there."""
    rows = []
    for goal in GOALS:
        if Key(goal.line, goal.problem, goal.epsilon, goal.n) in found:
            value, error, reached = goal.measured(found)
            rows.append(
                [
                    goal.line,
                    goal.problem,
                    f"{goal.epsilon:g}",
                    power(goal.n),
                    f"{goal.bound:g}",
                    f"{value:.4f} ± {error:.4f}",
                    f"{goal.first(found):.4f}",
                    "yes" if reached else "**no**",
                ]
            )
    return table(
        ["method", "problem", "ε", "n", "goal", "measured", "first 20 trials", "reached"], rows
    )


def losses_against(
    line: str, rivals: tuple[str, ...], found: Means, least: int
) -> list[tuple[str, str, float, int, float]]:
    """Where a rival is better: (rival, problem, ε, n, by how much), at n of at least `least`."""
    worse = []
    for key, mean in found.items():
        mine = found.get(Key(line, key.variant, key.epsilon, key.n))
        if key.line not in rivals or key.line == line or mine is None or key.n < least:
            continue
        by = mine.value - mean.value if key.variant == "linear" else mean.value - mine.value
        if by > 0:
            worse.append((key.line, key.variant, key.epsilon, key.n, by))
    return worse


def standings(found: Means) -> str:
    """Whether input beats its three rivals from 2¹³ on, and moment everybody from 2⁹ on."""
    text = []
    for line, rivals, least, words in (
        (INPUT, (OBJECTIVE, FUNCTIONAL, ADASSP), 2**13, "its published rivals"),
        (MOMENT, PRIVATE_RIVALS, 2**9, "private methods"),
    ):
        worse = losses_against(line, rivals, found, least)
        if not worse:
            text.append(f"**{line}** is never behind {words} from n = {power(least)} on.")
            continue
        places = "; ".join(
            f"{rival} ({problem}, ε = {epsilon:g}, n = {power(n)}) by {by:.4f}"
            for rival, problem, epsilon, n, by in worse
        )
        text.append(f"**{line}** is behind {words} from n = {power(least)} on here: {places}.")
    text.append(
        "For labels a rival with the logistic loss itself can be ahead where noise is small: a "
        "parabola's best direction costs about half a point of accuracy, whatever n is, and "
        "nothing that is calibrated changes that."
    )
    return "\n\n".join(text)
