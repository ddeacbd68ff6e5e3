"""One examination: train attackers, choose the best, count; and what it found.

The trials are divided into three parts, because an attacker that is chosen on the trials it is
counted on finds something in any noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from blurfit.arrays import FloatArray
from blurfit.audit.attacks import Score, candidates
from blurfit.audit.count_bounds import Event, choose_event, counted_epsilon, gaussian_mu
from blurfit.errors import InvalidValueError
from blurfit.notebook import html_table
from blurfit.optional import axes
from blurfit.theory.gaussian import epsilon_of
from blurfit.validate import inside_unit_interval, nonnegative, whole

Draw = Callable[[bool, int], FloatArray]  # from which of the two, how many → (trials, k)

LEAST_TRIALS = 100
_PILOT = 0.2  # of the trials, half for training and half for choosing


@dataclass(frozen=True)
class Finding:
    """What one attack found: ε is at least `audited`, where `promised` was promised at δ.

    `counted` assumes nothing. `gaussian` is the same evidence against a claim of μ-GDP, where that
    is what was claimed. `exact` is the true ε of this pair, where it is known.
    """

    view: str
    pair: str
    attack: str
    trials: int
    promised: float
    delta: float
    counted: float
    gaussian: float | None = None
    exact: float | None = None

    @property
    def audited(self) -> float:
        """The larger of the two bounds."""
        return max(self.counted, self.gaussian or 0.0)

    @property
    def ratio(self) -> float:
        """How much of the promised ε was found."""
        return self.audited / self.promised

    @property
    def broken(self) -> bool:
        """Whether more was found than was promised."""
        return self.audited > self.promised

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        found = {"audited": self.audited, "ratio": self.ratio, "broken": self.broken}
        return asdict(self) | found


class Findings(list[Finding]):
    """What several attacks found: a list that a notebook shows as a table."""

    def plot(self, ax: Any = None) -> Any:
        """Audited over promised ε, a bar for each attack; the axes are returned."""
        ax = axes(ax, 8, 1 + 0.45 * len(self))
        names = [f"{one.view}: {one.pair}" for one in self]
        colours = ["tab:red" if one.broken else "tab:blue" for one in self]
        ax.barh(names, [one.ratio for one in self], color=colours)
        ax.axvline(1, color="black", linewidth=1)
        ax.invert_yaxis()
        ax.set_xlabel("audited ε over promised ε (beyond 1: broken)")
        return ax

    def _repr_html_(self) -> str:
        head = ["seen", "neighbours", "attack", "promised ε", "ε is at least", "verdict"]
        rows = [
            [
                one.view,
                one.pair,
                one.attack,
                f"{one.promised:.4g}",
                f"{one.audited:.4g}",
                "BROKEN" if one.broken else "not refuted",
            ]
            for one in self
        ]
        return html_table(head, rows)


def examine(
    draw: Draw,
    *,
    trials: int,
    confidence: float,
    promise: tuple[float, float],
    labels: tuple[str, str],
    attacks: Mapping[str, Score] | None = None,
    gaussian: float | None = None,
    bridge: bool = False,
    exact: float | None = None,
) -> Finding:
    """Train, choose, count. `gaussian` is the δ to read a claim of μ-GDP at, if there is one."""
    whole(trials=trials)
    inside_unit_interval(confidence=confidence)
    nonnegative(epsilon=promise[0], delta=promise[1])
    if trials < LEAST_TRIALS:
        raise InvalidValueError(
            f"Expected trials={trials} >= {LEAST_TRIALS}: fewer show nothing. A thousand show up "
            "to about ε = 4, a hundred thousand up to about 8."
        )
    pilot = int(_PILOT * trials / 2)
    training, choosing, fresh = (
        (draw(False, count), draw(True, count)) for count in (pilot, pilot, trials - 2 * pilot)
    )
    alpha = (1 - confidence) / (1 if gaussian is None else 2)
    scores = {**candidates(*training), **(attacks or {})}
    name, event = _best(scores, choosing, promise[1], alpha)
    counted = counted_epsilon(
        event, scores[name](fresh[0]), scores[name](fresh[1]), promise[1], alpha
    )
    read = None
    if gaussian is not None:
        straight = scores.get("known direction", scores["linear"])
        mu = gaussian_mu(
            (straight(choosing[0]), straight(choosing[1])),
            (straight(fresh[0]), straight(fresh[1])),
            alpha,
            bridge=bridge,
        )
        read = epsilon_of(mu, gaussian)
    return Finding(*labels, name, trials, *promise, counted, read, exact)


def _best(
    scores: Mapping[str, Score], choosing: tuple[FloatArray, FloatArray], delta: float, alpha: float
) -> tuple[str, Event]:
    """The attacker and event that show most on trials which neither has seen."""
    best: tuple[float, str, Event] | None = None
    for name, score in scores.items():
        first, second = score(choosing[0]), score(choosing[1])
        event = choose_event(first, second, delta, alpha)
        shown = counted_epsilon(event, first, second, delta, alpha)
        if best is None or shown > best[0]:
            best = (shown, name, event)
    assert best is not None
    return best[1], best[2]
