"""Promises in plain words, for readers who know no ε. Words must not say more than the numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blurfit.theory.gaussian import epsilon_of
from blurfit.theory.guarantees import (
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

_STRONG, _WEAK, _YARDSTICK = 1.0, 10.0, 1e-6
_RELATION: dict[Neighbours, str] = {
    "replace": "one person replace her record by any other",
    "zero-out": "one person's answers be blanked out, while she still counts",
}


PUBLIC_ROWS_ASSUMED = (
    "The public rows are assumed to be public, and not those of the people who are protected: "
    "nothing is promised to anybody in them."
)


UNPROVED = (
    "NOT PROVED: the noise follows rule='published', as the paper prints it, which does not follow "
    "from its proof. For experiments only; use rule='certified' for real people."
)


def caveats_of(agreement: "Agreement") -> tuple[str, ...]:
    """Why an agreement promises nothing, where that is so."""
    return () if agreement.calibration.model.proved else (UNPROVED,)


def relation_in_words(neighbours: Neighbours) -> str:
    """What one person may change, so that "should …" can stand before it."""
    return _RELATION[neighbours]


def releases_in_words(model: ModelGuarantee) -> str:
    """How often one may publish."""
    return (
        "any number of models from one final collection"
        if model.releases == "any"
        else "one model, once"
    )


def guesses_in_words(guarantee: ModelGuarantee, mu: float | None, what: str) -> str:
    """How well one answer could be guessed from what is published, in the worst case.

    `mu` is the exact Gaussian privacy of it, where it has one.
    """
    right = right_by_approximate(guarantee.epsilon, guarantee.delta, guarantee.neighbours)
    if mu is not None:
        right = min(right, right_by_gaussian(mu, guarantee.neighbours))
    return _guesses(in_hundred(right), what)


def guesses_from_submission(local: LocalGuarantee, who: str = "Whoever runs the database") -> str:
    """How well one answer could be guessed from a single submission, in the worst case."""
    hundred = in_hundred(right_by_gaussian(local.mu))
    if hundred >= 100:
        return f"{who} could, in the worst case, tell two answers apart almost every time."
    return f"{who} could do so at most {hundred} times in 100."


def _guesses(hundred: int, what: str) -> str:
    known = "Somebody who knows everything about you but one answer, and finds two equally likely"
    if hundred >= 100:
        return f"{known}, could in the worst case tell from {what} which one is yours."
    return (
        f"{known}, picks the right one from {what} at most {hundred} times in 100; a coin is right "
        "50 times in 100."
    )


def either_in_words(
    agreement: "Agreement", names: Sequence[str] = (), quorum: str | None = None
) -> str:
    """What one of two databases learns from the shares that it gets, and on what condition.

    `names` are the databases' own if left out; `quorum` is given in words where several waves have
    one each.
    """
    first, second = names or [one.name for one in agreement.databases]
    unbroken = "TurboSHAKE128" if agreement.proofs else "AES-256"  # where the masks come from
    return (
        f"{first} gets a masked share of each submission and {second} the seed of its mask. Either "
        f"alone is random numbers, which say nothing about a record as long as {unbroken} is not "
        "broken. All that either learns are the blurred sums from which the model is computed, so "
        f"the promise to the model's readers, ε = {at_most(agreement.epsilon, 6)}, δ = "
        f"{at_most(agreement.delta, 6)}, holds against each of the two as well. "
        f"{condition_in_words(agreement, quorum)}"
    )


def condition_in_words(agreement: "Agreement", quorum: str | None = None) -> str:
    """What the promise against either of two databases depends on."""
    if agreement.database_noise:
        return (
            "This holds only if the two do not put their shares together, and if the other one "
            "follows the protocol and adds its own noise: then it holds even if one of them "
            "invents contributors."
        )
    kept_out = (
        "Invitations, which each database gives out itself, are there to keep invented ones out."
        if agreement.admission == "invited"
        else "Anyone may take part, as often as they like, so nothing keeps invented ones out, and "
        "nobody can check this."
    )
    return (
        "This holds only if the two do not put their shares together, if each follows the "
        f"protocol, and if neither invents contributors: at least "
        f"{quorum or f'{agreement.honest:,}'} of those who are counted must be honest people. "
        f"{kept_out}"
    )


def together_in_words(local: LocalGuarantee) -> str:
    """What two databases could learn that put their shares together."""
    return (
        "Together they could undo the sharing, and then one submission is at most μ = "
        f"{at_most(local.mu)} Gaussian differentially private: ε = {at_most(local.epsilon)} at δ = "
        f"{at_most(local.delta, 3)}, for any two records. " + local_in_words(local, "Together they")
    )


def local_in_words(local: LocalGuarantee, who: str = "The database") -> str:
    """What somebody could learn from a single submission, by its ε at δ = 10⁻⁶."""
    epsilon = epsilon_of(local.mu, _YARDSTICK)  # whatever δ the agreement states: μ decides
    if epsilon <= _STRONG:
        return f"{who} could learn very little from a single submission."
    if epsilon <= _WEAK:
        return f"{who} could learn something from a single submission, but could not be sure of it."
    return f"{who} could learn a great deal from a single submission."
