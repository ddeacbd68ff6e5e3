"""`blurfit forecast`: what a collection will achieve, before anyone is asked."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.agreement.terms import MECHANISMS, Mechanism
from blurfit.commands.common import (
    EXISTING_FILE,
    answer,
    as_json,
    format_of,
    picture_file,
    save_picture,
    steps,
    watched,
)
from blurfit.commands.forecast_request import (
    population_of,
    refuse_for_an_agreement,
    sweep_asked_for,
)
from blurfit.commands.proposals import Numbers, ProposalFile, read_proposal
from blurfit.commands.public import public_option
from blurfit.errors import InvalidValueError
from blurfit.forecast import DRAWS, TOLERANCE
from blurfit.progress import Progress

if TYPE_CHECKING:
    from blurfit.agreement.plan import Plan
    from blurfit.agreement.proof_costs import ProofCosts
    from blurfit.forecast.choices import Advice, PublicForecast
    from blurfit.forecast.population import Population
    from blurfit.forecast.sweep import Forecast


@click.command(
    name="forecast",
    epilog="Example: blurfit forecast schema.toml --contributors 1e3:1e5 --epsilon 1 --draws 16",
)
@click.argument("file", type=EXISTING_FILE)
@click.option(
    "--contributors",
    type=Numbers(),
    default="1e3:1e9",
    show_default=True,
    help="How many people: a list such as 1e4,1e5, or a range, of two numbers per decade.",
)
@click.option("--epsilon", type=Numbers(), help="ε of the model; default: the file's, or 0.1:10.")
@click.option("--delta", type=float, help="δ of the model; default: the file's, or 1e-6.")
@click.option(
    "--local-epsilon", type=Numbers(), help="Targets for a single submission, besides none."
)
@click.option("--local-delta", type=float, help="δ of a single submission; default: 1e-6.")
@click.option("--mechanism", type=click.Choice(MECHANISMS), help="Only this one; default: both.")
@click.option("--weight-bound", type=float, help="η, bound on the model's ‖w‖.")
@click.option(
    "--public-data",
    type=EXISTING_FILE,
    help="Public records like those to be collected (.csv, .parquet); default: generated ones.",
)
@public_option(
    "Public rows of the features (.csv, .parquet), not the contributors' own: tell what they are "
    "worth, by reading each collection with and without them. (moment)"
)
@click.option(
    "--spectrum", type=Numbers(), help="Eigenvalues of E[xxᵀ] to assume, instead of data."
)
@click.option(
    "--explained",
    type=float,
    default=0.3,
    show_default=True,
    help="The R² of generated people, or of a spectrum.",
)
@click.option(
    "--within",
    type=float,
    default=TOLERANCE,
    show_default=True,
    help="How far above the error without privacy still counts as close enough.",
)
@click.option(
    "--advise", "advising", is_flag=True, help="Also choose the free terms, for the most people."
)
@click.option("--draws", type=int, default=DRAWS, show_default=True, help="Simulated collections.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the simulation.")
@as_json
@picture_file
def forecast_command(
    file: Path,
    contributors: tuple[float, ...],
    mechanism: Mechanism | None,
    within: float,
    advising: bool,
    draws: int,
    seed: int,
    as_json: bool,
    picture: Path | None,
    public: Path | None,
    **options: Any,
) -> None:
    """Forecast a collection's error: FILE is a proposal (.toml) or an agreement (.json).

    Of a plan (.json) it is forecast what contributors who lie could do to the model. Nothing
    private is read: the people are generated, public or assumed.
    """
    from rich.console import Console

    from blurfit.agreement.plan import Plan
    from blurfit.commands.forecast_report import liars_in_words, report
    from blurfit.commands.public_report import public_report
    from blurfit.forecast.sweep import forecast, forecast_agreement, whole_numbers
    from blurfit.schema.schema import titles

    if format_of(file) == Plan.STATED["format"]:
        _forecast_plan(Plan.load(file), options, seed, as_json=as_json)
        return
    proposal = read_proposal(file)
    sizes = whole_numbers(contributors)
    common: dict[str, Any] = {"contributors": sizes, "draws": draws, "seed": seed}
    if public is not None:
        if advising or picture is not None or mechanism == "input":
            raise InvalidValueError(
                "Expected no --advise, --plot or --mechanism input with --public, which compares "
                "two readings of moment."
            )
        with watched("forecast", quiet=as_json) as watch:
            beside = _beside(proposal, public, options, common, watch)
        if as_json:
            click.echo(json.dumps(beside.to_dict(), indent=2))
        else:
            Console().print(public_report(beside))
        return
    population, advice = population_of(proposal, options), []
    if proposal.agreement is not None:
        refuse_for_an_agreement(options, advising)
        with watched("forecast", quiet=as_json) as watch:
            progress = steps(watch, len(sizes))
            found = forecast_agreement(proposal.agreement, population, **common, progress=progress)
    else:
        asked = sweep_asked_for(proposal, mechanism, options)
        lines = math.prod(len(asked[axis]) for axis in ("mechanisms", "epsilons", "local_epsilons"))
        with watched("forecast", quiet=as_json) as watch:
            progress = steps(watch, lines * len(sizes))
            found = forecast(proposal.schema, population, **asked, **common, progress=progress)
        if advising:
            with watched("choose terms", quiet=as_json) as watch:
                advice = _advice(proposal, population, found, asked["terms"], seed, watch)
    if picture is not None:
        save_picture(found.plot, picture)
    moved, costs = _moved_by_liars(proposal, population), _proof_costs(proposal, max(sizes))
    if as_json:
        document = found.to_dict() | {"advice": [asdict(one) for one in advice], "liars": moved}
        if costs is not None:
            document["proofs"] = asdict(costs)
        click.echo(json.dumps(document, indent=2))
    else:
        Console().print(report(found, within, advice))
        if moved is not None:
            click.echo(f"\n{liars_in_words(moved, titles(proposal.schema))}")
        if costs is not None:
            click.echo(f"\n{costs.in_words()}")


def _forecast_plan(plan: "Plan", options: dict[str, Any], seed: int, *, as_json: bool) -> None:
    """What liars could do to a plan's model: its errors are not forecast."""
    from blurfit.commands.forecast_report import liars_in_words
    from blurfit.forecast.choices import moved_in_waves
    from blurfit.schema.schema import titles

    refuse_for_an_agreement(options, advising=False)
    population = population_of(ProposalFile(plan.schema), options)
    moved = _finite(moved_in_waves(plan, population, seed))
    answer({"liars": moved}, liars_in_words(moved, titles(plan.schema)), as_json=as_json)


def _finite(moved: dict[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in moved.items()}


def _moved_by_liars(
    proposal: ProposalFile, population: "Population"
) -> dict[str, float | None] | None:
    """By how much 1 % of liars could move each coefficient, where that can be told."""
    from blurfit.errors import InfeasibleError
    from blurfit.forecast.choices import moved_by_liars

    if proposal.agreement is None:
        return None
    try:
        found = moved_by_liars(proposal.agreement, population)
    except InfeasibleError:
        return None
    return _finite(found)


def _proof_costs(proposal: ProposalFile, contributors: int) -> "ProofCosts | None":
    """What proofs cost under an agreement that has them."""
    from blurfit.agreement.proof_costs import ProofCosts

    if proposal.agreement is None or not proposal.agreement.proofs:
        return None
    return ProofCosts.of(proposal.agreement, contributors)


def _advice(
    proposal: ProposalFile,
    population: "Population",
    found: "Forecast",
    terms: dict[str, Any],
    seed: int,
    watch: Progress,
) -> "list[Advice]":
    """The best terms for each line, at the largest size."""
    from blurfit.forecast.choices import EVALUATIONS, advise

    lines = found.lines()
    progress = steps(watch, EVALUATIONS * len(lines))
    return [
        advise(
            proposal.schema,
            population,
            contributors=cases[-1].contributors,
            epsilon=epsilon,
            mechanism=kind,
            local_epsilon=target,
            terms=terms,
            seed=seed,
            progress=progress,
        )
        for (kind, epsilon, target), cases in lines.items()
    ]


def _beside(
    proposal: ProposalFile,
    public: Path,
    options: dict[str, Any],
    common: dict[str, Any],
    watch: Progress,
) -> "PublicForecast":
    """Each collection alone and beside public rows: people like these, or as the options say."""
    from blurfit.commands.public import encoded_public, require_agreed
    from blurfit.forecast import choices

    rows = encoded_public(public, proposal.schema)
    if options["public_data"] is None and options["spectrum"] is None:
        people, rows = choices.people_and_rows(
            proposal.schema, rows, explained=options["explained"], seed=common["seed"]
        )
    else:
        people = population_of(proposal, options)
    sizes = len(common["contributors"])
    common = common | {"draws": min(common["draws"], choices.DRAWS)}
    if proposal.agreement is not None:
        refuse_for_an_agreement(options, advising=False)
        require_agreed(public, proposal.agreement)
        return choices.forecast_agreement_beside(
            proposal.agreement, people, rows, **common, progress=steps(watch, sizes)
        )
    asked = sweep_asked_for(proposal, "moment", options)
    axes = {name: asked[name] for name in ("epsilons", "local_epsilons", "terms")}
    if options["local_epsilon"] is not None:
        axes["local_epsilons"] = options["local_epsilon"]
    total = sizes * len(axes["epsilons"]) * len(axes["local_epsilons"])
    return choices.forecast_beside(
        proposal.schema, people, rows, **common, **axes, progress=steps(watch, total)
    )
