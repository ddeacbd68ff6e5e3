"""`blurfit fit`: any number of models from one release, at no further cost in privacy."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.commands.common import (
    EXISTING_FILE,
    answer,
    as_json,
    next_step,
    out_file,
    picture_file,
    save_picture,
)
from blurfit.commands.public import balance_facts, public_option, read_public, require_agreed
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.learning.public_features import Family
    from blurfit.model.moments import PublishedMoments
    from blurfit.model.published import PublishedModel


@click.command(
    epilog='Example: blurfit fit moments.json "income ~ age + education + C(marital)" '
    "--out income.json"
)
@click.argument("moments", type=EXISTING_FILE)
@click.argument("formula", required=False)
@click.option(
    "--ridge", type=float, help="Penalty ½·ridge·‖w‖² per person, instead of our shrinkage."
)
@click.option(
    "--lasso", type=float, help="Penalty lasso·‖w‖₁ per person, which drops weak columns."
)
@click.option(
    "--uneven", is_flag=True, help="Allow for residuals that spread unevenly: wider intervals."
)
@public_option(
    "Public rows of the features (.csv, .parquet), not the contributors' own: a label is then "
    "learned by exact logistic regression."
)
@click.option(
    "--family",
    type=click.Choice(["logistic", "poisson", "linear"]),
    help="With --public: the kind of model; default: logistic for yes and no, else linear.",
)
@picture_file
@out_file("Where the model is written; default: nowhere, it is only shown.")
@as_json
def fit(
    moments: Path,
    formula: str | None,
    ridge: float | None,
    lasso: float | None,
    uneven: bool,
    public: Path | None,
    family: "Family | None",
    picture: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit a model to published MOMENTS: any column by any others, at no cost in privacy.

    FORMULA is like "income ~ age + C(region)", or "income ~ ." for all other columns; without one,
    the agreement's target is predicted from everything else. --plot draws how public rows match.
    """
    from blurfit.model.moments import PublishedMoments

    release = PublishedMoments.load(moments)
    if public is None:
        if family is not None or picture is not None:
            raise InvalidValueError("Expected --public FILE with --family or --plot.")
        model = release.fit(formula, ridge=ridge, lasso=lasso, uneven=uneven)
        show_model(model, out, as_json=as_json)
    elif ridge is not None or lasso is not None or uneven:
        raise InvalidValueError(
            "Expected no --ridge, --lasso or --uneven with --public: there the shrinkage follows "
            "from the noise, and errors from the curve."
        )
    else:
        _fit_public(release, formula, public, family, picture, out, as_json=as_json)
    kept = "run it again with `--out model.json` to keep this model and to predict with it."
    next_step(kept if out is None else after_learning(out, None), quiet=as_json)


def _fit_public(
    release: "PublishedMoments",
    formula: str | None,
    public: Path,
    family: "Family | None",
    picture: Path | None,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """The model by public rows, after how they were weighted to look like the contributors."""
    from blurfit.agreement.promises import PUBLIC_ROWS_ASSUMED
    from blurfit.model.public_fitting import fit_public

    require_agreed(public, release.agreement)
    asked = release.formula(formula, None, None)
    rows = read_public(public, release.agreement.schema, asked.features)
    model, balance = fit_public(release, rows, asked, family=family)
    if picture is not None:
        save_picture(balance.plot, picture)
    if not as_json:
        click.echo(f"{balance}\n\n{PUBLIC_ROWS_ASSUMED}\n")
    show_model(model, out, as_json=as_json, public=balance_facts(balance))


def show_model(
    model: "PublishedModel",
    out: Path | None,
    moments: Path | None = None,
    *,
    as_json: bool,
    **also: Any,
) -> None:
    """Write a model where it is wanted, and print its summary; `also` says what else there is."""
    from blurfit.commands.facts import model_facts

    if out is not None:
        model.save(out)
    written = {
        name: str(path) for name, path in (("model", out), ("moments", moments)) if path is not None
    }
    answer(written | also | model_facts(model), str(model.summary()), as_json=as_json)
    if as_json:
        return
    if written:
        click.echo(f"\nWrote {' and '.join(written.values())}.")
    if "page" in also:
        click.echo(f"Everyone can read it at {also['page']}")


def refuse_moments_of_input(agreement: "Agreement", moments: Path | None) -> None:
    """Refuse --moments for `input`, before anything is done that cannot be undone."""
    if moments is not None and agreement.mechanism == "input":
        raise InvalidValueError(
            f"Expected no --moments {moments} with mechanism='input': its sums are never shown, "
            "because its promise is for one model alone."
        )


def after_learning(out: Path, moments: Path | None) -> str:
    """What to do with a model, and with moments."""
    further = f'; `blurfit fit {moments} "TARGET ~ ."` fits others' if moments is not None else ""
    return f"`blurfit predict {out} TABLE`, `blurfit statement {out}`{further}."
