"""Mechanisms that are broken on purpose, each beside the honest one: the audit has to tell them
apart.

Whoever changes the audit runs them: `test_broken.py`, and `PYTHONPATH=.:tests python -m
lab.tests.audit.broken` for the table of lab/docs/audit.md.
Nothing here can be reached from an agreement: `verify` refuses noise that is too small, whatever
forgot it, `learn` and `Store` refuse too few people and a second release, and contributors take
neither a seed nor float noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.data import FloatArray
from blurfit.input_perturbation.calibration import PublicInput
from blurfit.input_perturbation.losses import SquaredLoss
from blurfit.randomness import to_grid
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema
from blurfit.theory.moments import MomentCalibration, Reach, calibrate_moment
from blurfit_lab.audit import agreements, input_perturbation
from blurfit_lab.audit.agreements import (
    Crowd,
    Pair,
    beside_a_colluder,
    collection_pairs,
    submission_pairs,
)
from blurfit_lab.audit.examination import Draw, Finding, Score, examine

SEED = 4
PARTS = "gram", "moment"
QUORUM = 2  # each draws her noise by her own code, and no attack depends on how many they are


@dataclass(frozen=True, eq=False)
class Broken:
    """A broken way of drawing releases, the honest way, and the promise that both are held to."""

    broken: Draw
    honest: Draw
    promise: tuple[float, float]
    trials: int
    gaussian: bool = False  # whether μ-GDP was claimed
    attacks: Mapping[str, Score] = field(default_factory=dict)

    def audit(self, *, honest: bool = False, confidence: float = 0.9999) -> Finding:
        """What the audit finds of the broken mechanism, or of the honest one."""
        return examine(
            self.honest if honest else self.broken,
            trials=self.trials,
            confidence=confidence,
            promise=self.promise,
            labels=("honest" if honest else "broken", "two neighbours"),
            gaussian=self.promise[1] if self.gaussian else None,
            attacks=self.attacks,
        )


def louder(agreement: Agreement, factor: float) -> Agreement:
    """The noise multiplied, everything else as it was."""
    calibration = agreement.calibration
    quieter = replace(calibration, sigma=calibration.sigma * factor)
    return replace(agreement, calibration=quieter)


def reaching(agreement: Agreement, reach: float) -> Agreement:
    """Noise for sums that one person moves by `reach`, true or not; the promise as it was."""
    model = agreement.calibration.model
    found = calibrate_moment(
        model.epsilon,
        model.delta,
        reach=Reach(reach, reach),
        quorum=agreement.quorum,
        neighbours=model.neighbours,
    )
    return replace(agreement, calibration=found)


def small_agreement(columns: int, **terms: Any) -> Agreement:
    """Columns and target in [−1, 1], all of one weight: every corner is a record of full length."""
    features = [Numeric(f"x{place}", -1, 1) for place in range(columns)]
    schema = Schema(features, Numeric("y", -1, 1), intercept=False)
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "quorum": QUORUM}
    names = (*(feature.name for feature in features), "y")
    given |= {"weights": dict.fromkeys(names, 1.0), "constant": 1.0}
    return Agreement.propose(schema, **(given | terms))


def louder_input(public: PublicInput, factor: float) -> PublicInput:
    """The paper's noise multiplied, everything else as it was."""
    noise = public.calibration
    u, b = noise.sigma_u * factor, noise.sigma_b * factor
    return replace(public, calibration=replace(noise, sigma_u=u, sigma_b=b))


def small_input(**terms: Any) -> PublicInput:
    """One column, by the paper's mechanism."""
    return PublicInput.agree(SquaredLoss(), dimension=1, epsilon=1.0, **terms)


def _of(pair: Pair, draw: Callable[[FloatArray, int], FloatArray]) -> Draw:
    return lambda which, count: draw(pair.second if which else pair.first, count)


def _sums(agreement: Agreement, pair: Pair, honest: int | None = None) -> Draw:
    crowd = pair.crowd if honest is None else Crowd(honest - 1, pair.crowd.pull)
    generator = np.random.default_rng(SEED)
    return _of(pair, lambda r, n: agreements.sums(agreement, r, crowd, n, generator))


def _promise(agreement: Agreement) -> tuple[float, float]:
    return agreement.epsilon, agreement.delta


def _quiet_sums() -> Broken:
    agreement = small_agreement(2)
    pair = collection_pairs(agreement)[0]
    broken, honest = (_sums(made, pair) for made in (louder(agreement, 0.25), agreement))
    return Broken(broken, honest, _promise(agreement), 20_000, True)


def _quiet_model() -> Broken:
    """By the paper's mechanism: only its model is released, and its analysis has slack.

    So many people that the sampler draws for all of them; what is found of 700 trials is then 2.4
    times the promise, give or take 0.3 from one stream of noise to another.
    """
    public = small_input(weight_bound=0.5, delta=0.1, quorum=1_000_000)
    pair = input_perturbation.pairs(public)[-1]

    def models(made: PublicInput) -> Draw:
        generator = np.random.default_rng(SEED)

        def draw(which: bool, count: int) -> FloatArray:
            record = pair.second if which else pair.first
            return input_perturbation.models(made, record, pair.pull, count, generator)

        return draw

    promise = public.epsilon, public.delta
    return Broken(models(louder_input(public, 0.25)), models(public), promise, 700)


def _half_the_quorum() -> Broken:
    agreement = small_agreement(2)
    pair = collection_pairs(agreement)[0]
    broken, honest = (_sums(agreement, pair, honest=count) for count in (QUORUM // 2, QUORUM))
    return Broken(broken, honest, _promise(agreement), 60_000, True)


def _two_releases() -> Broken:
    """Two ridges in one dimension tell A itself: w/w' = (A + r')/(A + r)."""
    public = small_input(weight_bound=1.0, quorum=100, delta=1e-3)
    pair = input_perturbation.pairs(public)[-1]
    generator = np.random.default_rng(SEED)
    ridges = public.calibration.ridge + np.array([0.0, 1.0])

    def twice(which: bool, count: int) -> FloatArray:
        record = pair.second if which else pair.first
        drawn = list(input_perturbation.sums(public, record, pair.pull, count, generator))
        gram, moment = (np.array([getattr(one, name) for one in drawn]).ravel() for name in PARTS)
        return np.asarray(moment[:, None] / (gram[:, None] + ridges))

    def once(which: bool, count: int) -> FloatArray:
        return twice(which, count)[:, :1]

    def curvature(seen: FloatArray) -> FloatArray:
        return np.asarray(1 / (seen[:, 0] / seen[:, -1] - 1 + 1e-300))

    promise = public.epsilon, public.delta
    return Broken(twice, once, promise, 4000, False, {"curvature": curvature})


def _one_more_person() -> Broken:
    """Two sums that each keep the promise, over sets that differ by the target: the difference is
    her own submission."""
    agreement = small_agreement(2, quorum=20)
    pair = collection_pairs(agreement)[0]
    generator = np.random.default_rng(SEED)
    everyone_else = replace(pair.crowd, honest=pair.crowd.honest - 1)

    def twice(record: FloatArray, count: int) -> FloatArray:
        nobody = agreements.nobody(agreement)
        without = agreements.sums(agreement, nobody, everyone_else, count, generator)
        return np.hstack([without, without + agreements.submissions(agreement, record, count)])

    return Broken(
        _of(pair, twice),
        _sums(agreement, pair),
        _promise(agreement),
        5000,
    )


def _removing_for_replacing() -> Broken:
    """Two records are farther from each other than either is from none."""
    weaker = small_agreement(2, neighbours="zero-out")
    assert isinstance(weaker.calibration, MomentCalibration)
    model = replace(weaker.calibration.model, neighbours="replace")
    promised = replace(weaker, calibration=replace(weaker.calibration, model=model))
    opposite, removed = collection_pairs(promised)[0], collection_pairs(weaker)[0]
    broken, honest = _sums(promised, opposite), _sums(weaker, removed)
    return Broken(broken, honest, _promise(weaker), 60_000, True)


def _diagonal_like_the_rest() -> Broken:
    """σ/√2 on the diagonal too, where a number counts once: too little by √2, which shows where
    the diagonal is what differs."""
    agreement = small_agreement(1, neighbours="zero-out", constant=0.05, weights=_HEAVY_TARGET)
    pair = collection_pairs(agreement)[0]
    form, generator = agreement.form, np.random.default_rng(SEED)
    less = np.where(form.counts == 1, 1 / np.sqrt(2), 1.0)
    scales = agreements.noise_scales(agreement) * np.sqrt(agreement.quorum)

    def drawn(factor: FloatArray | float) -> Draw:
        def seen(record: FloatArray, count: int) -> FloatArray:
            noise = scales * factor * generator.standard_normal((count, len(record)))
            step = agreement.step
            return to_grid(record, step, toward_zero=False) + to_grid(
                noise, step, toward_zero=False
            )

        return _of(pair, seen)

    return Broken(
        drawn(less),
        drawn(1.0),
        _promise(agreement),
        60_000,
        True,
    )


_HEAVY_TARGET = {"x0": 0.05, "y": 1.0}


def _forgotten_weight() -> Broken:
    """ρ² without the target's ω²: as if only the features were in the ball."""
    agreement = small_agreement(2)
    form = agreement.form
    features = replace(form, columns=form.columns[:-1])
    pair = collection_pairs(agreement)[0]
    short = reaching(agreement, features.reach("replace").sums)
    broken, honest = _sums(short, pair), _sums(agreement, pair)
    return Broken(broken, honest, _promise(agreement), 60_000, True)


def _constant_row_twice() -> Broken:
    """The whole matrix instead of its triangle: two independent looks at the constant's row."""
    agreement = small_agreement(1, constant=10.0)
    pair = collection_pairs(agreement)[0]
    generator = np.random.default_rng(SEED)
    row = np.array([name.startswith("1·") for name in agreement.form.names])

    def twice(record: FloatArray, count: int) -> FloatArray:
        seen = (agreements.sums(agreement, record, pair.crowd, count, generator) for _ in range(2))
        first, second = seen
        return np.hstack([first, second[:, row]])

    return Broken(
        _of(pair, twice),
        _sums(agreement, pair),
        _promise(agreement),
        60_000,
        True,
    )


def _level_counted_once() -> Broken:
    """Another level takes one away and adds one: √2 times as far as a level that only goes away."""
    schema = Schema([Categorical("c", ["a", "b", "c"])], Binary("y"))
    weights = {"c": 1.0, "y": 0.01}
    agreement = Agreement.propose(
        schema, epsilon=1.0, delta=1e-5, quorum=QUORUM, constant=0.3, weights=weights
    )
    pair = collection_pairs(agreement)[0]
    short = reaching(agreement, agreement.form.reach("zero-out").sums)
    broken, honest = _sums(short, pair), _sums(agreement, pair)
    return Broken(broken, honest, _promise(agreement), 60_000, True)


def _shared_seed() -> Broken:
    """Beside a colluder who reveals her own noise, the target's is no secret any more."""
    agreement = small_agreement(2, local_epsilon=2.0, local_delta=1e-5)
    pair, local = submission_pairs(agreement)[0], agreement.calibration.local

    def shared(record: FloatArray, count: int) -> FloatArray:
        target = agreements.submissions(agreement, record, count)
        return np.hstack([target, target - record])

    broken = _of(pair, shared)
    honest = _of(pair, lambda record, count: beside_a_colluder(agreement, record, count))
    return Broken(broken, honest, (local.epsilon, local.delta), 5000)


def _floats() -> Broken:
    """A record of one against one of zero: 1 + noise is a multiple of 2⁻⁵³, noise alone is not."""
    agreement = small_agreement(1, local_epsilon=1.0, local_delta=1e-6)
    pair, local = submission_pairs(agreement)[1], agreement.calibration.local
    generator, scales = np.random.default_rng(SEED), agreements.noise_scales(agreement)

    def floats(record: FloatArray, count: int) -> FloatArray:
        return np.asarray(record + scales * generator.standard_normal((count, len(scales))))

    broken = _of(pair, floats)
    honest = _of(pair, lambda record, count: agreements.submissions(agreement, record, count))
    return Broken(broken, honest, (local.epsilon, local.delta), 40_000)


# One of each kind; whoever makes one has its noise from the beginning.
MECHANISMS: dict[str, Callable[[], Broken]] = {
    "noise over 4, sums": _quiet_sums,
    "noise over 4, model from input": _quiet_model,
    "half the quorum": _half_the_quorum,
    "two releases": _two_releases,
    "two sums, one person apart": _one_more_person,
    "removing's sensitivity for replacing": _removing_for_replacing,
    "the diagonal blurred like the rest": _diagonal_like_the_rest,
    "a weight left out of ρ": _forgotten_weight,
    "the constant's row sent twice": _constant_row_twice,
    "a level counted once": _level_counted_once,
    "a seed reused": _shared_seed,
    "float noise, no grid": _floats,
}


if __name__ == "__main__":
    for name, make in MECHANISMS.items():
        one = make()
        found, twin = (one.audit(honest=honest, confidence=0.9999) for honest in (False, True))
        told = f"{found.promised:.3g} | {found.audited:.3g} | {twin.audited:.3g} | {found.attack}"
        print(f"| {name} | {told} | {'yes' if found.broken else 'no'} |")
