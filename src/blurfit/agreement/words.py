"""Promises in plain words, for readers who know no ε. Words must not say more than the numbers."""

from blurfit.theory.gaussian import epsilon_of
from blurfit.theory.setting import LocalGuarantee, ModelGuarantee, Neighbours

_STRONG, _WEAK, _YARDSTICK = 1.0, 10.0, 1e-6
_RELATION: dict[Neighbours, str] = {
    "replace": "one person replace her record by any other",
    "zero-out": "one person's record be blanked out (q = 0, p = 0)",
}


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


def local_in_words(local: LocalGuarantee) -> str:
    """What a database could learn from a single submission, by its ε at δ = 10⁻⁶."""
    epsilon = epsilon_of(local.mu, _YARDSTICK)  # whatever δ the agreement states: μ decides
    if epsilon <= _STRONG:
        return "The database could learn very little from a single submission."
    if epsilon <= _WEAK:
        return (
            "The database could learn something from a single submission, "
            "but could not be sure of it."
        )
    return "The database could learn a great deal from a single submission."
