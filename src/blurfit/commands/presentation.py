"""Calibrations, agreements and moments for people to read: tables, and promises in words."""

import math
import textwrap
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from blurfit.agreement.conditions import premise_in_words
from blurfit.agreement.promises import (
    PUBLIC_ROWS_ASSUMED,
    at_most,
    caveats_of,
    either_in_words,
    guesses_from_submission,
    guesses_in_words,
    local_in_words,
    relation_in_words,
    releases_in_words,
    together_in_words,
)
from blurfit.agreement.proof_costs import ProofCosts
from blurfit.agreement.proving import PROVED_IN_WORDS
from blurfit.agreement.radius import records_worth
from blurfit.schema.schema import asked_in_words
from blurfit.schema.wording import About
from blurfit.theory.guarantees import ModelGuarantee
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.moments import MomentCalibration, variance_factor
from blurfit.theory.planning import information

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.model.moments import PublishedMoments

Calibration = InputCalibration | MomentCalibration
Row = tuple[str, str, str]

WEAK_EPSILON = 5.0  # beyond which anything may be 148 times as likely
LITTLE_INFORMATION = 10.0  # ψ below which the noise leaves little of most effects


def calibration_report(calibration: Calibration) -> RenderableType:
    """Noise, what is promised to whom, and what it costs: a table, and a sentence for each."""
    return Group(
        _noise_table(calibration, [*_claim(calibration), *_costs(calibration)]),
        Text(_promise(calibration, calibration.model)),
        Text(_submission(calibration)),
    )


def agreement_report(agreement: "Agreement") -> RenderableType:
    """What is asked, what leaves each person, and what is promised to whom."""
    calibration = agreement.calibration
    model = calibration.model
    stated = ModelGuarantee(
        agreement.epsilon, agreement.delta, model.neighbours, model.releases, model.proved
    )
    layout = agreement.share_layout("masked") if agreement.proofs else agreement.layout
    sent = ("sent", f"{agreement.width:,}", f"numbers per person, once: {layout.size:,} bytes")
    asked = ", ".join(asked_in_words(one) for one in agreement.schema.questions)
    parts: list[RenderableType] = [
        *(Text(line) for line in about_lines(agreement.schema.about)),
        Text(f"Asked: {asked}."),
        _noise_table(calibration, [sent, *_own_noise(agreement), *_costs(calibration)]),
    ]
    if caveats := caveats_of(agreement):
        parts.append(Text(f"Nothing is promised. {' '.join(caveats)}"))
    else:
        mu = calibration.mu if isinstance(calibration, MomentCalibration) else None
        parts.append(Text(f"{_promise(calibration, stated)} {premise_in_words(agreement)}"))
        parts.append(Text(guesses_in_words(stated, mu, "what is published")))
    parts.append(Text(_liar(agreement)))
    if agreement.databases:
        parts.append(Text(either_in_words(agreement)))
        parts.append(Text(together_in_words(calibration.local)))
        if agreement.proofs:
            parts.append(Text(f"{PROVED_IN_WORDS} {ProofCosts.of(agreement).in_words()}"))
    elif not caveats:
        alone = guesses_from_submission(calibration.local)
        parts.append(Text(f"{_submission(calibration)} {alone}"))
    if agreement.public_rows is not None:
        parts.append(Text(f"Public rows: SHA-256 {agreement.public_rows}. {PUBLIC_ROWS_ASSUMED}"))
    if agreement.signing_keys:
        keys = " and ".join(agreement.signing_keys)
        parts.append(Text(f"Receipts and what is published are signed with {keys}."))
    return Group(*parts)


def about_lines(about: About) -> list[str]:
    """Who asks, and what for."""
    known = (
        ("", about.title),
        ("Purpose: ", about.purpose),
        ("Asked by: ", about.organiser),
        ("Contact: ", about.contact),
    )
    return [f"{what}{text}" for what, text in known if text is not None]


def doubts(agreement: "Agreement") -> list[str]:
    """What makes little sense in an agreement that is otherwise in order."""
    found = []
    epsilon, delta, quorum = agreement.epsilon, agreement.delta, agreement.quorum
    promised = not caveats_of(agreement)
    if promised and epsilon > WEAK_EPSILON:
        found.append(
            f"ε = {epsilon:g} promises little: any conclusion about a person may become "
            f"{_times(epsilon)} times as likely. An ε of 1 or 2 is usual."
        )
    if promised and delta * quorum > 1:
        found.append(
            f"δ = {delta:g} is more than one in {quorum:,}, the quorum: even publishing somebody's "
            "record would keep such a promise. A δ of 1e-6 or less is usual."
        )
    noise = agreement.calibration
    if (
        isinstance(noise, MomentCalibration)
        and information(quorum, noise.mu, len(agreement.form.columns)) < LITTLE_INFORMATION
    ):
        found.append(
            f"With {quorum:,} contributors the noise will hide most of what could be learned. "
            "Raise the quorum or ask fewer questions; `blurfit forecast` says what to expect."
        )
    return found


def moments_report(moments: "PublishedMoments") -> str:
    """What a release is of, and the correlations between its columns."""
    promise, wave = moments.guarantee, moments.agreement.wave
    kind = "Sums of all products of two columns"
    if not moments.has_all_products:
        kind = "Sums of products with the target"
        if wave is not None:
            kind = f"Sums of wave {wave.number} of a plan, under its map"
    least = f" (at least {moments.agreement.quorum:,} were required) answered"
    facts = (
        f"{promise.counted}{' of' if moments.held else least} "
        f"{', '.join(asked_in_words(one) for one in moments.agreement.schema.questions)}.",
        f"{kind}, blurred together. {promise.in_words}",
        f"{promise.seen} {promise.condition}" if promise.private else "",
        f"May be predicted: {', '.join(moments.agreement.targets)}.",
    )
    told = "\n".join(textwrap.fill(fact, width=79) for fact in facts if fact)
    if not moments.has_all_products:
        return told
    head = "Correlations (nan where the noise is larger than the spread):"
    return f"{told}\n\n{head}\n{moments.correlations()}"


def _noise_table(calibration: Calibration, more: list[Row]) -> Table:
    title = "moment perturbation, exact"
    if isinstance(calibration, InputCalibration):
        title = f"input perturbation, {calibration.rule}"
    table = Table(title=title, title_justify="left")
    table.add_column("quantity")
    table.add_column("value", justify="right")
    table.add_column("meaning", overflow="fold")
    rows = (
        _input_rows(calibration)
        if isinstance(calibration, InputCalibration)
        else _moment_rows(calibration)
    )
    for row in rows:
        table.add_row(*row)
    if more:
        table.add_section()
    for row in more:
        table.add_row(*row)
    return table


def _promise(calibration: Calibration, model: ModelGuarantee) -> str:
    condition = (
        f"should {relation_in_words(model.neighbours)}, provided that at least "
        f"{calibration.quorum:,} honest records come in; for {releases_in_words(model)}."
    )
    if isinstance(calibration, InputCalibration) and not model.proved:
        kept = calibration.kept
        return (
            f"The paper claims ({model.epsilon:g}, {model.delta:g}) for the model, which is NOT "
            f"proved. Proved of the same noise is ({_numbers(kept)}), {condition}"
        )
    return f"What is published is ({_numbers(model)})-differentially private {condition}"


def _numbers(model: ModelGuarantee) -> str:
    return f"{at_most(model.epsilon, 6)}, {at_most(model.delta, 6)}"


def _submission(calibration: Calibration) -> str:
    local = calibration.local
    return (
        f"One submission by itself is Gaussian private with μ ≤ {at_most(local.mu)}: "
        f"ε ≤ {at_most(local.epsilon)} at δ = {at_most(local.delta, 3)}. "
        f"{local_in_words(local)}"
    )


def _liar(agreement: "Agreement") -> str:
    worth = records_worth(agreement)
    if math.isinf(worth):
        return (
            "One contributor who lies can move the sums as far as she likes: nobody can measure "
            "what she sent."
        )
    return (
        f"One contributor who lies can move the sums at most as far as {worth:,.3g} honest ones: "
        "longer submissions are refused."
    )


def _own_noise(agreement: "Agreement") -> list[Row]:
    if not agreement.database_draws:
        return []
    factor = variance_factor(agreement.honest, agreement.quorum, agreement.database_draws)
    meaning = "times the variance at the quorum, with the noise that databases add themselves"
    return [("database noise", f"{factor:.6g}", meaning)]


def _claim(calibration: Calibration) -> list[Row]:
    """What the paper says of one submission, where its own rule is computed."""
    if not isinstance(calibration, InputCalibration) or (claim := calibration.local_claim) is None:
        return []
    meaning = f"the paper's ε for a submission at δ = {claim.delta:g}"
    return [("Corollary 1", f"{claim.epsilon:.6g}", meaning)]


def _costs(calibration: Calibration) -> list[Row]:
    if not isinstance(calibration, InputCalibration) or calibration.excess_risk is None:
        return []
    meaning = "average loss above the best model's, at most, with probability 0.9, if unpenalised"
    return [("excess risk", f"{calibration.excess_risk:.4g}", meaning)]


def _input_rows(calibration: InputCalibration) -> list[Row]:
    rows = [
        ("σ_u", calibration.sigma_u, f"noise on all q together; {calibration.q_noise:.4g} on each"),
        ("σ_b", calibration.sigma_b, f"noise on all p together; {calibration.p_noise:.4g} on each"),
        ("Δ_in", calibration.ridge, "ridge that the database adds (negative: takes away)"),
    ]
    if calibration.loss is not None and calibration.split is not None:
        loss = calibration.loss
        rows += [
            ("split", calibration.split, "share of ε for the determinant"),
            ("J", loss.determinant_loss, "privacy loss of the determinant"),
            ("S_w", loss.moving_sensitivity, "sensitivity of the gradient where w moves it"),
        ]
    return [(name, f"{value:.6g}", meaning) for name, value, meaning in rows]


def _moment_rows(calibration: MomentCalibration) -> list[Row]:
    each = f"{calibration.noise:.4g} on each person's squares, 1/√2 of it on other products"
    rows = [
        ("σ", calibration.sigma, f"noise on the sums; {each}"),
        ("Δ", calibration.reach.sums, "how far one person can move the sums"),
        ("μ", calibration.mu, "exact Gaussian privacy of the sums, Δ/σ"),
    ]
    return [(name, f"{value:.6g}", meaning) for name, value, meaning in rows]


def _times(epsilon: float) -> str:
    """e^ε in words, unless it is beyond imagination."""
    return f"{math.exp(epsilon):,.0f}" if epsilon < 20 else "any number of"
