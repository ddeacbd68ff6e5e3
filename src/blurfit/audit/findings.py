"""Attack our own guarantees: a lower bound on ε, with a confidence, beside the ε that was promised.

An audit lets an attacker see many releases from each of two neighbouring collections
(`blurfit.audit.examination`, `blurfit.audit.count_bounds`). What is found is a lower bound: a
mechanism whose audited ε exceeds the promise is broken (but for 1 − confidence), one whose ε stays
below is not proved right by that. The ratio of the two says how tight the analysis is, or how weak
the attack.

`audit` takes any release, as a function of a dataset and a generator: an estimator's coefficients,
a rival's, your own. `audit_agreement` attacks what an agreement's contributors and database really
do.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.audit import releases
from blurfit.audit.attacks import Score, along
from blurfit.audit.examination import Finding, examine
from blurfit.audit.pairs import Pair, collection_pairs, exact_mu, submission_pairs
from blurfit.audit.releases import Record, noise_scales, noiseless
from blurfit.theory.calibration import MomentCalibration
from blurfit.theory.gaussian import epsilon_of

FloatArray = npt.NDArray[np.float64]
Release = Callable[[Any, np.random.Generator], npt.ArrayLike]

TRIALS, CONFIDENCE = 4000, 0.999
CHEAP = 50  # as many more trials where no model has to be learned,
MOST_NUMBERS = 4e6  # as long as they are no more numbers than these


def audit(
    release: Release,
    first: Any,
    second: Any,
    *,
    epsilon: float,
    delta: float,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    attacks: Mapping[str, Score] | None = None,
    name: str = "release",
) -> Finding:
    """A lower bound on the ε of any release, from its outputs on two neighbouring datasets.

    Args:
        release: from a dataset and a NumPy generator to a vector of numbers.
        first: a dataset, of any type that the release takes.
        second: its neighbour.
        epsilon: what was promised.
        delta: what was promised.
        trials: releases from each.
        confidence: of the lower bound.
        seed: of the generators that the release gets, one for each trial.
        attacks: scores of your own, beside the attackers that learn by themselves.
        name: what to call it in the finding.

    >>> def mean(values, generator):                       # claims ε = 1, and adds too little
    ...     return [np.mean(values) + generator.normal(0, 0.001)]
    >>> found = audit(mean, [0.0] * 10, [0.0] * 9 + [1.0], epsilon=1, delta=1e-6, trials=2000)
    >>> found.broken, found.attack
    (True, 'linear')
    """
    sequences = np.random.SeedSequence(seed).spawn(2)

    def draw(which: bool, count: int) -> FloatArray:
        dataset = second if which else first
        children = sequences[which].spawn(count)
        rows = [release(dataset, np.random.default_rng(child)) for child in children]
        return np.array(rows, dtype=np.float64).reshape(count, -1)

    return examine(
        draw,
        trials=trials,
        confidence=confidence,
        promise=(epsilon, delta),
        labels=(name, "given datasets"),
        attacks=attacks,
    )


def audit_agreement(
    agreement: Agreement,
    *,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    progress: Callable[[str], object] | None = None,
) -> list[Finding]:
    """Attack a submission, the sums (where they may be published) and the model, in turn.

    Args:
        agreement: is not verified: to attack a broken one is the point.
        trials: models that are learned from each neighbour; up to fifty times as many submissions
            and sums are seen.
        confidence: of each finding.
        seed: for the honest crowd, where it is drawn at once. Contributors take no seed.
        progress: is called with a name before each attack.
    """
    generator = np.random.default_rng(seed)
    promise, local = (agreement.epsilon, agreement.delta), agreement.calibration.local
    moment = isinstance(agreement.calibration, MomentCalibration)
    found = []

    def attack(
        view: str, pair: Pair, draw: Callable[[Record, int], FloatArray], **how: Any
    ) -> None:
        if progress is not None:
            progress(f"{view}: {pair.name}")
        found.append(
            examine(
                lambda which, count: draw(pair.second if which else pair.first, count),
                confidence=confidence,
                labels=(view, pair.name),
                **how,
            )
        )

    def known(pair: Pair, delta: float) -> dict[str, Any]:
        """For additive Gaussian noise: the best direction, and the true ε."""
        apart = noiseless(agreement, pair.first) - noiseless(agreement, pair.second)
        return {
            "attacks": {"known direction": along(apart / noise_scales(agreement) ** 2)},
            "exact": epsilon_of(exact_mu(agreement, pair), delta),
        }

    for pair in submission_pairs(agreement):
        attack(
            "submission",
            pair,
            lambda record, count: releases.submissions(agreement, record, count),
            trials=_cheap(agreement, trials),
            promise=(local.epsilon, local.delta),
            gaussian=local.delta,
            bridge=True,
            **known(pair, local.delta),
        )
    beside = submission_pairs(agreement)[0]
    attack(
        "submission",
        Pair("beside a colluder's noise", beside.first, beside.second, beside.crowd),
        lambda record, count: beside_a_colluder(agreement, record, count),
        trials=_cheap(agreement, trials),
        promise=(local.epsilon, local.delta),
    )
    for pair in collection_pairs(agreement):
        crowd = pair.crowd
        if moment:
            attack(
                "sums",
                pair,
                lambda record, count, crowd=crowd: releases.packed_sums(  # type: ignore[misc]
                    agreement, record, crowd, count, generator
                ),
                trials=_cheap(agreement, trials),
                promise=promise,
                gaussian=promise[1],
                bridge=True,
                **known(pair, promise[1]),
            )
        attack(
            "model",
            pair,
            lambda record, count, crowd=crowd: releases.models(  # type: ignore[misc]
                agreement, record, crowd, count, generator
            ),
            trials=trials,
            promise=promise,
            gaussian=promise[1] if moment else None,
        )
    return found


def number_of_attacks(agreement: Agreement) -> int:
    """How many findings `audit_agreement` has, for whoever waits for them."""
    views = 2 if isinstance(agreement.calibration, MomentCalibration) else 1
    return len(submission_pairs(agreement)) + 1 + views * len(collection_pairs(agreement))


def beside_a_colluder(agreement: Agreement, record: Record, trials: int) -> FloatArray:
    """The target's submission, and the noise of somebody who reveals it: independent, or else."""
    nobody = Record(np.zeros(agreement.dimension), np.zeros(agreement.dimension))
    target = releases.submissions(agreement, record, trials)
    return np.hstack([target, releases.submissions(agreement, nobody, trials)])


def _cheap(agreement: Agreement, trials: int) -> int:
    """Trials of what costs no solver: as many more as memory bears."""
    bearable = int(MOST_NUMBERS / len(noise_scales(agreement)))
    return max(trials, min(CHEAP * trials, bearable))
