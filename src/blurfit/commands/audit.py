"""`blurfit audit`: attack an agreement's guarantees, or those of anybody's estimator."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.audit import CONFIDENCE, PAIRS, TRIALS
from blurfit.commands.common import (
    EXISTING_FILE,
    as_json,
    load_agreement,
    picture_file,
    save_picture,
    steps,
    watched,
)
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.audit.estimators import Range, Tables

AGREEMENT, ESTIMATOR = "agreement", "estimator"


@click.command(name="audit", epilog="Example: blurfit audit agreement.json --trials 200")
@click.argument("file", required=False, type=EXISTING_FILE)
@click.option("--of", "where", help="An estimator to attack instead, as module:Estimator.")
@click.option(
    "--set", "settings", multiple=True, help="A parameter of it, as name=value with a JSON value."
)
@click.option(
    "--pair",
    "pairs",
    multiple=True,
    help=f"Neighbours to tell apart: {', '.join(PAIRS)}, or FIRST.csv,SECOND.csv whose last column "
    "is the target. Default: all named ones.",
)
@click.option("--rows", default=30, show_default=True, help="Rows of a named pair's tables.")
@click.option("--columns", default=1, show_default=True, help="Features in these tables.")
@click.option(
    "--features", type=(float, float), default=(-1, 1), show_default=True, help="Their range."
)
@click.option(
    "--target", type=(float, float), default=(-1, 1), show_default=True, help="Range of the target."
)
@click.option("--labels", is_flag=True, help="The target is one of two classes, 0 and 1.")
@click.option(
    "--trials",
    type=int,
    default=TRIALS,
    show_default=True,
    help="Models to learn for each of two neighbours, and up to 50 times as many submissions.",
)
@click.option(
    "--confidence",
    type=float,
    default=CONFIDENCE,
    show_default=True,
    help="Confidence of each lower bound; with --of, of all of them together.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the crowd's noise.")
@click.option(
    "--liars",
    is_flag=True,
    help="Let all other contributors lie, too: that breaks every promise that relies on them, and "
    "none that the database's own noise keeps. (moment)",
)
@as_json
@picture_file
def audit_command(
    file: Path | None,
    where: str | None,
    settings: tuple[str, ...],
    pairs: tuple[str, ...],
    rows: int,
    columns: int,
    features: tuple[float, float],
    target: tuple[float, float],
    labels: bool,
    trials: int,
    confidence: float,
    seed: int,
    liars: bool,
    as_json: bool,
    picture: Path | None,
) -> None:
    """Attack what the agreement in FILE (.json) promises, or an estimator that you name with --of.

    Exit code 1 if a promise is broken.
    """
    from rich.console import Console

    from blurfit.audit.agreements import audit_agreement, number_of_attacks
    from blurfit.audit.provers import Lie, lies
    from blurfit.commands.audit_report import proofs_in_words, report

    if (file is None) == (where is None):
        raise click.UsageError("Give the FILE of an agreement, or --of module:Estimator.")
    told: list[Lie] = []
    if where is None:
        assert file is not None
        agreement = load_agreement(file)
        with watched("attack", quiet=as_json) as watch:
            findings = audit_agreement(
                agreement,
                trials=trials,
                confidence=confidence,
                seed=seed,
                progress=steps(watch, number_of_attacks(agreement, liars=liars)),
                liars=liars,
            )
        if agreement.proofs:
            told = lies(agreement, seed=seed)
    else:
        from blurfit.audit.estimators import Range, audit_estimator, load_estimator

        known = Range(rows, columns, features, target, labels)
        tables = [_tables(pair, known) for pair in pairs or PAIRS]
        sys.path.insert(0, str(Path.cwd()))  # for an estimator of your own, in this folder
        estimator = load_estimator(where, dict(map(_setting, settings)))
        findings = audit_estimator(
            estimator, tables, trials=trials, confidence=confidence, seed=seed
        )
    subject = AGREEMENT if where is None else ESTIMATOR
    if picture is not None:
        save_picture(findings.plot, picture)
    if as_json:
        click.echo(json.dumps([one.to_dict() for one in [*findings, *told]], indent=2))
    else:
        Console().print(report(findings, confidence, subject))
        if told:
            Console().print(proofs_in_words(told))
    if any(one.broken for one in [*findings, *told]):
        raise SystemExit(1)


def _setting(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InvalidValueError(f"Expected --set={text!r} to be name=value, such as epsilon=1.")
    try:
        return name, _tuples(json.loads(value))
    except json.JSONDecodeError:
        return name, value  # a word, such as accounting=exact


def _tuples(value: Any) -> Any:
    """Lists as tuples, which is how Python writes bounds."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _tables(pair: str, known: "Range") -> "Tables":
    """A named pair, or the one in two files."""
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
