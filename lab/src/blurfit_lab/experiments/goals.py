"""The goals for public defaults on real data, each beside what was measured, and who is ahead."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from scipy.special import stdtrit

from blurfit_lab.experiments.averages import Key, Means, power, table
from blurfit_lab.experiments.methods import FROM_MINIMISERS, INPUT, MOMENT, NO_PRIVACY, WAVES
from blurfit_lab.experiments.rivals import MORE_LINES
from blurfit_lab.experiments.trials import Row

PRIVATE_RIVALS = (*FROM_MINIMISERS[1:], *MORE_LINES, INPUT)  # without no privacy at all


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
    Goal(WAVES, "linear", 0.1, 2**11, 1.165),
    Goal(WAVES, "linear", 0.1, 2**13, 1.026),
    Goal(WAVES, "linear", 0.1, 2**15, 1.0025),
    Goal(WAVES, "linear", 0.1, 2**17, 1.0006),
    Goal(WAVES, "linear", 1.0, 2**9, 1.14),
    Goal(WAVES, "linear", 1.0, 2**11, 1.02),
    Goal(WAVES, "linear", 1.0, 2**13, 1.0035),
    Goal(WAVES, "linear", 1.0, 2**15, 1.0006),
    Goal(WAVES, "logistic", 0.1, 2**13, -0.012),
    Goal(WAVES, "logistic", 0.1, 2**15, -0.001),
    Goal(WAVES, "logistic", 0.1, 2**17, -0.0005),
    Goal(WAVES, "logistic", 1.0, 2**11, -0.01),
    Goal(WAVES, "logistic", 1.0, 2**13, -0.001),
    Goal(WAVES, "logistic", 1.0, 2**15, -0.0005),
    Goal(WAVES, "logistic", 1.0, 2**17, -0.0005),
)


def goals_table(found: Means) -> str:
    """Each goal whose numbers are there."""
    rows = []
    for goal in GOALS:
        key = Key(goal.line, goal.problem, goal.epsilon, goal.n)
        if key in found:
            value, error, reached = goal.measured(found)
            rows.append(
                [
                    goal.line,
                    goal.problem,
                    f"{goal.epsilon:g}",
                    power(goal.n),
                    f"{goal.bound:g}",
                    f"{value:.4f} ± {error:.4f}",
                    f"{found[key].trials}",
                    "yes" if reached else "**no**",
                ]
            )
    return table(["method", "problem", "ε", "n", "goal", "measured", "trials", "reached"], rows)


@dataclass(frozen=True)
class Lead:
    """How far our line is ahead of one rival in one cell: positive is better.

    The trials are paired, as all methods see the same people: `error` is the standard error of the
    mean difference. Within what chance gives in 95 % of cases, by Student's law, they are even.
    """

    rival: str
    by: float
    error: float
    trials: int

    @property
    def verdict(self) -> str:
        """One of "ahead", "even" and "behind"."""
        if self.trials < 2 or abs(self.by) <= stdtrit(self.trials - 1, 0.975) * self.error:
            return "even"
        return "ahead" if self.by > 0 else "behind"


def leads(
    line: str, rivals: Sequence[str], rows: Iterable[Row], least: int = 2**9
) -> dict[Key, list[Lead]]:
    """Against every rival, in each cell (a `Key` of our line) with n of at least `least`."""
    values: dict[Key, dict[int, float]] = {}
    for row in rows:
        if row.n >= least and row.line in (line, *rivals):
            key = Key(row.line, row.variant, row.epsilon, row.n)
            values.setdefault(key, {})[row.trial] = row.value
    found: dict[Key, list[Lead]] = {}
    for key, theirs in values.items():
        mine = values.get(replace(key, line=line))
        if key.line == line or mine is None:
            continue
        sign = -1 if key.variant == "linear" else 1
        gaps = [sign * (mine[trial] - theirs[trial]) for trial in theirs if trial in mine]
        error = float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.inf
        lead = Lead(key.line, float(np.mean(gaps)), error, len(gaps))
        found.setdefault(replace(key, line=line), []).append(lead)
    return dict(sorted(found.items(), key=lambda cell: (cell[0].variant, *astuple(cell[0])[2:])))


def closest(cell: Sequence[Lead]) -> Lead:
    """The rival that does best there; one that is ahead beyond chance comes before all others."""
    behind = [lead for lead in cell if lead.verdict == "behind"]
    return min(behind or cell, key=lambda lead: lead.by)


def standings(line: str, rows: Sequence[Row]) -> str:
    """Each cell with whichever rival comes closest, and whether we are ahead of it."""
    lines = []
    for key, cell in leads(line, PRIVATE_RIVALS, rows).items():
        rival = closest(cell)
        lines.append(
            [
                key.variant,
                f"{key.epsilon:g}",
                power(key.n),
                rival.rival,
                f"{rival.by:+.5f} ± {rival.error:.5f}",
                f"{rival.trials}",
                rival.verdict if rival.verdict != "behind" else "**behind**",
            ]
        )
    return table(["problem", "ε", "n", "closest rival", "lead", "trials", "verdict"], lines)


def verdict(line: str, rows: Sequence[Row], other: str | None = None) -> str:
    """In a sentence: in how many cells we are ahead of every rival (or of one other line), even
    with the best of them, or behind.
    """
    rivals = PRIVATE_RIVALS if other is None else (other,)
    found = {key: closest(cell) for key, cell in leads(line, rivals, rows).items()}
    words = [lead.verdict for lead in found.values()]
    whom = "every rival" if other is None else f"**{other}**"
    text = f"**{line}** is ahead of {whom} in {words.count('ahead')} of {len(words)} cells"
    if "even" in words:
        best = "the best of them" if other is None else "it"
        text += f", even with {best} in {words.count('even')}"
    places = "; ".join(
        f"{lead.rival} ({key.variant}, ε = {key.epsilon:g}, n = {power(key.n)}) by "
        f"{-lead.by:.4f} ± {lead.error:.4f}"
        for key, lead in found.items()
        if lead.verdict == "behind"
    )
    if not places:
        return f"{text}, and behind in none."
    return f"{text}, and behind in {words.count('behind')}: {places}."
