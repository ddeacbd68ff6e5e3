"""Whether promises are kept: `blurfit audit` attacks the guarantees of an agreement or of anybody's
estimator, and `blurfit verify` says what a signed file shows, and what it does not.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import blurfit as bf
from blurfit.audit import CONFIDENCE, PAIRS, TRIALS
from blurfit.cli import _common as common
from blurfit.cli._common import Answer, ExistingFile, command
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from blurfit.audit.agreements import Lie
    from blurfit.audit.estimators import Range, Tables
    from blurfit.audit.examination import Finding
    from blurfit.model.release import Examination


AGREEMENT, ESTIMATOR = "agreement", "estimator"
BROKEN = NOT_VERIFIED = 1  # exit codes


@command("audit", "agreement.json --trials 200")
def audit_command(
    file: ExistingFile | None,
    *,
    of: str | None,
    set_: tuple[str, ...],
    pair: tuple[str, ...],
    rows: int = 30,
    rows_each: int = 1,
    row_wise: bool,
    columns: int = 1,
    features: tuple[float, float] = (-1, 1),
    target: tuple[float, float] = (-1, 1),
    labels: bool,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    liars: bool,
    plot: common.Picture | None,
) -> Answer:
    """Attack what the agreement in FILE promises, or an estimator that you name with --of.

    Exit code 1 if a promise is broken.

    Options:
        of: An estimator to attack instead, as module:Estimator.
        set_: A parameter of it, as name=value with a JSON value.
        pair: Neighbours to tell apart: target, features, middle, scale, or FIRST.csv,SECOND.csv
            whose last column is the target. Default: all named ones.
        rows: Rows of a named pair's tables.
        rows_each: Rows of one person: then there are as many people as --rows, and the tables
            differ in all rows of one of them.
        row_wise: Do not tell the estimator whose row is whose.
        columns: Features in these tables.
        features: Their range.
        target: Range of the target.
        labels: The target is one of two classes, 0 and 1.
        trials: Models to learn for each of two neighbours, and up to 50 times as many submissions.
        confidence: Confidence of each lower bound; with --of, of all of them together.
        seed: Seed of the crowd's noise.
        liars: Let all other contributors lie, too: that breaks every promise that relies on them,
            and none that the database's own noise keeps. (moment)
    """
    from blurfit.audit.agreements import Lie, audit_agreement, lies

    if (file is None) == (of is None):
        raise click.UsageError("Give the FILE of an agreement, or --of module:Estimator.")
    told: list[Lie] = []
    tried: Any = {"trials": trials, "confidence": confidence, "seed": seed}
    if of is None:
        assert file is not None
        agreement = bf.Agreement.load(file)
        with common.watched("attack") as watch:
            findings = audit_agreement(agreement, progress=watch, liars=liars, **tried)
        if agreement.proofs:
            told = lies(agreement, seed=seed)
    else:
        from blurfit.audit.estimators import Range, audit_estimator, load_estimator

        known = Range(rows, columns, features, target, labels, rows_each)
        tables = [_tables(one, known) for one in pair or PAIRS]
        sys.path.insert(0, str(Path.cwd()))  # for an estimator of your own, in this folder
        estimator = load_estimator(of, dict(map(_setting, set_)))
        findings = audit_estimator(estimator, tables, by_person=not row_wise, **tried)
    subject = AGREEMENT if of is None else ESTIMATOR
    if plot is not None:
        common.save_picture(findings.plot, plot)
    words = [report(findings, confidence, subject), *([proofs_in_words(told)] if told else [])]
    every = [*findings, *told]
    broken = any(one.broken for one in every)
    return Answer([one.to_dict() for one in every], words, code=BROKEN if broken else 0)


def _setting(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InvalidValueError(f"Expected --set={text!r} to be name=value, such as epsilon=1.")
    try:
        return name, _tuples(json.loads(value))
    except json.JSONDecodeError:
        return name, value  # a word, such as accounting=exact


def _tuples(value: Any) -> Any:
    """Turn lists into tuples, which is how Python writes bounds."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _tables(pair: str, known: "Range") -> "Tables":
    """Return a named pair of tables, or read the pair in two files."""
    from blurfit.audit.estimators import Tables, pair_of

    if "," not in pair:
        return pair_of(pair, known)
    first, second = (_table(Path(place), labels=known.labels) for place in pair.split(",", 1))
    return Tables(pair, first, second)


def _table(path: Path, *, labels: bool) -> tuple[Any, Any]:
    import numpy as np

    try:
        values = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except (OSError, ValueError):  # whose own message would tell a value
        raise InvalidValueError(
            f"Expected {str(path)!r} to be a CSV file of numbers under one line of names."
        ) from None
    y = values[:, -1]
    return values[:, :-1], y.astype(np.int64) if labels else y


def report(
    findings: "Sequence[Finding]", confidence: float, subject: str = "agreement"
) -> "RenderableType":
    """Show what was promised, what was found, and how they compare."""
    from rich.console import Group
    from rich.text import Text

    scope = "each" if subject == "agreement" else "all together"
    views = dict.fromkeys((one.view, one.promised) for one in findings)
    tables = (
        _findings_table([one for one in findings if (one.view, one.promised) == key])
        for key in views
    )
    heading = Text(f"Lower bounds on ε, {scope} with confidence {confidence:g}.")
    return Group(Text(verdict(findings, subject)), Text(), heading, *tables)


def _findings_table(findings: "Sequence[Finding]") -> "Table":
    """Show the findings of one view, its title, so that the table fits into 80 columns."""
    from rich.table import Table

    view, promised = findings[0].view, findings[0].promised
    table = Table(title=f"{view}: ε = {promised:.4g} is promised", title_justify="left")
    for name in ("neighbours", "attack"):
        table.add_column(name)
    for name in ("counted", "Gaussian", "exact", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in findings:
        table.add_row(
            one.pair,
            one.attack,
            *(_number(x) for x in (one.counted, one.gaussian, one.exact)),
            f"{one.ratio:.2f}",
            style="bold red" if one.broken else None,
        )
    return table


def verdict(findings: "Sequence[Finding]", subject: str = "agreement") -> str:
    """Return a sentence that says no more than was found."""
    broken = [one for one in findings if one.broken]
    if broken:
        worst = max(broken, key=lambda one: one.ratio)
        return (
            f"BROKEN: the {worst.view} has ε of at least {worst.audited:.3g} where "
            f"{worst.promised:.3g} is promised ({worst.pair}). Do not use this {subject}."
        )
    tightest = max(findings, key=lambda one: one.ratio)
    proof = ": proofs are in blurfit.theory.moments (moment) and lab/docs/certified.md (input)"
    proof = proof if subject == "agreement" else ""
    return (
        f"No attack exceeded what is promised; the best reached {tightest.ratio:.0%} of it "
        f"({tightest.view}, {tightest.pair}). This refutes nothing, and proves nothing{proof}."
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def proofs_in_words(told: "Sequence[Lie]") -> str:
    """Say how many false proofs were accepted."""
    honest, *others = told
    tries = sum(one.tries for one in others)
    believed = [one for one in others if one.broken]
    if honest.broken:
        return f"Proofs: {honest.believed} of {honest.tries} honest ones were rejected: BROKEN."
    if believed:
        names = "; ".join(f"{one.name} ({one.believed} of {one.tries})" for one in believed)
        return f"Proofs: lies were accepted: BROKEN. {names}."
    return (
        f"Proofs: {len(others)} ways to lie, {tries:,} tries, none accepted; {honest.tries} honest "
        "ones, as long as they may be, all accepted."
    )


@command("verify", "model.json --agreement agreement.json")
def verify(file: ExistingFile, *, agreement: tuple[ExistingFile, ...]) -> Answer:
    """Check who signed a model, moments or a receipt (FILE), and say what that shows.

    Exit code 0 if everything that can be checked is right, 1 otherwise.

    Options:
        agreement: The agreement that you were invited under: its key is the one that counts. For a
            receipt over several waves, give one for each.
    """
    from blurfit.contributor.journal import FORMAT
    from blurfit.model.release import examine

    agreements = []
    for path in agreement:
        agreed = common.load_agreed(path)
        if not isinstance(agreed, bf.Agreement):
            raise InvalidValueError(
                f"Expected --agreement {str(path)!r} to be an agreement, and it is a plan: give "
                "the one of the wave that the file is from."
            )
        agreements.append(agreed)
    text = file.read_bytes()
    if common.format_of(file) == FORMAT:
        found = _receipt(text, agreements)
    elif len(agreements) > 1:
        raise InvalidValueError(
            f"Expected one --agreement, and got {len(agreements)}: what was published belongs to "
            "one agreement."
        )
    else:
        found = examine(text, *agreements)
    names = ("verified", "fingerprint", "shown", "wrong", "not_shown")
    facts = {name: getattr(found, name) for name in names}
    return Answer(facts, in_words(file, found), code=0 if found.verified else NOT_VERIFIED)


def in_words(file: Path, found: "Examination") -> str:
    """Say what was found, for people."""
    lines = [f"{file} is {found.called}: {'verified' if found.verified else 'NOT verified'}."]
    for heading, sentences in (
        ("Wrong:", found.wrong),
        ("Shown:", found.shown),
        ("Not shown, and no signature can:", found.not_shown),
    ):
        if sentences:
            lines += ["", heading, *(f"  - {one}" for one in sentences)]
    return "\n".join(lines)


def _receipt(text: bytes, agreements: "list[bf.Agreement]") -> "Examination":
    from blurfit.contributor.journal import Receipt
    from blurfit.model.release import Examination, signers

    receipt = Receipt.from_json(text)
    if not agreements:
        raise InvalidValueError(
            "Expected --agreement with a receipt: it holds the key that counts. Its fingerprint is "
            f"{receipt.fingerprint}."
        )
    wrong = tuple(receipt.wrong_with(*agreements))
    rows = sum(part.rows for part in receipt.parts)
    # Not at which addresses: these are not signed.
    names = dict.fromkeys(name for one in agreements for name in signers(one))
    shown = (
        f"{' and '.join(names)} signed, with the key of the agreement, that {rows:,} submissions "
        "are stored under these names."
    )
    return Examination(
        "a receipt",
        receipt.fingerprint,
        () if wrong else (shown,),
        wrong,
        (
            "That the submissions are in what is published, or are still stored: they may have "
            "been withdrawn by anyone who has the receipt.",
            "What was sent: a receipt contains neither answers nor blurred numbers.",
        ),
    )
