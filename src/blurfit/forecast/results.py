"""What a forecast says: the error to expect in one case, and a sweep of cases that can be asked."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from blurfit.agreement.terms import Mechanism
from blurfit.forecast import TOLERANCE
from blurfit.notebook import html_table
from blurfit.optional import optional
from blurfit.validate import positive

LEVEL = 0.9  # of the band


@dataclass(frozen=True)
class Case:
    """One number of contributors, one promise: the error to expect of the published model.

    `error` is the mean over draws, `lower` and `upper` bound the band, `without_privacy` is the
    mean error of the same people's model without noise. `refused` is the share of draws in which no
    model could be published (for `input`, the noise may leave too little curvature). Where the
    terms cannot be had at all, `reason` says why and the errors are NaN.
    """

    contributors: int
    epsilon: float
    mechanism: Mechanism
    local_epsilon: float | None
    error: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    without_privacy: float = math.nan
    submission_epsilon: float = math.nan
    refused: float = 0.0
    reason: str | None = None

    @property
    def ratio(self) -> float:
        """The error over that without privacy."""
        return self.error / self.without_privacy

    @property
    def line(self) -> tuple[Mechanism, float, float | None]:
        """What is fixed along a curve over the contributors: mechanism, ε and local ε."""
        return self.mechanism, self.epsilon, self.local_epsilon


@dataclass(frozen=True)
class Forecast:
    """A sweep of cases, with what to compare them with, all in the same units.

    `constant` is the error of always guessing the mean (or the likelier label), `best` that of the
    whole population's model without privacy.
    """

    population: str
    is_label: bool
    constant: float
    best: float
    cases: tuple[Case, ...] = field(repr=False)

    def lines(self) -> dict[tuple[Mechanism, float, float | None], list[Case]]:
        """The cases of each mechanism, ε and local target, by growing number of contributors."""
        found: dict[tuple[Mechanism, float, float | None], list[Case]] = {}
        for case in sorted(self.cases, key=lambda one: one.contributors):
            found.setdefault(case.line, []).append(case)
        return found

    def contributors_needed(
        self, line: tuple[Mechanism, float, float | None], tolerance: float = TOLERANCE
    ) -> int | None:
        """How many people bring the error within `tolerance` of that without privacy.

        Between two sizes of the sweep the excess ratio − 1 is taken to fall as a power of n. None
        if even the largest does not suffice; the smallest size of the sweep if that does.
        """
        positive(tolerance=tolerance)
        known = [one for one in self.lines()[line] if math.isfinite(one.ratio)]
        enough = [one.ratio - 1 <= tolerance for one in known]
        if not enough or not enough[-1]:
            return None
        place = len(enough) - enough[::-1].index(False) if False in enough else 0
        if place == 0:
            return known[0].contributors
        below, above = known[place - 1], known[place]
        excess = [math.log(max(one.ratio - 1, 1e-12)) for one in (below, above)]
        sizes = [math.log(one.contributors) for one in (below, above)]
        share = (excess[0] - math.log(tolerance)) / (excess[0] - excess[1])
        return math.ceil(math.exp(sizes[0] + share * (sizes[1] - sizes[0])))

    def explained(self, case: Case) -> float:
        """The share of the target's variance that the published model would explain: the R² to
        expect, 1 − error²/constant²; for labels the share of the constant's mistakes that it
        avoids.

        Below 0 if always guessing the same is better.
        """
        ratio = case.error / self.constant
        return 1 - (ratio if self.is_label else ratio**2)

    def plot(self) -> Any:
        """Errors against contributors, one panel for each mechanism; the figure is returned."""
        plt = optional("matplotlib.pyplot")
        lines = self.lines()
        mechanisms = list(dict.fromkeys(mechanism for mechanism, _, _ in lines))
        size = (6 * len(mechanisms), 4.5)
        figure, axes = plt.subplots(
            1, len(mechanisms), figsize=size, sharey=True, squeeze=False, layout="constrained"
        )
        for (mechanism, epsilon, local), cases in lines.items():
            axis = axes[0, mechanisms.index(mechanism)]
            known = [one for one in cases if math.isfinite(one.error)]
            sizes = [one.contributors for one in known]
            label = f"ε = {epsilon:g}" + (f", local {local:g}" if local else "")
            style = {"marker": "o", "ms": 3, "linestyle": "-" if local is None else "--"}
            (drawn,) = axis.plot(sizes, [one.error for one in known], label=label, **style)
            bounds = [one.lower for one in known], [one.upper for one in known]
            axis.fill_between(sizes, *bounds, color=drawn.get_color(), alpha=0.2, linewidth=0)
        for axis, mechanism in zip(axes[0], mechanisms, strict=True):
            axis.axhline(self.best, color="black", linewidth=1, label="no privacy")
            axis.axhline(
                self.constant, color="grey", linewidth=1, linestyle="--", label="a constant"
            )
            axis.set(xscale="log", title=mechanism, xlabel="contributors")
            axis.grid(alpha=0.3)
        axes[0, 0].set_ylabel("share of wrong predictions" if self.is_label else "error")
        axes[0, 0].set_ylim(bottom=0.9 * self.best, top=1.5 * self.constant)
        axes[0, -1].legend(fontsize="small")
        figure.suptitle(f"{self.population}, {LEVEL:.0%} bands")
        return figure

    def _repr_html_(self) -> str:
        head = ["mechanism", "ε", "local ε", "contributors", "error", "over no privacy", "R²"]
        rows = [
            [
                one.mechanism,
                f"{one.epsilon:g}",
                "" if one.local_epsilon is None else f"{one.local_epsilon:g}",
                f"{one.contributors:,}",
                one.reason or f"{one.error:,.4g} ({one.lower:,.4g} to {one.upper:,.4g})",
                "" if one.reason else f"{one.ratio:.3f}",
                "" if one.reason else f"{self.explained(one):.3f}",
            ]
            for one in self.cases
        ]
        title = (
            f"{self.population}; without privacy {self.best:,.4g}, constant {self.constant:,.4g}"
        )
        return html_table(head, rows, title)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; what is not known is None."""
        rows = [
            plain(asdict(one) | {"ratio": one.ratio, "explained": self.explained(one)})
            for one in self.cases
        ]
        return {
            "population": self.population,
            "is_label": self.is_label,
            "constant": self.constant,
            "best": self.best,
            "level": LEVEL,
            "cases": rows,
        }


def plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts for JSON, with None for what is not known."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in facts.items()
    }
