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
from collections.abc import Sequence
from dataclasses import dataclass
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

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.terms import Admission

WEAK_EPSILON = 5.0  # beyond which anything may be 148 times as likely

SeenBy = Literal["nobody", "collector", "holder"]

_FACTS = ("epsilon", "delta", "neighbours", "releases", "models", "seen_by", "unit", "condition")
HOLDER = "They saw every record, before any noise: nothing is promised against them."
_HONEST_HOLDER = (
    "This needs whoever held the rows to be honest: the noise agreed on was added, once, and is "
    "told to nobody. Another release from the same rows reveals more."
)


@dataclass(frozen=True)
class Promise:
    """(ε, δ) for everyone in a release, on a condition; or why there is no promise.

    Attributes:
        epsilon, delta: of everything that is published together; None where a caveat stands.
        models: how many models of one fit the numbers cover together: by basic composition, so
            many times those of the agreement that each model carries.
        local: what one submission keeps by itself; None where there was none, or a caveat stands.
        condition: what the promise needs, and whether anybody can check it.
        counted: what the release is from: so many people, submissions or rows.
        unit: what one person may change: a "record" that is sent, a "row" that somebody held, or
            "person", all rows of whom count as one.
    """

    epsilon: float | None
    delta: float | None
    neighbours: Neighbours
    releases: int | Literal["any"]
    caveats: tuple[str, ...]
    seen_by: SeenBy
    models: int
    local: LocalGuarantee | None
    condition: str
    counted: str
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
        models: int,
    ) -> "Promise":
        """Return the promise of a release; `quorum` and `local` are those of all waves."""
        caveats = tuple(dict.fromkeys(caveats))
        if caveats:
            condition = f"Nothing is promised. {' '.join(caveats)}"
        else:
            condition = _HONEST_HOLDER if held else premise_in_words(agreement, quorum)
        one, shown = agreement.calibration.model, None if caveats else local
        # what the division among several models and their product round off is put back
        together = models * (1 - 1e-14) if models > 1 else 1.0
        epsilon = promised_in_all(together * one.epsilon, 0.0)
        delta = min(1.0, promised_in_all(together * one.delta, DISCRETE_SHARE))
        return cls(
            epsilon=None if caveats else epsilon,
            delta=None if caveats else delta,
            neighbours=one.neighbours,
            releases=one.releases,
            caveats=caveats,
            seen_by="holder" if held else "nobody" if agreement.databases else "collector",
            models=models,
            local=None if held else shown,
            condition=condition,
            counted=f"{count:,} {'people' if agreement.diaries else 'rows'}"
            if held
            else counted_in_words(agreement.admission, count),
            unit="person" if agreement.diaries else "row" if held else "record",
            seen=_seen(agreement, quorum, shown, held=held),
        )

    @property
    def private(self) -> bool:
        """Whether anything is promised."""
        return not self.caveats

    @property
    def numbers(self) -> str:
        """ε and δ, rounded up, or that there are none."""
        if self.epsilon is None or self.delta is None:
            return "nothing is promised"
        found = f"ε = {at_most(self.epsilon, 6)}, δ = {at_most(self.delta, 6)}"
        return found if self.models == 1 else f"{found} for all {self.models} models of one fit"

    @property
    def protects(self) -> str:
        """What of one person is protected, and against what change: the neighbours, in words."""
        each = "all rows of each person" if self.unit == "person" else f"each {self.unit}"
        they = "they" if self.unit == "person" else "it"
        if self.neighbours == "zero-out":
            return f"{each}, were {they} left blank"
        return f"{each}, were {they} replaced by any other{'s' if they == 'they' else ''}"

    @property
    def in_words(self) -> str:
        """What is promised to everyone who reads what is published."""
        if self.epsilon is None or self.delta is None:
            return self.condition
        what = "What is published is"
        if self.models > 1:
            what = f"This is one of {self.models} models of one fit. Together they are"
        return (
            f"{what} ({at_most(self.epsilon, 6)}, {at_most(self.delta, 6)})-differentially private "
            f"(neighbours: {self.neighbours})."
        )

    def facts(self) -> dict[str, Any]:
        """Return everything for scripts: null where nothing is promised."""
        found = {name: getattr(self, name) for name in _FACTS} | {"caveats": list(self.caveats)}
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
_RELATION: dict[Neighbours, str] = {
    "replace": "one person's record were replaced by any other",
    "zero-out": "one person's answers were blanked out, while they still count",
}
OPEN_TO_ANYONE = (
    "Anyone may take part, as often as they like, so nobody can tell how many of the submissions "
    "are honest people's."
)
# Who decides which group of a plan a person is in (`blurfit.agreement.mechanisms`).
LOT_IN_WORDS: "dict[Admission, str]" = {
    "invited": "A lot decides which group a person is in, drawn with the invitation, before "
    "anything is known of them; an invitation is good in that group alone, so nobody can choose.",
    "anyone": "Everybody's own coin decides which group they are in. Nobody can check a coin: "
    "whoever lies can choose their group, and many who lie can be in the same one.",
}


def coded_in_words(agreement: "Agreement") -> dict[str, str]:
    """Return by what sums are kept apart, and how much each person counts, where that is agreed."""
    found = {}
    if agreement.groups is not None:
        overlap = f" (overlap {agreement.overlap:g})" if agreement.overlap else ""
        found["groups"] = (
            f"sums are kept apart by {agreement.groups}{overlap}; which group somebody is in is "
            "blurred like all else"
        )
    if agreement.weighting is not None:
        rule = ", ".join(f"{level} {factor:g}" for level, factor in agreement.factors)
        found["weights"] = (
            f"how much somebody counts follows from {agreement.weighting} "
            f"({rule or 'divided by its upper bound'}), and is blurred like all else"
        )
    return found


def relation_in_words(neighbours: Neighbours, *, diaries: bool = False) -> str:
    """Return what may change of one person, so that "if …" can stand before it."""
    if diaries and neighbours == "replace":
        return "all rows of one person were replaced by any others"
    return _RELATION[neighbours]


def releases_in_words(model: ModelGuarantee) -> str:
    """Return how often one may publish."""
    several = model.releases == "any"
    return "any number of models from one final collection" if several else "one model, once"


def guesses_in_words(guarantee: ModelGuarantee, mu: float | None, what: str) -> str:
    """Return how well one answer could be guessed from what is published, in the worst case.

    `mu` is the exact Gaussian privacy of it, where it has one.
    """
    right = right_by_approximate(guarantee.epsilon, guarantee.delta, guarantee.neighbours)
    if mu is not None:
        right = min(right, right_by_gaussian(mu, guarantee.neighbours))
    known = "Somebody who knows everything about you but one answer, and finds two equally likely"
    if (hundred := in_hundred(right)) >= 100:
        return f"{known}, could in the worst case tell from {what} which one is yours."
    return (
        f"{known}, picks the right one from {what} at most {hundred} times in 100; a coin is right "
        "50 times in 100."
    )


def guesses_from_submission(local: LocalGuarantee) -> str:
    """Return how well one answer could be guessed from a single submission, in the worst case."""
    who, hundred = "Whoever runs the database", in_hundred(right_by_gaussian(local.mu))
    if hundred >= 100:
        return f"{who} could, in the worst case, tell two answers apart almost every time."
    return f"{who} could do so at most {hundred} times in 100."


def either_in_words(
    agreement: "Agreement", names: Sequence[str] = (), quorum: str | None = None
) -> str:
    """Return what one of two databases learns from the shares that it gets, and on what condition.

    `names` are the databases' own if left out; `quorum` is given in words where several waves have
    one each, here and below.
    """
    first, second = names or [one.name for one in agreement.databases]
    unbroken = "TurboSHAKE128" if agreement.proofs else "AES-256"  # where the masks come from
    return (
        f"{first} gets a masked share of each submission and {second} the seed of its mask. Either "
        f"alone is random numbers, which say nothing about a record as long as {unbroken} is not "
        "broken. All that either learns are the blurred sums from which the model is computed, so "
        f"the promise to the model's readers, {_numbers(agreement)}, holds against each of the two "
        f"as well. {condition_in_words(agreement, quorum)}"
    )


def condition_in_words(agreement: "Agreement", quorum: str | None = None) -> str:
    """Return what the promise against either of two databases depends on."""
    apart = "This holds only if the two do not put their shares together, "
    if agreement.database_noise:
        return (
            f"{apart}and if the other one follows the protocol and adds its own noise: then it "
            "holds even if one of them invents contributors."
        )
    kept_out = (
        "Invitations, which each database gives out itself, are there to keep invented ones out."
        if agreement.admission == "invited"
        else "Anyone may take part, as often as they like, so nothing keeps invented ones out, and "
        "nobody can check this."
    )
    return (
        f"{apart}if each follows the protocol, and if neither invents contributors: at least "
        f"{quorum or f'{agreement.honest:,}'} of those who are counted must be honest people. "
        f"{kept_out}"
    )


def together_in_words(local: LocalGuarantee) -> str:
    """Return what two databases could learn that put their shares together."""
    return (
        "Together they could undo the sharing, and then one submission is at most μ = "
        f"{at_most(local.mu)} Gaussian differentially private: ε = {at_most(local.epsilon)} at δ = "
        f"{at_most(local.delta, 3)}, for any two records. " + local_in_words(local, "Together they")
    )


def local_in_words(local: LocalGuarantee, who: str = "The database") -> str:
    """Return what somebody could learn from a single submission, by its ε at δ = 10⁻⁶."""
    epsilon = epsilon_of(local.mu, _YARDSTICK)  # whatever δ the agreement states: μ decides
    if epsilon <= _STRONG:
        return f"{who} could learn very little from a single submission."
    if epsilon <= _WEAK:
        return f"{who} could learn something from a single submission, but could not be sure of it."
    return f"{who} could learn a great deal from a single submission."


def margin_in_words(groups: "Sequence[tuple[int, int]]") -> str:
    """Return how many people each group waits for, how many of them must be honest, and which share
    of any group may collude: never rounded up.

    >>> margin_in_words([(4000, 3600), (6000, 5399)])[-73:]
    '5,399 in wave 2 of them are honest: if at most 10 % of any group collude.'
    """
    people, honest = map(list, zip(*groups, strict=True))
    waits = f"A group is released when at least {in_each_wave(people)} have taken part"
    if honest == people:
        return f"{waits}, and as many must be honest."
    share = min(100 * (all_ - some) // all_ for all_, some in groups)
    return (
        f"{waits}. All of this holds if at least {in_each_wave(honest)} of them are honest: if at "
        f"most {share} % of any group collude."
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


def in_each_wave(counts: "Sequence[int]") -> str:
    """Return a number for each wave, or the only one.

    >>> in_each_wave([3000]), in_each_wave([3000, 7000])
    ('3,000', '3,000 in wave 1 and 7,000 in wave 2')
    """
    if len(counts) == 1:
        return f"{counts[0]:,}"
    return " and ".join(f"{one:,} in wave {place}" for place, one in enumerate(counts, start=1))


def counted_in_words(admission: "Admission", count: int) -> str:
    """Return what a count is of: people who were invited, or submissions of nobody knows whom."""
    return f"{count:,} {'people' if admission == 'invited' else 'submissions'}"


def premise_in_words(agreement: "Agreement", quorum: str | None = None) -> str:
    """Return what the promise to a model's readers needs, and whether anybody can check it."""
    least = quorum or f"{agreement.honest:,}"
    if agreement.admission == "invited":
        people = (
            f"This holds if at least {least} of the people who were invited follow the protocol: "
            "they add the noise agreed on, and keep it to themselves."
        )
    else:
        people = (
            f"{OPEN_TO_ANYONE} This holds only if at least {least} of the submissions are of real "
            "people who keep their noise to themselves. Nobody can check that, and a flood of "
            "fakes cancels it."
        )
    if not agreement.database_noise:
        return people
    who = "one of the two databases" if agreement.databases else "the database"
    return (
        f"This holds even if every other contributor lies, as long as {who} is honest: noise of "
        f"its own was added, once. If it is not: {people[0].lower()}{people[1:]}"
    )


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


def _numbers(agreement: "Agreement") -> str:
    return f"ε = {at_most(agreement.epsilon, 6)}, δ = {at_most(agreement.delta, 6)}"


def _who_sees(agreement: "Agreement") -> str:
    return "one submission" if agreement.trust == "one" else "both databases together"
