"""From submissions to models and what they are good for: `blurfit learn`, `fit`, `show`, `predict`
and `statement`. Any number of models follow from one release, at no further cost in privacy.
"""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

import blurfit as bf
from blurfit.cli import RefusedError
from blurfit.cli import _common as common
from blurfit.cli._common import Answer
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.private_files import replacing

if TYPE_CHECKING:
    from blurfit.learning.public_features import Balance, Family
    from blurfit.model.course import Course
    from blurfit.model.statement import Published
    from blurfit.model.survival import SurvivalModel
    from blurfit.model.tables import Shares
    from blurfit.schema.table_files import TableFile


@common.command(
    "learn",
    "agreement.json submissions.parquet --out learned.json --moments learned-moments.json",
)
@common.agreement_file
@click.argument("files", nargs=-1, required=True)
@common.out_file("Where the model is written.", default=Path("model.json"), show_default=True)
@common.moments_file
@common.with_default(
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
@common.course_options("Learn a wave of this plan, together with its earlier waves (--release).")
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
) -> Answer:
    """Learn the one model of FILES of submissions: paths, folders, patterns or URLs.

    The release is recorded beside the files: running this again gives the same model, and a set of
    files that has changed is refused. To learn a wave of a plan, give --plan, and --release for
    each earlier wave.
    """
    from blurfit.files.engines import Cluster, Threads
    from blurfit.files.learn import release_files
    from blurfit.model.release import without_a_model

    if scheduler is not None and engine != "dask":
        raise InvalidValueError("Expected --engine dask with --scheduler.")
    agreed = bf.Agreement.load(agreement)
    refuse_moments_of_input(agreed, moments)
    if agreed.sums_alone and moments is None:
        raise InvalidValueError(
            f"Expected --moments FILE: all that is learned here are sums. {without_a_model(agreed)}"
        )
    course = common.read_course(agreed, plan_file, releases)
    if course is None and agreed.wave is not None and agreed.wave.number > 1:
        raise InvalidValueError(
            f"Expected --plan and --release: {agreement} is wave {agreed.wave.number} of a plan, "
            "and is learned together with the waves before it."
        )
    local = Threads(workers) if workers else Threads()
    with (
        nullcontext(local) if engine == "local" else Cluster(scheduler, workers) as chosen,
        common.watched("learn") as watch,
    ):
        release = release_files(agreed, files, chosen, receipt=receipt, progress=watch)
    if moments is not None and release.moments is not None:
        moments.write_text(release.moments, encoding="utf-8")
    if agreed.sums_alone:
        words = f"Wrote {moments}: sums, and no model yet. {without_a_model(agreed)}"
        facts = {"moments": str(moments), "model": None}
        if course is not None and release.moments is not None:
            course = course.then(bf.PublishedMoments.from_json(release.moments))
            if len(course.releases) < len(course.plan):
                given = *releases, moments or Path("MOMENTS")
                return Answer(facts, words, after_wave(course, plan_file, given))
            shown = "".join(f" --release {one}" for one in releases)
            return Answer(facts, words, f"`blurfit fit {moments} --plan {plan_file}{shown}`.")
        public = "" if agreed.sends == "everything" else " --public ROWS"
        return Answer(facts, words, f"`blurfit fit {moments}{public}`.")
    if course is None:
        model = bf.PublishedModel.from_json(release.text())
        return shown_model(model, out, moments, after_learning(out, moments))
    if release.moments is None:
        raise RefusedError(release.refusal or "This wave has no sums.")
    course = course.then(bf.PublishedMoments.from_json(release.moments))
    step = after_wave(course, plan_file, (*releases, moments or Path("MOMENTS")))
    return shown_model(course.model(), out, moments, step)


def after_wave(course: "Course", plan: Path | None, releases: tuple[Path, ...]) -> str:
    """Say what to do when a wave has been released."""
    number = len(course.releases) + 1
    if number > len(course.plan):
        return "`blurfit predict` and `blurfit statement`; the plan has no further wave."
    given = " ".join(map(str, releases))
    return f"`blurfit next {plan} {given} --out agreement{number}.json`, for wave {number}."


@common.command("table", "moments.json income marital")
@click.argument("moments", type=common.EXISTING_FILE)
@click.argument("question", required=False)
@click.argument("other", required=False)
@click.option(
    "--shares",
    type=click.Choice(["total", "row", "column", "counts"]),
    default="total",
    show_default=True,
    help="What a table of levels shows.",
)
@click.option("--quantile", type=float, help="A number's quantile instead of its mean, from bands.")
@click.option(
    "--population",
    type=common.EXISTING_FILE,
    help="Weight to a population whose shares and means are known: JSON, or CSV with the columns "
    "question, level and value.",
)
@click.option(
    "--draw",
    type=click.IntRange(1),
    help="Write so many rows that look like the people into --out, for tools that want rows. No "
    "standard errors can be computed from them.",
)
@common.picture_file
@common.out_file("Where rows are written (.csv, .xlsx); default: nowhere, they are only shown.")
def table(
    moments: Path,
    question: str | None,
    other: str | None,
    shares: "Shares",
    quantile: float | None,
    population: Path | None,
    draw: int | None,
    picture: Path | None,
    out: Path | None,
) -> Answer:
    """Tell means, shares and tables of published MOMENTS, with errors and tests.

    Without a QUESTION every question is described; with one, its shares or its mean; with an OTHER
    question, which has levels, the table of both, or the mean at each of its levels. Nothing of
    this costs privacy again.
    """
    release = bf.PublishedMoments.load(moments)
    if draw is not None:
        return _drawn(release, draw, [one for one in (question, other) if one is not None], out)
    if question is None:
        if quantile is not None or population is not None:
            raise InvalidValueError("Expected a QUESTION with --quantile and --population.")
        found = release.describe()
    elif population is not None:
        found = release.calibrate(population).table(question, other)
    elif quantile is not None:
        found = release.quantile(question, quantile, by=other)
    elif isinstance(release.agreement.schema.question(question), bf.Numeric):
        found = release.mean(question, by=other)
    else:
        found = release.table(question, other, shares=shares)
    if picture is not None:
        common.save_picture(found.plot, picture)
    if out is not None:
        found.save(out)
    step = "`blurfit table --help` tells what else can be asked; `blurfit fit` makes models."
    return Answer(found.to_facts(), str(found), step)


def _drawn(
    release: "bf.PublishedMoments", count: int, questions: list[str], out: Path | None
) -> Answer:
    """Write rows that nobody is in."""
    from blurfit.model.tables import save_frame

    if out is None:
        raise InvalidValueError("Expected --out FILE with --draw: rows are for other tools.")
    rows = release.synthesise(count, questions=questions or None)
    save_frame(rows, out)
    words = f"Wrote {count:,} rows to {out}. {rows.attrs['warning']}"
    return Answer({"out": str(out), "rows": count}, words)


model_questions = common.options(  # by which a model is asked more
    click.option("--test", "hypotheses", help='Test hypotheses: "age = 0, hours = 2*age".'),
    click.option("--effect", help="Tell, and draw, the mean along this QUESTION."),
    common.picture_file,
)


def ask_model(
    model: "bf.PublishedModel", hypotheses: str | None, effect: str | None, picture: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """Return facts and words that the options of `model_questions` ask for, and draw."""
    facts: dict[str, Any] = {}
    words: list[str] = []
    draw: Any = model.plot
    if hypotheses is not None:
        test = model.test(hypotheses)
        facts["test"], words = asdict(test), [str(test)]
    if effect is not None:
        told = model.effect(effect)
        draw, facts["effect"] = told.plot, told.to_facts()
        words.append(str(told))
    if picture is not None:
        common.save_picture(draw, picture)
    return facts, words


@common.command("fit", 'moments.json "income ~ age + education + C(marital)" --out income.json')
@click.argument("moments", type=common.EXISTING_FILE)
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
@common.public_option(
    "Public rows of the features (a table), not the contributors' own: a label is then "
    "learned by exact logistic regression."
)
@click.option(
    "--family",
    type=click.Choice(["logistic", "poisson", "linear"]),
    help="With --public: the kind of model; default: logistic for yes and no, else linear.",
)
@click.option(
    "--by-group", is_flag=True, help="A model in each group, where the agreement has groups."
)
@click.option(
    "--gap",
    nargs=2,
    metavar="GROUP OTHER",
    help="What the other group's model explains of the gap between the means of two groups; with "
    "bands of the target also medians and quarters.",
)
@click.option("--against", help="Compare with a smaller or a larger FORMULA: F, AIC and BIC.")
@click.option(
    "--table", type=common.NEW_FILE, help="Write the coefficients to this file (.csv, .xlsx)."
)
@model_questions
@common.course_options(
    "Where log-odds of an event were collected in waves: the plan, MOMENTS being of the last."
)
@common.out_file("Where the model is written; default: nowhere, it is only shown.")
def fit(
    moments: Path,
    formula: str | None,
    ridge: float | None,
    lasso: float | None,
    uneven: bool,
    public: Path | None,
    family: "Family | None",
    by_group: bool,
    gap: tuple[str, str] | None,
    against: str | None,
    table: Path | None,
    hypotheses: str | None,
    effect: str | None,
    picture: Path | None,
    plan_file: Path | None,
    releases: tuple[Path, ...],
    out: Path | None,
) -> Answer:
    """Fit a model to published MOMENTS: any column by any others, at no cost in privacy.

    FORMULA is like "income ~ age + C(region)", or "income ~ ." for all other columns; without one,
    the agreement's target is predicted from everything else. --plot draws the coefficients, an
    --effect, or how public rows match.
    Where exits were sent, FORMULA is the question by whose answers curves are compared; with --plan
    and --release coefficients are log-odds, of all waves together.
    """
    release = bf.PublishedMoments.load(moments)
    course = common.read_course(release.agreement, plan_file, releases)
    if isinstance(release.agreement.schema.target, bf.TimeToEvent):
        hazards = release.survival() if course is None else course.then(release).survival()
        return _survival(hazards, formula, picture)
    if course is not None:
        raise InvalidValueError("Expected --plan with waves of a time to an event alone.")
    if by_group or gap:
        others = (public, family, ridge, lasso, against, hypotheses, effect, out, uneven or None)
        if any(one is not None for one in others):
            raise InvalidValueError(
                "Expected --by-group or --gap with a formula, --table and --plot alone: groups are "
                "compared by least squares."
            )
        return _groups(release, formula, gap, picture, table)
    step = "run it again with `--out model.json` to keep this model and to predict with it."
    if out is not None:
        step = after_learning(out, None)
    if public is None:
        if family is not None:
            raise InvalidValueError("Expected --public FILE with --family.")
        model = release.fit(formula, ridge=ridge, lasso=lasso, uneven=uneven)
        facts, words = ask_model(model, hypotheses, effect, picture)
        if against is not None:
            compared = model.compare(release.fit(against, uneven=uneven))
            facts["comparison"] = asdict(compared)
            words.append(str(compared))
        if table is not None:
            model.to_answers().save(table)
        return shown_model(model, out, None, step, words, **facts)
    if ridge is not None or lasso is not None or uneven or against is not None:
        raise InvalidValueError(
            "Expected no --ridge, --lasso, --uneven or --against with --public: there the "
            "shrinkage follows from the noise, and errors from the curve."
        )
    from blurfit.agreement.statement import PUBLIC_ROWS_ASSUMED
    from blurfit.model.course import fit_public

    common.require_agreed(public, release.agreement)
    asked = release.formula(formula, None, None)
    rows = common.read_public(public, release.agreement.schema, asked.features)
    model, balance = fit_public(release, rows, asked, family=family)
    facts, words = ask_model(model, hypotheses, effect, None if effect is None else picture)
    if picture is not None and effect is None:
        common.save_picture(balance.plot, picture)
    if table is not None:
        model.to_answers().save(table)
    if not common.for_scripts():
        click.echo(f"{balance}\n\n{PUBLIC_ROWS_ASSUMED}\n")
    return shown_model(model, out, None, step, words, public=_balance_facts(balance), **facts)


def _groups(
    release: "bf.PublishedMoments",
    formula: str | None,
    gap: tuple[str, str] | None,
    picture: Path | None,
    table: Path | None,
) -> Answer:
    """Show a model in each group, or what is explained of a gap between two of them."""
    groups = release.by_group()
    if gap is None:
        models = groups.fit(formula)
        found, words = models.coefficients, f"{groups.counts()}\n\n{models}"
    else:
        aim = release.formula(formula).target
        found = groups.decompose(formula, *gap)
        words = str(found)
        if any(
            isinstance(one, bf.Bands) and one.of == (aim,)
            for one in release.agreement.schema.features
        ):
            words = str(groups.pay_gap(aim, *gap, formula))
    if picture is not None:
        common.save_picture(found.plot, picture)
    if table is not None:
        found.save(table)
    return Answer(found.to_facts(), words)


def _survival(model: "SurvivalModel", by: str | None, picture: Path | None) -> Answer:
    """Show hazards and curves; of a question, the curves of its answers and whether they differ."""
    if picture is not None:
        common.save_picture(lambda: model.plot(by=by), picture)
    facts: dict[str, Any] = {}
    if by is None:
        words = str(model.summary())
        with suppress(InfeasibleError):  # the summary says why
            facts["coefficients"] = [asdict(one) for one in model.estimates()]
        with suppress(InfeasibleError):
            facts["curves"] = model.curve().rows()
    else:
        test, curves = model.log_rank(by), model.curve(by)
        words = f"{curves}\nlog-rank test of {by}: p = {test.p_value:.3g}"
        facts = {"curves": curves.rows(), "p_value": test.p_value}
    return Answer(facts, words)


def _balance_facts(balance: "Balance") -> dict[str, Any]:
    """Return how public rows were weighted; what is not known of contributors is None."""
    wanted = [None] * len(balance.names) if balance.wanted is None else balance.wanted.tolist()
    means = zip(balance.before.tolist(), balance.after.tolist(), wanted, strict=True)
    return {
        "rows": len(balance.weights),
        "effective_rows": balance.effective_rows,
        "largest_weight": balance.largest_ratio,
        "columns": {
            name: dict(zip(("public", "matched", "contributors"), each, strict=True))
            for name, each in zip(balance.names, means, strict=True)
        },
    }


def shown_model(
    model: "bf.PublishedModel",
    out: Path | None,
    moments: Path | None,
    step: str,
    told: Sequence[str] = (),
    **also: Any,
) -> Answer:
    """Write a model where it is wanted, and tell its summary; `also` says what else there is, and
    `told` says it in words.
    """
    from blurfit.cli._reports import model_facts

    if out is not None:
        model.save(out)
    written = {
        name: str(path) for name, path in (("model", out), ("moments", moments)) if path is not None
    }
    words = "\n\n".join([str(model.summary()), *told])
    if written:
        words += f"\n\nWrote {' and '.join(written.values())}."
    if "page" in also:
        words += f"\nEveryone can read it at {also['page']}"
    return Answer(written | also | model_facts(model), words, step)


def refuse_moments_of_input(agreement: "bf.Agreement", moments: Path | None) -> None:
    """Refuse --moments for `input`, before anything is done that cannot be undone."""
    if moments is not None and not agreement.shows_sums:
        raise InvalidValueError(
            f"Expected no --moments {moments} with mechanism='input': its sums are never shown, "
            "because its promise is for one model alone."
        )


def after_learning(out: Path, moments: Path | None) -> str:
    """Say what to do with a model, and with moments."""
    further = f'; `blurfit fit {moments} "TARGET ~ ."` fits others' if moments is not None else ""
    return f"`blurfit predict {out} TABLE`, `blurfit statement {out}`{further}."


@common.command("show", "model.json")
@click.argument("file", type=common.EXISTING_FILE)
@model_questions
@click.option(
    "--table-schema",
    is_flag=True,
    help="Print the columns of an agreement or a schema (.toml) as a Frictionless Table Schema.",
)
def show(
    file: Path,
    hypotheses: str | None,
    effect: str | None,
    picture: Path | None,
    table_schema: bool,
) -> Answer | None:
    """Show what is in a FILE: an agreement, a plan, a model or moments.

    An agreement is shown with its promise, a plan with its waves, a model with its summary, and
    moments with their correlations. A model can be asked for a --test or an --effect.
    """
    from blurfit.cli import _reports as reports

    if table_schema:
        from blurfit.cli.agree import read_proposal
        from blurfit.schema.imports import to_table_schema

        document = to_table_schema(read_proposal(file).schema)
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return None
    shown: Any
    words: Any
    step = ""
    kind = str(common.format_of(file)).removeprefix("blurfit-")
    if kind == "agreement":
        shown = bf.Agreement.load(file, allow_unproved=True)
        facts = reports.agreement_facts(shown)
        words = [reports.agreement_report(shown), f"Fingerprint {shown.fingerprint}."]
        for doubt in reports.doubts(shown):
            click.echo(f"Warning: {doubt}", err=True)
    elif kind == "plan":
        shown = bf.Plan.load(file)
        facts = reports.plan_facts(shown)
        words = f"{reports.plan_in_words(shown)}\nFingerprint {shown.fingerprint}."
        step = f"`blurfit next {file} RELEASES` writes a wave's agreement."
    elif kind == "model":
        shown = bf.PublishedModel.load(file)
        more, told = ask_model(shown, hypotheses, effect, None)
        facts = reports.model_facts(shown) | more
        words, step = "\n\n".join([str(shown.summary()), *told]), after_learning(file, None)
    elif kind == "moments":
        shown = bf.PublishedMoments.load(file)
        facts, words = reports.moments_facts(shown), reports.moments_report(shown)
        step = f'`blurfit fit {file} "{shown.agreement.schema.target.name} ~ ."` fits a model.'
    else:
        raise InvalidValueError(
            f"Expected {str(file)!r} to be an agreement, a plan, a model or moments in JSON, as "
            "blurfit writes them."
        )
    if (hypotheses is not None or effect is not None) and kind != "model":
        raise InvalidValueError(
            "Expected a model with --test or --effect: `blurfit fit` makes one."
        )
    if picture is not None:
        if kind == "plan":
            raise InvalidValueError(
                "Expected no --plot with a plan: only agreements, models and moments are drawn."
            )
        draw = shown.plot if effect is None else shown.effect(effect).plot
        common.save_picture(draw, picture)
    return Answer({"kind": kind, **facts}, words, step)


DIGITS = 5  # of a number's whole range: 1 where it goes from 0 to 100,000


@common.command("predict", "model.json people.csv --out predictions.csv")
@click.argument("model", type=common.EXISTING_FILE)
@click.argument("table", type=common.EXISTING_FILE)
@click.option(
    "--intervals", is_flag=True, help="Add a lower and an upper bound to each prediction."
)
@common.with_default(
    "--confidence",
    0.95,
    "Confidence of the intervals.",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
)
@common.out_file("A CSV file with a line for each row; default: standard output.")
def predict(
    model: Path, table: Path, intervals: bool, confidence: float, out: Path | None
) -> Answer | None:
    """Predict for each row of a TABLE (.csv, .xlsx, .parquet) with a published MODEL."""
    from blurfit.schema.table_files import TableFile

    published = bf.PublishedModel.load(model)
    file = TableFile(table, published.agreement.schema, only=published.features)
    level = confidence if intervals else None
    if out is None:
        if common.for_scripts():
            raise InvalidValueError("Expected --out besides --json: predictions are CSV.")
        _write(published, file, level, sys.stdout)
        return None
    if out.exists() and out.samefile(table):
        raise InvalidValueError(
            f"Expected --out {str(out)!r} to differ from the table, which it would overwrite."
        )
    # What is refused in the middle leaves nothing behind; and what is predicted tells of the rows.
    with replacing(out) as part, part.open("w", newline="", encoding="utf-8") as stream:
        rows = _write(published, file, level, stream)
    step = f"`blurfit statement {model}` says what the model promises."
    return Answer({"rows": rows, "out": str(out)}, f"Wrote {rows:,} predictions to {out}.", step)


@common.command("statement", "model.json")
@click.argument("file", type=common.EXISTING_FILE)
@common.with_default(
    "--format",
    "markdown",
    "markdown is rendered on a terminal; yaml is for OpenDP's registry of deployments, card "
    "for a model hub.",
    name="kind",
    type=click.Choice(["markdown", "html", "yaml", "card"]),
)
def statement(file: Path, kind: str) -> Answer:
    """Print the privacy statement of a published model or of moments in FILE."""
    from blurfit.model.statement import as_card, as_html, as_markdown, as_yaml

    moments = common.format_of(file) == bf.PublishedMoments.FORMAT
    published: Published = (bf.PublishedMoments if moments else bf.PublishedModel).load(file)
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
    if kind == "markdown" and sys.stdout.isatty():
        from rich.markdown import Markdown

        return Answer(facts, Markdown(text))
    return Answer(facts, text)


def _write(
    model: "bf.PublishedModel", file: "TableFile", confidence: float | None, stream: TextIO
) -> int:
    """Write a heading and a line for each row, and return the number of rows."""
    rows = 0
    heading = [_heading(model, confidence)]
    for part in file.chunks():
        with file.located(rows):
            found = list(_lines(model, part, confidence))  # before anything of it is written
        common.write_csv(stream, [*heading, *found])
        heading, rows = [], rows + len(found)
    common.write_csv(stream, heading)
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
