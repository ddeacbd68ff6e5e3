"""Before anyone is asked: `blurfit calibrate` and `guarantee` turn a promise into noise and back,
and `blurfit forecast` tells what a collection will achieve.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import click

import blurfit as bf
from blurfit.cli import _common as common
from blurfit.cli._common import Answer, ExistingFile, Together, command
from blurfit.cli.agree import ProposalFile, given, read_proposal, term_options
from blurfit.errors import InvalidValueError
from blurfit.forecast import DRAWS, TOLERANCE

if TYPE_CHECKING:
    from blurfit.forecast.choices import Advice
    from blurfit.forecast.population import People
    from blurfit.forecast.sweep import Forecast


def _number(flag: str, said: str, kind: type = float) -> click.Option:
    return click.Option([flag], type=kind, help=said)


def _setting() -> list[click.Option]:
    return [
        *term_options("quorum", "neighbours", "constant", required=("quorum", "constant")),
        _number("--radius", "Bound on the weighted columns' norm; default: 1."),
    ]


_CALIBRATE = [
    *term_options("epsilon", "delta", required=("epsilon", "delta")),
    *_setting(),
    *term_options("local_epsilon", "local_delta"),
]
_GUARANTEE = [
    _number("--epsilon", "Give ε to learn δ."),
    _number("--delta", "Give δ to learn ε."),
    *_setting(),
    _number("--count", "How many honest records came; default: the quorum.", int),
    click.Option(["--sigma"], type=float, help="Noise on the sums.", required=True),
]


@command("calibrate", "--epsilon 1 --delta 1e-6 --quorum 32768 --constant 0.5")
def calibrate(typed: Annotated[dict[str, Any], Together(_CALIBRATE)]) -> Answer:
    """Turn a promise (ε, δ) and public bounds into noise scales."""
    from blurfit.cli._reports import calibration_report

    calibration = _moment(given(typed))
    return Answer(calibration.to_dict(), calibration_report(calibration))


@command("guarantee", "--delta 1e-6 --quorum 32768 --constant 0.5 --sigma 7.5 --count 20000")
def guarantee(typed: Annotated[dict[str, Any], Together(_GUARANTEE)]) -> Answer:
    """Tell which promise given noise keeps: the inverse of calibrate."""
    kept = _kept_by_moment(given(typed))
    return Answer(
        asdict(kept),
        f"Kept: epsilon = {kept.epsilon:.6g}, delta = {kept.delta:.6g} "
        f"({kept.neighbours}, any number of models from one final collection).",
    )


def _flags(names: Any) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _moment(found: dict[str, Any]) -> "bf.MomentCalibration":
    from blurfit.theory.moments import Reach, sensitivity

    constant, radius = found.pop("constant"), found.pop("radius", 1.0)
    neighbours = found.get("neighbours", "replace")
    reach = Reach(sensitivity(constant, radius, neighbours), sensitivity(constant, radius))
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


@dataclass(frozen=True)
class Asked:
    """What a forecast is asked for.

    Options:
        contributors: How many people: a list such as 1e4,1e5, or a range, of two numbers per
            decade.
        epsilon: ε of the model; default: the file's, or 0.1:10.
        delta: δ of the model; default: the file's, or 1e-6.
        local_epsilon: Targets for a single submission, besides none.
        local_delta: δ of a single submission; default: 1e-6.
        public_data: Public records like those to be collected, a table; default: generated ones.
        spectrum: Eigenvalues of E[xxᵀ] to assume, instead of data.
        explained: The R² of generated people, or of a spectrum.
        events: Of a time to an event: the share of generated people who have it; default: a third.
        rows_each: How many rows each person has, who sends their mean (diaries): tell what they add
            to one.
        alike: Of what differs between rows, the share that stays the same in a person; default:
            0.5.
        within: How far above the error without privacy still counts as close enough.
        advise: Also choose the free terms, for the most people.
        draws: Simulated collections.
        seed: Seed of the simulation.
    """

    contributors: Annotated[Any, Numbers()] = "1e3:1e9"
    epsilon: Annotated[tuple[float, ...] | None, Numbers()] = None
    delta: float | None = None
    local_epsilon: Annotated[tuple[float, ...] | None, Numbers()] = None
    local_delta: float | None = None
    public_data: ExistingFile | None = None
    spectrum: Annotated[tuple[float, ...] | None, Numbers()] = None
    explained: float = 0.3
    events: float | None = None
    rows_each: int = 1
    alike: float | None = None
    within: float = TOLERANCE
    advise: bool = False
    draws: int = DRAWS
    seed: int = 0
    plot: common.Picture | None = None


def sweep_asked_for(proposal: ProposalFile, asked: Asked) -> dict[str, Any]:
    """Return what to sweep over: options before the proposal, the proposal before defaults."""
    terms = dict(proposal.terms)
    terms.pop("quorum", None)  # as many as contribute
    terms.pop("colluders", None)  # of waves: here all of them are honest
    planned, local = (terms.pop(name, None) for name in ("epsilon", "local_epsilon"))
    targets = asked.local_epsilon or ((local,) if local else ())
    typed = {name: getattr(asked, name) for name in ("delta", "local_delta")}
    terms |= {name: value for name, value in typed.items() if value is not None}
    if not targets:
        terms.pop("local_delta", None)
    return {
        "epsilons": asked.epsilon or ((planned,) if planned else (0.1, 0.32, 1.0, 3.2, 10.0)),
        "local_epsilons": (None, *targets),
        "terms": terms,
    }


def population_of(schema: "bf.Schema", asked: Asked) -> "People":
    """Return the people of a public file, of a spectrum, or generated ones."""
    from blurfit.forecast.population import EVENTS, Exits, Population

    path, spectrum, events = asked.public_data, asked.spectrum, asked.events
    if isinstance(schema.target, bf.TimeToEvent):
        if spectrum is not None or (path is not None and events is not None):
            raise InvalidValueError(
                "Expected no --spectrum for a time to an event, and --events for generated people."
            )
        if path is not None:
            return Exits.of_file(schema, path)
        return Exits.generated(schema, events=EVENTS if events is None else events)
    if events is not None:
        raise InvalidValueError("Expected no --events: the target is no time to an event.")
    if path is not None and spectrum is not None:
        raise InvalidValueError(
            "Expected --public-data or --spectrum, not both: each describes the population."
        )
    if path is not None:
        return Population.of_file(schema, path)
    if spectrum is not None:
        return Population.of_spectrum(schema, spectrum, explained=asked.explained)
    return Population.generated(schema, explained=asked.explained)


def refuse_for_an_agreement(asked: Asked) -> None:
    """Refuse options for what an agreement has fixed."""
    fixed = ("epsilon", "delta", "local_epsilon", "local_delta", "advise")
    if typed := _flags(name for name in fixed if getattr(asked, name) not in (None, False)):
        raise InvalidValueError(
            f"Expected no {typed} with an agreement, which has fixed that; give a proposal (.toml) "
            "to compare."
        )


@command("forecast", "schema.toml --contributors 1e3:1e5 --epsilon 1 --draws 16")
def forecast_command(file: ExistingFile, asked: Asked) -> Answer:
    """Forecast a collection's error: FILE is a proposal (.toml) or an agreement (.json).

    Of a time to an event, errors are those of hazards' coefficients. Nothing private is read: the
    people are generated, public or assumed.
    """
    from blurfit.agreement.numbers import ProofCosts
    from blurfit.cli import _reports as reports
    from blurfit.forecast.sweep import forecast, forecast_agreement, whole_numbers

    if common.format_of(file) == bf.Plan.STATED["format"]:
        raise InvalidValueError(
            "FILE must be a proposal or an agreement, got a plan. Errors of waves are not "
            "forecast. Forecast the proposal of one wave."
        )
    proposal = read_proposal(file)
    schema, agreement = proposal.schema, proposal.agreement
    sizes = whole_numbers(asked.contributors)
    shared: dict[str, Any] = {"contributors": sizes, "draws": asked.draws, "seed": asked.seed}
    _require_together(schema, asked)
    if agreement is not None:
        refuse_for_an_agreement(asked)
    population, advice = population_of(schema, asked), []
    shared |= {"rows_each": asked.rows_each}
    shared |= {} if asked.alike is None else {"alike": asked.alike}
    facts: dict[str, Any] = {}
    told = []
    if agreement is None:
        swept = sweep_asked_for(proposal, asked)
        lines = math.prod(len(swept[axis]) for axis in ("epsilons", "local_epsilons"))
        with common.watched("forecast") as watch:
            progress = common.steps(watch, lines * len(sizes))
            found = forecast(schema, population, **swept, **shared, progress=progress)
        if asked.advise:
            advice = _advice(schema, population, found, swept["terms"], asked.seed)
    else:
        with common.watched("forecast") as watch:
            progress = common.steps(watch, len(sizes))
            found = forecast_agreement(agreement, population, **shared, progress=progress)
        if agreement.proofs:
            costs = ProofCosts.of(agreement, max(sizes))
            facts["proofs"] = asdict(costs)
            told.append(f"\n{costs.in_words()}")
    if asked.plot is not None:
        common.save_picture(found.plot, asked.plot)
    facts = found.to_dict() | {"advice": [asdict(one) for one in advice]} | facts
    return Answer(facts, [reports.forecast_report(found, asked.within, advice), *told])


def _require_together(schema: "bf.Schema", asked: Asked) -> None:
    """Refuse what cannot be asked together."""
    exits, several = isinstance(schema.target, bf.TimeToEvent), asked.rows_each > 1
    if exits and (asked.advise or several):
        raise InvalidValueError(
            "Expected no --advise and no --rows-each with a time to an event as the target."
        )
    if asked.alike is not None and not several:
        raise InvalidValueError("Expected --rows-each with --alike: how many rows each person has.")


def _advice(
    schema: "bf.Schema", people: "People", found: "Forecast", terms: dict[str, Any], seed: int
) -> "list[Advice]":
    """Return the best terms for each line, at the largest size."""
    from blurfit.forecast.choices import EVALUATIONS, advise

    lines = found.lines()
    with common.watched("choose terms") as watch:
        progress = common.steps(watch, EVALUATIONS * len(lines))
        return [
            advise(
                schema,
                people,
                contributors=cases[-1].contributors,
                epsilon=epsilon,
                local_epsilon=target,
                terms=terms,
                seed=seed,
                progress=progress,
            )
            for (epsilon, target), cases in lines.items()
        ]
