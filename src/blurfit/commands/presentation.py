"""Calibrations for people to read: tables for the terminal, and promises in plain words."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from blurfit.agreement.promises import local_in_words, relation_in_words, releases_in_words
from blurfit.theory.calibration import Calibration, InputCalibration, MomentCalibration


def report(calibration: InputCalibration | MomentCalibration) -> RenderableType:
    """Noise, what is promised to whom, and what it costs: a table, and a sentence for each."""
    setting = calibration.setting
    table = Table(
        title=f"{calibration.mechanism} perturbation, {calibration.rule}", title_justify="left"
    )
    table.add_column("quantity")
    table.add_column("value", justify="right")
    table.add_column("meaning", overflow="fold")
    rows = (
        _input_rows(calibration)
        if isinstance(calibration, InputCalibration)
        else _moment_rows(calibration)
    )
    for name, value, meaning in rows:
        table.add_row(name, f"{value:.6g}", meaning)
    table.add_section()
    table.add_row("submission", _numbers_sent(calibration), "numbers that leave each contributor")
    if calibration.excess_risk is not None:
        table.add_row(
            "excess risk",
            f"{calibration.excess_risk:.4g}",
            "average loss above the best model's, at most, with probability 0.9, if unpenalised",
        )
    model, local = calibration.model, calibration.local
    condition = (
        f"should {relation_in_words(model.neighbours)}, provided that at least {setting.quorum:,} "
        f"honest records come in; for {releases_in_words(model)}."
    )
    promise = (
        f"The model is ({model.epsilon:g}, {model.delta:g})-differentially private {condition}"
    )
    if isinstance(calibration, InputCalibration) and not model.proved:
        kept = calibration.kept
        promise = (
            f"The paper claims ({model.epsilon:g}, {model.delta:g}) for the model, which is NOT "
            f"proved. Proved of the same noise is ({kept.epsilon:.4g}, {kept.delta:g}), {condition}"
        )
    submission = (
        f"One submission alone is at most μ = {local.mu:.4g} Gaussian private: "
        f"ε = {local.epsilon:.4g} at δ = {local.delta:g}. {local_in_words(local)}"
    )
    return Group(table, Text(promise), Text(submission))


def _input_rows(calibration: InputCalibration) -> list[tuple[str, float, str]]:
    rows = [
        ("σ_u", calibration.sigma_u, f"noise on all q together; {calibration.q_noise:.4g} on each"),
        ("σ_b", calibration.sigma_b, f"noise on all p together; {calibration.p_noise:.4g} on each"),
        ("Δ_in", calibration.ridge, "ridge that the database adds (negative: takes away)"),
    ]
    if calibration.loss is not None and calibration.split is not None:
        rows += [
            ("split", calibration.split, "share of ε for the determinant"),
            ("J", calibration.loss.determinant_loss, "privacy loss of the determinant"),
            (
                "S_w",
                calibration.loss.moving_sensitivity,
                "sensitivity of the gradient where w moves it",
            ),
        ]
    if calibration.local_claim is not None:
        claim = calibration.local_claim
        rows.append(
            ("Corollary 1", claim.epsilon, f"the paper's ε for a submission at δ = {claim.delta:g}")
        )
    return rows


def _moment_rows(calibration: MomentCalibration) -> list[tuple[str, float, str]]:
    return [
        ("σ", calibration.sigma_m, f"noise on all qqᵀ together; {calibration.m_noise:.4g} on each"),
        ("τσ", calibration.sigma_p, f"noise on all p together; {calibration.p_noise:.4g} on each"),
        ("Δ", calibration.sensitivity, "how far one person can move the sums"),
        ("μ", calibration.mu, "exact Gaussian privacy of the sums, Δ/σ"),
    ]


def _numbers_sent(calibration: Calibration) -> str:
    d = calibration.setting.dimension
    return str(d * (d + 3) // 2 if calibration.mechanism == "moment" else 2 * d)
