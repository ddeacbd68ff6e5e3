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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.audit import CONFIDENCE, TRIALS, releases
from blurfit.audit.attacks import Score, along
from blurfit.audit.examination import Finding, Findings, examine
from blurfit.audit.pairs import Pair, collection_pairs, exact_mu, lying_crowd, submission_pairs
from blurfit.audit.releases import Crowd, nobody, noise_scales
from blurfit.progress import Progress, silent
from blurfit.theory.gaussian import epsilon_of

Release = Callable[[Any, np.random.Generator], npt.ArrayLike]

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
    progress: Progress = silent,
    liars: bool = False,
) -> Findings:
    """Attack a submission, the sums (where they may be published) and the model, in turn.

    Args:
        agreement: is not verified: to attack a broken one is the point.
        trials: models that are learned from each neighbour; up to fifty times as many submissions
            and sums are seen.
        confidence: of each finding.
        seed: for the honest crowd, where it is drawn at once. Contributors take no seed.
        progress: is called with a name before each attack.
        liars: attack a `moment` collection too in which all others lie. Without noise of the
            database no promise is made of it, and it is broken; with it, it is always attacked.
    """
    found = Findings()
    for attack in _attacks(agreement, trials, np.random.default_rng(seed), liars=liars):
        progress(f"{attack.view}: {attack.pair.name}")
        found.append(attack.carried_out(confidence))
    return found


def number_of_attacks(agreement: Agreement, *, liars: bool = False) -> int:
    """How many findings `audit_agreement` will have."""
    return len(_attacks(agreement, TRIALS, np.random.default_rng(0), liars=liars))


@dataclass(frozen=True, eq=False)
class _Attack:
    """What is seen of which neighbours, how often, and what was promised of it."""

    view: str
    pair: Pair
    draw: Callable[[FloatArray, int], FloatArray]
    trials: int
    promise: tuple[float, float]
    gaussian: float | None = None  # the δ to read a claim of μ-GDP at
    known: Mapping[str, Any] = field(default_factory=dict)  # more of what `examine` takes

    def carried_out(self, confidence: float) -> Finding:
        return examine(
            lambda which, count: self.draw(self.pair.second if which else self.pair.first, count),
            trials=self.trials,
            confidence=confidence,
            promise=self.promise,
            labels=(self.view, self.pair.name),
            gaussian=self.gaussian,
            **self.known,
        )


def _attacks(
    agreement: Agreement, trials: int, generator: np.random.Generator, *, liars: bool
) -> list[_Attack]:
    lying = agreement.database_noise or (liars and agreement.mechanism == "moment")
    pairs = collection_pairs(agreement) + ([lying_crowd(agreement)] if lying else [])
    return [
        *_on_submissions(agreement, trials),
        *_on_collections(agreement, pairs, trials, generator),
    ]


def _on_submissions(agreement: Agreement, trials: int) -> Iterator[_Attack]:
    local, many = agreement.calibration.local, _cheap(agreement, trials)
    promise, pairs = (local.epsilon, local.delta), submission_pairs(agreement)
    for pair in pairs:
        draw = partial(releases.submissions, agreement)
        known = _additive(agreement, pair, local.delta)
        yield _Attack("submission", pair, draw, many, promise, local.delta, known)
    beside = replace(pairs[0], name="beside a colluder's noise")
    yield _Attack("submission", beside, partial(beside_a_colluder, agreement), many, promise)


def _on_collections(
    agreement: Agreement, pairs: list[Pair], trials: int, generator: np.random.Generator
) -> Iterator[_Attack]:
    promise = agreement.epsilon, agreement.delta
    moment = agreement.mechanism == "moment"

    def of(
        release: Callable[..., FloatArray], crowd: Crowd
    ) -> Callable[[FloatArray, int], FloatArray]:
        return lambda record, count: release(agreement, record, crowd, count, generator)

    for pair in pairs:
        if moment:
            sums, many = of(releases.sums, pair.crowd), _cheap(agreement, trials)
            known = _additive(agreement, pair, promise[1])
            yield _Attack("sums", pair, sums, many, promise, promise[1], known)
        models = of(releases.models, pair.crowd)
        yield _Attack("model", pair, models, trials, promise, promise[1] if moment else None)


def _additive(agreement: Agreement, pair: Pair, delta: float) -> dict[str, Any]:
    """For additive Gaussian noise: the best direction, and the true ε."""
    apart = pair.first - pair.second
    return {
        "attacks": {"known direction": along(apart / noise_scales(agreement) ** 2)},
        "exact": epsilon_of(exact_mu(agreement, pair), delta),
        "bridge": True,
    }


def beside_a_colluder(agreement: Agreement, record: FloatArray, trials: int) -> FloatArray:
    """The target's submission, and a colluder's noise, which must tell nothing about it."""
    target = releases.submissions(agreement, record, trials)
    return np.hstack([target, releases.submissions(agreement, nobody(agreement), trials)])


def _cheap(agreement: Agreement, trials: int) -> int:
    """Trials of what costs no solver: as many more as memory bears."""
    bearable = int(MOST_NUMBERS / agreement.width)
    return max(trials, min(CHEAP * trials, bearable))
