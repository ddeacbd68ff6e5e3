"""From submissions to models and what they are good for: `blurfit learn`, `fit`, `show`, `predict`
and `statement`. Any number of models follow from one release, at no further cost in privacy.
"""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

import blurfit as bf
from blurfit.cli._common import (
    EXISTING_FILE,
    RefusedError,
    agreement_file,
    answer,
    as_json,
    course_options,
    format_of,
    load_agreement,
    moments_file,
    next_step,
    out_file,
    picture_file,
    public_option,
    read_course,
    read_public,
    require_agreed,
    save_picture,
    watched,
    with_default,
    write_csv,
)
from blurfit.errors import InvalidValueError
from blurfit.private_files import replacing

if TYPE_CHECKING:
    from blurfit.learning.public_features import Family
    from blurfit.model.course import Course
    from blurfit.model.statement import Published
    from blurfit.schema.table_files import TableFile


@click.command(
    epilog="Example: blurfit learn agreement.json submissions.parquet --out learned.json "
    "--moments learned-moments.json"
)
@agreement_file
@click.argument("files", nargs=-1, required=True)
@out_file("Where the model is written.", default=Path("model.json"), show_default=True)
@moments_file
@with_default(
    "--engine",
    "local",
    "This machine's cores, or a Dask cluster.",
    type=click.Choice(["local", "dask"]),
)
@click.option("--scheduler", help="The cluster, such as tcp://10.0.0.1:8786; default: a new one.")
@click.option(
    "--workers", type=click.IntRange(1), help="How many threads, or workers of a new cluster."
)
@click.option(
    "--receipt",
    type=click.Path(path_type=Path),
    help="Also record the release here, besides in the folders of the files: a file, or a folder "
    "in which each agreement has its own. Needed as soon as one of FILES is a URL.",
)
@course_options("Learn a wave of this plan, together with its earlier waves (--release).")
@as_json
def learn(
    agreement: Path,
    files: tuple[str, ...],
    out: Path,
    moments: Path | None,
    engine: str,
    scheduler: str | None,
    workers: int | None,
    receipt: Path | None,
    plan_file: Path | None,
    releases: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Learn the one model of FILES of submissions: paths, folders, patterns or URLs.

    The release is recorded beside the files: running this again gives the same model, and a set of
    files that has changed is refused. To learn a wave of a plan, give --plan, and --release for
    each earlier wave.
    """
    from blurfit.files.engines import Cluster, Threads
    from blurfit.files.learn import release_files
    from blurfit.model.course import learn_plan
    from blurfit.model.moments import WITHOUT_PUBLIC_ROWS

    if scheduler is not None and engine != "dask":
        raise InvalidValueError("Expected --engine dask with --scheduler.")
    agreed = load_agreement(agreement)
    refuse_moments_of_input(agreed, moments)
    beside = agreed.sends != "everything"
    if beside and moments is None:
        raise InvalidValueError(
            "Expected --moments FILE: only products with the target were sent, so all that is "
            "learned is their sums. `blurfit fit FILE --public ROWS` turns them into a model."
        )
    course = read_course(agreed, plan_file, releases)
    if course is None and agreed.wave is not None and agreed.wave.number > 1:
        raise InvalidValueError(
            f"Expected --plan and --release: {agreement} is wave {agreed.wave.number} of a plan, "
            "and is learned together with the waves before it."
        )
    local = Threads(workers) if workers else Threads()
    with (
        nullcontext(local) if engine == "local" else Cluster(scheduler, workers) as chosen,
        watched("learn", quiet=as_json) as watch,
    ):
        release = release_files(agreed, files, chosen, receipt=receipt, progress=watch)
    if beside and moments is not None and release.moments is not None:
        moments.write_text(release.moments, encoding="utf-8")
        told = f"Wrote {moments}: sums, and no model yet. {WITHOUT_PUBLIC_ROWS}"
        answer({"moments": str(moments), "model": None}, told, as_json=as_json)
        next_step(f"`blurfit fit {moments} --public ROWS`.", quiet=as_json)
        return
    if course is None:
        model = bf.PublishedModel.from_json(release.text())
        hint = after_learning(out, moments)
    elif release.moments is None:
        raise RefusedError(release.refusal or "This wave has no sums.")
    else:
        course = course.then(bf.PublishedMoments.from_json(release.moments))
        model = learn_plan(course.plan, course.releases)
        hint = after_wave(course, plan_file, (*releases, moments or Path("MOMENTS")))
    if moments is not None and release.moments is not None:
        moments.write_text(release.moments, encoding="utf-8")
    show_model(model, out, moments, as_json=as_json)
    next_step(hint, quiet=as_json)


def after_wave(course: "Course", plan: Path | None, releases: tuple[Path, ...]) -> str:
    """Say what to do when a wave has been released."""
    number = len(course.releases) + 1
    if number > len(course.plan):
        return "`blurfit predict` and `blurfit statement`; the plan has no further wave."
    given = " ".join(map(str, releases))
    return f"`blurfit next {plan} {given} --out agreement{number}.json`, for wave {number}."


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
    release = bf.PublishedMoments.load(moments)
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
    release: "bf.PublishedMoments",
    formula: str | None,
    public: Path,
    family: "Family | None",
    picture: Path | None,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Show the model by public rows, and how they were weighted to look like contributors."""
    from blurfit.agreement.statement import PUBLIC_ROWS_ASSUMED
    from blurfit.cli import _reports as reports
    from blurfit.model.fitting import fit_public

    require_agreed(public, release.agreement)
    asked = release.formula(formula, None, None)
    rows = read_public(public, release.agreement.schema, asked.features)
    model, balance = fit_public(release, rows, asked, family=family)
    if picture is not None:
        save_picture(balance.plot, picture)
    if not as_json:
        click.echo(f"{balance}\n\n{PUBLIC_ROWS_ASSUMED}\n")
    show_model(model, out, as_json=as_json, public=reports.balance_facts(balance))


def show_model(
    model: "bf.PublishedModel",
    out: Path | None,
    moments: Path | None = None,
    *,
    as_json: bool,
    **also: Any,
) -> None:
    """Write a model where it is wanted, and print its summary; `also` says what else there is."""
    from blurfit.cli import _reports as reports

    if out is not None:
        model.save(out)
    written = {
        name: str(path) for name, path in (("model", out), ("moments", moments)) if path is not None
    }
    answer(written | also | reports.model_facts(model), str(model.summary()), as_json=as_json)
    if as_json:
        return
    if written:
        click.echo(f"\nWrote {' and '.join(written.values())}.")
    if "page" in also:
        click.echo(f"Everyone can read it at {also['page']}")


def refuse_moments_of_input(agreement: "bf.Agreement", moments: Path | None) -> None:
    """Refuse --moments for `input`, before anything is done that cannot be undone."""
    if moments is not None and agreement.mechanism == "input":
        raise InvalidValueError(
            f"Expected no --moments {moments} with mechanism='input': its sums are never shown, "
            "because its promise is for one model alone."
        )


def after_learning(out: Path, moments: Path | None) -> str:
    """Say what to do with a model, and with moments."""
    further = f'; `blurfit fit {moments} "TARGET ~ ."` fits others' if moments is not None else ""
    return f"`blurfit predict {out} TABLE`, `blurfit statement {out}`{further}."


@click.command(epilog="Example: blurfit show model.json")
@click.argument("file", type=EXISTING_FILE)
@picture_file
@click.option(
    "--table-schema",
    is_flag=True,
    help="Print the columns of an agreement or a schema (.toml) as a Frictionless Table Schema.",
)
@as_json
def show(file: Path, picture: Path | None, table_schema: bool, as_json: bool) -> None:
    """Show what is in a FILE: an agreement, a plan, a model or moments.

    An agreement is shown with its promise, a plan with its waves, a model with its summary, and
    moments with their correlations.
    """
    if table_schema:
        _table_schema(file)
        return
    showing = {
        "blurfit-agreement": _agreement,
        "blurfit-model": _model,
        "blurfit-moments": _moments,
        "blurfit-plan": _plan,
    }
    kind = format_of(file)
    if kind not in showing:
        raise InvalidValueError(
            f"Expected {str(file)!r} to be an agreement, a plan, a model or moments in JSON, as "
            "blurfit writes them."
        )
    shown = showing[kind](file, as_json)
    if picture is not None:
        if not hasattr(shown, "plot"):
            raise InvalidValueError(
                "Expected no --plot with a plan: only agreements, models and moments are drawn."
            )
        save_picture(shown.plot, picture)


def _table_schema(file: Path) -> None:
    from blurfit.cli.agree import read_proposal
    from blurfit.schema.imports import to_table_schema

    document = to_table_schema(read_proposal(file).schema)
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _agreement(file: Path, as_json: bool) -> Any:
    from blurfit.cli import _reports as reports

    agreement = bf.Agreement.load(file, allow_unproved=True)
    if as_json:
        answer({"kind": "agreement", **reports.agreement_facts(agreement)}, "", as_json=True)
        return agreement
    reports.show(reports.agreement_report(agreement))
    click.echo(f"Fingerprint {agreement.fingerprint}.")
    for doubt in reports.doubts(agreement):
        click.echo(f"Warning: {doubt}", err=True)
    return agreement


def _model(file: Path, as_json: bool) -> Any:
    from blurfit.cli import _reports as reports

    model = bf.PublishedModel.load(file)
    answer({"kind": "model", **reports.model_facts(model)}, str(model.summary()), as_json=as_json)
    next_step(after_learning(file, None), quiet=as_json)
    return model


def _moments(file: Path, as_json: bool) -> Any:
    from blurfit.cli import _reports as reports

    moments = bf.PublishedMoments.load(file)
    answer(
        {"kind": "moments", **reports.moments_facts(moments)},
        reports.moments_report(moments),
        as_json=as_json,
    )
    target = moments.agreement.schema.target.name
    next_step(f'`blurfit fit {file} "{target} ~ ."` fits a model.', quiet=as_json)
    return moments


def _plan(file: Path, as_json: bool) -> Any:
    from blurfit.cli import _reports as reports

    plan = bf.Plan.load(file)
    words = f"{reports.plan_in_words(plan)}\nFingerprint {plan.fingerprint}."
    answer({"kind": "plan", **reports.plan_facts(plan)}, words, as_json=as_json)
    next_step(f"`blurfit next {file} RELEASES` writes a wave's agreement.", quiet=as_json)
    return plan


DIGITS = 5  # of a number's whole range: 1 where it goes from 0 to 100,000


@click.command(epilog="Example: blurfit predict model.json people.csv --out predictions.csv")
@click.argument("model", type=EXISTING_FILE)
@click.argument("table", type=EXISTING_FILE)
@click.option(
    "--intervals", is_flag=True, help="Add a lower and an upper bound to each prediction."
)
@with_default(
    "--confidence",
    0.95,
    "Confidence of the intervals.",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
)
@out_file("A CSV file with a line for each row; default: standard output.")
@as_json
def predict(
    model: Path, table: Path, intervals: bool, confidence: float, out: Path | None, as_json: bool
) -> None:
    """Predict for each row of a TABLE (.csv, .parquet) with a published MODEL."""
    from blurfit.schema.table_files import TableFile

    published = bf.PublishedModel.load(model)
    file = TableFile(table, published.agreement.schema, only=published.features)
    level = confidence if intervals else None
    if out is None:
        if as_json:
            raise InvalidValueError("Expected --out besides --json: predictions are CSV.")
        _write(published, file, level, sys.stdout)
        return
    if out.exists() and out.samefile(table):
        raise InvalidValueError(
            f"Expected --out {str(out)!r} to differ from the table, which it would overwrite."
        )
    # What is refused in the middle leaves nothing behind; and what is predicted tells of the rows.
    with replacing(out) as part, part.open("w", newline="", encoding="utf-8") as stream:
        rows = _write(published, file, level, stream)
    sentence = f"Wrote {rows:,} predictions to {out}."
    answer({"rows": rows, "out": str(out)}, sentence, as_json=as_json)
    next_step(f"`blurfit statement {model}` says what the model promises.", quiet=as_json)


@click.command(epilog="Example: blurfit statement model.json")
@click.argument("file", type=EXISTING_FILE)
@with_default(
    "--format",
    "markdown",
    "markdown is rendered on a terminal; yaml is for OpenDP's registry of deployments, card "
    "for a model hub.",
    name="kind",
    type=click.Choice(["markdown", "html", "yaml", "card"]),
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON for scripts.")
def statement(file: Path, kind: str, as_json: bool) -> None:
    """Print the privacy statement of a published model or of moments in FILE."""
    from blurfit.model.export import as_card, as_yaml
    from blurfit.model.statement import as_html, as_markdown

    published = _published(file)
    facts = published.guarantee.facts() | {
        "count": published.count,
        "quorum": published.agreement.quorum,
    }
    if kind != "card":
        text = {"markdown": as_markdown, "html": as_html, "yaml": as_yaml}[kind](published)
    elif isinstance(published, bf.PublishedModel):
        text = as_card(published)
    else:
        raise InvalidValueError(
            "Expected a model for --format card: fit one to the moments with `blurfit fit`."
        )
    if kind == "markdown" and not as_json and sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
        return
    answer(facts, text, as_json=as_json)


def _published(file: Path) -> "Published":
    """Read the model or the moments in a file."""
    return (
        bf.PublishedMoments if format_of(file) == bf.PublishedMoments.FORMAT else bf.PublishedModel
    ).load(file)


def _write(
    model: "bf.PublishedModel", file: "TableFile", confidence: float | None, stream: TextIO
) -> int:
    """Write a heading and a line for each row, and return the number of rows."""
    rows = 0
    heading = [_heading(model, confidence)]
    for part in file.chunks():
        with file.located(rows):
            found = list(_lines(model, part, confidence))  # before anything of it is written
        write_csv(stream, [*heading, *found])
        heading, rows = [], rows + len(found)
    write_csv(stream, heading)
    return rows


def _heading(model: "bf.PublishedModel", confidence: float | None) -> list[str]:
    if model.is_label:
        more = ["probability"]
    elif len(model.outputs) > 1:
        more = [f"probability of {level}" for level in model.outputs]
    else:
        more = []
    return [model.target, *more, *([] if confidence is None else ["lower", "upper"])]


def _lines(
    model: "bf.PublishedModel", part: dict[str, Any], confidence: float | None
) -> Iterator[tuple[Any, ...]]:
    if confidence is not None:
        bounds = model.prediction_intervals(part, confidence)  # refused unless it is a number
        digits = _digits(model)
        for value, (lower, upper) in zip(model.predict(part), bounds, strict=True):
            yield _round(value, digits), _round(lower, digits), _round(upper, digits)
    elif model.is_label:
        for share in model.predict_proba(part)[:, 1]:
            yield int(share > 0.5), round(float(share), 4)
    elif len(model.outputs) > 1:
        for level, shares in zip(model.predict(part), model.predict_proba(part), strict=True):
            yield level, *(round(float(share), 4) for share in shares)
    else:
        digits = _digits(model)
        yield from ((_round(value, digits),) for value in model.predict(part))


def _digits(model: "bf.PublishedModel") -> int:
    """Return as many decimals as give the target's whole range `DIGITS` digits."""
    width = model.aim.upper - model.aim.lower  # type: ignore[union-attr]
    return DIGITS - math.floor(math.log10(width))


def _round(value: float, digits: int) -> float | int:
    """Round, without a decimal point where there are no decimals."""
    found = round(float(value), digits)
    return int(found) if digits <= 0 else found
