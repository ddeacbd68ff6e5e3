"""The guarantee of a release, as data: numbers, caveats, conditions, and who could see a record.

Every text about a release is written from its `Promise`: the statement, the registry's entry, the
card, summaries, `blurfit show`, `blurfit verify` and what scripts read. Two rules stand here alone:

* **With a caveat there is no guarantee.** ε and δ are None then, and so is the guarantee of a
  single submission: no text can print a number that does not hold.
* **Who could see a record** decides against whom anything is guaranteed:

| `seen_by` | how the records came together | who could see one |
| --- | --- | --- |
| "nobody" | shared between two databases | neither, while both keep to the protocol |
| "collector" | blurred, and sent to one database | that database, each blurred submission |
| "holder" | rows that somebody held: `fit(X, y)`, a table blurred by its owner | the holder, all |

The premise (`docs/theory/honest-quorum.md`): the guarantee against readers holds for an honest
person if n − 1 others, n the quorum, added the agreed noise and keep it to themselves. No
submission shows whether they did. If people are "invited", it holds if n of those whom the
organiser invited are honest; if "anyone" may take part, the count says nothing about it. A person
who reads submissions from files, or puts them into a store themselves, vouches for them.

The curves (`docs/theory/guessing.md`) show how often an attacker who knows everything but one
answer is right. Tests: `tests/agreement/test_statement.py`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from blurfit.agreement.numbers import DISCRETE_SHARE, promised_in_all
from blurfit.data import FloatArray, html_table
from blurfit.errors import axes
from blurfit.theory.gaussian import epsilon_of
from blurfit.theory.moments import (
    LocalGuarantee,
    ModelGuarantee,
    Neighbours,
    at_most,
    in_hundred,
    right_by_approximate,
    right_by_gaussian,
)
from blurfit.wording import Message, Series, join_messages

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.terms import Admission

WEAK_EPSILON = 5.0  # beyond which anything may be 148 times as likely

SeenBy = Literal["nobody", "collector", "holder"]
Learner = Literal["The database", "Together they"]

_FACTS = ("epsilon", "delta", "neighbours", "seen_by", "unit", "condition")
HOLDER = Message("They saw every record, before any noise: nothing is promised against them.")
_HONEST_HOLDER = Message(
    "This needs whoever held the rows to be honest: the noise agreed on was added, once, and is "
    "told to nobody. Another release from the same rows reveals more."
)


@dataclass(frozen=True)
class Promise:
    """(ε, δ) for everyone in a release, on a condition; or why there is no promise.

    Attributes:
        epsilon, delta: of everything that is published together; None where a caveat stands.
        local: what one submission keeps by itself; None where there was none, or a caveat stands.
        condition: what the promise needs, and whether anybody can check it.
        counted: what the release is from: so many people, submissions or rows.
        unit: what one person may change: a "record" that is sent, a "row" that somebody held, or
            "person", all rows of whom count as one.
    """

    epsilon: float | None
    delta: float | None
    neighbours: Neighbours
    caveats: tuple[Message, ...]
    seen_by: SeenBy
    local: LocalGuarantee | None
    condition: Message
    counted: Message
    unit: Literal["record", "row", "person"]
    seen: str

    @classmethod
    def of(
        cls,
        agreement: "Agreement",
        count: int,
        quorum: str,
        local: LocalGuarantee,
        *,
        caveats: tuple[str, ...],
        held: bool,
    ) -> "Promise":
        """Return the promise of a release; `quorum` and `local` are those of all waves."""
        reasons = tuple(map(Message, dict.fromkeys(caveats)))
        if reasons:
            condition = join_messages([Message("Nothing is promised."), *reasons])
        else:
            condition = _HONEST_HOLDER if held else premise_in_words(agreement, quorum)
        one, shown = agreement.calibration.model, None if reasons else local
        return cls(
            epsilon=None if reasons else promised_in_all(one.epsilon, 0.0),
            delta=None if reasons else min(1.0, promised_in_all(one.delta, DISCRETE_SHARE)),
            neighbours=one.neighbours,
            caveats=reasons,
            seen_by="holder" if held else "nobody" if agreement.databases else "collector",
            local=None if held else shown,
            condition=condition,
            counted=_counted(agreement, count, held=held),
            unit="person" if agreement.diaries else "row" if held else "record",
            seen=_seen(agreement, quorum, shown, held=held),
        )

    @property
    def private(self) -> bool:
        """Whether anything is promised."""
        return not self.caveats

    @property
    def numbers(self) -> Message:
        """ε and δ, rounded up, or that there are none."""
        if self.epsilon is None or self.delta is None:
            return Message("nothing is promised")
        return _both(self.epsilon, self.delta)

    @property
    def protects(self) -> str:
        """What of one person is protected, and against what change: the neighbours, in words."""
        each = "all rows of each person" if self.unit == "person" else f"each {self.unit}"
        they = "they" if self.unit == "person" else "it"
        if self.neighbours == "zero-out":
            return f"{each}, were {they} left blank"
        return f"{each}, were {they} replaced by any other{'s' if they == 'they' else ''}"

    @property
    def in_words(self) -> Message:
        """What is promised to everyone who reads what is published."""
        if self.epsilon is None or self.delta is None:
            return self.condition
        return Message(
            "What is published is ({epsilon}, {delta})-differentially private (neighbours: "
            "{neighbours}).",
            epsilon=at_most(self.epsilon, 6),
            delta=at_most(self.delta, 6),
            neighbours=Message(self.neighbours),
        )

    def facts(self) -> dict[str, Any]:
        """Return everything for scripts: null where nothing is promised."""
        found = {name: getattr(self, name) for name in _FACTS}
        found |= {"condition": str(self.condition), "caveats": list(map(str, self.caveats))}
        local = {name: getattr(self.local, name, None) for name in ("mu", "epsilon", "delta")}
        return found | {f"local_{name}": value for name, value in local.items()}


def _seen(agreement: "Agreement", quorum: str, local: LocalGuarantee | None, *, held: bool) -> str:
    """Return who could see a record; what a database learns from one follows from its numbers."""
    if held:
        return f"Somebody held the rows. {HOLDER}"
    if agreement.databases:
        return (
            "Each record was blurred, and shared between two databases, so that neither sees it. "
            f"{condition_in_words(agreement, quorum)}"
        )
    found = "Each record was blurred before it was sent to the database."
    return found if local is None else f"{found} {local_in_words(local)}"


_STRONG, _WEAK, _YARDSTICK = 1.0, 10.0, 1e-6
_RELATION: dict[Neighbours, Message] = {
    "replace": Message("one person's record were replaced by any other"),
    "zero-out": Message("one person's answers were blanked out, while they still count"),
}
OPEN_TO_ANYONE = Message(
    "Anyone may take part, as often as they like, so nobody can tell how many of the submissions "
    "are honest people's."
)
_OTHERWISE_OPEN = Message(
    "If it is not: anyone may take part, as often as they like, so nobody can tell how many of the "
    "submissions are honest people's."
)
# Who decides which group of a plan a person is in (`blurfit.agreement.mechanisms`).
LOT_IN_WORDS: "dict[Admission, Message]" = {
    "invited": Message(
        "A lot decides which group a person is in, drawn with the invitation, before anything is "
        "known of them; an invitation is good in that group alone, so nobody can choose."
    ),
    "anyone": Message(
        "Everybody's own coin decides which group they are in. Nobody can check a coin: whoever "
        "lies can choose their group, and many who lie can be in the same one."
    ),
}


def coded_in_words(
    agreement: "Agreement", escape: Callable[[str], str] = str
) -> dict[str, Message]:
    """Return by what sums are kept apart, and how much each person counts, where that is agreed."""
    found = {}
    if agreement.groups is not None:
        found["groups"] = Message(
            "sums are kept apart by {groups}; which group somebody is in is blurred like all else",
            groups=escape(agreement.groups),
        )
        if agreement.overlap:
            found["groups"] = Message(
                "sums are kept apart by {groups} (overlap {overlap:g}); which group somebody is in "
                "is blurred like all else",
                groups=escape(agreement.groups),
                overlap=agreement.overlap,
            )
    if agreement.weighting is not None:
        rule: Any = Message("divided by its upper bound")
        if agreement.factors:
            each = (
                Message("{level} {factor:g}", level=escape(level), factor=factor)
                for level, factor in agreement.factors
            )
            rule = Series(each)
        found["weights"] = Message(
            "how much somebody counts follows from {weighting} ({rule}), and is blurred like all "
            "else",
            weighting=escape(agreement.weighting),
            rule=rule,
        )
    return found


def relation_in_words(neighbours: Neighbours, *, diaries: bool = False) -> Message:
    """Return what may change of one person, so that "if …" can stand before it."""
    if diaries and neighbours == "replace":
        return Message("all rows of one person were replaced by any others")
    return _RELATION[neighbours]


def guesses_in_words(guarantee: ModelGuarantee, mu: float | None, what: str) -> Message:
    """Return how well one answer could be guessed from what is published, in the worst case.

    `mu` is the exact Gaussian privacy of it, where it has one.
    """
    right = right_by_approximate(guarantee.epsilon, guarantee.delta, guarantee.neighbours)
    if mu is not None:
        right = min(right, right_by_gaussian(mu, guarantee.neighbours))
    if (hundred := in_hundred(right)) >= 100:
        return Message(
            "Somebody who knows everything about you but one answer, and finds two equally likely, "
            "could in the worst case tell from {what} which one is yours.",
            what=what,
        )
    return Message(
        "Somebody who knows everything about you but one answer, and finds two equally likely, "
        "picks the right one from {what} at most {hundred} times in 100; a coin is right 50 times "
        "in 100.",
        what=what,
        hundred=hundred,
    )


def guesses_from_submission(local: LocalGuarantee) -> str:
    """Return how well one answer could be guessed from a single submission, in the worst case."""
    who, hundred = "Whoever runs the database", in_hundred(right_by_gaussian(local.mu))
    if hundred >= 100:
        return f"{who} could, in the worst case, tell two answers apart almost every time."
    return f"{who} could do so at most {hundred} times in 100."


def either_in_words(
    agreement: "Agreement", names: Sequence[str] = (), quorum: str | None = None
) -> Message:
    """Return what one of two databases learns from the shares that it gets, and on what condition.

    `names` are the databases' own if left out; `quorum` is given in words where several waves have
    one each, here and below.
    """
    first, second = names or [one.name for one in agreement.databases]
    unbroken = "TurboSHAKE128" if agreement.proofs else "AES-256"  # where the masks come from
    return Message(
        "{first} gets a masked share of each submission and {second} the seed of its mask. Either "
        "alone is random numbers, which say nothing about a record as long as {unbroken} is not "
        "broken. All that either learns are the blurred sums from which the model is computed, so "
        "the promise to the model's readers, {numbers}, holds against each of the two as well. "
        "{condition}",
        first=first,
        second=second,
        unbroken=unbroken,
        numbers=_numbers(agreement),
        condition=condition_in_words(agreement, quorum),
    )


def condition_in_words(agreement: "Agreement", quorum: str | None = None) -> Message:
    """Return what the promise against either of two databases depends on."""
    if agreement.database_noise:
        return Message(
            "This holds only if the two do not put their shares together, and if the other one "
            "follows the protocol and adds its own noise: then it holds even if one of them "
            "invents contributors."
        )
    kept_out = Message(
        "Invitations, which each database gives out itself, are there to keep invented ones out."
        if agreement.admission == "invited"
        else "Anyone may take part, as often as they like, so nothing keeps invented ones out, and "
        "nobody can check this."
    )
    return Message(
        "This holds only if the two do not put their shares together, if each follows the "
        "protocol, and if neither invents contributors: at least {quorum} of those who are counted "
        "must be honest people. {kept_out}",
        quorum=quorum or in_each_wave([agreement.honest]),
        kept_out=kept_out,
    )


def together_in_words(local: LocalGuarantee) -> Message:
    """Return what two databases could learn that put their shares together."""
    return Message(
        "Together they could undo the sharing, and then one submission is at most μ = {mu} "
        "Gaussian differentially private: ε = {epsilon} at δ = {delta}, for any two records. "
        "{learned}",
        **bounds_of(local),
        learned=local_in_words(local, "Together they"),
    )


def bounds_of(local: LocalGuarantee) -> dict[str, Message]:
    """Return what one submission keeps by itself, rounded up: the values of a message."""
    return {
        "mu": at_most(local.mu),
        "epsilon": at_most(local.epsilon),
        "delta": at_most(local.delta, 3),
    }


def local_in_words(local: LocalGuarantee, who: Learner = "The database") -> Message:
    """Return what somebody could learn from a single submission, by its ε at δ = 10⁻⁶."""
    epsilon = epsilon_of(local.mu, _YARDSTICK)  # whatever δ the agreement states: μ decides
    strength = 0 if epsilon <= _STRONG else 1 if epsilon <= _WEAK else 2
    return _LEARNED[who][strength]


_LEARNED: dict[Learner, tuple[Message, Message, Message]] = {
    "The database": (
        Message("The database could learn very little from a single submission."),
        Message(
            "The database could learn something from a single submission, but could not be sure "
            "of it."
        ),
        Message("The database could learn a great deal from a single submission."),
    ),
    "Together they": (
        Message("Together they could learn very little from a single submission."),
        Message(
            "Together they could learn something from a single submission, but could not be sure "
            "of it."
        ),
        Message("Together they could learn a great deal from a single submission."),
    ),
}


def margin_in_words(groups: "Sequence[tuple[int, int]]") -> Message:
    """Return how many people each group waits for, how many of them must be honest, and which share
    of any group may collude: never rounded up.

    >>> margin_in_words([(4000, 3600), (6000, 5399)])[-73:]
    '5,399 in wave 2 of them are honest: if at most 10 % of any group collude.'
    """
    people, honest = map(list, zip(*groups, strict=True))
    if honest == people:
        return Message(
            "A group is released when at least {people} have taken part, and as many must be "
            "honest.",
            people=in_each_wave(people),
        )
    return Message(
        "A group is released when at least {people} have taken part. All of this holds if at least "
        "{honest} of them are honest: if at most {share} % of any group collude.",
        people=in_each_wave(people),
        honest=in_each_wave(honest),
        share=min(100 * (all_ - some) // all_ for all_, some in groups),
    )


def weak_terms(epsilon: float, delta: float, count: int, called: str = "the quorum") -> list[str]:
    """Say which terms promise little to so many people; `called` says what their number is."""
    found = []
    if epsilon > WEAK_EPSILON:
        times = f"{math.exp(epsilon):,.0f}" if epsilon < 20 else "any number of"
        found.append(
            f"ε = {epsilon:g} promises little: any conclusion about a person may become {times} "
            "times as likely. An ε of 1 or 2 is usual."
        )
    if delta * count > 1:
        found.append(
            f"δ = {delta:g} is more than one in {count:,}, {called}: even publishing somebody's "
            "record would keep such a promise. A δ of 1e-6 or less is usual."
        )
    return found


def in_each_wave(counts: "Sequence[int]") -> Message:
    """Return a number for each wave, or the only one.

    >>> in_each_wave([3000]), in_each_wave([3000, 7000])
    ('3,000', '3,000 in wave 1 and 7,000 in wave 2')
    """
    if len(counts) == 1:
        return Message("{count:,}", count=counts[0])
    each = (
        Message("{count:,} in wave {number}", count=count, number=number)
        for number, count in enumerate(counts, start=1)
    )
    return reduce(lambda some, last: Message("{some} and {last}", some=some, last=last), each)


def counted_in_words(admission: "Admission", count: int) -> Message:
    """Return what a count is of: people who were invited, or submissions of nobody knows whom."""
    if admission == "invited":
        return Message("{count:,} people", count=count)
    return Message("{count:,} submissions", count=count)


def _counted(agreement: "Agreement", count: int, *, held: bool) -> Message:
    if not held:
        return counted_in_words(agreement.admission, count)
    if agreement.diaries:
        return Message("{count:,} people", count=count)
    return Message("{count:,} rows", count=count)


def premise_in_words(agreement: "Agreement", quorum: str | None = None) -> Message:
    """Return what the promise to a model's readers needs, and whether anybody can check it."""
    least = quorum or in_each_wave([agreement.honest])
    invited, noise = agreement.admission == "invited", agreement.database_noise
    said = []
    if noise and agreement.databases:
        said.append(
            Message(
                "This holds even if every other contributor lies, as long as one of the two "
                "databases is honest: noise of its own was added, once."
            )
        )
    elif noise:
        said.append(
            Message(
                "This holds even if every other contributor lies, as long as the database is "
                "honest: noise of its own was added, once."
            )
        )
    if invited and noise:
        said.append(
            Message(
                "If it is not: this holds if at least {least} of the people who were invited "
                "follow the protocol: they add the noise agreed on, and keep it to themselves.",
                least=least,
            )
        )
    elif invited:
        said.append(
            Message(
                "This holds if at least {least} of the people who were invited follow the "
                "protocol: they add the noise agreed on, and keep it to themselves.",
                least=least,
            )
        )
    else:
        said += [
            _OTHERWISE_OPEN if noise else OPEN_TO_ANYONE,
            Message(
                "This holds only if at least {least} of the submissions are of real people who "
                "keep their noise to themselves. Nobody can check that, and a flood of fakes "
                "cancels it.",
                least=least,
            ),
        ]
    return join_messages(said)


# ---- for notebooks


def readers_power(alpha: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """Return how often the second hypothesis is found at best, from an (ε, δ)-private release."""
    far = 1 - np.exp(-epsilon) * (1 - delta - alpha)
    found: FloatArray = np.clip(np.minimum(np.exp(epsilon) * alpha + delta, far), 0, 1)
    return found


def submission_power(alpha: FloatArray, mu: float) -> FloatArray:
    """Return how often the second hypothesis is found at best, from one μ-GDP submission."""
    found: FloatArray = ndtr(ndtri(alpha) + mu)
    return found


def as_html(agreement: "Agreement") -> str:
    """Return what is asked, sent and promised, as a table for a notebook."""
    local = agreement.calibration.local
    promised = [
        ("what is published", _numbers(agreement)),
        ("needs", f"{agreement.honest:,} honest contributors"),
        (_who_sees(agreement), f"μ ≤ {at_most(local.mu)}, ε ≤ {at_most(local.epsilon)}"),
    ]
    rows = [
        ("asked", ", ".join(one.name for one in agreement.schema.asked)),
        ("sent", f"{agreement.width:,} blurred numbers a person, once"),
        *coded_in_words(agreement).items(),
        *promised,
        ("fingerprint", agreement.fingerprint),
    ]
    return html_table(["agreement", ""], rows)


def plot(agreement: "Agreement", ax: Any = None) -> Any:
    """Draw both curves into `ax`, or into a figure of its own; the axes are returned."""
    ax = axes(ax, 5, 5)
    alpha, mu = np.linspace(0, 1, 501), agreement.calibration.local.mu
    title = "How well one answer could be told from another"
    ax.plot(alpha, alpha, color="grey", linestyle=":", label="guessing")
    submission = f"{_who_sees(agreement)}, μ ≤ {at_most(mu, 3)}"
    ax.plot(alpha, submission_power(alpha, mu), label=submission)
    readers = readers_power(alpha, agreement.epsilon, agreement.delta)
    ax.plot(alpha, readers, label=f"what is published, {_numbers(agreement)}")
    wrong, right = "wrong, if the answer is the first", "right, if it is the second, at most"
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel=wrong, ylabel=right, title=title)
    ax.legend(loc="lower right", fontsize="small")
    return ax


def _numbers(agreement: "Agreement") -> Message:
    return _both(agreement.epsilon, agreement.delta)


def _both(epsilon: float, delta: float) -> Message:
    return Message(
        "ε = {epsilon}, δ = {delta}", epsilon=at_most(epsilon, 6), delta=at_most(delta, 6)
    )


def _who_sees(agreement: "Agreement") -> str:
    return "one submission" if agreement.trust == "one" else "both databases together"
