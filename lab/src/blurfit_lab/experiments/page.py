"""docs/experiments*.md: written from the CSV by `blurfit-lab reproduce --page`, never by hand.

The page that is named has the answers, one for each question, with a link to the page of that
question beside it, which has the tables and pictures.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blurfit_lab.experiments.averages import Key, means, power
from blurfit_lab.experiments.catalogue import ONE_PAGE, PAPER
from blurfit_lab.experiments.goals import standings, verdict
from blurfit_lab.experiments.methods import MOMENT, NO_PRIVACY, WAVES
from blurfit_lab.experiments.provenance import Provenance
from blurfit_lab.experiments.reliability import ERROR
from blurfit_lab.experiments.sections import SECTIONS, TITLES, agreement
from blurfit_lab.experiments.trials import Row, read_csv

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
