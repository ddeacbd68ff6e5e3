"""What is published as an entry of OpenDP's registry of deployments, for those who compare.

Numbers and sentences are those of the privacy statement (`blurfit.model.statement`).
"""

from typing import Any

import yaml

from blurfit.agreement.conditions import counted_in_words
from blurfit.agreement.promises import at_most, condition_in_words, local_in_words
from blurfit.model.published import PublishedModel
from blurfit.model.statement import Published, promised_in_words, proved
from blurfit.schema.titles import title_of


def as_yaml(model: Published) -> str:
    """An entry for OpenDP's registry of deployments; what only you know is left empty."""
    entry = _registry_entry(model)
    return str(yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100))


def _registry_entry(model: Published) -> dict[str, Any]:
    agreement, promise = model.agreement, model.guarantee
    local = model.local
    kept, about = proved(model), agreement.schema.about
    parameters = {"epsilon": kept.epsilon, "delta": kept.delta}
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
                "description": f"From {counted_in_words(model.admission, model.count)}, blurred "
                f"before they were sent. Admission: {model.admission}. {model.condition}",
            },
            "dp_flavor": {
                "name": "Approximate DP",
                "input_metric": f"{promise.neighbours} one record",
                "bound_on_input_distance": 1,
                "output_measure": "approximate max-divergence",
                "bound_on_output_distance": parameters,
                "unprotected_quantities": "the number of submissions",
            },
            "privacy_loss": {
                "privacy_unit": "person-level",
                "privacy_unit_description": "One record for each person, contributed once.",
                "privacy_parameters": parameters,
                "privacy_parameters_description": promised_in_words(model),
            },
            "model": {
                "model_name": f"Local noise, distributed over a quorum ({agreement.mechanism})",
                "actors": (
                    f"Contributors blur their own records. {_sharing(model)}A single submission is "
                    f"{at_most(local.mu)}-GDP, epsilon {at_most(local.epsilon)} at delta "
                    f"{local.delta:.3g}. "
                    f"{local_in_words(local)}"
                ),
                "release_type": "One release"
                if promise.releases == 1
                else "Any number of releases",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": "none",
                "post_processing": "exact minimisation of a quadratic over the blurred sums"
                if promise.releases == 1
                else "anything that follows from the blurred sums, which are published themselves",
            },
            "implementation": {
                "mechanisms": "Gaussian noise on a public grid, "
                f"{agreement.mechanism} perturbation, for a quorum of {agreement.honest}",
                "justification": "Public bounds only; noise and bounds can be verified from the "
                f"agreement {model.fingerprint}.",
                "software": model.software,
            },
        },
    }


def _name(model: Published) -> str:
    if isinstance(model, PublishedModel):
        return f"{'Classifier' if model.is_label else 'Model'} of {title_of(model.aim)}"
    names = ", ".join(title_of(one) for one in model.agreement.schema.questions)
    return f"Blurred moments of {names}"


def _sharing(model: Published) -> str:
    if not model.agreement.databases:
        return ""
    first, second = model.agreement.databases
    return (
        f"Each submission is shared between two databases, {first.name} ({first.url}) and "
        f"{second.name} ({second.url}). Against either alone the model's promise holds. "
        f"{condition_in_words(model.agreement, model.honest_in_words)} Against both together: "
    )
