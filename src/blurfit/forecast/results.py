"""What a forecast says: the error to expect in one case, and a sweep of cases that can be asked."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from blurfit.agreement.terms import Mechanism
from blurfit.forecast import TOLERANCE
from blurfit.notebook import html_table
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
        """Errors against contributors as a matplotlib figure."""
        from blurfit.forecast.error_curves import plot

        return plot(self)

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
            {name: _plain(value) for name, value in asdict(one).items()}
            | {"ratio": _plain(one.ratio), "explained": _plain(self.explained(one))}
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


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
