"""What a fit promises, how `input` shares the promise among its models, and when it is void."""

import math
from dataclasses import dataclass

from blurfit.agreement.promises import at_most
from blurfit.model.published import PublishedModel
from blurfit.theory.gaussian import epsilon_of, mu_of
from blurfit.theory.guarantees import Neighbours
from blurfit.validate import inside_unit_interval, positive

# Why a fit is not private: said in a warning, in the guarantee and in the model.
SEEDED = (
    "NOT PRIVATE: the noise was drawn from random_state, and anyone who knows the seed can take it "
    "away again. For experiments only; use random_state=None for real people."
)
CLASSES_READ = (
    "NOT PRIVATE: the classes were read from y, so that a single row can add one or take one away. "
    "Give all labels that there could be as classes=[...]."
)

_ONE_PERSON: dict[Neighbours, str] = {
    "replace": "replacing one row by any other",
    "zero-out": "leaving one row out of the sums",
}


@dataclass(frozen=True)
class FitGuarantee:
    """(ε, δ)-differential privacy of all that `fit` learned; `statement` says it in words.

    `private` is False where nothing is promised, and then `epsilon` and `delta` are None: the fit
    can be repeated from a seed, the classes were read from the data, or the rule that the noise
    follows is not proved.
    """

    epsilon: float | None
    delta: float | None
    neighbours: Neighbours
    private: bool
    statement: str

    @classmethod
    def of(cls, model: PublishedModel) -> "FitGuarantee":
        """The promise of one fit: `model` is what it published, or one of several models."""
        promise = model.guarantee
        told = " ".join(promise.caveats or _sentences(model))
        numbers = promise.epsilon, promise.delta
        return cls(*numbers, promise.neighbours, promise.private, told)


def _sentences(model: PublishedModel) -> list[str]:
    """What is promised of a fit, and what is assumed."""
    promise, by_moment = model.guarantee, model.agreement.mechanism == "moment"
    assert promise.epsilon is not None and promise.delta is not None  # noqa: PT018 - it is private
    numbers = f"(epsilon={at_most(promise.epsilon, 6)}, delta={at_most(promise.delta, 6)})"
    what = "The blurred sums and the coefficients" if by_moment else "The coefficients"
    sentences = [
        f"{what} are {numbers}-differentially "
        f"private: {_ONE_PERSON[promise.neighbours]} changes the probability of anything that is "
        "made of them by a factor of at most e^epsilon, up to delta.",
        f"This is for one fit to {model.count} rows, each another person's; fitting again "
        "reveals more. Bounds, column names, levels, classes and the number of rows are taken "
        "to be public. The promise is for rows that fit accepts; that it refused some (a "
        "missing value, an unknown label) is not covered.",
        promise.seen,
    ]
    if len(model.waves) > 1:
        *most, last = (str(wave.count) for wave in model.waves)
        sentences.append(
            f"A lot that looks at no answers divided the rows into {len(model.waves)} waves of "
            f"{', '.join(most)} and {last}, and each row is in one of them: the promise holds "
            "once, for all of `releases_` together, and not for each."
        )
    if by_moment:
        sentences.append("Further models of `moments_` are free.")
    if model.public_rows:
        sentences.append(
            f"The {model.public_rows} rows of public_X are taken to be public, and not to be those "
            "of the people who are protected: nothing is promised to anybody in them."
        )
    if model.models > 1:
        sentences.append(
            f"It is divided among {model.models} models, one for each class against the rest: "
            "epsilon and delta are divided by their number (basic composition)."
        )
    return sentences


def share(epsilon: float, delta: float, models: int) -> tuple[float, float]:
    """(ε/K, δ/K): what each of K models from `input` may spend, by basic composition.

    >>> share(1.0, 1e-6, 4)
    (0.25, 2.5e-07)
    """
    positive(epsilon=epsilon)
    inside_unit_interval(delta=delta)
    return epsilon / models, delta / models


def gaussian_share(epsilon: float, delta: float, releases: int) -> tuple[float, float]:
    """(ε', δ/K) with μ(ε', δ/K) = μ(ε, δ)/√K: what each of K submissions of one person may tell.

    Gaussian mechanisms that are μ/√K-GDP are together μ-GDP, exactly (Dong, Roth and Su 2022,
    Corollary 3.3). ε' > 0 always: δ/K alone does not cover μ/√K, because
    erf(x/√K) ≥ erf(x)/√K > erf(x)/K.
    """
    mu = mu_of(epsilon, delta) / math.sqrt(releases)
    return epsilon_of(mu, delta / releases), delta / releases
