"""What a forecast is asked for: by options, by a proposal, or else by defaults."""

from typing import TYPE_CHECKING, Any

from blurfit.agreement.terms import MECHANISMS, Mechanism
from blurfit.commands.proposals import ProposalFile
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.forecast.population import Population


def sweep_asked_for(
    proposal: ProposalFile, mechanism: Mechanism | None, options: dict[str, Any]
) -> dict[str, Any]:
    """What to sweep over: options come before the proposal, and the proposal before defaults."""
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


def population_of(proposal: ProposalFile, options: dict[str, Any]) -> "Population":
    """The people of a public file, of a spectrum, or generated ones."""
    from blurfit.forecast.population import Population

    path, spectrum, explained = (options[name] for name in ("public_data", "spectrum", "explained"))
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
