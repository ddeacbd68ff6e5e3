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
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import click

import blurfit as bf
from blurfit.cli import RefusedError
from blurfit.cli import _common as common
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.private_files import replacing

if TYPE_CHECKING:
    from blurfit.model.course import Course
    from blurfit.model.statement import Published
    from blurfit.model.survival import SurvivalModel
    from blurfit.schema.table_files import TableFile


@common.command(
    "learn", "agreement.json submissions.parquet --out learned.json --moments learned-moments.json"
)
def learn(
    agreement: common.ExistingFile,
    files: tuple[str, ...],
    *,
    out: common.Out = Path("model.json"),
    moments: common.MomentsOut | None,
    engine: Literal["local", "dask"] = "local",
    scheduler: str | None,
    workers: common.AtLeastOne | None,
    receipt: Annotated[Path | None, click.Path(path_type=Path)],
    plan: common.ExistingFile | None,
    release: tuple[common.Releases, ...],
) -> common.Answer:
    """Learn the one model of FILES of submissions: paths, folders, patterns or URLs.

    The release is recorded beside the files: running this again gives the same model, and a set of
    files that has changed is refused. To learn a wave of a plan, give --plan, and --release for
    each earlier wave.

    Options:
        out: Where the model is written.
        engine: This machine's cores, or a Dask cluster.
        scheduler: The cluster, such as tcp://10.0.0.1:8786; default: a new one.
        workers: How many threads, or workers of a new cluster.
        receipt: Also record the release here, besides in the folders of the files: a file, or a
            folder in which each agreement has its own. Needed as soon as one of FILES is a URL.
        plan: Learn a wave of this plan, together with its earlier waves (--release).
    """
    from blurfit.files.engines import Cluster, Threads
    from blurfit.files.learn import release_files
    from blurfit.model.release import OF_EXITS
    from blurfit.release_record import receipt_name

    if scheduler is not None and engine != "dask":
        raise InvalidValueError("Expected --engine dask with --scheduler.")
    agreed = bf.Agreement.load(agreement)
    if agreed.sums_alone and moments is None:
        raise InvalidValueError(
            f"Expected --moments FILE: all that is learned here are sums. {OF_EXITS}"
        )
    course = common.read_course(agreed, plan, release)
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
        found = release_files(agreed, files, chosen, receipt=receipt, progress=watch)
    if moments is not None and found.moments is not None:
        moments.write_text(found.moments, encoding="utf-8")
    if course is not None:
        if found.moments is None:
            raise RefusedError(found.refusal or "This wave has no sums.")
        course = course.then(bf.PublishedMoments.from_json(found.moments))
        step = after_wave(course, plan, (*release, moments or Path("MOMENTS")))
    if agreed.sums_alone:
        recorded = RECORDED.format(receipt_name(agreed.fingerprint))
        words = f"Wrote {moments}: sums, and no model yet. {OF_EXITS}\n{recorded}"
        if course is None:
            step = f"`blurfit fit {moments}`."
        elif len(course.releases) == len(course.plan):
            shown = "".join(f" --release {one}" for one in release)
            step = f"`blurfit fit {moments} --plan {plan}{shown}`."
        return common.Answer({"moments": str(moments), "model": None}, words, step)
    told = [RECORDED.format(receipt_name(agreed.fingerprint))]
    if course is None:
        model = bf.PublishedModel.from_json(found.text())
        return shown_model(model, out, moments, after_learning(out, moments), told)
    return shown_model(course.model(), out, moments, step, told)


RECORDED = (
    "The release is recorded beside the files, in {}. Keep it there: it makes the same files give "
    "the same model again, and others be refused."
)


def after_wave(course: "Course", plan: Path | None, releases: tuple[Path, ...]) -> str:
    """Say what to do when a wave has been released."""
    number = len(course.releases) + 1
    if number > len(course.plan):
        return "`blurfit predict` and `blurfit statement`; the plan has no further wave."
    given = " ".join(map(str, releases))
    return f"`blurfit next {plan} {given} --out agreement{number}.json`, for wave {number}."


@common.command("table", "moments.json income marital")
def table(
    moments: common.ExistingFile,
    question: str | None,
    other: str | None,
    *,
    shares: Literal["total", "row", "column", "counts"] = "total",
    quantile: float | None,
    population: common.ExistingFile | None,
    draw: common.AtLeastOne | None,
    plot: common.Picture | None,
    out: common.Out | None,
) -> common.Answer:
    """Tell means, shares and tables of published MOMENTS, with errors and tests.

    Without a QUESTION every question is described; with one, its shares or its mean; with an OTHER
    question, which has levels, the table of both, or the mean at each of its levels. Nothing of
    this costs privacy again.

    Options:
        shares: What a table of levels shows.
        quantile: A number's quantile instead of its mean, from bands.
        population: Weight to a population whose shares and means are known: JSON, or CSV with the
            columns question, level and value.
        draw: Write so many rows that look like the people into --out, for tools that want rows. No
            standard errors can be computed from them.
        out: Where rows are written (.csv, .xlsx); default: nowhere, they are only shown.
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
    if plot is not None:
        common.save_picture(found.plot, plot)
    if out is not None:
        found.save(out)
    step = "`blurfit table --help` tells what else can be asked; `blurfit fit` makes models."
    return common.Answer(found.to_facts(), str(found), step)


def _drawn(
    release: "bf.PublishedMoments", count: int, questions: list[str], out: Path | None
) -> common.Answer:
    """Write rows that nobody is in."""
    from blurfit.model.tables import save_frame

    if out is None:
        raise InvalidValueError("Expected --out FILE with --draw: rows are for other tools.")
    rows = release.synthesise(count, questions=questions or None)
    save_frame(rows, out)
    words = f"Wrote {count:,} rows to {out}. {rows.attrs['warning']}"
    return common.Answer({"out": str(out), "rows": count}, words)


Test = Annotated[str, 'Test hypotheses: "age = 0, hours = 2*age".']
Effect = Annotated[str, "Tell, and draw, the mean along this QUESTION."]


def ask_model(
    model: "bf.PublishedModel", hypotheses: str | None, effect: str | None, picture: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """Return facts and words that the options --test and --effect ask for, and draw."""
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
def fit(
    moments: common.ExistingFile,
    formula: str | None,
    *,
    ridge: float | None,
    lasso: float | None,
    uneven: bool,
    by_group: bool,
    gap: tuple[str, str] | None,
    against: str | None,
    table: common.NewFile | None,
    test: Test | None,
    effect: Effect | None,
    plot: common.Picture | None,
    out: common.Out | None,
) -> common.Answer:
    """Fit a model to published MOMENTS: any column by any others, at no cost in privacy.

    FORMULA is like "income ~ age + C(region)", or "income ~ ." for all other columns; without one,
    the agreement's target is predicted from everything else. --plot draws the coefficients, or an
    --effect.
    Where exits were sent, FORMULA is the question by whose answers curves are compared.

    Options:
        ridge: Penalty ½·ridge·‖w‖² per person, instead of our shrinkage.
        lasso: Penalty lasso·‖w‖₁ per person, which drops weak columns.
        uneven: Allow for residuals that spread unevenly: wider intervals.
        by_group: A model in each group, where the agreement has groups.
        gap (GROUP OTHER): What the other group's model explains of the gap between the means of two
            groups; with bands of the target also medians and quarters.
        against: Compare with a smaller or a larger FORMULA: F, AIC and BIC.
        table: Write the coefficients to this file (.csv, .xlsx).
        out: Where the model is written; default: nowhere, it is only shown.
    """
    published = bf.PublishedMoments.load(moments)
    if isinstance(published.agreement.schema.target, bf.TimeToEvent):
        return _survival(published.survival(), formula, plot)
    if by_group or gap:
        others = (ridge, lasso, against, test, effect, out, uneven or None)
        if any(one is not None for one in others):
            raise InvalidValueError(
                "Expected --by-group or --gap with a formula, --table and --plot alone: groups are "
                "compared by least squares."
            )
        return _groups(published, formula, gap, plot, table)
    step = "run it again with `--out model.json` to keep this model and to predict with it."
    if out is not None:
        step = after_learning(out, None)
    model = published.fit(formula, ridge=ridge, lasso=lasso, uneven=uneven)
    facts, words = ask_model(model, test, effect, plot)
    if against is not None:
        compared = model.compare(published.fit(against, uneven=uneven))
        facts["comparison"] = asdict(compared)
        words.append(str(compared))
    if table is not None:
        model.to_answers().save(table)
    return shown_model(model, out, None, step, words, **facts)


def _groups(
    release: "bf.PublishedMoments",
    formula: str | None,
    gap: tuple[str, str] | None,
    picture: Path | None,
    table: Path | None,
) -> common.Answer:
    """Show a model in each group, or what is explained of a gap between two of them."""
    groups = release.by_group()
    if gap is None:
        models = groups.fit(formula)
        found, words = models.coefficients, f"{groups.counts()}\n\n{models}"
    else:
        found = groups.decompose(formula, *gap)
        words = str(found)
    if picture is not None:
        common.save_picture(found.plot, picture)
    if table is not None:
        found.save(table)
    return common.Answer(found.to_facts(), words)


def _survival(model: "SurvivalModel", by: str | None, picture: Path | None) -> common.Answer:
    """Show hazards and curves; of a question, the curves of its answers and whether they differ."""
    if picture is not None:
        common.save_picture(lambda: model.plot(by=by), picture)
    facts: dict[str, Any] = {}
    if by is None:
        words = str(model.summary())
        with suppress(InfeasibleError):  # the summary says why
            facts["coefficients"] = [one.to_dict() for one in model.estimates()]
        with suppress(InfeasibleError):
            facts["curves"] = model.curve().rows()
    else:
        test, curves = model.log_rank(by), model.curve(by)
        words = f"{curves}\nlog-rank test of {by}: p = {test.p_value:.3g}"
        facts = {"curves": curves.rows(), "p_value": test.p_value}
    return common.Answer(facts, words)


def shown_model(
    model: "bf.PublishedModel",
    out: Path | None,
    moments: Path | None,
    step: str,
    told: Sequence[str] = (),
    **also: Any,
) -> common.Answer:
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
    return common.Answer(written | also | model_facts(model), words, step)


def after_learning(out: Path, moments: Path | None) -> str:
    """Say what to do with a model, and with moments."""
    further = f'; `blurfit fit {moments} "TARGET ~ ."` fits others' if moments is not None else ""
    return f"`blurfit predict {out} TABLE`, `blurfit statement {out}`{further}."


@common.command("show", "model.json")
def show(
    file: common.ExistingFile,
    *,
    test: Test | None,
    effect: Effect | None,
    plot: common.Picture | None,
    table_schema: bool,
) -> common.Answer | None:
    """Show what is in a FILE: an agreement, a plan, a model or moments.

    An agreement is shown with its promise, a plan with its waves, a model with its summary, and
    moments with their correlations. A model can be asked for a --test or an --effect.

    Options:
        table_schema: Print the columns of an agreement or a schema (.toml) as a Frictionless Table
            Schema.
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
        shown = bf.Agreement.load(file)
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
        more, told = ask_model(shown, test, effect, None)
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
    if (test is not None or effect is not None) and kind != "model":
        raise InvalidValueError(
            "Expected a model with --test or --effect: `blurfit fit` makes one."
        )
    if plot is not None:
        if kind == "plan":
            raise InvalidValueError(
                "Expected no --plot with a plan: only agreements, models and moments are drawn."
            )
        draw = shown.plot if effect is None else shown.effect(effect).plot
        common.save_picture(draw, plot)
    return common.Answer({"kind": kind, **facts}, words, step)


DIGITS = 5  # of a number's whole range: 1 where it goes from 0 to 100,000


@common.command("predict", "model.json people.csv --out predictions.csv")
def predict(
    model: common.ExistingFile,
    table: common.ExistingFile,
    *,
    intervals: bool,
    confidence: common.Share = 0.95,
    encoding: str = "utf-8-sig",
    out: common.Out | None,
) -> common.Answer | None:
    """Predict for each row of a TABLE (.csv, .xlsx, .parquet) with a published MODEL.

    Options:
        intervals: Add a lower and an upper bound to each prediction.
        confidence: Confidence of the intervals.
        encoding: The encoding of a CSV file, such as cp1252.
        out: A CSV file with a line for each row; default: standard output.
    """
    from blurfit.schema.table_files import TableFile

    published = bf.PublishedModel.load(model)
    schema, only = published.agreement.schema, published.features
    file = TableFile(table, schema, only=only, encoding=encoding)
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
    return common.Answer(
        {"rows": rows, "out": str(out)}, f"Wrote {rows:,} predictions to {out}.", step
    )


@common.command("statement", "model.json")
def statement(
    file: common.ExistingFile, *, format_: Literal["markdown", "html", "yaml", "card"] = "markdown"
) -> common.Answer:
    """Print the privacy statement of a published model or of moments in FILE.

    Options:
        format_: markdown is rendered on a terminal; yaml is for OpenDP's registry of deployments,
            card for a model hub.
    """
    from blurfit.model.statement import as_card, as_html, as_markdown, as_yaml

    moments = common.format_of(file) == bf.PublishedMoments.FORMAT
    published: Published = (bf.PublishedMoments if moments else bf.PublishedModel).load(file)
    facts = published.guarantee.facts() | {
        "count": published.count,
        "quorum": published.agreement.quorum,
    }
    if format_ != "card":
        text = {"markdown": as_markdown, "html": as_html, "yaml": as_yaml}[format_](published)
    elif isinstance(published, bf.PublishedModel):
        text = as_card(published)
    else:
        raise InvalidValueError(
            "Expected a model for --format card: fit one to the moments with `blurfit fit`."
        )
    if format_ == "markdown" and sys.stdout.isatty():
        from rich.markdown import Markdown

        return common.Answer(facts, Markdown(text))
    return common.Answer(facts, text)


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
