"""The catalogue of experiments, and the pages that tell what they found.

**Catalogue.** All experiments by name, in the order in which the page shows them.

**Sections.** What the pages of experiments say of each CSV: a paragraph and a table.

**Pages.** docs/experiments*.md: written from the CSV by `blurfit-lab reproduce --page`, never by
hand.

The page that is named has the answers, one for each question, with a link to the page of that
question beside it, which has the tables and pictures.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blurfit_lab.experiments.beyond import (
    ERROR,
    GRADIENT,
    RIVALS,
    UTILITY,
    ExcessRisk,
    LocalTarget,
    PublicNumbers,
    Reliability,
)
from blurfit_lab.experiments.figures import (
    CERTIFIED_OBJECTIVE,
    FIGURES,
    INPUT,
    MOMENT,
    NO_PRIVACY,
    OBJECTIVE,
    OUTPUT,
    PUBLISHED_INPUT,
    WAVES,
)
from blurfit_lab.experiments.head_to_head import RIVALS_2026
from blurfit_lab.experiments.runner import Experiment, Provenance, Row, read_csv
from blurfit_lab.experiments.standings import (
    Key,
    Means,
    goals_table,
    means,
    power,
    slope,
    standings,
    table,
    verdict,
)

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


TITLES = {
    "fig1a": "Figure 1(a): linear regression, ε = 0.1",
    "fig1b": "Figure 1(b): linear regression, ε = 1",
    "fig2a": "Figure 2(a): logistic regression, ε = 0.1",
    "fig2b": "Figure 2(b): logistic regression, ε = 1",
    "risk": "Excess empirical risk, and Table 1 as measured",
    "noise": "Certified against published noise, exact against published local ε",
    "target": "The price of a local promise",
    "rivals": "All rivals at n = 2¹⁷",
    "utility": "All rivals from n = 2⁹ to 2¹⁷",
    "reliability": "Probabilities against what happens",
}


def _paper_section(results: Sequence[Row]) -> str:
    found = means(results)
    sizes = sorted({key.n for key in found if key.variant == "default"})
    lines = list(dict.fromkeys(key.line for key in found if key.variant == "default"))
    epsilon = next(iter(found)).epsilon
    rows = []
    for line in lines:
        for variant in ("default", "tuned"):
            values = [found.get(Key(line, variant, epsilon, n)) for n in sizes]
            if values[0] is not None:
                cells = [f"{mean.value:.4f}" for mean in values if mean is not None]
                rows.append([line, variant, *cells])
    ridges = [
        f"{key.line} {mean.value:g}"
        for key, mean in found.items()
        if key.variant == "ridge" and mean.value > 0
    ]
    chosen = f"Ridges that tuning chose, where not 0: {', '.join(ridges) or 'none'}."
    some = {key: mean for key, mean in found.items() if key.variant == "default"}
    told = table(["method", "variant", *map(power, sizes)], rows)
    return f"Trials: {_trials(some)}.\n\n{told}\n\n{chosen}"


def agreement(found: Mapping[str, Means]) -> str:
    """What agrees with the paper and what does not, in numbers."""

    def value(name: str, line: str, n: int, variant: str = "default") -> float:
        return found[name][Key(line, variant, 0.1 if name.endswith("a") else 1.0, n)].value

    largest = max(key.n for key in found["fig1a"])
    small = 2**13
    at, low = power(largest), power(small)
    ratios = {
        name: value(name, INPUT, largest) / value(name, NO_PRIVACY, largest)
        for name in ("fig1a", "fig1b")
    }
    gap = value("fig2b", NO_PRIVACY, largest) - value("fig2b", INPUT, largest)
    objective_gap = value("fig2b", OBJECTIVE, largest) - value("fig2b", INPUT, largest)
    curve = value("fig2b", NO_PRIVACY, largest) - value("fig2b", WAVES, largest)
    rivals = [value("fig1a", line, small) for line in (PUBLISHED_INPUT, OBJECTIVE)]
    approaches = _yes(max(ratios.values()) < 1.01)
    close = _yes(max(rivals) < 1.05 * min(rivals))
    worse = _yes(value("fig1a", OUTPUT, small) > max(rivals))
    meet = _yes(objective_gap < 0.001)
    return f"""- *Input approaches no privacy as n grows*: {approaches} for linear regression. Its
  RMSE at {at} is {ratios["fig1a"]:.4f} (ε = 0.1) and {ratios["fig1b"]:.4f} (ε = 1) times the
  non-private one.
- *Input is close to objective perturbation even for small n*: {close} as published. At {low}
  and ε = 0.1 the RMSE of input is {value("fig1a", PUBLISHED_INPUT, small):.4f} as published and
  {value("fig1a", INPUT, small):.4f} certified, that of objective perturbation
  {value("fig1a", OBJECTIVE, small):.4f} as published and
  {value("fig1a", CERTIFIED_OBJECTIVE, small):.4f} certified. What differs most is how much noise
  a proof asks for. (Published input perturbation protects
  against zeroing a record out, all others here against replacing it.)
- *Output perturbation is worse than both*: {worse}, {value("fig1a", OUTPUT, small):.4f} there.
- *Logistic input and objective perturbation meet as n grows*: {meet}. At {at} and ε = 1 input
  stays {100 * gap:.2f} points below no privacy, and {100 * objective_gap:.2f} below objective
  perturbation. The reason is the parabola in place of the logistic loss, which does not go
  away with n: any even parabola has the least-squares direction, whatever its curvature. The paper
  names it for small n only.
- *Moment perturbation*, which the paper does not have: {value("fig1a", MOMENT, small):.4f} at
  {low}, ε = 0.1, and {value("fig1a", WAVES, small):.4f} in waves, where no privacy has
  {value("fig1a", NO_PRIVACY, small):.4f}. Waves learn the curve itself: at {at} and ε = 1 they are
  {abs(100 * curve):.2f} points {"below" if curve > 0 else "above"} no privacy."""


def _yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


def _risk(results: Sequence[Row]) -> str:
    found = means(results)
    rows = []
    local = {INPUT: "grows as nε", PUBLISHED_INPUT: "grows as nε", MOMENT: "grows as nε"}
    for line in dict.fromkeys(key.line for key in found):
        cells = []
        for epsilon in sorted({key.epsilon for key in found}):
            points = [
                (key.n, mean.value)
                for key, mean in found.items()
                if key.line == line and key.epsilon == epsilon
            ]
            at = dict(points)
            large = [(n, value) for n, value in points if n >= 2**13] or points
            cells += [f"{at[min(2**17, max(at))]:.2e}", f"{slope(large):.2f}"]
        rows.append([line, *cells, local.get(line, "none: raw records are collected")])
    header = ["method", "ε = 0.1: at 2¹⁷", "slope", "ε = 1: at 2¹⁷", "slope", "a submission's ε"]
    return (
        "J(w) − J(ŵ) of least squares on the training rows, ŵ in the ball ‖w‖ ≤ √14, "
        f"{_trials(found)} trials, public defaults. Table 1 of the paper claims O(1/n) for "
        "objective perturbation and input, and for gradient descent that times log n: a slope of "
        "−1. The slopes are fitted from n = 2¹³ on. Steeper than −1 is possible: the bound is for "
        "the worst of data, and noise of fixed size on a growing, well-determined quadratic costs "
        "O(1/n²). Gradient descent is flatter at ε = 1: its 512 steps end before the minimum, "
        "whatever n is.\n\n" + table(header, rows)
    )


def _noise(results: Sequence[Row]) -> str:
    found = means(results)
    rows = []
    for epsilon in sorted({key.epsilon for key in found}):
        for n in sorted({key.n for key in found}):
            cells = [
                found[Key(line, variant, epsilon, n)].value
                for line, variant in (
                    (PUBLISHED_INPUT, "sigma_u"),
                    (INPUT, "sigma_u"),
                    (PUBLISHED_INPUT, "sigma_b"),
                    (INPUT, "sigma_b"),
                    (PUBLISHED_INPUT, "Corollary 1"),
                    (PUBLISHED_INPUT, "exact local epsilon"),
                    (INPUT, "exact local epsilon"),
                    (MOMENT, "exact local epsilon"),
                )
            ]
            rows.append([f"{epsilon:g}", power(n), *(f"{cell:.4g}" for cell in cells)])
    header = ["ε", "n", "σ_u published", "σ_u certified", "σ_b published", "σ_b certified"]
    header += ["local ε, Corollary 1", "the same noise, exactly", "certified", "moment"]
    return (
        "d = 14, R_q = R_p = η = 1, δ = 0.01: public facts only. Published noise is for zeroing a "
        "record out, certified (split 0.2) for replacing it. Corollary 1 uses the classical "
        "Gaussian mechanism far beyond ε < 1: a submission's exact ε is much larger.\n\n"
        + table(header, rows)
    )


def _target(results: Sequence[Row]) -> str:
    found = means(results)
    lines = [line for line in dict.fromkeys(key.line for key in found) if line != NO_PRIVACY]
    rows = []
    for n in sorted({key.n for key in found}):
        for target in sorted({key.variant for key in found}, key=float):
            plain = found[Key(NO_PRIVACY, target, 1.0, n)].value
            cells = [f"{found[Key(line, target, 1.0, n)].value / plain:.3f}" for line in lines]
            rows.append([power(n), target, *cells])
    return (
        "RMSE over the non-private one if a submission, too, keeps (ε_l, 0.01); model ε = 1, "
        f"{_trials(found)} trials.\n\n" + table(["n", "ε_l", *lines], rows)
    )


def _rivals_section(results: Sequence[Row]) -> str:
    found = means(results)
    epsilons = sorted({key.epsilon for key in found})
    rows = []
    for problem in ("linear", "logistic"):
        for line in dict.fromkeys(key.line for key in found if key.variant == problem):
            cells = [found[Key(line, problem, epsilon, 2**17)] for epsilon in epsilons]
            rows.append([problem, line, *(f"{c.value:.4f} ± {c.error:.4f}" for c in cells)])
    return (
        "Public defaults, everyone for neighbours that replace one record; RMSE (smaller is "
        f"better) and accuracy, {_trials(found)} trials, ± one standard error. {GRADIENT} takes "
        "512 whole gradients; as published it would take n² = 2³⁴ steps, and gets 2¹⁵, with the "
        "noise as printed. Local gradients keep ε against everyone, which is much more to ask.\n\n"
        + table(["problem", "method", *(f"ε = {epsilon:g}" for epsilon in epsilons)], rows)
    )


def _utility(results: Sequence[Row]) -> str:
    found = means(results)
    sizes: Sequence[int] = sorted({key.n for key in found})
    lines = []
    for problem in ("linear", "logistic"):
        for epsilon in sorted({key.epsilon for key in found}):
            for line in dict.fromkeys(key.line for key in found if key.variant == problem):
                if line == NO_PRIVACY and problem == "linear":
                    continue
                cells = []
                for n in sizes:
                    mean = found[Key(line, problem, epsilon, n)].value
                    if problem == "linear":
                        mean /= found[Key(NO_PRIVACY, problem, epsilon, n)].value
                    cells.append(f"{mean:.4f}")
                lines.append([problem, f"{epsilon:g}", line, *cells])
    return "\n\n".join(
        [
            "RMSE over the non-private one, and accuracy, with public defaults on 65,536 test rows "
            f"(fewer where there are not so many). Trials: {_trials(found)}.",
            "Each cell with the rival that comes closest. All methods see the same people in a "
            "trial, so the differences are paired; a lead that chance explains (Student's law, "
            "95 %) is even.",
            standings(WAVES, results),
            f"Against one wave: {verdict(WAVES, results, MOMENT)}",
            table(["problem", "ε", "method", *map(power, sizes)], lines),
            "### The goals that we set ourselves",
            "The defaults were chosen on the survey's file, so there the goals are no independent "
            "test of them.",
            goals_table(found),
        ]
    )


def _reliability(results: Sequence[Row]) -> str:
    found = means(results)
    errors = {key: mean for key, mean in found.items() if key.variant == ERROR}
    lines = []
    for epsilon in sorted({key.epsilon for key in errors}):
        for n in sorted({key.n for key in errors}):
            cells = [errors[Key(line, ERROR, epsilon, n)] for line in (NO_PRIVACY, MOMENT, WAVES)]
            lines.append(
                [f"{epsilon:g}", power(n), *(f"{c.value:.4f} ± {c.error:.4f}" for c in cells)]
            )
    return (
        "Expected calibration error: the mean distance, over 15 bins of equal width, between the "
        "probability that a model gives and the share of those for whom the label is true. One "
        f"wave fits a line, waves the logistic curve. Trials: {_trials(errors)}, ± one standard "
        "error.\n\n" + table(["ε", "n", NO_PRIVACY, "one wave", WAVES], lines)
    )


def _trials(found: Means) -> str:
    """How many there are in each cell, by n where they differ."""
    of: dict[int, set[int]] = {}
    for key, mean in found.items():
        of.setdefault(key.n, set()).add(mean.trials)
    words = {n: " to ".join(map(str, sorted({min(seen), max(seen)}))) for n, seen in of.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{words[n]} at {power(n)}" for n in sorted(words))


SECTIONS: dict[str, Callable[[Sequence[Row]], str]] = {
    **dict.fromkeys(("fig1a", "fig1b", "fig2a", "fig2b"), _paper_section),
    "risk": _risk,
    "noise": _noise,
    "target": _target,
    "rivals": _rivals_section,
    "utility": _utility,
    "reliability": _reliability,
}


PICTURES = "figures"
Results = Mapping[str, Sequence[Row]]
WARNING = "<!-- Written by `blurfit-lab reproduce --page`. Do not edit: run it again. -->"


@dataclass(frozen=True)
class Question:
    """A page of its own: the end of its name, its title, its experiments and its answer."""

    name: str
    title: str
    experiments: tuple[str, ...]
    answer: Callable[[Results], str]


def _paper(results: Results) -> str:
    if not set(PAPER) <= set(results):
        return "Not all four figures were run."
    return agreement({name: means(results[name]) for name in PAPER})


def _rivals(results: Results) -> str:
    if "utility" not in results:
        return "Not run."
    return verdict(WAVES, results["utility"]) + (
        " (Nine rivals with public defaults, under the same ε, δ and neighbours; n from 2⁹ to 2¹⁷, "
        "ε = 0.1 and 1.)"
    )


def _probabilities(results: Results) -> str:
    if "reliability" not in results:
        return "Not run."
    found = means(results["reliability"])
    largest = max(
        (key for key in found if key.line == WAVES and key.variant == ERROR),
        key=lambda key: (key.epsilon, -key.n),
    )
    mine, plain = (
        found[Key(line, ERROR, largest.epsilon, largest.n)].value for line in (WAVES, NO_PRIVACY)
    )
    return (
        f"A model in waves has the logistic curve; its probabilities are off by {mine:.3f} on "
        f"average at ε = {largest.epsilon:g} and n = {power(largest.n)}, where those of a fit "
        f"without privacy are by {plain:.3f}."
    )


def _submissions(results: Results) -> str:  # noqa: ARG001
    return (
        "A promise for each submission by itself, which holds against the database too, costs much "
        "more than one for the model: the tables say how much."
    )


QUESTIONS = (
    Question("rivals", "Who is ahead?", ("utility", "rivals"), _rivals),
    Question("paper", "What of the paper holds?", (*PAPER, "risk", "noise"), _paper),
    Question("probabilities", "Can probabilities be believed?", ("reliability",), _probabilities),
    Question(
        "submissions", "What does it cost to hide each submission?", ("target",), _submissions
    ),
)


@dataclass(frozen=True)
class Elsewhere:
    """All rivals on another population."""

    facts: Provenance
    rows: Sequence[Row]

    @classmethod
    def read(cls, folder: Path) -> "Elsewhere":
        """What a run on other people left in its folder."""
        return cls(Provenance.read(folder), read_csv(folder / "utility.csv"))

    @property
    def answer(self) -> str:
        """Who is ahead there, in short."""
        return f"On another population, {self.facts.population}: {verdict(WAVES, self.rows)}"

    @property
    def section(self) -> str:
        """The verdict and each cell."""
        made = "made-up" if self.facts.synthetic else "real"
        return (
            f"## Elsewhere: {self.facts.population}\n\n{self.facts.rows:,} rows of {made} people, "
            f"the same promise. Against one wave: {verdict(WAVES, self.rows, MOMENT)}\n\n"
            f"{standings(WAVES, self.rows)}"
        )


def write_page(path: Path, folder: Path, facts: Provenance, beside: Sequence[Path] = ()) -> None:
    """The answers, the pages of all questions whose CSV are in the folder, and their pictures.

    `beside` are folders of other populations, of which the comparison with all rivals is told.
    """
    results = {
        name: read_csv(folder / f"{name}.csv")
        for name in ONE_PAGE
        if (folder / f"{name}.csv").exists()
    }
    pictures = path.parent / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    for name in results:
        shutil.copyfile(folder / f"{name}.png", pictures / f"{name}.png")
    text = [f"# Experiments\n\n{WARNING}"]
    for question in QUESTIONS:
        if not set(question.experiments) & set(results):
            continue
        page = path.with_name(f"{path.stem}-{question.name}{path.suffix}")
        others = [Elsewhere.read(other) for other in beside if "utility" in question.experiments]
        answer = "\n\n".join([question.answer(results), *(other.answer for other in others)])
        text.append(f"## {question.title}\n\n{answer}\n\n[Tables and pictures]({page.name})")
        parts = [f"# {question.title}\n\n{WARNING}", answer]
        parts += [
            f"## {TITLES[name]}\n\n![{name}]({PICTURES}/{name}.png)\n\n{SECTIONS[name](rows)}"
            for name, rows in results.items()
            if name in question.experiments
        ]
        parts += [other.section for other in others]
        parts.append(f"[How it was measured]({path.name}#how-it-was-measured)")
        page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    text.append(_method(facts))
    path.write_text("\n\n".join(text) + "\n", encoding="utf-8")


def _method(facts: Provenance) -> str:
    times = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in facts.seconds.items())
    paper = sum(facts.seconds.get(name, 0.0) for name in PAPER)
    computing = sum(facts.computing.get(name, 0.0) for name in PAPER)
    real = (
        "**The people are made up** (`blurfit.simulation.make_census`): "
        "no evidence about real ones."
        if facts.synthetic
        else "Real people; the file is public."
    )
    return f"""## How it was measured

The paper's four figures, and what they leave out, in one command:

```console
$ blurfit-lab reproduce --data FOLDER     # or: make figures
```

Data: {facts.population}, {facts.rows:,} rows. {real} 13 features and an intercept, each centred and
scaled by public bounds into the unit ball; income clipped to 0–200,000 and scaled to [0, 1] for the
RMSE; the label is an income above 37,000. δ = 0.01, neighbours replace one record, {facts.trials}
trials: a table of fewer says so. In the paper's figures the training rows of a trial
are a window of n rows of a random order, and the test rows the n/4 that follow it, as in the paper
(4 : 1); at n = 2²¹ all {facts.rows - 2**21:,} rows that remain are the test rows. The paper's own
extract (IPUMS, 2000) may not be passed on: `--data` takes yours.

*Tuned* follows the paper: for each method the ridge that does best on the test rows at the largest
n (one of 0, 10, …, 10⁴ above what the method needs), used at all n. That reads private data and is
not private. *Default* uses public defaults only. **waves** takes as many waves as help by public
facts; where that is one, it is **moment**, the form of one wave.

Each number comes from a CSV that a seed reproduces to the last byte. It took {times}, with
{facts.workers} {"worker" if facts.workers == 1 else "workers"}; the paper's four figures together
{paper:.0f} seconds, of {computing:.0f} seconds of computing time."""
