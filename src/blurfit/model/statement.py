"""The privacy statement of what is published: what is protected, from whom, and what is not.

`Statement.of` gathers it as data: claims, assumptions, what is not covered, and facts. Each number
is the agreement's own, and each sentence follows from it (`blurfit.agreement.statement` has the
promise, its conditions and its caveats). Every medium is a rendering of that:

| for | function |
| --- | --- |
| people | `as_markdown`, `as_html` |
| model hubs | `as_card`: Markdown with YAML front matter, in the order of Mitchell et al. (2019) |
| OpenDP's registry of deployments | `as_yaml`; what only whoever publishes knows is left empty |
| scripts | `Statement.to_dict` |

Where a caveat stands nothing is promised, and no rendering has a number of a promise.

"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from markdown_it import MarkdownIt

from blurfit.agreement import statement
from blurfit.agreement.numbers import proved_in_words
from blurfit.errors import optional
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.model.summary import plain
from blurfit.schema.columns import Categorical, Numeric, Question
from blurfit.schema.schema import title_of
from blurfit.theory.gaussian import mu_of
from blurfit.theory.moments import ModelGuarantee, at_most, variance_factor
from blurfit.wording import Message, Series, join_messages

Published = PublishedModel | PublishedMoments


_IN_FRONT = ("epsilon", "delta", "neighbours", "caveats", "seen_by")
_SEEN_BY: dict[statement.SeenBy, Message] = {
    "nobody": Message("neither database, while both keep to the protocol"),
    "collector": Message("the database that collected, each of them blurred"),
    "holder": Message("whoever held the rows, all of them"),
}


@dataclass(frozen=True)
class Statement:
    """What is said about something that was published, as data.

    Texts are plain sentences in Markdown, in which names that somebody chose are escaped.
    """

    subject: str  # what is published, and from how many
    asked_by: tuple[tuple[str, str], ...]
    promise: statement.Promise
    claims: tuple[tuple[str, str], ...]  # what is protected, and from whom: a title and sentences
    assumed: tuple[str, ...]
    not_covered: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, model: Published, language: str | None = None) -> "Statement":
        """Gather what is said about a model, or a release of sums; the survey's own texts are in a
        language.
        """
        promise, about = model.guarantee, model.agreement.schema.about
        texts = about.title, about.purpose, about.organiser, about.contact
        known = zip(("Survey", "Purpose", "Asked by", "Contact"), texts, strict=True)
        told = promise.private
        return cls(
            subject=_subject(model, language),
            asked_by=tuple(
                (what, plain(text.in_language(language))) for what, text in known if text
            ),
            promise=promise,
            claims=tuple(_claims(model)) if told else ((Message("Nothing."), promise.in_words),),
            assumed=tuple(_assumed(model)) if told else (),
            not_covered=tuple(_not_covered(model)) if told else (),
            facts=tuple(_facts(model, language)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for scripts."""
        return asdict(self) | {"promise": self.promise.facts()}


def as_markdown(
    model: Published,
    *,
    level: int = 1,
    language: str | None = None,
    tell: Callable[[str], str] = str,
) -> str:
    """Return the statement for people, its title a heading of this level.

    `tell` returns a text in the reader's language, in which the survey's own are taken.
    """
    found, marks = Statement.of(model, language), "#" * level
    lines = [f"{marks} {tell('Privacy statement')}", "", tell(found.subject)]
    if found.asked_by:
        lines += ["", *(f"- {tell(what)}: {text}" for what, text in found.asked_by)]
    lines += ["", f"{marks}# {tell('What is protected, and from whom')}"]
    for title, text in found.claims:
        lines += ["", f"**{tell(title)}** {tell(text)}"]
    for title, several in (
        ("What is assumed", found.assumed),
        ("What is not covered", found.not_covered),
    ):
        if several:
            lines += ["", f"{marks}# {tell(title)}", "", *(f"- {tell(one)}" for one in several)]
    lines += ["", f"{marks}# {tell('How')}", "", "| | |", "| --- | --- |"]
    lines += [f"| {tell(name)} | {tell(value)} |" for name, value in found.facts]
    return "\n".join(lines) + "\n"


def as_html(
    model: Published, *, language: str | None = None, tell: Callable[[str], str] = str
) -> str:
    """Return the statement as a fragment of HTML, without scripts, styles or outside addresses."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    return str(markdown.render(as_markdown(model, language=language, tell=tell)))


# ---- what is published


def _subject(model: Published, language: str | None) -> Message:
    counted, agreement = model.guarantee.counted, model.agreement
    if not model.held:
        counted = Message(
            "{counted} (at least {quorum} were required)",
            counted=counted,
            quorum=model.quorum_in_words,
        )
    if isinstance(model, PublishedModel):
        target = plain(title_of(model.aim, language))
        if model.is_label:
            return Message(
                "A classifier of **{target}**, from {counted}.", target=target, counted=counted
            )
        return Message("A model of **{target}**, from {counted}.", target=target, counted=counted)
    names = Series(plain(title_of(one, language)) for one in agreement.schema.questions)
    if agreement.wave is not None and agreement.is_later_wave:
        return Message(
            "Blurred sums of wave {number} of a plan, about **{names}**, from {counted}.",
            number=agreement.wave.number,
            names=names,
            counted=counted,
        )
    return Message(
        "Blurred sums of all products of two of **{names}**, from {counted}.",
        names=names,
        counted=counted,
    )


# ---- what is claimed


def _claims(model: Published) -> Iterator[tuple[Message, Message]]:
    promise, agreement, local = model.guarantee, model.agreement, model.local
    yield (
        Message("Everyone who reads it."),
        Message(
            "{promise}\n\n{meaning}\n{condition}",
            promise=promise.in_words,
            meaning=_meaning(model),
            condition=promise.condition,
        ),
    )
    if model.held:
        yield Message("Not from whoever held the rows."), statement.HOLDER
    elif agreement.databases:
        names = [plain(one.name) for one in agreement.databases]
        either = statement.either_in_words(agreement, names, model.honest_in_words)
        yield Message("Either of the two databases alone."), either
        both = Message("{first} and {second} together.", first=names[0], second=names[1])
        yield both, statement.together_in_words(local)
    else:
        yield (
            Message("The database that collected the submissions."),
            Message(
                "One submission alone is at most μ = {mu} Gaussian differentially private (up to "
                "the grid on which its noise is drawn): ε = {epsilon} at δ = {delta}, for any two "
                "records. **{learned}**",
                **statement.bounds_of(local),
                learned=statement.local_in_words(local),
            ),
        )
    yield (
        Message("The unit of privacy"),
        Message("{unit} {releases}", unit=_UNIT[promise.unit], releases=_releases(promise)),
    )
    if agreement.wave is not None:
        yield Message("Waves."), _waves(model, agreement.wave.plan)
    elif model.origin[1] > 1:
        yield (
            Message("All releases of the fit."),
            Message(
                "The rows were read for {releases} releases, one after the other, each in terms "
                "that those before it taught. This promise is for all of them and this model "
                "together; each release names this fit, `{fit}`, and states what it keeps by "
                "itself.",
                releases=model.origin[1],
                fit=model.fingerprint,
            ),
        )


_UNIT = {
    "record": Message("is one person, with one record."),
    "row": Message("is one person, with one row."),
    "person": Message("is one person, with all rows that they have."),
}


def _meaning(model: Published) -> Message:
    """Return what (ε, δ) says: P(event) ≤ e^ε·P'(event) + δ; and how well one can guess."""
    promise = model.guarantee
    assert promise.epsilon is not None and promise.delta is not None  # noqa: PT018 - it is private
    if promise.epsilon > 20:
        return Message(
            "An ε as large as this gives no useful bound on what an attacker could infer."
        )
    mu = model.agreement.mu
    if model.agreement.wave is not None:  # no wave's μ is larger, whichever a person was in
        mu = mu_of(promise.epsilon, promise.delta)
    stated = ModelGuarantee(promise.epsilon, promise.delta, promise.neighbours, "any")
    times = at_most(math.exp(promise.epsilon), 3)
    changed = statement.relation_in_words(promise.neighbours, diaries=model.agreement.diaries)
    return Message(
        "If {changed}, any conclusion that somebody draws from it would be at most {times} times "
        "as likely as before, plus a probability of {delta}. {guesses}",
        changed=changed,
        times=times,
        delta=at_most(promise.delta, 6),
        guesses=statement.guesses_in_words(stated, mu, Message("it")),
    )


def _releases(promise: statement.Promise) -> Message:
    if promise.seen_by == "holder":
        return Message(
            "What may be published from the rows: the blurred sums (the moments), and any number "
            "of models that are made from them, by anyone."
        )
    return Message(
        "What may be published from the one final collection: the blurred sums (the moments), and "
        "any number of models that are made from them, by anyone."
    )


def _waves(model: Published, plan: str) -> Message:
    if model.held:  # nothing in a wave's own file tells whether others were of the same rows
        return Message(
            "The rows were read for {releases} releases, one after the other, under the plan or "
            "fit `{plan}`; what the next one asks for follows from published sums alone. This "
            "promise is for one of them. Where every row is in all of them, as in a fit, they "
            "reveal more together than each by itself: what they keep in all is stated with the "
            "model that was learned from them. Only where each row is in one of them, by a rule "
            "that does not look at answers, does it hold for everything that is published under "
            "the plan.",
            releases=model.origin[1],
            plan=plan,
        )
    waves = model.waves if isinstance(model, PublishedModel) else ()
    groups = [(one.quorum, one.honest) for one in waves]
    margin = statement.margin_in_words(groups or [(model.agreement.quorum, model.agreement.honest)])
    said = Message(
        "Contributors were asked in groups, one after the other, under the plan `{plan}`. Each "
        "person is in one group, whose noise keeps all of this promise to them; so it holds for "
        "everything that is published of all groups together. Somebody who took part in two groups "
        "would have less: √2 times the μ. {margin} {lot} Each group is released once, and what the "
        "next one is asked for is announced before it begins.",
        plan=plan,
        margin=margin,
        lot=statement.LOT_IN_WORDS[model.agreement.admission],
    )
    if not isinstance(model, PublishedModel):
        return said
    least = Message(
        "What is said above of a single submission is of the group in which it protects least."
    )
    return join_messages([said, least])


# ---- what is assumed

_WHOSE = {
    "row": Message("Each row is another person's."),
    "person": Message(
        "It is known whose row is whose, and every row of a person counts as theirs."
    ),
}


def _assumed(model: Published) -> Iterator[Message]:
    agreement, held = model.agreement, model.held
    yield _premise(model)
    yield _release_assumption(model.guarantee)
    yield _COUNTED[_counted(model)]
    names = [plain(one.name) for one in agreement.databases]
    if agreement.wave is not None and len(agreement.wave.people) > 1 and not held:
        # nobody computes a map again, and its last digits would have room for anything
        if names:
            yield Message(
                "What each later group was asked for (its map) was made of published sums alone. "
                "Nobody can check that; it is {first}'s word: all that it could have put there "
                "instead are masked shares, which tell something to {second} alone.",
                first=names[0],
                second=names[1],
            )
        else:
            yield Message(
                "What each later group was asked for (its map) was made of published sums alone. "
                "Nobody can check that; it is the database's word: a map that was made of "
                "submissions would tell of them."
            )
    if names and agreement.database_noise:
        yield Message(
            "Against either database: the two are in different hands, do not put their shares "
            "together, follow the protocol (each sums over one set of contributors, once), and "
            "add the noise agreed on."
        )
    elif names:
        yield Message(
            "Against either database: the two are in different hands, do not put their shares "
            "together, follow the protocol (each sums over one set of contributors, once), and "
            "invent no contributors."
        )


_COUNTED = {
    "submissions": Message(
        "The number of submissions is public, and did not depend on their answers."
    ),
    "people": Message("The number of people is public, and did not depend on their answers."),
    "rows": Message("The number of rows is public, and did not depend on their answers."),
}


def _counted(model: Published) -> str:
    if not model.held:
        return "submissions"
    return "people" if model.agreement.diaries else "rows"


def _premise(model: Published) -> Message:
    least = model.honest_in_words
    if model.held:
        return Message(
            "Whoever held the rows is honest: the noise agreed on was added, once, and is told to "
            "nobody. {whose} Bounds, names, levels and classes of the columns are public, and were "
            "not read from the rows.",
            whose=_WHOSE[model.guarantee.unit],
        )
    if model.agreement.database_noise and model.agreement.databases:
        return Message(
            "One of the two databases was honest: it added the noise agreed on to the sums, once, "
            "and published nothing else of them; or else at least {least} of the contributors were "
            "honest. Each person contributed once.",
            least=least,
        )
    if model.agreement.database_noise:
        return Message(
            "The database was honest: it added the noise agreed on to the sums, once, and "
            "published nothing else of them; or else at least {least} of the contributors were "
            "honest. Each person contributed once.",
            least=least,
        )
    if model.admission == "invited":
        return Message(
            "At least {least} of the contributors were honest: they added the noise agreed on, "
            "and do not tell it to anyone. Each person contributed once. Invitations are there "
            "for both: that each went to one real person is the organiser's word.",
            least=least,
        )
    return Message(
        "At least {least} of the submissions were honest people's, one of each, with the noise "
        "agreed on, which they do not tell anyone. **The collection was open to anyone: nobody can "
        "check this.**",
        least=least,
    )


def _release_assumption(promise: statement.Promise) -> Message:
    if promise.seen_by != "holder":
        return Message(
            "The blurred sums of these submissions may be published too: whatever follows from "
            "them is covered. Sums over other people, with some of the same submissions, never "
            "are. Copies of the submissions are enough to break this."
        )
    return Message(
        "The blurred sums of these rows may be published too: whatever follows from them is "
        "covered. Anything else that is made from some of the same rows, by a second fit say, "
        "is not."
    )


# ---- what is not covered


def _not_covered(model: Published) -> Iterator[Message]:
    if model.held:
        yield Message("Whatever else is done with the rows by whoever held them.")
        yield Message("That some rows were refused (a missing value, an unknown label).")
    else:
        yield lies_in_words(model)
        yield Message("Who took part, when, and from which address (timing and traffic).")
        yield Message(
            "Whoever blurred the records of others (a clinic, an interviewer) has seen them."
        )
    yield Message(
        "What the model says about people in general: it may be true of someone who is not in it."
    )


# ---- facts


def _facts(model: Published, language: str | None) -> Iterator[tuple[str, str]]:
    """Return the rows of the table: numbers of the promise only where there is one."""
    promise, agreement = model.guarantee, model.agreement
    mechanism = Message("moment perturbation")
    if promise.private:
        mechanism = Message("moment perturbation, a Gaussian mechanism with discrete noise")
    yield "mechanism", mechanism
    if not model.held:
        sent = "sent by each person of the last wave" if _in_waves(model) else "sent by each person"
        yield sent, Message("{width:,} blurred numbers", width=agreement.width)
    yield from statement.coded_in_words(agreement, plain).items()
    if agreement.weights is not None:
        called = {one.name: title_of(one, language) for one in agreement.schema.questions}
        weights = agreement.weights.to_dict(agreement.questions).items()
        listed = [
            Message("{name} {weight:.4g}", name=plain(called.get(name, name)), weight=weight)
            for name, weight in weights
        ]
        yield "public weights", join_messages(listed, ", ")
        yield "may be predicted", ", ".join(plain(called[name]) for name in agreement.targets)
    if promise.private:
        yield "what is published", promise.numbers
        yield "neighbours", Message(promise.neighbours)
    if (local := promise.local) is not None:
        who = "both shares together" if agreement.databases else "one submission"
        kept = statement.bounds_of(local)
        yield who, Message("μ = {mu}, ε = {epsilon} at δ = {delta}", **kept)
    yield "who could see a record", _SEEN_BY[promise.seen_by]
    if model.held:
        yield "count", promise.counted
    else:
        quorum = model.quorum_in_words
        yield "quorum, count", Message("{quorum}, {count:,}", quorum=quorum, count=model.count)
        yield "admission", Message(str(model.admission))
    if draws := agreement.database_draws:
        whose = "noise of each database itself" if draws > 1 else "noise of the database itself"
        whose = "noise of whoever learned it" if model.held else whose
        factor = variance_factor(agreement.honest, model.count, draws)
        yield whose, Message("once; the variance is {factor:.3g} times as large", factor=factor)
    if agreement.proofs:
        yield "proofs", proved_in_words(agreement)
    yield "agreement", f"`{model.fingerprint}`"
    yield "software", model.software


def lies_in_words(model: Published) -> Message:
    """Return what is not covered: what a dishonest contributor could have done."""
    agreement = model.agreement
    if not agreement.databases:
        limit = Message(
            "A submission that was longer than honest ones are was refused; within that, anything "
            "goes."
        )
    elif agreement.proofs:
        limit = Message(
            "Each contributor has proved to the two databases that what they sent is no longer "
            "than an honest submission; within that, anything goes."
        )
    elif agreement.wave is not None:
        limit = Message(
            "Nobody could measure what was shared between the two databases without proofs: there "
            "are none in waves. One liar is enough to move the model by any amount."
        )
    else:
        limit = Message(
            "Nobody could measure what was shared between the two databases without proofs. One "
            "liar is enough to move the model by any amount."
        )
    said = [Message("Contributors who lie to distort the model (poisoning)."), limit]
    if isinstance(model, PublishedModel) and model.doubt:
        said.append(Message("**{doubt}**", doubt=model.doubt))
    return join_messages(said)


# ---- for hubs and registries


def as_card(model: PublishedModel) -> str:
    """Return the whole card."""
    promise = model.guarantee
    told = f"{promise.seen} {promise.condition}" if promise.private else promise.condition
    private = ["differential-privacy"] if promise.private else []
    task = "regression" if isinstance(model.aim, Numeric) else "classification"
    facts = {name: one for name, one in promise.facts().items() if name in _IN_FRONT}
    head = {
        "library_name": "blurfit",
        "pipeline_tag": f"tabular-{task}",
        "tags": ["tabular", *private, "moment-perturbation"],
        "privacy": facts | {"agreement": model.fingerprint},
    }
    features = "\n".join(_feature(one) for one in model.agreement.schema.asked_for(model.features))
    return f"""\
---
{_dumped(head)}---

# {plain(model.target)} by {plain(", ".join(model.features))}

A {model.link} model of **{plain(model.target)}**, learned by {model.software} from
{model.guarantee.counted}. {told}

## Use

```python
from blurfit import PublishedModel

model = PublishedModel.load("model.json")
model.predict(records)  # a table or a DataFrame with the columns below
```

| column | what it takes |
| --- | --- |
{features}

The model describes the people whose records it was learned from. It does not know whether they are
like those that you ask about, and it does not say what causes what.

## What it found

{model.summary().to_markdown()}
{as_markdown(model, level=2)}
## Not known here

Whose records these are, what the model is meant for, and how well it predicts on people who are not
among them: whoever publishes it should add that.
"""


def _dumped(entry: dict[str, Any]) -> str:
    plain_entry = json.loads(json.dumps(entry))  # messages as texts
    dump = optional("yaml").safe_dump
    return str(dump(plain_entry, sort_keys=False, allow_unicode=True, width=100))


def _feature(one: Question) -> str:
    if isinstance(one, Numeric):
        takes = f"a number from {one.lower:g} to {one.upper:g}"
    elif isinstance(one, Categorical):
        takes = "one of " + ", ".join(plain(level) for level in one.levels)
    else:
        takes = "yes or no (1 or 0)"
    return f"| {plain(one.name)} | {takes} |"


def as_yaml(model: Published) -> str:
    """Return an entry for OpenDP's registry of deployments; what only you know is left empty."""
    agreement, promise, held = model.agreement, model.guarantee, model.held
    about, one, modelled = agreement.schema.about, promise.unit, isinstance(model, PublishedModel)
    numbers = {"epsilon": promise.epsilon, "delta": promise.delta} if promise.private else None
    how = "" if held else f", blurred before they were sent. Admission: {model.admission}"
    noise = "" if held else f", for at least {model.honest_in_words} honest people"
    rows = "All rows of a person" if one == "person" else f"One {one} for each person"
    where = " of the last wave, and the releases of the others:" if _in_waves(model) else ""
    entry = {
        "status": "Draft",
        "deployment": {
            "product": {
                "name": _name(model),
                "data_curators": [str(about.organiser)] if about.organiser else [],
                "intended_use": str(about.purpose or ""),
                "data_product_type": "Machine learning model" if modelled else "Summary statistics",
                "description": f"From {promise.counted}{how}. {promise.condition}",
            },
            "dp_flavor": {
                "name": "Approximate DP" if promise.private else "none",
                "input_metric": f"{promise.neighbours} one {one}",
                "bound_on_input_distance": 1,
                "output_measure": "approximate max-divergence",
                "bound_on_output_distance": numbers,
                "unprotected_quantities": f"the number of {_counted(model)}",
            },
            "privacy_loss": {
                "privacy_unit": "person-level",
                "privacy_unit_description": f"{rows}{'' if held else ', contributed once'}.",
                "privacy_parameters": numbers,
                "privacy_parameters_description": promise.in_words,
            },
            "model": {
                "model_name": "Noise added by whoever held the rows (moment)"
                if held
                else "Local noise, distributed over a quorum (moment)",
                "actors": _actors(model),
                "release_type": "Any number of releases",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": _composition(model),
                "post_processing": "anything that follows from the blurred sums, which are "
                "published themselves",
            },
            "implementation": {
                "mechanisms": f"Gaussian noise, moment perturbation{noise}",
                "justification": "Public bounds only; how much noise is enough can be verified "
                f"from the agreement{where} {model.fingerprint}."
                if promise.private
                else promise.in_words,
                "software": model.software,
            },
        },
    }
    return _dumped(entry)


def _name(model: Published) -> str:
    if isinstance(model, PublishedModel):
        return f"{'Classifier' if model.is_label else 'Model'} of {title_of(model.aim)}"
    names = ", ".join(title_of(one) for one in model.agreement.schema.questions)
    return f"Blurred moments of {names}"


def _in_waves(model: Published) -> bool:
    return isinstance(model, PublishedModel) and len(model.waves) > 1


def _composition(model: Published) -> str:
    wave, (fit, releases) = model.agreement.wave, model.origin
    if wave is None:
        return "none" if releases == 1 else f"adaptive, of the {releases} releases of this fit"
    if model.held:
        return (
            f"not counted here: release {wave.number} of {releases} of the fit {fit}, which share "
            "its epsilon and delta if every row is in all of them"
        )
    return "parallel, of waves: each person is in one"


def _actors(model: Published) -> str:
    if model.held:
        return f"Somebody held the rows. {statement.HOLDER}"
    who, local, against = "Records are blurred before they are sent.", model.guarantee.local, ""
    if databases := model.agreement.databases:
        named = " and ".join(f"{one.name} ({one.url})" for one in databases)
        who = f"{who} Each submission is shared between two databases, {named}."
    if local is None:
        return f"{who} Nothing is promised against anyone."
    if databases:
        condition = statement.condition_in_words(model.agreement, model.honest_in_words)
        against = f" Against either alone the model's promise holds. {condition} Against both:"
    return (
        f"{who}{against} A single submission is {at_most(local.mu)}-GDP, epsilon "
        f"{at_most(local.epsilon)} at delta {at_most(local.delta, 3)}. "
        f"{statement.local_in_words(local, 'Together they' if databases else 'The database')}"
    )
