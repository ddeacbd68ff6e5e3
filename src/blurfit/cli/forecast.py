"""Before anyone is asked: `blurfit calibrate` and `guarantee` turn a promise into noise and back,
and `blurfit forecast` tells what a collection will achieve.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import blurfit as bf
from blurfit.agreement.terms import MECHANISMS, Mechanism
from blurfit.cli import _common as common
from blurfit.cli._common import Answer
from blurfit.cli.agree import ProposalFile, given, read_proposal, term_options
from blurfit.errors import InvalidValueError, Progress
from blurfit.forecast import DRAWS, TOLERANCE

if TYPE_CHECKING:
    from blurfit.agreement.numbers import ProofCosts
    from blurfit.forecast.choices import Advice, PublicForecast
    from blurfit.forecast.population import People
    from blurfit.forecast.sweep import Forecast


# What only one of the mechanisms knows, and what it needs.
_ONLY = {
    "moment": ("constant", "radius", "sigma"),
    "input": (
        *("dimension", "q_bound", "p_bound", "weight_bound", "rule", "split", "local_share"),
        *("debias", "alpha", "sigma_u", "sigma_b", "ridge"),
    ),
}

_NEEDED = {"moment": ("constant",), "input": ("dimension", "q_bound", "p_bound")}
_OF_THE_NOISE = {"moment": ("sigma",), "input": ("sigma_u", "sigma_b")}
_setting_options = common.options(
    term_options("quorum", required=("quorum",)),
    term_options("mechanism", "neighbours", "constant"),
    click.option(
        "--radius", type=float, help="Bound on the weighted columns' norm; default: 1. (moment)"
    ),
    click.option("--dimension", type=int, help="d, the length of q and p. (input)"),
    click.option("--q-bound", type=float, help="R_q, bound on every record's ‖q‖. (input)"),
    click.option("--p-bound", type=float, help="R_p, bound on every record's ‖p‖. (input)"),
    term_options("weight_bound"),
)


@common.command("calibrate", "--epsilon 1 --delta 1e-6 --quorum 32768 --constant 0.5")
@term_options("epsilon", "delta", required=("epsilon", "delta"))
@_setting_options
@term_options("local_epsilon", "local_delta", "rule", "split", "local_share", "debias")
@click.option("--alpha", type=float, help="The paper's balance: ε ← αε. (input)")
def calibrate(**typed: Any) -> Answer:
    """Turn a promise (ε, δ) and public bounds into noise scales."""
    from blurfit.theory import input_calibration as of_input

    mechanism, found = _asked(typed)
    calibration = _moment(found) if mechanism == "moment" else of_input.calibrate(**found)
    from blurfit.cli._reports import calibration_report

    return Answer(calibration.to_dict(), calibration_report(calibration))


@common.command("guarantee", "--delta 1e-6 --quorum 32768 --constant 0.5 --sigma 7.5 --count 20000")
@click.option("--epsilon", type=float, help="Give ε to learn δ.")
@click.option("--delta", type=float, help="Give δ to learn ε.")
@_setting_options
@click.option("--count", type=int, help="How many honest records came; default: the quorum.")
@click.option("--sigma", type=float, help="Noise on the sums. (moment)")
@click.option("--sigma-u", type=float, help="Noise on all q together. (input)")
@click.option("--sigma-b", type=float, help="Noise on all p together. (input)")
@click.option("--ridge", type=float, help="Δ_in, the ridge that the database adds. (input)")
def guarantee(**typed: Any) -> Answer:
    """Tell which promise given noise keeps: the inverse of calibrate."""
    from blurfit.agreement.statement import releases_in_words
    from blurfit.theory import input_calibration as of_input

    mechanism, found = _asked(typed, noise=True)
    kept = _kept_by_moment(found) if mechanism == "moment" else of_input.guarantee(**found)
    return Answer(
        asdict(kept),
        f"Kept: epsilon = {kept.epsilon:.6g}, delta = {kept.delta:.6g} "
        f"({kept.neighbours}, {releases_in_words(kept)}).",
    )


def _asked(typed: Mapping[str, Any], *, noise: bool = False) -> tuple[str, dict[str, Any]]:
    """Return the mechanism and what was typed for it; refuse what only the other one knows."""
    found = given(dict(typed))
    mechanism = found.pop("mechanism", "moment")
    other = "input" if mechanism == "moment" else "moment"
    if wrong := _flags(name for name in _ONLY[other] if name in found):
        raise InvalidValueError(
            f"Expected no {wrong} with --mechanism {mechanism}: it belongs to {other}."
        )
    needed = (*_NEEDED[mechanism], *(_OF_THE_NOISE[mechanism] if noise else ()))
    if missing := _flags(name for name in needed if name not in found):
        raise InvalidValueError(f"Expected {missing} with --mechanism {mechanism}.")
    return mechanism, found


def _flags(names: Any) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _moment(found: dict[str, Any]) -> "bf.MomentCalibration":
    from blurfit.theory.moments import Reach, sensitivity, submission_sensitivity

    constant, radius = found.pop("constant"), found.pop("radius", 1.0)
    neighbours = found.get("neighbours", "replace")
    reach = Reach(
        sensitivity(constant, radius, neighbours), submission_sensitivity(constant, radius)
    )
    return bf.calibrate_moment(reach=reach, **found)


def _kept_by_moment(found: dict[str, Any]) -> "bf.ModelGuarantee":
    """Return what uncalibrated noise keeps: the promise is computed from σ alone."""
    from blurfit.errors import positive

    sigma, count = found.pop("sigma"), found.pop("count", None)
    epsilon, delta = found.pop("epsilon", None), found.pop("delta", None)
    positive(sigma=sigma)
    if (epsilon is None) == (delta is None):
        raise InvalidValueError("Expected one of --epsilon and --delta: the other is computed.")
    some = _moment({**found, "epsilon": 1.0, "delta": 0.5})  # for its reach; σ replaces its noise
    noise = replace(some, sigma=sigma, mu=some.reach.sums / sigma)
    return noise.guarantee(count=count, epsilon=epsilon, delta=delta)


PER_DECADE = 2  # points of a range such as 1e3:1e9


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers as 1,3,10 or as a range 0.1:10, of which two points a decade are taken."""

    name = "range"

    def convert(
        self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Return the numbers."""
        if isinstance(value, tuple):
            return value
        try:
            return _numbers(str(value))
        except ValueError:
            self.fail(f"{value!r} is neither a list such as 1,3,10 nor a range such as 0.1:10.")


def _numbers(text: str) -> tuple[float, ...]:
    if ":" not in text:
        found = [float(part) for part in text.split(",")]
    else:
        first, last = (float(part) for part in text.split(":"))
        if not 0 < first <= last < float("inf"):
            raise ValueError
        steps = max(1, round(PER_DECADE * math.log10(last / first)))
        ratio = last / first
        found = [float(f"{first * ratio ** (k / steps):.2g}") for k in range(steps + 1)]
    if not all(0 < value < float("inf") for value in found):
        raise ValueError
    return tuple(dict.fromkeys(found))


def sweep_asked_for(
    proposal: ProposalFile, mechanism: Mechanism | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Return what to sweep over: options before the proposal, the proposal before defaults."""
    terms = dict(proposal.terms)
    terms.pop("quorum", None)  # as many as contribute
    terms.pop("colluders", None)  # of waves: here all of them are honest
    planned = terms.pop("epsilon", None)
    epsilons = options["epsilon"] or ((planned,) if planned else (0.1, 0.32, 1.0, 3.2, 10.0))
    kind = terms.pop("mechanism", None) if mechanism is None else mechanism
    terms.pop("mechanism", None)
    local = terms.pop("local_epsilon", None)
    targets = options["local_epsilon"] or ((local,) if local else ())
    terms |= {
        name: options[name]
        for name in ("delta", "local_delta", "weight_bound")
        if options[name] is not None
    }
    if not targets:
        terms.pop("local_delta", None)
    return {
        "epsilons": epsilons,
        "mechanisms": (kind,) if kind else MECHANISMS,
        "local_epsilons": (None, *targets),
        "terms": terms,
    }


def population_of(proposal: ProposalFile, options: dict[str, Any]) -> "People":
    """Return the people of a public file, of a spectrum, or generated ones."""
    from blurfit.forecast.population import Population
    from blurfit.forecast.sent import EVENTS, Exits

    path, spectrum, explained = (options[name] for name in ("public_data", "spectrum", "explained"))
    events = options.get("events")
    if isinstance(proposal.schema.target, bf.TimeToEvent):
        if spectrum is not None or (path is not None and events is not None):
            raise InvalidValueError(
                "Expected no --spectrum for a time to an event, and --events for generated people."
            )
        if path is not None:
            return Exits.of_file(proposal.schema, path)
        return Exits.generated(proposal.schema, events=EVENTS if events is None else events)
    if events is not None:
        raise InvalidValueError("Expected no --events: the target is no time to an event.")
    if path is not None and spectrum is not None:
        raise InvalidValueError(
            "Expected --public-data or --spectrum, not both: each describes the population."
        )
    if path is not None:
        return Population.of_file(proposal.schema, path)
    if spectrum is not None:
        return Population.of_spectrum(proposal.schema, spectrum, explained=explained)
    return Population.generated(proposal.schema, explained=explained)


def refuse_for_an_agreement(options: dict[str, Any], advising: bool) -> None:
    """Refuse options for what an agreement has fixed."""
    fixed = ("epsilon", "delta", "local_epsilon", "local_delta", "weight_bound")
    given = [f"--{name.replace('_', '-')}" for name in fixed if options[name] is not None]
    given += ["--advise"] if advising else []
    if given:
        raise InvalidValueError(
            f"Expected no {', '.join(given)} with an agreement, which has fixed that; give a "
            "proposal (.toml) to compare."
        )


@common.command("forecast", "schema.toml --contributors 1e3:1e5 --epsilon 1 --draws 16")
@click.argument("file", type=common.EXISTING_FILE)
@common.with_default(
    "--contributors",
    "1e3:1e9",
    "How many people: a list such as 1e4,1e5, or a range, of two numbers per decade.",
    type=Numbers(),
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
    type=common.EXISTING_FILE,
    help="Public records like those to be collected, a table; default: generated ones.",
)
@common.public_option(
    "Public rows of the features (a table), not the contributors' own: tell what they are "
    "worth, by reading each collection with and without them. (moment)"
)
@click.option(
    "--spectrum", type=Numbers(), help="Eigenvalues of E[xxᵀ] to assume, instead of data."
)
@common.with_default("--explained", 0.3, "The R² of generated people, or of a spectrum.")
@click.option(
    "--events",
    type=float,
    help="Of a time to an event: the share of generated people who have it; default: a third.",
)
@common.with_default(
    "--rows-each",
    1,
    "How many rows each person has, who sends their mean (diaries): tell what they add to one.",
)
@click.option(
    "--alike",
    type=float,
    help="Of what differs between rows, the share that stays the same in a person; default: 0.5.",
)
@common.with_default(
    "--within", TOLERANCE, "How far above the error without privacy still counts as close enough."
)
@click.option(
    "--advise", "advising", is_flag=True, help="Also choose the free terms, for the most people."
)
@common.with_default("--draws", DRAWS, "Simulated collections.")
@common.with_default("--seed", 0, "Seed of the simulation.")
@common.picture_file
def forecast_command(
    file: Path,
    contributors: tuple[float, ...],
    mechanism: Mechanism | None,
    within: float,
    advising: bool,
    draws: int,
    seed: int,
    picture: Path | None,
    public: Path | None,
    rows_each: int,
    alike: float | None,
    **options: Any,
) -> Answer:
    """Forecast a collection's error: FILE is a proposal (.toml) or an agreement (.json).

    Of a plan (.json) it is forecast what contributors who lie could do to the model. Of a time to
    an event, errors are those of hazards' coefficients. Nothing private is read: the people are
    generated, public or assumed.
    """
    from blurfit.cli import _reports as reports
    from blurfit.forecast.sweep import forecast, forecast_agreement, whole_numbers
    from blurfit.schema.schema import titles

    if common.format_of(file) == bf.Plan.STATED["format"]:
        return _forecast_plan(bf.Plan.load(file), options, seed)
    proposal = read_proposal(file)
    sizes = whole_numbers(contributors)
    shared: dict[str, Any] = {"contributors": sizes, "draws": draws, "seed": seed}
    mechanism = _require_moment(proposal, mechanism, rows_each, public=public, advising=advising)
    if alike is not None and rows_each == 1:
        raise InvalidValueError("Expected --rows-each with --alike: how many rows each person has.")
    if public is not None:
        if advising or picture is not None or mechanism == "input":
            raise InvalidValueError(
                "Expected no --advise, --plot or --mechanism input with --public, which compares "
                "two readings of moment."
            )
        with common.watched("forecast") as watch:
            beside = _beside(proposal, public, options, shared, watch)
        return Answer(beside.to_dict(), reports.public_report(beside))
    population, advice = population_of(proposal, options), []
    shared |= {"rows_each": rows_each} | ({} if alike is None else {"alike": alike})
    if proposal.agreement is not None:
        refuse_for_an_agreement(options, advising)
        with common.watched("forecast") as watch:
            progress = common.steps(watch, len(sizes))
            found = forecast_agreement(proposal.agreement, population, **shared, progress=progress)
    else:
        asked = sweep_asked_for(proposal, mechanism, options)
        lines = math.prod(len(asked[axis]) for axis in ("mechanisms", "epsilons", "local_epsilons"))
        with common.watched("forecast") as watch:
            progress = common.steps(watch, lines * len(sizes))
            found = forecast(proposal.schema, population, **asked, **shared, progress=progress)
        if advising:
            with common.watched("choose terms") as watch:
                advice = _advice(proposal, population, found, asked["terms"], seed, watch)
    if picture is not None:
        common.save_picture(found.plot, picture)
    moved, costs = _moved_by_liars(proposal, population), _proof_costs(proposal, max(sizes))
    facts = found.to_dict() | {"advice": [asdict(one) for one in advice], "liars": moved}
    told = []
    if moved is not None:
        told.append(f"\n{reports.liars_in_words(moved, titles(proposal.schema))}")
    if costs is not None:
        facts["proofs"] = asdict(costs)
        told.append(f"\n{costs.in_words()}")
    return Answer(facts, [reports.forecast_report(found, within, advice), *told])


def _require_moment(
    proposal: ProposalFile,
    mechanism: Mechanism | None,
    rows_each: int,
    *,
    public: Path | None,
    advising: bool,
) -> Mechanism | None:
    """Return the mechanism, which is `moment` for exits and for several rows of each person."""
    exits = isinstance(proposal.schema.target, bf.TimeToEvent)
    if not exits and rows_each == 1:
        return mechanism
    if mechanism == "input" or public is not None or (exits and (advising or rows_each > 1)):
        what = "a time to an event" if exits else "--rows-each"
        raise InvalidValueError(
            f"Expected no --public and no --mechanism input with {what}"
            f"{', no --advise and no --rows-each' if exits else ''}."
        )
    return "moment"


def _forecast_plan(plan: "bf.Plan", options: dict[str, Any], seed: int) -> Answer:
    """Forecast what liars could do to a plan's model: its errors are not forecast."""
    from blurfit.cli import _reports as reports
    from blurfit.forecast.choices import moved_in_waves
    from blurfit.forecast.sweep import plain
    from blurfit.schema.schema import titles

    refuse_for_an_agreement(options, advising=False)
    population = population_of(ProposalFile(plan.schema), options)
    moved = plain(moved_in_waves(plan, population, seed))
    return Answer({"liars": moved}, reports.liars_in_words(moved, titles(plan.schema)))


def _moved_by_liars(proposal: ProposalFile, population: "People") -> dict[str, float | None] | None:
    """Return by how much 1 % of liars could move each coefficient, where that can be told."""
    from blurfit.forecast.choices import moved_by_liars
    from blurfit.forecast.sweep import plain

    if proposal.agreement is None:
        return None
    try:
        found = moved_by_liars(proposal.agreement, population)
    except bf.InfeasibleError:
        return None
    return plain(found)


def _proof_costs(proposal: ProposalFile, contributors: int) -> "ProofCosts | None":
    """Return what proofs cost under an agreement that has them."""
    from blurfit.agreement.numbers import ProofCosts

    if proposal.agreement is None or not proposal.agreement.proofs:
        return None
    return ProofCosts.of(proposal.agreement, contributors)


def _advice(
    proposal: ProposalFile,
    population: "People",
    found: "Forecast",
    terms: dict[str, Any],
    seed: int,
    watch: Progress,
) -> "list[Advice]":
    """Return the best terms for each line, at the largest size."""
    from blurfit.forecast.choices import EVALUATIONS, advise

    lines = found.lines()
    progress = common.steps(watch, EVALUATIONS * len(lines))
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
    shared: dict[str, Any],
    watch: Progress,
) -> "PublicForecast":
    """Forecast each collection alone and beside public rows."""
    from blurfit.forecast import choices

    rows = common.encoded_public(public, proposal.schema)
    people: People
    if options["public_data"] is None and options["spectrum"] is None:
        people, rows = choices.people_and_rows(
            proposal.schema, rows, explained=options["explained"], seed=shared["seed"]
        )
    else:
        people = population_of(proposal, options)
    sizes = len(shared["contributors"])
    shared = shared | {"draws": min(shared["draws"], choices.DRAWS)}
    if proposal.agreement is not None:
        refuse_for_an_agreement(options, advising=False)
        common.require_agreed(public, proposal.agreement)
        return choices.forecast_agreement_beside(
            proposal.agreement, people, rows, **shared, progress=common.steps(watch, sizes)
        )
    asked = sweep_asked_for(proposal, "moment", options)
    axes = {name: asked[name] for name in ("epsilons", "local_epsilons", "terms")}
    if options["local_epsilon"] is not None:
        axes["local_epsilons"] = options["local_epsilon"]
    total = sizes * len(axes["epsilons"]) * len(axes["local_epsilons"])
    return choices.forecast_beside(
        proposal.schema, people, rows, **shared, **axes, progress=common.steps(watch, total)
    )
