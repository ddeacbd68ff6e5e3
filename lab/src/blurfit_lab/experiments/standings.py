"""What is computed from a CSV: means, goals, and who wins.

**Means.** Means over trials, ratios and slopes: what plots and tables show of a CSV.

**Goals.** The goals for public defaults on real data, each beside what was measured, and who is
ahead.

**Wins.** Who wins a head to head: geometric means over all cells, and wins that more trials would
keep.

In each cell (one set and one ε) the trials are paired: every line saw the same rows. A line beats
another there if the mean of its errors is smaller in 97.5% of 1,000 resamples of the trials (a
paired bootstrap), loses if it is larger in as many, and is even otherwise. Over cells that are not
even, the sign test says how likely that many wins are if both were equally good.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from scipy.special import stdtrit
from scipy.stats import binomtest

from blurfit.arrays import FloatArray
from blurfit.simulation.sampler import generator_for
from blurfit_lab.experiments.beyond import MORE_LINES
from blurfit_lab.experiments.figures import FROM_MINIMISERS, INPUT, MOMENT, NO_PRIVACY, WAVES
from blurfit_lab.experiments.runner import Row


@dataclass(frozen=True)
class Mean:
    """The mean over trials, its standard error, and their number."""

    value: float
    error: float
    trials: int


@dataclass(frozen=True)
class Key:
    """Which line, variant, ε and n."""

    line: str
    variant: str
    epsilon: float
    n: int


Means = Mapping[Key, Mean]


def means(rows: Iterable[Row]) -> dict[Key, Mean]:
    """Over trials, in the order of the rows."""
    values: dict[Key, list[float]] = {}
    for row in rows:
        values.setdefault(Key(row.line, row.variant, row.epsilon, row.n), []).append(row.value)
    return {
        key: Mean(
            float(np.mean(found)),
            float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else 0.0,
            len(found),
        )
        for key, found in values.items()
    }


def slope(points: Iterable[tuple[float, float]]) -> float:
    """The exponent k of y ∝ x^k by least squares in logarithms, where y > 0.

    >>> round(slope([(1, 8), (2, 4), (4, 2)]), 6)
    -1.0
    """
    positive = [(math.log(x), math.log(y)) for x, y in points if y > 0]
    x, y = np.array(positive).T
    return float(np.polyfit(x, y, 1)[0])


def power(n: int) -> str:
    """n as a power of two, if it is one: 2¹⁷."""
    exponent = n.bit_length() - 1
    if n != 2**exponent:
        return str(n)
    return "2" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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


RESAMPLES, CONFIDENCE = 1000, 0.975


@dataclass(frozen=True)
class Cell:
    """One set under one relation, at one ε."""

    data: str
    neighbours: str
    epsilon: float


Errors = Mapping[Cell, Mapping[str, FloatArray]]  # of each line, by trial


@dataclass(frozen=True)
class Record:
    """Wins, losses and even cells of one line against another, and the sign test's p."""

    wins: int
    losses: int
    even: int

    @property
    def p_value(self) -> float:
        """The probability of at least this many wins by chance."""
        decided = self.wins + self.losses
        if not decided:
            return 1.0
        return float(binomtest(self.wins, decided, alternative="greater").pvalue)


def errors_of(rows: Sequence[Row]) -> dict[Cell, dict[str, FloatArray]]:
    """The rows of a CSV by cell and line, in the order of trials."""
    found: dict[Cell, dict[str, list[tuple[int, float]]]] = {}
    for row in rows:
        data, _, neighbours = row.variant.rpartition(", ")
        cell = found.setdefault(Cell(data, neighbours, row.epsilon), {})
        cell.setdefault(row.line, []).append((row.trial, row.value))
    return {
        cell: {line: np.array([v for _, v in sorted(values)]) for line, values in lines.items()}
        for cell, lines in found.items()
    }


def geometric_mean(errors: Errors, line: str, other: str) -> float:
    """Of the mean error of one line over that of another, over all cells."""
    logarithms = [math.log(lines[line].mean() / lines[other].mean()) for lines in errors.values()]
    return math.exp(float(np.mean(logarithms)))


def interval(errors: Errors, line: str, other: str) -> tuple[float, float]:
    """95% of that geometric mean when the trials of each cell are resampled, in pairs."""
    generator = generator_for(0)
    total = np.zeros(RESAMPLES)
    for lines in errors.values():
        chosen = generator.integers(len(lines[line]), size=(RESAMPLES, len(lines[line])))
        total += np.log(lines[line][chosen].mean(axis=1) / lines[other][chosen].mean(axis=1))
    low, high = np.quantile(np.exp(total / len(errors)), [0.025, 0.975])
    return float(low), float(high)


def against(errors: Errors, line: str, other: str) -> Record:
    """Wins and losses by the paired bootstrap in each cell."""
    generator = generator_for(0)
    wins = losses = 0
    for lines in errors.values():
        difference = lines[line] - lines[other]
        chosen = generator.integers(len(difference), size=(RESAMPLES, len(difference)))
        smaller = float((difference[chosen].mean(axis=1) < 0).mean())
        wins += smaller >= CONFIDENCE
        losses += smaller <= 1 - CONFIDENCE
    return Record(wins, losses, len(errors) - wins - losses)


def best_of(errors: Errors, lines: Sequence[str]) -> str:
    """The line of the least geometric mean."""
    return min(lines, key=lambda line: geometric_mean(errors, line, lines[0]))


def under(errors: Errors, neighbours: str) -> dict[Cell, Mapping[str, FloatArray]]:
    """The cells of one relation."""
    return {cell: lines for cell, lines in errors.items() if cell.neighbours == neighbours}


def having(errors: Errors, *lines: str) -> dict[Cell, Mapping[str, FloatArray]]:
    """The cells in which all of these lines were run."""
    return {cell: found for cell, found in errors.items() if all(one in found for one in lines)}


def worse(errors: Errors, line: str, others: Sequence[str], times: float) -> tuple[int, int]:
    """In how many cells the mean error is more than `times` that of whichever other line did best
    there, and in how many of them the paired bootstrap is sure of it.
    """
    generator = generator_for(0)
    seen = sure = 0
    for lines in errors.values():
        best = min((one for one in others if one in lines), key=lambda one: lines[one].mean())
        excess = lines[line] - times * lines[best]
        if excess.mean() <= 0:
            continue
        seen += 1
        chosen = generator.integers(len(excess), size=(RESAMPLES, len(excess)))
        sure += float((excess[chosen].mean(axis=1) > 0).mean()) >= CONFIDENCE
    return seen, sure
