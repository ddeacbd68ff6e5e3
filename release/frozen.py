"""Record what every path writes under replayed noise, and compare it with an earlier record.

Agreements, submissions, releases, models and statements must not change when code is moved. Run
this in the older tree and in the newer one, each with its own packages on `PYTHONPATH`:

    python release/frozen.py record build/before
    python release/frozen.py record build/after
    python release/frozen.py compare build/before build/after

A path that a tree does not have is recorded as the exception that it raises.
"""

# ruff: noqa: D103 - the name of a path says what it records

import argparse
import contextlib
import importlib
import io
import json
import os
import random
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from unittest import mock
from zlib import crc32

import numpy as np

from blurfit import randomness

PATHS: dict[str, Callable[[Path], None]] = {}
LEVELS = ["north", "south", "west"]


def path(work: Callable[[Path], None]) -> Callable[[Path], None]:
    """Add a path to those that are recorded."""
    PATHS[work.__name__] = work
    return work


@contextlib.contextmanager
def replayed(name: str) -> Iterator[None]:
    """Draw noise from a stream that the name decides, in one thread."""
    with (
        mock.patch.object(randomness, "octets", random.Random(crc32(name.encode())).randbytes),
        mock.patch.object(os, "cpu_count", return_value=1),
    ):
        yield


def blurfit(*words: str) -> str:
    """Run a command in this process; return what it prints."""
    from click.testing import CliRunner

    from blurfit.cli import main

    done = CliRunner().invoke(
        main, list(words), env={"COLUMNS": "200", "BLURFIT_HOME": str(Path("home").resolve())}
    )
    if done.exit_code:
        raise RuntimeError(f"{words}: {done.output} {done.exception!r}")
    return done.stdout


def people(count: int, seed: int = 0) -> dict[str, Any]:
    """Draw people who do not exist."""
    generator = np.random.default_rng(seed)
    age, education = generator.uniform(18, 90, count), generator.integers(0, 21, count)
    region = generator.choice(LEVELS, count)
    married = generator.integers(0, 2, count)
    income = 8000 + 300 * age + 1500 * education + 5000 * (region == "west") + 3000 * married
    rate = np.exp(-0.7 + 0.02 * (age - 18) + 0.4 * married)
    return {
        "age": age,
        "education": education,
        "region": region,
        "married": married,
        "income": np.clip(income + generator.normal(0, 8000, count), 0, 100_000),
        "visits": np.minimum(generator.poisson(rate), 12),
    }


def schema(target: str = "number") -> Any:
    from blurfit import Binary, Categorical, Numeric, Schema

    targets: dict[str, Any] = {
        "number": Numeric("income", 0, 100_000),
        "label": Numeric("income", 0, 100_000).above(45_000),
        "count": Numeric("visits", 0, 12),
    }
    features: list[Any] = [
        Numeric("age", 18, 90),
        Numeric("education", 0, 20),
        Categorical("region", LEVELS),
        Binary("married"),
    ]
    return Schema(features, targets[target])


def write_csv(place: Path, table: dict[str, Any]) -> None:
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    lines = [",".join(table), *(",".join(map(str, row)) for row in rows)]
    place.write_text("\n".join(lines) + "\n")


def write(place: Path, text: Any) -> None:
    place.write_text(text if isinstance(text, str) else json.dumps(text, indent=1, default=repr))


def write_published(folder: Path, name: str, published: Any) -> None:
    """Write a model or moments, with their statement and summary."""
    from blurfit.model.statement import as_markdown, as_yaml

    write(folder / f"{name}.json", published.to_json())
    with contextlib.suppress(AttributeError):
        write(folder / f"{name}.summary.txt", str(published.summary()))
    write(folder / f"{name}.md", as_markdown(published))
    write(folder / f"{name}.de.md", as_markdown(published, language="de"))
    write(folder / f"{name}.yaml", as_yaml(published))


# -- agreements and submissions


@path
def agreements(folder: Path) -> None:
    from blurfit import Agreement

    two = [("Office", "https://office.example"), ("University", "https://university.example")]
    variants: dict[str, dict[str, Any]] = {
        "plain": {},
        "zero_out": {"neighbours": "zero-out"},
        "local": {"local_epsilon": 30.0, "local_delta": 1e-6},
        "anyone": {"admission": "anyone"},
        "database_noise": {"database_noise": True},
        "two": {"databases": two},
        "two_unproved": {"databases": two, "proofs": False, "admission": "anyone"},
        "groups": {"groups": "region", "overlap": 0.3},
        "weighting": {
            "weighting": "region",
            "factors": (("north", 1.0), ("south", 0.5), ("west", 0.7)),
        },
        "diaries": {"diaries": True},
    }
    for name, terms in variants.items():
        for target in ("number", "label"):
            promise: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "quorum": 5000}
            try:
                agreement = Agreement.propose(schema(target), **promise | terms)
            except Exception as error:
                write(folder / f"{name}.{target}.error", f"{type(error).__name__}: {error}")
                continue
            write(folder / f"{name}.{target}.json", agreement.to_json())
            write(
                folder / f"{name}.{target}.numbers",
                repr(
                    (
                        agreement.epsilon,
                        agreement.delta,
                        agreement.honest,
                        agreement.width,
                        agreement.mu,
                    )
                ),
            )


@path
def plans(folder: Path) -> None:
    from blurfit.agreement.plan import Plan

    for task in ("number", "label", "count"):
        for waves in (2, 3, "auto"):
            for databases in ((), (("A", "https://a.example"), ("B", "https://b.example"))):
                plan = Plan.propose(
                    schema(task),
                    waves=waves,
                    counts=task == "count",
                    epsilon=1.0,
                    delta=1e-6,
                    quorum=40_000,
                    databases=databases,
                    admission="anyone",
                )
                name = f"{task}.{waves}.{len(databases)}"
                plan.save(folder / f"{name}.json")
                write(folder / f"{name}.first.json", plan.first().to_json())


@path
def submissions(folder: Path) -> None:
    from blurfit import Agreement, perturb, perturb_table
    from blurfit.contributor.blur import share

    two = [("A", "https://a.example"), ("B", "https://b.example")]
    promise: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6, "quorum": 50}
    table = people(60)
    plain = Agreement.propose(schema(), **promise)
    written = perturb_table(plain, table)
    (folder / "moment.bin").write_bytes(written.identifiers.tobytes() + written.numbers.tobytes())
    record = {name: column[0] for name, column in table.items()}
    single = perturb(plain, record)
    (folder / "single.bin").write_bytes(single.numbers.tobytes())
    for proofs in (False, True):
        agreement = Agreement.propose(schema(), databases=two, proofs=proofs, **promise)
        shared = share(agreement, table)
        parts = (shared.first, shared.second)
        text = b"".join(one.identifiers.tobytes() + one.words.tobytes() for one in parts)
        (folder / f"shares.{proofs}.bin").write_bytes(text)


# -- the way of files, by the command line


def collect_in_files(
    folder: Path,
    terms: str,
    asked: tuple[str, ...] = ("region", "married"),
) -> None:
    from blurfit.schema.imports import to_toml

    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        Path("schema.toml").write_text(f"{to_toml(schema())}\n[terms]\n{terms}")
        write_csv(Path("people.csv"), people(600))
        write(folder / "agree.txt", blurfit("agree", "schema.toml"))
        blurfit("contribute", "agreement.json", "people.csv", "--out", "blurred.parquet")
        learned = ["learn", "agreement.json", "blurred.parquet", "--out", "model.json"]
        blurfit(*learned, "--moments", "moments.json")
        for name in ("agreement.json", "model.json", "moments.json"):
            if Path(name).exists():
                (folder / name).write_bytes(Path(name).read_bytes())
        for kind in ("markdown", "html", "yaml", "card"):
            write(
                folder / f"statement.{kind}", blurfit("statement", "model.json", "--format", kind)
            )
        write(folder / "show.txt", blurfit("show", "model.json"))
        if Path("moments.json").exists():
            write(folder / "fit.txt", blurfit("fit", "moments.json", "married ~ age + income"))
            write(folder / "table.txt", blurfit("table", "moments.json", *asked))


@path
def files_moment(folder: Path) -> None:
    collect_in_files(folder, "epsilon = 20\ndelta = 1e-6\nquorum = 500\n")


@path
def files_groups(folder: Path) -> None:
    terms = 'epsilon = 20\ndelta = 1e-6\nquorum = 500\ngroups = "region"\n'
    collect_in_files(folder, terms, asked=("income",))


@path
def waves_in_files(folder: Path) -> None:
    from blurfit import Agreement, PublishedMoments, perturb_table
    from blurfit.agreement.plan import Plan
    from blurfit.model.course import learn_plan, next_agreement
    from blurfit.simulation import exact_totals

    for task in ("number", "label", "count"):
        plan = Plan.propose(
            schema(task), waves=3, counts=task == "count", epsilon=8.0, delta=1e-6, quorum=3000
        )
        releases: list[PublishedMoments] = []
        everyone, start = people(plan.terms.quorum, 3), 0
        for number, quorum in enumerate(plan.quorums):
            wave: Agreement = next_agreement(plan, releases)
            part = {name: column[start : start + quorum] for name, column in everyone.items()}
            start += quorum
            write(folder / f"{task}.{number}.agreement.json", wave.to_json())
            sent = perturb_table(wave, part)
            (folder / f"{task}.{number}.bin").write_bytes(sent.numbers[:50].tobytes())
            from blurfit.model.release import moments_of
            from blurfit.simulation import sampler_for

            generator = np.random.default_rng(number)
            sums = sampler_for(wave, exact_totals(wave, part)).draw(generator)
            releases.append(moments_of(wave, sums))
            write(folder / f"{task}.{number}.release.json", releases[-1].to_json())
        write_published(folder, f"{task}.model", learn_plan(plan, releases))


# -- estimators


def fitted(folder: Path, name: str, estimator: Any, *rows: Any, **more: Any) -> Any:
    estimator.fit(*rows, **more)
    for index, published in enumerate(getattr(estimator, "releases_", ())):
        write(folder / f"{name}.{index}.release.json", published.to_json())
    if hasattr(estimator, "moments_"):
        write_published(folder, f"{name}.moments", estimator.moments_)
    if hasattr(estimator, "public_input_"):  # of the paper, whose models are coefficients alone
        stated = estimator.coef_.tolist(), np.ravel(estimator.intercept_).tolist()
        write(folder / f"{name}.coefficients.txt", f"{stated}\n{estimator.public_input_}")
    elif hasattr(estimator, "model_"):
        write_published(folder, f"{name}.model", estimator.model_)
    write(folder / f"{name}.guarantee.txt", repr(estimator.guarantee_))
    with contextlib.suppress(Exception):
        write(folder / f"{name}.summary.txt", str(estimator.summary()))
    return estimator


def design(count: int, target: str) -> tuple[Any, Any, dict[str, Any]]:
    import pandas as pd  # type: ignore[import-untyped]

    table = pd.DataFrame(people(count, 7))
    bounds = {"age": (18, 90), "education": (0, 20), "region": LEVELS, "married": (0, 1)}
    return table[list(bounds)], table[target], bounds


@path
def regressors(folder: Path) -> None:
    from blurfit import InputPerturbationRegressor, MomentPerturbationRegressor

    X, y, bounds = design(5000, "income")
    common: dict[str, Any] = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "bounds": bounds,
        "target_bounds": (0, 100_000),
    }
    variants: dict[str, dict[str, Any]] = {
        "one": {"waves": 1},
        "auto": {},
        "three": {"waves": 3},
        "zero_out": {"waves": 1, "neighbours": "zero-out"},
        "per_record": {"waves": 1, "per_record": True},
    }
    for name, more in variants.items():
        fitted(folder, name, MomentPerturbationRegressor(**common | more), X, y)
    fitted(folder, "input", InputPerturbationRegressor(**common), X, y)
    weights = np.where(X["married"] == 1, 1.0, 0.5)
    weighted = MomentPerturbationRegressor(waves=1, **common)
    with contextlib.suppress(Exception):
        fitted(folder, "weighted", weighted, X, y, sample_weight=weights)


@path
def classifiers(folder: Path) -> None:
    from blurfit import InputPerturbationClassifier, MomentPerturbationClassifier

    X, income, bounds = design(5000, "income")
    label = np.where(income > 45_000, "yes", "no")
    three = np.array(["low", "mid", "high"])[
        (income > 35_000).astype(int) + (income > 50_000).astype(int)
    ]
    common: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "bounds": bounds}
    two: dict[str, Any] = {"classes": ["no", "yes"]}
    all_three: dict[str, Any] = {"classes": ["low", "mid", "high"]}
    fitted(folder, "one", MomentPerturbationClassifier(waves=1, **common, **two), X, label)
    fitted(folder, "auto", MomentPerturbationClassifier(**common, **two), X, label)
    fitted(folder, "three", MomentPerturbationClassifier(**common, **all_three), X, three)
    fitted(folder, "input", InputPerturbationClassifier(**common, **two), X, label)


@path
def counts(folder: Path) -> None:
    from blurfit import MomentPerturbationRegressor

    X, y, bounds = design(5000, "visits")
    common: dict[str, Any] = {
        "epsilon": 4.0,
        "delta": 1e-6,
        "bounds": bounds,
        "target_bounds": (0, 12),
    }
    fitted(folder, "counts", MomentPerturbationRegressor(family="poisson", **common), X, y)


@path
def repeated_rows(folder: Path) -> None:
    from blurfit import MomentPerturbationRegressor

    X, y, bounds = design(5000, "income")
    person = np.arange(5000) // 4
    X = X.drop(columns="region")
    del bounds["region"]
    common: dict[str, Any] = {
        "epsilon": 4.0,
        "delta": 1e-6,
        "bounds": bounds,
        "target_bounds": (0, 100_000),
    }
    for effects in ("pooled", "within"):
        model = MomentPerturbationRegressor(effects=effects, **common)
        fitted(folder, effects, model, X, y, groups=person)


@path
def survival(folder: Path) -> None:
    from blurfit import MomentPerturbationSurvival

    X, _, bounds = design(5000, "income")
    generator = np.random.default_rng(9)
    time = np.minimum(generator.exponential(10 + X["married"] * 5), 12)
    event = time < 12
    y = np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])
    model = MomentPerturbationSurvival(epsilon=4.0, delta=1e-6, bounds=bounds, horizon=12, bands=6)
    model.fit(X, y)
    for index, published in enumerate(getattr(model, "releases_", ())):
        write(folder / f"{index}.release.json", published.to_json())
    write_published(folder, "moments", model.moments_)
    write(folder / "summary.txt", str(model.summary()))
    write(folder / "guarantee.txt", repr(model.guarantee_))


@path
def answers(folder: Path) -> None:
    """What released moments answer: tables, tests, means by group, correlations, paths."""
    from blurfit import MomentPerturbationRegressor

    X, y, bounds = design(20_000, "income")
    model = MomentPerturbationRegressor(
        epsilon=2.0, delta=1e-6, bounds=bounds, target_bounds=(0, 100_000), waves=1
    ).fit(X, y)
    moments, single = model.moments_, cast("Any", model.model_)
    questions: dict[str, Callable[[], object]] = {
        "describe": lambda: moments.describe(),
        "table": lambda: moments.table("region", "married"),
        "means": lambda: moments.table("income", "region"),
        "correlations": lambda: moments.correlations(),
        "fit": lambda: moments.fit("married ~ age + income").summary(),
        "ridge": lambda: moments.ridge_path(),
        "effect": lambda: single.effect("age"),
        "standardised": lambda: moments.standardised("income ~ age + married"),
    }
    for name, ask in questions.items():
        try:
            write(folder / f"{name}.txt", str(ask()))
        except Exception as error:
            write(folder / f"{name}.txt", f"{type(error).__name__}: {error}")


# -- databases


def server(name: str) -> Any:
    """Import a module of the server, wherever this tree has it."""
    try:
        return importlib.import_module(f"blurfit_server.{name}")
    except ModuleNotFoundError:
        return importlib.import_module(f"blurfit.{name}")


@path
def stores(folder: Path) -> None:
    from blurfit import Agreement, perturb_table

    Store = server("store.store").Store
    variants: dict[str, dict[str, Any]] = {
        "plain": {},
        "database_noise": {"database_noise": True},
    }
    for name, terms in variants.items():
        promise: dict[str, Any] = {
            "epsilon": 20.0,
            "delta": 1e-6,
            "quorum": 100,
            "admission": "anyone",
        }
        agreement = Agreement.propose(schema(), **promise | terms)
        with tempfile.TemporaryDirectory() as place, Store(Path(place) / "c.db") as store:
            store.open(agreement)
            store.add(agreement, perturb_table(agreement, people(200)))
            store.close_collection(agreement.fingerprint)
            model = store.publish(agreement)
            write(folder / f"{name}.model.json", model.to_json())
            write(folder / f"{name}.moments.json", store.moments_text(agreement.fingerprint))


def record(folder: Path) -> int:
    """Write what each path comes to; return how many failed."""
    failed = 0
    for name, work in PATHS.items():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        with replayed(name), contextlib.redirect_stderr(io.StringIO()):
            try:
                work(place)
            except Exception:
                failed += 1
                write(place / "ERROR", traceback.format_exc())
                print(f"{name}: {traceback.format_exc().splitlines()[-1][:300]}")
    return failed


def compare(before: Path, after: Path) -> int:
    """Print which files differ; return how many."""
    names = {
        one.relative_to(base)
        for base in (before, after)
        for one in base.rglob("*")
        if one.is_file()
    }
    differing = 0
    for name in sorted(names):
        first, second = before / name, after / name
        if not (first.exists() and second.exists()):
            state = "only before" if first.exists() else "only after"
        elif first.read_bytes() != second.read_bytes():
            state = "differs"
        else:
            continue
        differing += 1
        print(f"{state}: {name}")
    print(f"{len(names)} files, {differing} differ")
    return differing


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("verb", choices=["record", "compare"])
    parser.add_argument("folders", nargs="+", type=Path)
    asked = parser.parse_args()
    if asked.verb == "record":
        sys.exit(record(asked.folders[0].resolve()) > 0)
    sys.exit(compare(*asked.folders) > 0)


if __name__ == "__main__":
    main()
