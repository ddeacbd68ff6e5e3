"""The privacy statement of what is published: what is protected, from whom, and what is not.

In Markdown and HTML, for people. Each number is the agreement's own, and each sentence follows from
it.

**What contributors who lie together could have done.** The numbers are those of
`blurfit.learning.inference`, and follow from what is published. Under one wave they are bounds;
what liars of earlier waves add through the map is counted to first order (`blurfit.model.course`),
and so is everything where public rows give the curve.
"""

import math
from collections.abc import Callable, Iterator, Mapping

from markdown_it import MarkdownIt

from blurfit.agreement.proving import LIARS, proved_row, push_of_liars
from blurfit.agreement.statement import (
    HOLDER,
    LOT_IN_WORDS,
    PUBLIC_ROWS_ASSUMED,
    Promise,
    SeenBy,
    either_in_words,
    guesses_in_words,
    local_in_words,
    margin_in_words,
    relation_in_words,
    together_in_words,
)
from blurfit.model.model import PublishedModel
from blurfit.model.moments import PublishedMoments
from blurfit.model.summary import number, plain
from blurfit.schema.schema import title_of, titles
from blurfit.theory.gaussian import mu_of
from blurfit.theory.guarantees import LocalGuarantee, ModelGuarantee, at_most
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.moments import MomentCalibration, variance_factor

SHARE = f"{100 * LIARS:g} %"
_LISTED = 24  # coefficients in a sentence; the summary has them all


def moved_in_words(
    moved: Mapping[str, float | None],
    called: Mapping[str, str],
    escape: Callable[[str], str] = str,
) -> str:
    """Each coefficient with how far it can move, by columns as people call them.

    >>> moved_in_words({"age": 0.2713, "pets": None}, {"age": "Age"})
    'Age ± 0.271, pets by any amount'
    """
    each = [
        f"{escape(called.get(name, name))} "
        + ("by any amount" if value is None else f"± {number(value)}")
        for name, value in moved.items()
    ]
    rest = [f"and {len(each) - _LISTED} more (see the summary)"] if len(each) > _LISTED else []
    return ", ".join(each[:_LISTED] + rest)


def lies_in_words(model: PublishedModel | PublishedMoments) -> str:
    """What is not covered: what liars could have done, and on which condition."""
    agreement = model.agreement
    if not agreement.databases:
        limit = "A submission that was longer than honest ones are was refused."
    elif agreement.proofs:
        limit = (
            "Each contributor has proved to the two databases that what they sent is no longer "
            "than an honest submission; within that, anything goes."
        )
    else:
        waves = ": there are none in waves" if agreement.wave is not None else ""
        limit = (
            "Nobody could measure what was shared between the two databases without proofs"
            f"{waves}. One liar is enough to move the model by any amount."
        )
    told = "" if agreement.databases and not agreement.proofs else f" {_moved(model)}"
    doubt = f" **{model.doubt}**" if isinstance(model, PublishedModel) and model.doubt else ""
    return f"Contributors who lie to distort the model (poisoning). {limit}{told}{doubt}"


def _moved(model: PublishedModel | PublishedMoments) -> str:
    if isinstance(model, PublishedMoments):
        push = push_of_liars(model.agreement, model.count) / model.deviation
        far = f"up to {push:,.3g} standard deviations of their noise"
        return (
            f"If {SHARE} of the contributors lied together, they can have moved the sums by "
            f"{far if math.isfinite(push) else 'any amount'}; what that does to a coefficient is "
            "in the summary of each model."
        )
    if not model.liars:
        why = (
            "that follows from sums which are never shown"
            if model.agreement.mechanism == "input"
            else "it has no coefficients with standard errors"
        )
        return f"How far {SHARE} of the contributors could move this model is not told: {why}."
    called, name = titles(model.agreement.schema), model.aim.wording.label
    several = len(model.outputs) > 1
    each = [
        (plain(f"for {title_of(model.aim)} = {name(output)}: ") if several else "")
        + moved_in_words({one: moved[one] for one in inference.names}, called, plain)
        for output, inference, moved in zip(
            model.outputs, model.inference, model.liars, strict=True
        )
    ]
    order = ""
    if model.waves:
        order = (
            " What liars of the last wave can do is a bound; what those of earlier waves add "
            "through its map is counted to first order."
        )
    return (
        f"If {SHARE} of the contributors lied together, knowing everything, they can have moved "
        f"its coefficients by up to: {'; '.join(each)}. Intervals do not include this, and more "
        f"liars do more.{order}"
    )


Published = PublishedModel | PublishedMoments

_SEEN_BY: dict[SeenBy, str] = {
    "nobody": "neither database, while both keep to the protocol",
    "collector": "the database that collected, each of them blurred",
    "holder": "whoever held the rows, all of them",
}


def as_markdown(model: Published) -> str:
    """The statement for people."""
    promise, held = model.guarantee, model.held
    required = "" if held else f" (at least\n{model.quorum_in_words} were required)"
    protected = _promised(model) if promise.private else f"**Nothing.** {promise.in_words}\n"
    return f"""\
# Privacy statement

{_subject(model)}, from {promise.counted}{required}.{_asked_by(model)}

## What is protected, and from whom

{protected}
## How

| | |
| --- | --- |
{"".join(_how(model))}"""


def _promised(model: Published) -> str:
    """What is promised, against whom and on which conditions."""
    promise, held = model.guarantee, model.held
    return f"""\
**Everyone who reads it.** {promise.in_words}

{_meaning(model)}
{promise.condition}

{_databases(model)}

**The unit of privacy** is one person, with one {"row" if held else "record"}. {_releases(promise)}
{_waves(model)}
## What is assumed

- {_premise(model)}
- {_release_assumption(promise)}
- The number of {"rows" if held else "submissions"} is public, and did not depend on their answers.
{_assumed_of_public_rows(model)}{_assumed_of_maps(model)}{_assumed_of_two(model)}
## What is not covered

{_not_covered(model)}
- What the model says about people in general: it may be true of someone who is not in it.
"""


def _how(model: Published) -> Iterator[str]:
    """The rows of the table: numbers of the promise only where there is one."""
    promise, agreement = model.guarantee, model.agreement
    yield f"| mechanism | {_mechanism(model)} |\n"
    if not model.held:
        in_waves = isinstance(model, PublishedModel) and len(model.waves) > 1
        where = " of the last wave" if in_waves else ""
        yield f"| sent by each person{where} | {agreement.width:,} blurred numbers |\n"
    yield _columns(model)
    if promise.private:
        yield f"| what is published | {promise.numbers} |\n"
        yield f"| neighbours | {promise.neighbours} |\n"
    if promise.local is not None:
        who = "both shares together" if agreement.databases else "one submission"
        yield f"| {who} | {_kept_alone(promise.local)} |\n"
    yield f"| who could see a record | {_SEEN_BY[promise.seen_by]} |\n"
    if model.held:
        yield f"| count | {promise.counted} |\n"
    else:
        yield f"| quorum, count | {model.quorum_in_words}, {model.count:,} |\n"
        yield f"| admission | {model.admission} |\n"
    yield _own_noise(model)
    yield proved_row(agreement)
    yield f"| agreement | `{model.fingerprint}` |\n"
    yield f"| software | {model.software} |\n"


def as_html(model: Published) -> str:
    """The statement as a fragment of HTML, without scripts, styles or outside addresses."""
    return str(MarkdownIt("commonmark", {"html": False}).enable("table").render(as_markdown(model)))


def _premise(model: Published) -> str:
    """Those without whom the promise does not hold."""
    least = model.honest_in_words
    if model.held:
        return (
            "Whoever held the rows is honest: the noise agreed on was added, once, and is told to\n"
            "  nobody. Each row is another person's. Bounds, names, levels and classes of the\n"
            "  columns are public, and were not read from the rows."
        )
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
    wave = model.agreement.wave
    if wave is not None and model.agreement.is_later_wave:
        names = ", ".join(plain(title_of(one)) for one in model.agreement.schema.questions)
        return f"Blurred sums of wave {wave.number} of a plan, about **{names}**"
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
    whose = "of each database itself" if draws > 1 else "of the database itself"
    if model.held:
        whose = "of whoever learned it"
    return f"| noise {whose} | once; the variance is {factor:.3g} times as large |\n"


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
    with_noise = ", a Gaussian mechanism with discrete noise" if model.guarantee.private else ""
    return f"moment perturbation{with_noise}"


def _databases(model: Published) -> str:
    """What is promised against whoever collected."""
    agreement, local = model.agreement, model.local
    if model.held:
        return f"**Not from whoever held the rows.** {HOLDER}"
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
drawn): ε = {at_most(local.epsilon)} at δ = {at_most(local.delta, 3)}, for any two records.
**{local_in_words(local)}**"""


def _kept_alone(local: LocalGuarantee) -> str:
    return f"μ = {at_most(local.mu)}, ε = {at_most(local.epsilon)} at δ = {at_most(local.delta, 3)}"


def _assumed_of_public_rows(model: Published) -> str:
    digest = model.agreement.public_rows
    if digest is None and not (isinstance(model, PublishedModel) and model.public_rows):
        return ""
    file = "" if digest is None else f" They are the file with\n  SHA-256 `{digest}`."
    return f"- {PUBLIC_ROWS_ASSUMED}{file}\n"


def _assumed_of_maps(model: Published) -> str:
    """Nobody computes a map again, and its last digits would have room for anything."""
    wave, databases = model.agreement.wave, model.agreement.databases
    if wave is None or len(wave.people) == 1 or model.held:
        return ""
    told = "is the database's word: a\n  map that was made of submissions would tell of them"
    if databases:
        first, second = (plain(one.name) for one in databases)
        told = (
            f"is {first}'s word: all that it\n  could have put there instead are masked shares, "
            f"which tell something to {second} alone"
        )
    return (
        "- What each later group was asked for (its map) was made of published sums alone. Nobody\n"
        f"  can check that; it {told}.\n"
    )


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


def _not_covered(model: Published) -> str:
    if model.held:
        return (
            "- Whatever else is done with the rows by whoever held them.\n"
            "- That some rows were refused (a missing value, an unknown label)."
        )
    return (
        f"- {lies_in_words(model)}\n"
        "- Who took part, when, and from which address (timing and traffic).\n"
        "- Whoever blurred the records of others (a clinic, an interviewer) has seen them."
    )


def _meaning(model: Published) -> str:
    """What (ε, δ) says, and no more: P(event) ≤ e^ε·P'(event) + δ; and how well one can guess."""
    promise = model.guarantee
    assert promise.epsilon is not None and promise.delta is not None  # noqa: PT018 - it is private
    if promise.epsilon > 20:
        return "An ε as large as this gives no useful bound on what an attacker could infer."
    calibration = model.agreement.calibration
    mu = calibration.mu if isinstance(calibration, MomentCalibration) else None
    if model.agreement.wave is not None:  # no wave's μ is larger, whichever a person was in
        mu = mu_of(promise.epsilon, promise.delta)
    stated = ModelGuarantee(promise.epsilon, promise.delta, promise.neighbours, promise.releases)
    times = at_most(math.exp(promise.epsilon), 3)
    return (
        f"Should {relation_in_words(promise.neighbours)}, whatever anyone concludes from it "
        f"would be at most {times} times as likely as before, plus a "
        f"probability of {at_most(promise.delta, 6)}. {guesses_in_words(stated, mu, 'it')}"
    )


def _waves(model: Published) -> str:
    """What is promised in waves, and on which condition."""
    wave = model.agreement.wave
    if wave is None:
        return ""
    if model.held:
        return f"""
**Waves.** The rows were divided into groups, one after the other, under the plan `{wave.plan}`.
Each row is in one group, whose noise keeps all of this promise for it; so it holds for everything
that is published of all groups together. A row in two groups would have less: √2 times the μ. Which
group a row is in must not depend on answers, each group is released once, and what the next one is
asked for follows from published sums alone.
"""
    least = ""
    if isinstance(model, PublishedModel):
        least = (
            " What is said above of a single\n"
            "submission is of the group in which it protects least."
        )
    return f"""
**Waves.** Contributors were asked in groups, one after the other, under the plan
`{wave.plan}`. Each person is in one group, whose noise keeps all of this promise
for her; so it holds for everything that is published of all groups together. Somebody who took
part in two groups would have less: √2 times the μ. {_margin(model)}
Each group is released once, and what the next one is asked for is announced before it
begins.{least}
"""


def _margin(model: Published) -> str:
    """How many of a group may collude, and who decided which group a person was in."""
    waves = model.waves if isinstance(model, PublishedModel) else ()
    groups = [(one.quorum, one.honest) for one in waves]
    groups = groups or [(model.agreement.quorum, model.agreement.honest)]
    return f"{margin_in_words(groups)} {LOT_IN_WORDS[model.agreement.admission]}"


def _releases(promise: Promise) -> str:
    if promise.releases == 1:
        what = "One model" if promise.models == 1 else f"The {promise.models} models of the one fit"
        return f"{what} may be published, once."
    whence = "rows" if promise.seen_by == "holder" else "one final collection"
    return (
        f"What may be published from the {whence}: the blurred sums (the moments), and "
        "any number of models that are made from them, by anyone."
    )


def _release_assumption(promise: Promise) -> str:
    held = promise.seen_by == "holder"
    what = "rows" if held else "submissions"
    copies = "" if held else "\n  Copies of the submissions are enough to break this."
    if promise.releases == 1:
        besides = "else" if promise.models == 1 else f"but the {promise.models} models of the fit"
        second = "second fit" if held else "second model"
        return (
            f"Nothing {besides} is ever published from the same {what}, or from some of them: no "
            f"{second}, no sums.{copies}"
        )
    other = "Anything else that is made from some of the same rows, by a second fit say, is not."
    if not held:
        other = "Sums over\n  other people, with some of the same submissions, never are."
    return (
        f"The blurred sums of these {what} may be published too: whatever follows from them is "
        f"covered. {other}{copies}"
    )
