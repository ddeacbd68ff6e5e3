"""What a fit promises, how `input` shares the promise among its models, and when it is void."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blurfit.model.published import PublishedModel
from blurfit.theory.gaussian import epsilon_of, mu_of
from blurfit.theory.setting import Neighbours
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

    `private` is False where the promise does not hold: the fit can be repeated from a seed, the
    classes were read from the data, or the rule that the noise follows is not proved.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    private: bool
    statement: str

    @classmethod
    def of(
        cls,
        models: Sequence[PublishedModel],
        epsilon: float,
        delta: float,
        *,
        public_rows: int = 0,
        caveats: Sequence[str] = (),
    ) -> "FitGuarantee":
        """The promise of one fit, which published one model or, by `input`, one for each class."""
        first = models[0]
        promise = first.agreement.calibration.model
        neighbours, proved = promise.neighbours, promise.proved
        by_moment = first.agreement.mechanism == "moment"
        what = "The blurred sums and the coefficients" if by_moment else "The coefficients"
        sentences = [
            f"{what} are (epsilon={epsilon:g}, delta={delta:g})-differentially private: "
            f"{_ONE_PERSON[neighbours]} changes the probability of anything that is made of them "
            "by a factor of at most e^epsilon, up to delta.",
            f"This is for one fit to {first.count} rows, each another person's; fitting again "
            "reveals more. Bounds, column names, levels, classes and the number of rows are taken "
            "to be public. The promise is for rows that fit accepts; that it refused some (a "
            "missing value, an unknown label) is not covered.",
        ]
        if len(first.waves) > 1:
            *most, last = (str(wave.count) for wave in first.waves)
            each = f"{', '.join(most)} and {last}"
            sentences.append(
                f"A lot that looks at no answers divided the rows into {len(first.waves)} waves of "
                f"{each}, and each row is in one of them: the promise holds once, for all of "
                "`releases_` together, and not for each."
            )
        if by_moment:
            sentences.append("Further models of `moments_` are free.")
        if public_rows:
            sentences.append(
                f"The {public_rows} rows of public_X are taken to be public, and not to be those "
                "of the people who are protected: nothing is promised to anybody in them."
            )
        if len(models) > 1:
            sentences.append(
                f"It is divided among {len(models)} models, one for each class against the rest: "
                "epsilon and delta are divided by their number (basic composition)."
            )
        if not proved:
            sentences.insert(
                0,
                "NOT PROVED: rule='published' is what the paper prints, which does not follow; use "
                "rule='certified' for real people. The paper claims:",
            )
        if caveats:
            sentences = [*caveats, "Otherwise the following would hold.", *sentences]
        return cls(epsilon, delta, neighbours, proved and not caveats, " ".join(sentences))


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
