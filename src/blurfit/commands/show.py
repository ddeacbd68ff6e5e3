"""`blurfit show`: what a file of ours is, in words and tables."""

import json
from pathlib import Path
from typing import Any

import click

from blurfit.commands.common import (
    EXISTING_FILE,
    answer,
    as_json,
    format_of,
    next_step,
    picture_file,
    save_picture,
)
from blurfit.errors import InvalidValueError


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
    from blurfit.commands.proposals import read_proposal
    from blurfit.schema.imports import to_table_schema

    document = to_table_schema(read_proposal(file).schema)
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _agreement(file: Path, as_json: bool) -> Any:
    from rich.console import Console

    from blurfit.agreement.agreement import Agreement
    from blurfit.commands.facts import agreement_facts
    from blurfit.commands.presentation import agreement_report, doubts

    agreement = Agreement.load(file, allow_unproved=True)
    if as_json:
        answer({"kind": "agreement", **agreement_facts(agreement)}, "", as_json=True)
        return agreement
    Console().print(agreement_report(agreement))
    click.echo(f"Fingerprint {agreement.fingerprint}.")
    for doubt in doubts(agreement):
        click.echo(f"Warning: {doubt}", err=True)
    return agreement


def _model(file: Path, as_json: bool) -> Any:
    from blurfit.commands.facts import model_facts
    from blurfit.commands.fit import after_learning
    from blurfit.model.published import PublishedModel

    model = PublishedModel.load(file)
    answer({"kind": "model", **model_facts(model)}, str(model.summary()), as_json=as_json)
    next_step(after_learning(file, None), quiet=as_json)
    return model


def _moments(file: Path, as_json: bool) -> Any:
    from blurfit.commands.facts import moments_facts
    from blurfit.commands.presentation import moments_report
    from blurfit.model.moments import PublishedMoments

    moments = PublishedMoments.load(file)
    answer({"kind": "moments", **moments_facts(moments)}, moments_report(moments), as_json=as_json)
    target = moments.agreement.schema.target.name
    next_step(f'`blurfit fit {file} "{target} ~ ."` fits a model.', quiet=as_json)
    return moments


def _plan(file: Path, as_json: bool) -> Any:
    from blurfit.agreement.plan import Plan
    from blurfit.commands.waves import plan_facts, plan_in_words

    plan = Plan.load(file)
    words = f"{plan_in_words(plan)}\nFingerprint {plan.fingerprint}."
    answer({"kind": "plan", **plan_facts(plan)}, words, as_json=as_json)
    next_step(f"`blurfit next {file} RELEASES` writes a wave's agreement.", quiet=as_json)
    return plan
