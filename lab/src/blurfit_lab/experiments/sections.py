"""What the pages of experiments say of each CSV: a paragraph and a table."""

from collections.abc import Callable, Mapping, Sequence

from blurfit_lab.experiments.averages import Key, Means, means, power, slope, table
from blurfit_lab.experiments.goals import goals_table, standings, verdict
from blurfit_lab.experiments.methods import (
    CERTIFIED_OBJECTIVE,
    INPUT,
    MOMENT,
    NO_PRIVACY,
    OBJECTIVE,
    OUTPUT,
    PUBLISHED_INPUT,
    WAVES,
)
from blurfit_lab.experiments.reliability import ERROR
from blurfit_lab.experiments.rivals import GRADIENT
from blurfit_lab.experiments.trials import Row

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


def _paper(results: Sequence[Row]) -> str:
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


def _rivals(results: Sequence[Row]) -> str:
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
    **dict.fromkeys(("fig1a", "fig1b", "fig2a", "fig2b"), _paper),
    "risk": _risk,
    "noise": _noise,
    "target": _target,
    "rivals": _rivals,
    "utility": _utility,
    "reliability": _reliability,
}
