"""The privacy statement of a published model: what is protected, from whom, and what is not.

In Markdown and HTML for people, and in YAML with the fields of OpenDP's public registry of
deployments for those who compare. Each number is the agreement's own, and each sentence follows
from it.
"""

import math
import re
from typing import Any

import yaml
from markdown_it import MarkdownIt

from blurfit.agreement.grid import DISCRETE_SHARE, LATTICE_SHARE
from blurfit.agreement.promises import (
    condition_in_words,
    either_in_words,
    local_in_words,
    relation_in_words,
    together_in_words,
)
from blurfit.model.published import PublishedModel
from blurfit.theory.calibration import InputCalibration
from blurfit.theory.setting import ModelGuarantee


def as_markdown(model: PublishedModel) -> str:
    """The statement for people."""
    agreement, promise = model.agreement, model.guarantee
    local = agreement.calibration.local
    target = _plain(agreement.schema.target.name)
    return f"""\
# Privacy statement

A {"classifier" if agreement.schema.is_label else "model"} of **{target}**, learned from
{model.count:,} contributors (at least {agreement.quorum:,} were required).

## What is protected, and from whom

**Everyone who reads the model.** {_promise(model)}

{_meaning(promise) if promise.proved else ""}

{_databases(model)}

**The unit of privacy** is one person's one record. {_releases(promise)}

## What is assumed

- At least {agreement.quorum:,} of the contributors were honest: they added the noise agreed on,
  and do not tell it to anyone.
- Each person contributed once.
- {_release_assumption(model)}
- The number of contributors is public, and did not depend on their answers.
{_assumed_of_two(model)}
## What is not covered

- Contributors who lie to distort the model (poisoning).
- Who took part, when, and from which address (timing and traffic).
- What the model says about people in general: it may be true of someone who never took part.

## How

| | |
| --- | --- |
| mechanism | {agreement.mechanism} perturbation, {agreement.calibration.rule} |
| loss | {agreement.loss_name} |
| model{_if_unproved(promise)} | ε = {promise.epsilon:g}, δ = {promise.delta:g} |
| neighbours | {promise.neighbours} |
| {_submission(model)} | μ = {local.mu:.4g}, ε = {local.epsilon:.4g} at δ = {local.delta:.3g} |
| quorum, count | {agreement.quorum:,}, {model.count:,} |
| agreement | `{model.fingerprint}` |
| software | {model.software} |
"""


def as_html(model: PublishedModel) -> str:
    """The statement as a fragment of HTML, without scripts, styles or outside addresses."""
    return str(MarkdownIt("commonmark", {"html": False}).enable("table").render(as_markdown(model)))


def as_yaml(model: PublishedModel) -> str:
    """An entry for OpenDP's registry of deployments; what only you know is left empty."""
    entry = _registry_entry(model)
    return str(yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100))


def _registry_entry(model: PublishedModel) -> dict[str, Any]:
    agreement, promise = model.agreement, model.guarantee
    local = agreement.calibration.local
    proved = _proved(model)
    parameters = {"epsilon": proved.epsilon, "delta": proved.delta}
    return {
        "status": "Draft",
        "deployment": {
            "product": {
                "name": f"Model of {agreement.schema.target.name}",
                "data_curators": [],
                "intended_use": "",
                "data_product_type": "Machine learning model",
                "description": f"From {model.count} contributors who blurred their own records.",
            },
            "dp_flavor": {
                "name": "Approximate DP",
                "input_metric": f"{promise.neighbours} one record",
                "bound_on_input_distance": 1,
                "output_measure": "approximate max-divergence",
                "bound_on_output_distance": parameters,
                "unprotected_quantities": "the number of contributors",
            },
            "privacy_loss": {
                "privacy_unit": "person-level",
                "privacy_unit_description": "One record for each person, contributed once.",
                "privacy_parameters": parameters,
                "privacy_parameters_description": _promise(model),
            },
            "model": {
                "model_name": f"Local noise, distributed over a quorum ({agreement.mechanism})",
                "actors": (
                    f"Contributors blur their own records. {_sharing(model)}A single submission is "
                    f"{local.mu:.4g}-GDP, epsilon {local.epsilon:.4g} at delta {local.delta:.3g}. "
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
                "post_processing": "exact minimisation of a quadratic over the blurred sums",
            },
            "implementation": {
                "mechanisms": "Gaussian noise on a public grid, "
                f"{agreement.mechanism} perturbation, for a quorum of {agreement.quorum}",
                "justification": "Public bounds only; noise and bounds can be verified from the "
                f"agreement {model.fingerprint}.",
                "software": model.software,
            },
        },
    }


def _promise(model: PublishedModel) -> str:
    promise, calibration = model.guarantee, model.agreement.calibration
    if model.caveat is not None:
        return model.caveat
    if not promise.proved and isinstance(calibration, InputCalibration):
        kept = _proved(model)
        return (
            f"The noise follows the paper's own rule for ε = {promise.epsilon:g}, δ = "
            f"{promise.delta:g}, which is not proved. What is proved of it is ε = "
            f"{kept.epsilon:.4g}, δ = {kept.delta:.3g}."
        )
    return (
        f"The published model is ({promise.epsilon:g}, {promise.delta:g})-differentially private "
        f"(neighbours: {promise.neighbours})."
    )


def _databases(model: PublishedModel) -> str:
    """What is promised against whoever collected."""
    agreement, local = model.agreement, model.agreement.calibration.local
    if agreement.databases:
        first, second = names = [_plain(one.name) for one in agreement.databases]
        promise = (agreement.epsilon, agreement.delta, agreement.quorum)
        return (
            f"**Either of the two databases alone.** {either_in_words(names, *promise)}\n\n"
            f"**{first} and {second} together.** {together_in_words(local)}"
        )
    return f"""\
**The database that collected the submissions.** One submission alone is at most
μ = {local.mu:.4g} Gaussian differentially private (up to the grid on which its noise is drawn):
ε = {local.epsilon:.4g} at δ = {local.delta:.3g}, for any two records.
**{local_in_words(local)}**"""


def _submission(model: PublishedModel) -> str:
    return "both shares together" if model.agreement.databases else "one submission"


def _assumed_of_two(model: PublishedModel) -> str:
    if not model.agreement.databases:
        return ""
    return (
        "- Against either database: the two are in different hands, do not put their shares\n"
        "  together, follow the protocol (each sums over one set of contributors, once), and\n"
        "  invent no contributors.\n"
    )


def _sharing(model: PublishedModel) -> str:
    if not model.agreement.databases:
        return ""
    first, second = model.agreement.databases
    return (
        f"Each submission is shared between two databases, {first.name} ({first.url}) and "
        f"{second.name} ({second.url}). Against either alone the model's promise holds. "
        f"{condition_in_words(model.agreement.quorum)} Against both together: "
    )


def _if_unproved(promise: ModelGuarantee) -> str:
    return "" if promise.proved else " (not proved)"


def _proved(model: PublishedModel) -> ModelGuarantee:
    """What is proved, the shares that are kept back for the grid included."""
    promise, calibration = model.guarantee, model.agreement.calibration
    if calibration.model.proved or not isinstance(calibration, InputCalibration):
        return promise
    epsilon = calibration.kept.epsilon / (1 - LATTICE_SHARE["input"])
    delta = calibration.kept.delta / (1 - DISCRETE_SHARE)
    return ModelGuarantee(epsilon, delta, promise.neighbours, promise.releases)


def _meaning(promise: ModelGuarantee) -> str:
    """What (ε, δ) says, and no more: P(event) ≤ e^ε·P'(event) + δ."""
    if promise.epsilon > 20:
        return "An ε as large as this gives no useful bound on what an attacker could infer."
    return (
        f"Should {relation_in_words(promise.neighbours)}, whatever anyone concludes from the model "
        f"would be at most {math.exp(promise.epsilon):.3g} times as likely as before, plus a "
        f"probability of {promise.delta:g}."
    )


def _releases(promise: ModelGuarantee) -> str:
    if promise.releases == 1:
        return "One model may be published, once."
    return "Any number of models may be published from the one final collection."


def _plain(name: str) -> str:
    """A name that somebody chose, as one line in which Markdown finds nothing to interpret."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(name.split()))


def _release_assumption(model: PublishedModel) -> str:
    if model.guarantee.releases == 1:
        return (
            "Nothing else is ever published from the same submissions, or from some of them: no "
            "second model, no sums.\n  Copies of the submissions are enough to break this."
        )
    return (
        "The sums of these submissions may be published too: whatever follows from them is "
        "covered. Sums over\n  other people, with some of the same submissions, never are: copies "
        "of the submissions are enough to break this."
    )
