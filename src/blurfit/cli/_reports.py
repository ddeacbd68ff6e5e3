"""What results say: to people in tables and sentences, to scripts as facts for `--json`.

Whoever prints a result imports this module then, because it needs rich and the promises' words.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import blurfit as bf
from blurfit.agreement import statement
from blurfit.agreement.numbers import PROVED_IN_WORDS, ProofCosts, records_worth
from blurfit.schema.schema import asked_in_words
from blurfit.theory.moments import at_most, variance_factor
from blurfit.theory.planning import information

if TYPE_CHECKING:
    from blurfit.data import FloatArray
    from blurfit.forecast.choices import Advice
    from blurfit.forecast.sweep import Case, Forecast


Row = tuple[str, str, str]
LITTLE_INFORMATION = 10.0  # ψ below which the noise leaves little of most effects


def table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> Table:
    """Return a table of numbers, whose first column may hold words."""
    found = Table(title=title or None, title_justify="left")
    for place, name in enumerate(head):
        found.add_column(name, justify="right" if place else "left", no_wrap=bool(place))
    for row in rows:
        found.add_row(*row)
    return found


def calibration_report(calibration: bf.MomentCalibration) -> RenderableType:
    """Show noise, promises and costs: a table, and a sentence for each promise."""
    return Group(
        _noise_table(calibration, []),
        Text(_promise(calibration, calibration.model)),
        Text(_submission(calibration)),
    )


DIARIES = (
    "Diaries: a person may have several rows, and sends their mean, with the noise of one row. "
    "Many rows lessen the sampling error and not the noise: `blurfit forecast --rows-each` says "
    "where they add next to nothing. Ask more people then."
)


def agreement_report(agreement: "bf.Agreement") -> RenderableType:
    """Show what is asked, what leaves each person, and what is promised to whom."""
    calibration = agreement.calibration
    model = calibration.model
    stated = bf.ModelGuarantee(
        agreement.epsilon, agreement.delta, model.neighbours, model.releases, model.proved
    )
    layout = agreement.share_layout("masked") if agreement.proofs else agreement.layout
    own: list[Row] = []
    if draws := agreement.database_draws:
        factor = variance_factor(agreement.honest, agreement.quorum, draws)
        meaning = "times the variance at the quorum, with the noise that databases add themselves"
        own = [("database noise", f"{factor:.6g}", meaning)]
    sent = ("sent", f"{agreement.width:,}", f"numbers per person, once: {layout.size:,} bytes")
    asked = ", ".join(asked_in_words(one) for one in agreement.schema.asked)
    if derived := [one.name for one in agreement.schema.features if one.of]:
        asked += f". Computed from answers: {', '.join(derived)}"
    about = agreement.schema.about
    known = {"Purpose: ": about.purpose, "Asked by: ": about.organiser, "Contact: ": about.contact}
    parts: list[RenderableType] = [
        *(Text(f"{what}{text}") for what, text in ({"": about.title} | known).items() if text),
        Text(f"Asked: {asked}."),
        _noise_table(calibration, [sent, *own]),
    ]
    promised = _promise(calibration, stated, diaries=agreement.diaries)
    parts.append(Text(f"{promised} {statement.premise_in_words(agreement)}"))
    parts.append(Text(statement.guesses_in_words(stated, calibration.mu, "what is published")))
    worth = records_worth(agreement)
    bound = f"at most as far as {worth:,.3g} honest ones: longer submissions are refused."
    if math.isinf(worth):
        bound = "by any amount: nobody can measure what a liar sent."
    parts.append(Text(f"One contributor who lies can move the sums {bound}"))
    if agreement.databases:
        parts.append(Text(statement.either_in_words(agreement)))
        parts.append(Text(statement.together_in_words(calibration.local)))
        if agreement.proofs:
            parts.append(Text(f"{PROVED_IN_WORDS} {ProofCosts.of(agreement).in_words()}"))
    else:
        alone = statement.guesses_from_submission(calibration.local)
        parts.append(Text(f"{_submission(calibration)} {alone}"))
    parts += [
        Text(f"{k.capitalize()}: {v}.") for k, v in statement.coded_in_words(agreement).items()
    ]
    if agreement.diaries:
        parts.append(Text(DIARIES))
    if agreement.signing_keys:
        keys = " and ".join(agreement.signing_keys)
        parts.append(Text(f"Receipts and what is published are signed with {keys}."))
    return Group(*parts)


def doubts(agreement: "bf.Agreement") -> list[str]:
    """Return what makes little sense in an agreement that is otherwise in order."""
    quorum = agreement.quorum
    found = statement.weak_terms(agreement.epsilon, agreement.delta, quorum)
    noise = agreement.calibration
    columns = sum(len(one.columns) for one in agreement.questions)
    if information(quorum, noise.mu, columns) < LITTLE_INFORMATION:
        found.append(
            f"With {quorum:,} contributors the noise will hide most of what could be learned. "
            "Raise the quorum or ask fewer questions; `blurfit forecast` says what to expect."
        )
    return found


def moments_report(moments: "bf.PublishedMoments") -> str:
    """Say what a release is of, and show the correlations between its columns."""
    promise, wave = moments.guarantee, moments.agreement.wave
    kind = "Sums of all products of two columns"
    if not moments.has_all_products:
        kind = "Sums of exits"
        if wave is not None:
            kind = f"Sums of wave {wave.number} of a plan, under its map"
    least = f" (at least {moments.agreement.quorum:,} were required) answered"
    facts = (
        f"{promise.counted}{' of' if moments.held else least} "
        f"{', '.join(asked_in_words(one) for one in moments.agreement.schema.asked)}.",
        f"{kind}, blurred together. {promise.in_words}",
        f"{promise.seen} {promise.condition}" if promise.private else "",
        f"May be predicted: {', '.join(moments.agreement.targets)}.",
    )
    told = "\n".join(textwrap.fill(fact, width=79) for fact in facts if fact)
    if not moments.has_all_products:
        return told
    head = "Correlations (nan where the noise is larger than the spread):"
    return f"{told}\n\n{head}\n{moments.correlations()}"


def _noise_table(calibration: bf.MomentCalibration, more: list[Row]) -> Table:
    """Show the noise, what else is told, and what it costs at most."""
    title = "moment perturbation, exact"
    told = f"{calibration.noise:.4g} on each person's squares, 1/√2 of it on other products"
    rows = [
        ("σ", calibration.sigma, f"noise on the sums; {told}"),
        ("Δ", calibration.reach.sums, "how far one person can move the sums"),
        ("μ", calibration.mu, "exact Gaussian privacy of the sums, Δ/σ"),
    ]
    found = Table("quantity", title=title, title_justify="left")
    found.add_column("value", justify="right")
    found.add_column("meaning", overflow="fold")
    for part in ([(name, f"{value:.6g}", said) for name, value, said in rows], more):
        for row in part:
            found.add_row(*row)
        found.add_section()
    return found


def _promise(
    calibration: bf.MomentCalibration, model: bf.ModelGuarantee, *, diaries: bool = False
) -> str:
    condition = (
        f"if {statement.relation_in_words(model.neighbours, diaries=diaries)}, provided that at "
        f"least {calibration.quorum:,} honest records come in; for "
        "any number of models from one final collection."
    )
    return f"What is published is ({_numbers(model)})-differentially private {condition}"


def _numbers(model: "bf.ModelGuarantee") -> str:
    return f"{at_most(model.epsilon, 6)}, {at_most(model.delta, 6)}"


def _submission(calibration: bf.MomentCalibration) -> str:
    local = calibration.local
    return (
        f"One submission by itself is Gaussian private with μ ≤ {at_most(local.mu)}: "
        f"ε ≤ {at_most(local.epsilon)} at δ = {at_most(local.delta, 3)}. "
        f"{statement.local_in_words(local)}"
    )


def plan_facts(plan: "bf.Plan") -> dict[str, Any]:
    """Return a plan's facts for scripts."""
    return {
        "plan_fingerprint": plan.fingerprint,
        "waves": [
            {"kind": kind, "quorum": quorum, "honest": honest}
            for kind, quorum, honest in zip(plan.kinds, plan.quorums, plan.honest, strict=True)
        ],
        "colluders": plan.terms.colluders,
    }


def plan_in_words(plan: "bf.Plan") -> str:
    """Say how many waves there are, how many people each waits for, and how many may collude."""
    margin = statement.margin_in_words(list(zip(plan.quorums, plan.honest, strict=True)))
    if len(plan) == 1:
        alone = " Without --waves contributors would prove that what they send is short."
        return (
            f"One wave of {plan.quorums[0]:,} people: more would not help."
            f"{alone if plan.databases else ''} {margin}"
        )
    listed = ", ".join(
        f"{quorum:,} ({kind})" for kind, quorum in zip(plan.kinds, plan.quorums, strict=True)
    )
    return (
        f"{len(plan)} waves, which wait for {listed} people. Each person takes part in one of "
        f"them. {statement.LOT_IN_WORDS[plan.terms.admission]} {margin}"
    )


def agreement_facts(agreement: "bf.Agreement") -> dict[str, Any]:
    """Return an agreement's facts for scripts."""
    return {
        "fingerprint": agreement.fingerprint,
        "epsilon": agreement.epsilon,
        "delta": agreement.delta,
        "neighbours": agreement.calibration.model.neighbours,
        "quorum": agreement.quorum,
        "trust": agreement.trust,
        "admission": agreement.admission,
        "database_noise": agreement.database_noise,
        "condition": statement.premise_in_words(agreement),
        "liar_records": None if math.isinf(worth := records_worth(agreement)) else worth,
        "proofs": agreement.proofs,
        "numbers": agreement.width,
        "bytes": (agreement.share_layout("masked") if agreement.proofs else agreement.layout).size,
        "local_epsilon": agreement.calibration.local.epsilon,
        "local_delta": agreement.calibration.local.delta,
        "signing_keys": list(agreement.signing_keys),
    }


def moments_facts(moments: "bf.PublishedMoments") -> dict[str, Any]:
    """Return a release's facts, and its correlations where it has any, for scripts; what the noise
    drowns is None.
    """
    found = moments.correlations() if moments.has_all_products else None
    told = found and {
        "columns": list(found.names),
        "correlations": _rows(found.values),
        "standard_errors": _rows(found.standard_errors),
    }
    return {
        "fingerprint": moments.fingerprint,
        "count": moments.count,
        **moments.guarantee.facts(),
        "admission": moments.admission,
        "targets": list(moments.agreement.targets),
        **(told or {}),
    }


def model_facts(model: "bf.PublishedModel") -> dict[str, Any]:
    """Return a model's facts for scripts: what predicts, and what is known of coefficients."""
    found: dict[str, Any] = {
        "fingerprint": model.fingerprint,
        "count": model.count,
        "target": model.target,
        "features": list(model.features),
        **model.guarantee.facts(),
        "admission": model.admission,
        "method": model.method,
        "refusal": model.refusal,
        "doubt": model.doubt,
        "hidden": list(model.hidden),
        "crowded": model.crowded,
        "outputs": {},
    }
    for output in model.outputs:
        facts: dict[str, Any] = {"predicting": model.coefficients_of(output).by_name()}
        if model.inference:
            inference = model.inference_of(output)
            facts["r_squared"] = inference.r_squared
            variance = inference.residual_variance
            facts["residual_deviation"] = None if variance is None else math.sqrt(variance)
            facts["estimand"] = model.estimand_in_words
            facts["estimates"] = [one.to_dict() for one in model.estimates(output=output)]
        found["outputs"][output] = facts
    return found


def _rows(values: "FloatArray") -> list[list[float | None]]:
    return [[None if math.isnan(v) else v for v in row] for row in values.tolist()]


def forecast_report(
    found: "Forecast", tolerance: float, advice: "Sequence[Advice]" = ()
) -> RenderableType:
    """Answer what people ask first, then show the tables that the answers come from."""
    from blurfit.forecast.sweep import LEVEL

    kinds = dict.fromkeys(one.local_epsilon for one in found.cases)
    nothing = "taking all coefficients for 0" if found.best == 0 else "always guessing the same"
    intro = Text(
        f"Error ({found.measure}) over that of the same people's model without privacy, with its "
        f"{LEVEL:.0%} band. Population: {found.population}. Without privacy and with everyone: "
        f"{number(found.best)}; {nothing}: {number(found.constant)}."
    )
    told = [*rows_in_words(found), *map(advice_in_words, advice), ""]
    tables = [_errors(found, kind) for kind in kinds]
    return Group(*answers(found, tolerance), *map(Text, told), intro, *tables)


def rows_in_words(found: "Forecast") -> list[str]:
    """Say what several rows of each person are worth beside one, and where they are worth nothing.

    That is told for each ε and local target.
    """
    told = []
    for (epsilon, local), cases in found.lines().items():
        known = [one for one in cases if one.rows_add_nothing is not None]
        if not known:
            continue
        where = f"ε = {epsilon:g}" + (f", local ε = {local:g}" if local is not None else "")
        nothing = [one.contributors for one in known if one.rows_add_nothing]
        line = f"{found.rows_each} rows of each person, {where}: "
        if nothing:
            line += (
                f"with {_span(nothing)} contributors they add next to nothing to one row of each, "
                "because noise dominates; more people would help. "
            )
        if more := [one for one in known if not one.rows_add_nothing]:
            gains = [f"{one.gain:.0%}" for one in (more[0], more[-1])]
            line += (
                f"With {_span([one.contributors for one in more])} they take away "
                f"{' to '.join(dict.fromkeys(gains))} of the error above the best."
            )
        told.append(line.strip())
    return told


def _span(counts: Sequence[int]) -> str:
    ends = dict.fromkeys(f"{one:,}" for one in (min(counts), max(counts)))
    return " to ".join(ends)


def number(value: float) -> str:
    """Format with four digits and no exponent: 26,480 and 0.3142."""
    digits = 3 - math.floor(math.log10(abs(value))) if value else 0
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def answers(found: "Forecast", tolerance: float) -> list[RenderableType]:
    """Say how many are needed at which ε, and what a local target costs."""
    needed = {line: found.contributors_needed(line, tolerance) for line in found.lines()}
    least = min(one.contributors for one in found.cases)
    epsilons = list(dict.fromkeys(epsilon for epsilon, _ in needed))
    targets = list(dict.fromkeys(local for _, local in needed))
    title = Text(f"Contributors needed for an error within {tolerance:.0%} of no privacy, about:")
    shown = table(
        ["target", *(f"ε = {epsilon:g}" for epsilon in epsilons)],
        (
            [_kind(local), *(_count(needed[one, local], least) for one in epsilons)]
            for local in targets
        ),
    )
    # a size that the sweep's smallest already suffices for says nothing about ratios
    sure = {line: count for line, count in needed.items() if count is not None and count > least}
    lines = []
    for local in targets:
        costs = "" if local is None else _ratios(sure, epsilons, local)
        lines += [f"A local ε of {local:g} takes {costs} times as many."] if costs else []
    return [title, shown, *(Text(line) for line in lines)]


def _kind(local: float | None) -> str:
    return "model" if local is None else f"model, local ε = {local:g}"


def _count(count: int | None, least: int) -> str:
    if count is None:
        return "more"
    return f"≤ {least:,}" if count <= least else f"{float(f'{count:.2g}'):,.0f}"


def _ratios(
    counts: Mapping[tuple[float, float | None], int], epsilons: Sequence[float], local: float
) -> str:
    """Return the least and the largest ratio over ε of what is needed with a local target and
    without.
    """
    found = [
        counts[epsilon, local] / counts[epsilon, None]
        for epsilon in epsilons
        if (epsilon, local) in counts and (epsilon, None) in counts
    ]
    texts = [f"{value:,.2g}" if value < 10 else f"{value:,.0f}" for value in sorted(found)]
    return " to ".join(dict.fromkeys((texts[0], texts[-1]))) if texts else ""


def advice_in_words(advice: "Advice") -> str:
    """Say what to write into the contract, and what it gains."""
    before, after = advice.before, advice.after
    local = f", local ε = {before.local_epsilon:g}" if before.local_epsilon else ""
    place = f"ε = {before.epsilon:g}{local}, {before.contributors:,} contributors"
    if not advice.terms or number(before.error) == number(after.error):
        return f"{place}: the default terms are as good as any that were tried."
    chosen = ", ".join(
        f"{name} = {value if isinstance(value, dict) else format(value, 'g')}"
        for name, value in advice.terms.items()
    )
    return (
        f"{place}: {chosen} brings the error from {number(before.error)} to {number(after.error)} "
        f"({before.ratio:.3f} to {after.ratio:.3f} times that without privacy)."
    )


def _errors(found: "Forecast", local: float | None) -> Table:
    chosen = [one for one in found.cases if one.local_epsilon == local]
    epsilons = dict.fromkeys(one.epsilon for one in chosen)
    rows: dict[int, list[str]] = {}
    for one in chosen:  # by contributors, and for each of them by ε
        rows.setdefault(one.contributors, []).append(_cell(one))
    shown = []
    for count, cells in rows.items():
        rest = [later for larger, later in rows.items() if larger > count]
        if rest and all(later == cells for later in rest):
            shown.append([f"{count:,} to {max(rows):,}", *cells])  # nothing is known of more
            break
        shown.append([f"{count:,}", *cells])
    head = ["contributors", *(f"ε = {epsilon:g}" for epsilon in epsilons)]
    return table(head, shown, _kind(local))


def _cell(case: "Case") -> str:
    if not math.isfinite(case.error):
        return "–"
    base = case.without_privacy
    text = f"{case.ratio:.3f}\n{case.lower / base:.2f}–{case.upper / base:.2f}"
    return text + (f"\n{case.refused:.0%} refused" if case.refused else "")
