"""`blurfit audit`: attack an agreement's guarantees, or those of anybody's estimator."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.audit import CONFIDENCE, PAIRS, TRIALS
from blurfit.commands.common import load_agreement, picture_file, save_picture
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.audit.estimators import Range, Tables
    from blurfit.audit.examination import Findings

AGREEMENT, ESTIMATOR = "agreement", "estimator"


@click.command(name="audit", epilog="Example: blurfit audit agreement.json --trials 200")
@click.argument(
    "file", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--of", "where", help="An estimator to attack instead: module:Estimator.")
@click.option(
    "--set", "settings", multiple=True, help="A parameter of it: name=value, the value as JSON."
)
@click.option(
    "--pair",
    "pairs",
    multiple=True,
    help=f"Neighbours to tell apart: {', '.join(PAIRS)}, or FIRST.csv,SECOND.csv whose last column "
    "is the target. Default: all that have a name.",
)
@click.option("--rows", default=30, show_default=True, help="Of the tables of a named pair.")
@click.option("--columns", default=1, show_default=True, help="Of features.")
@click.option("--features", type=(float, float), default=(-1, 1), show_default=True, help="Range.")
@click.option("--target", type=(float, float), default=(-1, 1), show_default=True, help="Range.")
@click.option("--labels", is_flag=True, help="The target is one of two classes, 0 and 1.")
@click.option(
    "--trials",
    type=int,
    default=TRIALS,
    show_default=True,
    help="Models learned for each of two neighbours; up to 50 times as many submissions.",
)
@click.option(
    "--confidence",
    type=float,
    default=CONFIDENCE,
    show_default=True,
    help="Of each lower bound; with --of, of all of them together.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="For the crowd's noise.")
@click.option(
    "--liars",
    is_flag=True,
    help="Let all other contributors lie, too: that breaks every promise that counts on them, and "
    "none that noise of the database keeps. (moment)",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
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

    from blurfit.audit.provers import Lie, lies
    from blurfit.commands.audit_report import proofs_in_words, report

    if (file is None) == (where is None):
        raise click.UsageError("Give the FILE of an agreement, or --of module:Estimator.")
    told: list[Lie] = []
    if where is None:
        assert file is not None
        agreement = load_agreement(file)
        findings = _attack(agreement, trials, confidence, seed, liars=liars)
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


def _attack(
    agreement: "Agreement", trials: int, confidence: float, seed: int, *, liars: bool
) -> "Findings":
    from rich.console import Console
    from rich.progress import Progress

    from blurfit.audit.findings import audit_agreement, number_of_attacks

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Attacking", total=number_of_attacks(agreement, liars=liars))

        def begin(name: str) -> None:
            progress.update(task, description=name, advance=1)

        return audit_agreement(
            agreement,
            trials=trials,
            confidence=confidence,
            seed=seed,
            progress=begin,
            liars=liars,
        )


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
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f"Expected {str(path)!r} to be a CSV file of numbers under one line of names: {error}"
        ) from error
    y = values[:, -1]
    return values[:, :-1], y.astype(np.int64) if labels else y
