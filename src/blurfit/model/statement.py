"""The privacy statement of what is published: what is protected, from whom, and what is not.

In Markdown and HTML, for people. Each number is the agreement's own, and each sentence follows from
it.
"""

import math

from markdown_it import MarkdownIt

from blurfit.agreement.conditions import LOT_IN_WORDS, counted_in_words, margin_in_words
from blurfit.agreement.grid import DISCRETE_SHARE, LATTICE_SHARE
from blurfit.agreement.promises import (
    PUBLIC_ROWS_ASSUMED,
    at_most,
    either_in_words,
    guesses_in_words,
    local_in_words,
    relation_in_words,
    together_in_words,
)
from blurfit.agreement.proving import lies_in_words, proved_row
from blurfit.model.markdown import plain
from blurfit.model.moments import PublishedMoments
from blurfit.model.published import PublishedModel
from blurfit.schema.titles import title_of
from blurfit.theory.database_noise import variance_factor
from blurfit.theory.gaussian import mu_of
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.moment_calibration import MomentCalibration
from blurfit.theory.setting import LocalGuarantee, ModelGuarantee

Published = PublishedModel | PublishedMoments


def as_markdown(model: Published) -> str:
    """The statement for people."""
    agreement, promise = model.agreement, model.guarantee
    local, unproved = model.local, "" if promise.proved else " (not proved)"
    return f"""\
# Privacy statement

{_subject(model)}, from {counted_in_words(model.admission, model.count)} (at least
{model.quorum_in_words} were required).{_asked_by(model)}

## What is protected, and from whom

**Everyone who reads it.** {promised_in_words(model)}

{_meaning(promise, model) if promise.proved else ""}
{model.condition}

{_databases(model)}

**The unit of privacy** is one person, with one record. {_releases(promise)}
{_waves(model)}
## What is assumed

- {_premise(model)}
- {_release_assumption(model)}
- The number of submissions is public, and did not depend on their answers.
{_assumed_of_public_rows(model)}{_assumed_of_two(model)}
## What is not covered

- {lies_in_words(agreement)}
- Who took part, when, and from which address (timing and traffic).
- What the model says about people in general: it may be true of someone who never took part.

## How

| | |
| --- | --- |
| mechanism | {_mechanism(model)} |
| sent by each person | {agreement.width:,} blurred numbers |
{_columns(model)}| what is published{unproved} | ε = {promise.epsilon:g}, δ = {promise.delta:g} |
| neighbours | {promise.neighbours} |
| {_submission(model)} | {_kept_alone(local)} |
| quorum, count | {model.quorum_in_words}, {model.count:,} |
| admission | {model.admission} |
{_own_noise(model)}{proved_row(agreement)}| agreement | `{model.fingerprint}` |
| software | {model.software} |
"""


def as_html(model: Published) -> str:
    """The statement as a fragment of HTML, without scripts, styles or outside addresses."""
    return str(MarkdownIt("commonmark", {"html": False}).enable("table").render(as_markdown(model)))


def _premise(model: Published) -> str:
    """Those without whom the promise does not hold."""
    least = model.honest_in_words
    if model.agreement.database_noise:
        who = "One of the two databases" if model.agreement.databases else "The database"
        return (
            f"{who} was honest: it added the noise agreed on to the sums, once, and published\n"
            f"  nothing else of them; or else at least {least} of the contributors were honest.\n"
            "  Each person contributed once."
        )
    if model.admission == "invited":
        return (
            f"At least {least} of the contributors were honest: they added the noise agreed on,\n"
            "  and do not tell it to anyone. Each person contributed once. Invitations are there\n"
            "  for both: that each went to one real person is the organiser's word."
        )
    return (
        f"At least {least} of the submissions were honest people's, each her only one, with the\n"
        "  noise agreed on, which they do not tell anyone. **The collection was open to anyone:\n"
        "  nobody can check this.**"
    )


def _subject(model: Published) -> str:
    """What is published, with its names as Markdown takes them."""
    if isinstance(model, PublishedModel):
        kind = "classifier" if model.is_label else "model"
        return f"A {kind} of **{plain(title_of(model.aim))}**"
    *others, target = (plain(title_of(one)) for one in model.agreement.schema.questions)
    if model.agreement.sends == "targets":
        return f"Blurred sums of the products of **{target}** with {', '.join(others)}"
    return f"Blurred sums of all products of two of **{', '.join([*others, target])}**"


def _asked_by(model: Published) -> str:
    """Who asked, and what for, as far as the schema says."""
    about = model.agreement.schema.about
    known = (
        ("Survey", about.title),
        ("Purpose", about.purpose),
        ("Asked by", about.organiser),
        ("Contact", about.contact),
    )
    lines = [f"- {what}: {plain(str(text))}" for what, text in known if text is not None]
    return "\n\n" + "\n".join(lines) if lines else ""


def _own_noise(model: Published) -> str:
    """What noise of the databases themselves costs."""
    draws = model.agreement.database_draws
    if not draws:
        return ""
    factor = variance_factor(model.agreement.honest, model.count, draws)
    whose = "of each database" if draws > 1 else "of the database"
    return f"| noise {whose} itself | once; the variance is {factor:.3g} times as large |\n"


def _columns(model: Published) -> str:
    """For `moment`: how much of the form each column gets, and what may be predicted."""
    agreement = model.agreement
    if agreement.weights is None:
        return ""
    weights = agreement.weights.to_dict(agreement.schema)
    called = {one.name: title_of(one) for one in agreement.schema.questions}
    listed = ", ".join(
        f"{plain(called.get(name, name))} {weight:.4g}" for name, weight in weights.items()
    )
    targets = ", ".join(plain(called[name]) for name in agreement.targets)
    return f"| public weights | {listed} |\n| may be predicted | {targets} |\n"


def _mechanism(model: Published) -> str:
    calibration = model.agreement.calibration
    if isinstance(calibration, InputCalibration):
        return f"input perturbation, {calibration.rule}"
    return "moment perturbation, a Gaussian mechanism with discrete noise"


def promised_in_words(model: Published) -> str:
    """What is promised to everyone who reads it."""
    promise, calibration = model.guarantee, model.agreement.calibration
    if isinstance(model, PublishedModel) and model.caveat is not None:
        return model.caveat
    if not promise.proved and isinstance(calibration, InputCalibration):
        kept = proved(model)
        return (
            f"The noise follows the paper's own rule for ε = {promise.epsilon:g}, δ = "
            f"{promise.delta:g}, which is not proved. What is proved of it is ε = "
            f"{kept.epsilon:.4g}, δ = {kept.delta:.3g}."
        )
    return (
        f"What is published is ({promise.epsilon:g}, {promise.delta:g})-differentially private "
        f"(neighbours: {promise.neighbours})."
    )


def _databases(model: Published) -> str:
    """What is promised against whoever collected."""
    agreement, local = model.agreement, model.local
    if agreement.databases:
        first, second = names = [plain(one.name) for one in agreement.databases]
        either = either_in_words(agreement, names, model.honest_in_words)
        return (
            f"**Either of the two databases alone.** {either}\n\n"
            f"**{first} and {second} together.** {together_in_words(local)}"
        )
    return f"""\
**The database that collected the submissions.** One submission alone is at most
μ = {at_most(local.mu)} Gaussian differentially private (up to the grid on which its noise is
drawn): ε = {at_most(local.epsilon)} at δ = {local.delta:.3g}, for any two records.
**{local_in_words(local)}**"""


def _kept_alone(local: LocalGuarantee) -> str:
    return f"μ = {at_most(local.mu)}, ε = {at_most(local.epsilon)} at δ = {local.delta:.3g}"


def _submission(model: Published) -> str:
    return "both shares together" if model.agreement.databases else "one submission"


def _assumed_of_public_rows(model: Published) -> str:
    digest = model.agreement.public_rows
    if digest is None:
        return ""
    return f"- {PUBLIC_ROWS_ASSUMED} They are the file with\n  SHA-256 `{digest}`.\n"


def _assumed_of_two(model: Published) -> str:
    if not model.agreement.databases:
        return ""
    noisy = model.agreement.database_noise
    word = "add the noise agreed on" if noisy else "invent no contributors"
    return (
        "- Against either database: the two are in different hands, do not put their shares\n"
        "  together, follow the protocol (each sums over one set of contributors, once), and\n"
        f"  {word}.\n"
    )


def proved(model: Published) -> ModelGuarantee:
    """What is proved, the shares that are kept back for the grid included."""
    promise, calibration = model.guarantee, model.agreement.calibration
    if calibration.model.proved or not isinstance(calibration, InputCalibration):
        return promise
    epsilon = calibration.kept.epsilon / (1 - LATTICE_SHARE["input"])
    delta = calibration.kept.delta / (1 - DISCRETE_SHARE)
    return ModelGuarantee(epsilon, delta, promise.neighbours, promise.releases)


def _meaning(promise: ModelGuarantee, model: Published) -> str:
    """What (ε, δ) says, and no more: P(event) ≤ e^ε·P'(event) + δ; and how well one can guess."""
    if promise.epsilon > 20:
        return "An ε as large as this gives no useful bound on what an attacker could infer."
    calibration = model.agreement.calibration
    mu = calibration.mu if isinstance(calibration, MomentCalibration) else None
    if model.agreement.wave is not None:  # no wave's μ is larger, whichever a person was in
        mu = mu_of(promise.epsilon, promise.delta)
    return (
        f"Should {relation_in_words(promise.neighbours)}, whatever anyone concludes from it "
        f"would be at most {math.exp(promise.epsilon):.3g} times as likely as before, plus a "
        f"probability of {promise.delta:g}. {guesses_in_words(promise, mu, 'it')}"
    )


def _waves(model: Published) -> str:
    """What is promised in waves, and on which condition."""
    wave = model.agreement.wave
    if wave is None:
        return ""
    return f"""
**Waves.** Contributors were asked in groups, one after the other, under the plan
`{wave.plan}`. Each person is in one group, whose noise keeps all of this promise
for her; so it holds for everything that is published of all groups together. Somebody who took
part in two groups would have less: √2 times the μ. {_margin(model)}
Each group is released once, and what the next one is asked for follows from published sums alone.
What is said above of a single submission is of the group in which it protects least.
"""


def _margin(model: Published) -> str:
    """How many of a group may collude, and who decided which group a person was in."""
    waves = model.waves if isinstance(model, PublishedModel) else ()
    groups = [(one.quorum, one.honest) for one in waves]
    groups = groups or [(model.agreement.quorum, model.agreement.honest)]
    return f"{margin_in_words(groups)} {LOT_IN_WORDS[model.admission]}"


def _releases(promise: ModelGuarantee) -> str:
    if promise.releases == 1:
        return "One model may be published, once."
    return (
        "What may be published from the one final collection: the blurred sums (the moments), and "
        "any number of models that are made from them, by anyone."
    )


def _release_assumption(model: Published) -> str:
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
