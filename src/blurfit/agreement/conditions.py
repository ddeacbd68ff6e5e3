"""Whom the promise needs: what has to be true for (ε, δ) to hold, said wherever it is stated.

**The theorem and its premise.** Each contributor's noise has the n-th part of the variance σ² that
the promise needs, n the quorum. Somebody who knows the noise of all but k of the contributors, and
the records of all but one, is left with variance kσ²/n. So for one honest person the promise holds
if k ≥ n: if besides her n − 1 others added the noise agreed on and keep it to themselves. Nothing
that is sent shows whether they did: a submission with known noise, or with none, looks like any
other.

What the count says about that premise depends on who may take part:

* "invited": each submission used up an invitation, so the premise holds if n of the people whom the
  organiser invited are honest.
* "anyone": nothing. Whoever likes sends any number of submissions; one sender with n − 1 of them
  knows all noise but the victim's own, who then has her own submission's μ and no more.

So a collection is by invitation unless its agreement says "anyone". What is read from files, or put
into a store by whoever holds it, is vouched for by that person, who takes the place of invitations.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.terms import Admission

OPEN_TO_ANYONE = (
    "Anyone may take part, as often as they like, so nobody can tell how many of the submissions "
    "are honest people's."
)


# Who decides which group of a plan a person is in (`blurfit.agreement.lot`).
LOT_IN_WORDS: "dict[Admission, str]" = {
    "invited": "A lot decides which group a person is in, drawn with the invitation, before "
    "anything is known of them; an invitation is good in that group alone, so nobody can choose.",
    "anyone": "Everybody's own coin decides which group they are in. Nobody can check a coin: "
    "whoever lies can choose their group, and many who lie can be in the same one.",
}


def margin_in_words(groups: "Sequence[tuple[int, int]]") -> str:
    """How many people each group waits for, how many of them must be honest, and which share of any
    group may collude: never rounded up.

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


def in_each_wave(counts: "Sequence[int]") -> str:
    """A number for each wave, or the only one.

    >>> in_each_wave([3000]), in_each_wave([3000, 7000])
    ('3,000', '3,000 in wave 1 and 7,000 in wave 2')
    """
    if len(counts) == 1:
        return f"{counts[0]:,}"
    return " and ".join(f"{one:,} in wave {place}" for place, one in enumerate(counts, start=1))


def counted_in_words(admission: "Admission", count: int) -> str:
    """What a count is of: people who were invited, or submissions of nobody knows whom.

    >>> counted_in_words("invited", 2000), counted_in_words("anyone", 2000)
    ('2,000 people', '2,000 submissions')
    """
    return f"{count:,} {'people' if admission == 'invited' else 'submissions'}"


def premise_in_words(agreement: "Agreement", quorum: str | None = None) -> str:
    """What the promise to the readers of a model needs, and whether anybody can check it.

    `quorum` is given in words where several waves have one each.
    """
    least = quorum or f"{agreement.honest:,}"
    if agreement.admission == "invited":
        people = (
            f"This needs honest people, at least {least} of those who were invited: they added the "
            "noise agreed on, and tell it to nobody."
        )
    else:
        people = (
            f"{OPEN_TO_ANYONE} For one honest person this needs others who are honest too, {least} "
            "with her, and nobody can check that: one sender with enough submissions of known "
            "noise voids it."
        )
    if not agreement.database_noise:
        return people
    who = "one of the two databases" if agreement.databases else "the database"
    return (
        f"This holds even if every other contributor lies, as long as {who} is honest: noise of "
        f"its own was added, once. If it is not: {people[0].lower()}{people[1:]}"
    )
