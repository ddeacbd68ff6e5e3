"""`blurfit fit`: any linear model of a release, as often as one likes, with nothing left to ask."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from blurfit.commands.common import answer, as_json, next_step, out_file

if TYPE_CHECKING:
    from blurfit.model.published import PublishedModel


@click.command(
    epilog='Example: blurfit fit moments.json "income ~ age + education + C(marital)" '
    "--out income.json"
)
@click.argument("moments", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("formula", required=False)
@click.option(
    "--ridge", type=float, help="Penalty ½·ridge·‖w‖² a person, instead of our shrinkage."
)
@click.option("--lasso", type=float, help="Penalty lasso·‖w‖₁ a person: leaves weak columns out.")
@click.option(
    "--uneven", is_flag=True, help="Allow for people who spread unevenly: wider intervals."
)
@out_file("Where the model is written; default: it is shown, and written nowhere.")
@as_json
def fit(
    moments: Path,
    formula: str | None,
    ridge: float | None,
    lasso: float | None,
    uneven: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit a model to published MOMENTS: any column by any others, at no cost in privacy.

    FORMULA is like "income ~ age + C(region)", or "income ~ ." for all other columns; without one,
    the agreement's target is predicted by everything else.
    """
    from blurfit.model.moments import PublishedMoments

    release = PublishedMoments.load(moments)
    model = release.fit(formula, ridge=ridge, lasso=lasso, uneven=uneven)
    show_model(model, out, as_json=as_json)
    if out is not None:
        next_step(f"`blurfit predict {out} TABLE`, or `blurfit statement {out}`.", quiet=as_json)


def show_model(
    model: "PublishedModel", out: Path | None, *, as_json: bool, **also: str | None
) -> None:
    """Write a model where it is wanted, and print its summary; `also` says what else there is."""
    from blurfit.commands.facts import model_facts

    if out is not None:
        model.save(out)
    written = {"model": None if out is None else str(out), **also}
    answer(written | model_facts(model), str(model.summary()), as_json=as_json)
    files = [name for name in written.values() if name is not None]
    if files and not as_json:
        click.echo(f"\nWrote {' and '.join(files)}.")
