"""Learning from files: `blurfit export`, `blurfit learn`."""

from contextlib import nullcontext
from pathlib import Path

import click

from blurfit.commands.common import (
    RefusedError,
    agreement_file,
    answer,
    as_json,
    load_agreement,
    moments_file,
    next_step,
    out_file,
    watched,
)
from blurfit.commands.waves import after_wave, course_options, read_course
from blurfit.errors import InvalidValueError


@click.command(
    epilog="Example: blurfit export agreement.json --store sqlite:///collection.db "
    "--out submissions.parquet"
)
@agreement_file
@click.option(
    "--store", "place", required=True, help="sqlite:///file, or postgresql://user@host/name."
)
@out_file("Where they are written: a .parquet or .arrow file.", required=True)
@as_json
def export(agreement: Path, place: str, out: Path, as_json: bool) -> None:
    """Write the submissions of a closed collection to a file, for `blurfit learn`.

    If no model has been published yet, from now on it is learned from this file, alone or with
    others: the store publishes none, and exports to no second place. A copy of the file is enough
    to break this: keep only one.
    """
    from blurfit.files.handover import export as write
    from blurfit.store.store import Store

    agreed = load_agreement(agreement)
    with Store(place) as store, watched("export", quiet=as_json) as watch:
        rows = write(store, agreed.fingerprint, out, watch)
    answer(
        {"rows": rows, "fingerprint": agreed.fingerprint, "out": str(out)},
        f"Wrote {rows:,} submissions to {out}.",
        as_json=as_json,
    )
    next_step(f"`blurfit learn {agreement} {out}`.", quiet=as_json)


@click.command(
    epilog="Example: blurfit learn agreement.json submissions.parquet --out learned.json "
    "--moments learned-moments.json"
)
@agreement_file
@click.argument("files", nargs=-1, required=True)
@out_file("Where the model is written.", default=Path("model.json"), show_default=True)
@moments_file
@click.option(
    "--engine",
    type=click.Choice(["local", "dask"]),
    default="local",
    show_default=True,
    help="This machine's cores, or a Dask cluster.",
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
    from blurfit.commands.fit import after_learning, refuse_moments_of_input, show_model
    from blurfit.files.engines.cluster import Cluster
    from blurfit.files.engines.threads import Threads
    from blurfit.files.learn import release_files
    from blurfit.model.course import learn_plan
    from blurfit.model.moments import WITHOUT_PUBLIC_ROWS, PublishedMoments
    from blurfit.model.published import PublishedModel

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
        model = PublishedModel.from_json(release.text())
        hint = after_learning(out, moments)
    elif release.moments is None:
        raise RefusedError(release.refusal or "This wave has no sums.")
    else:
        course = course.then(PublishedMoments.from_json(release.moments))
        model = learn_plan(course.plan, course.releases)
        hint = after_wave(course, plan_file, (*releases, moments or Path("MOMENTS")))
    if moments is not None and release.moments is not None:
        moments.write_text(release.moments, encoding="utf-8")
    show_model(model, out, moments, as_json=as_json)
    next_step(hint, quiet=as_json)
