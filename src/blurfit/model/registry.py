"""What is published as an entry of OpenDP's registry of deployments, for those who compare.

Numbers and sentences are those of its promise (`blurfit.model.promise`); where a caveat stands,
fields for numbers are empty.
"""

from typing import Any

import yaml

from blurfit.agreement.promises import condition_in_words, local_in_words
from blurfit.model.promise import HOLDER
from blurfit.model.published import PublishedModel
from blurfit.model.statement import Published
from blurfit.schema.schema import title_of
from blurfit.theory.guarantees import at_most


def as_yaml(model: Published) -> str:
    """An entry for OpenDP's registry of deployments; what only you know is left empty."""
    entry = _registry_entry(model)
    return str(yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100))


def _registry_entry(model: Published) -> dict[str, Any]:
    agreement, promise, held = model.agreement, model.guarantee, model.held
    about = agreement.schema.about
    numbers = {"epsilon": promise.epsilon, "delta": promise.delta} if promise.private else None
    how = "" if held else f", blurred before they were sent. Admission: {model.admission}"
    one = "row" if held else "record"
    noise = "" if held else f", for at least {model.honest_in_words} honest people"
    return {
        "status": "Draft",
        "deployment": {
            "product": {
                "name": _name(model),
                "data_curators": [str(about.organiser)] if about.organiser else [],
                "intended_use": str(about.purpose or ""),
                "data_product_type": "Machine learning model"
                if isinstance(model, PublishedModel)
                else "Summary statistics",
                "description": f"From {promise.counted}{how}. {promise.condition}",
            },
            "dp_flavor": {
                "name": "Approximate DP" if promise.private else "none",
                "input_metric": f"{promise.neighbours} one {one}",
                "bound_on_input_distance": 1,
                "output_measure": "approximate max-divergence",
                "bound_on_output_distance": numbers,
                "unprotected_quantities": f"the number of {'rows' if held else 'submissions'}",
            },
            "privacy_loss": {
                "privacy_unit": "person-level",
                "privacy_unit_description": f"One {one} for each person"
                f"{'' if held else ', contributed once'}.",
                "privacy_parameters": numbers,
                "privacy_parameters_description": promise.in_words,
            },
            "model": {
                "model_name": f"Noise added by whoever held the rows ({agreement.mechanism})"
                if held
                else f"Local noise, distributed over a quorum ({agreement.mechanism})",
                "actors": _actors(model),
                "release_type": "One release"
                if promise.releases == 1
                else "Any number of releases",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": _composition(model),
                "post_processing": "exact minimisation of a quadratic over the blurred sums"
                if promise.releases == 1
                else "anything that follows from the blurred sums, which are published themselves",
            },
            "implementation": {
                "mechanisms": f"Gaussian noise, {agreement.mechanism} perturbation{noise}",
                "justification": "Public bounds only; how much noise is enough can be verified "
                f"from the agreement{_of_the_last_wave(model)} {model.fingerprint}."
                if promise.private
                else promise.in_words,
                "software": model.software,
            },
        },
    }


def _name(model: Published) -> str:
    if isinstance(model, PublishedModel):
        return f"{'Classifier' if model.is_label else 'Model'} of {title_of(model.aim)}"
    names = ", ".join(title_of(one) for one in model.agreement.schema.questions)
    return f"Blurred moments of {names}"


def _of_the_last_wave(model: Published) -> str:
    in_waves = isinstance(model, PublishedModel) and len(model.waves) > 1
    return " of the last wave, and the releases of the others:" if in_waves else ""


def _composition(model: Published) -> str:
    if model.models > 1:
        return f"basic, of {model.models} models of one fit"
    if model.agreement.wave is not None:
        return "parallel, of waves: each person is in one"
    return "none"


def _actors(model: Published) -> str:
    """Who did what, and what is promised against them."""
    if model.held:
        return f"Somebody held the rows. {HOLDER}"
    who, local, against = "Records are blurred before they are sent.", model.guarantee.local, ""
    if databases := model.agreement.databases:
        named = " and ".join(f"{one.name} ({one.url})" for one in databases)
        who = f"{who} Each submission is shared between two databases, {named}."
    if local is None:
        return f"{who} Nothing is promised against anyone."
    if databases:
        condition = condition_in_words(model.agreement, model.honest_in_words)
        against = f" Against either alone the model's promise holds. {condition} Against both:"
    return (
        f"{who}{against} A single submission is {at_most(local.mu)}-GDP, epsilon "
        f"{at_most(local.epsilon)} at delta {at_most(local.delta, 3)}. "
        f"{local_in_words(local, 'Together they' if databases else 'The database')}"
    )
