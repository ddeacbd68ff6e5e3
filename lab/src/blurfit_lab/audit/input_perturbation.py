"""Attack the paper's mechanism: one submission of Algorithm 1, and the weights of Algorithm 2.

Records are q and p at the very edge of the loss's bounds R_q and R_p, in the directions that the
theorem names as worst. The quorum is met exactly, the others' records are zero, and colluders pull
the solution along the record, to and beyond the middle of the ball. The target's own submission is
always blurred as a contributor blurs it; so are all others where that is affordable, else their
noise comes from the exact sampler, which has the same law.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.input_perturbation.algorithms import Sampler, Sums, blur_terms, solve
from blurfit.input_perturbation.calibration import PublicInput
from blurfit.randomness import to_grid
from blurfit.theory.gaussian import epsilon_of
from blurfit_lab.audit import CONFIDENCE, TRIALS
from blurfit_lab.audit.examination import Findings, along, examine

NUMBERS_AFFORDABLE = 1e7  # are blurred one by one; beyond, the others come from the sampler
COLLUDERS_PULL = (0.5, 0.9)  # of what brings the solution to the boundary
CHEAP = 50  # as many more submissions as models

Draw = Callable[[bool, int], FloatArray]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two records, (2, d) each: q and p; and the sum of p̃ that colluders add."""

    name: str
    first: FloatArray
    second: FloatArray
    pull: FloatArray


def pairs(public: PublicInput) -> list[Pair]:
    """Return the neighbours that are hardest to hide; the second is zero where that is asked."""
    noise, loss = public.calibration, public.loss
    d, replaced = noise.setting.dimension, noise.setting.neighbours == "replace"
    still, axis = np.zeros(d), np.eye(d)[0]
    extreme, zero = np.array([loss.q_bound * axis, loss.p_bound * axis]), np.zeros((2, d))
    found = [Pair("opposite records", extreme, -extreme, still)] if replaced else []
    found.append(Pair("zero and extreme", extreme, zero, still))
    # q = 0 with p ≠ 0 is no record of our losses, but the promise covers it
    q, p = extreme * [[1.0], [0.0]], extreme * [[0.0], [1.0]]
    curvature = noise.sigma_u**2 + noise.ridge + public.l2
    for share in COLLUDERS_PULL:
        pull = share * curvature * noise.setting.ball * axis
        name = f"boundary, colluders pull {share:g}"
        found.append(Pair(name, q - p, p if replaced else zero, pull))
    return found


def submissions(public: PublicInput, record: FloatArray, trials: int) -> FloatArray:
    """Blur the record anew in each trial: (trials, 2, d)."""
    tables = (np.tile(part, (trials, 1)) for part in record)
    return np.stack(blur_terms(public, *tables), axis=1)


def sums(
    public: PublicInput,
    record: FloatArray,
    pull: FloatArray,
    trials: int,
    generator: np.random.Generator,
) -> Iterator[Sums]:
    """Yield what the database adds up of the target, n − 1 honest zero records and colluders."""
    noise, d, honest = public.calibration, len(pull), public.calibration.quorum - 1
    own = submissions(public, record, trials)
    affordable = honest * trials * 2 * d <= NUMBERS_AFFORDABLE
    if affordable:
        others = submissions(public, np.zeros((2, d)), honest * trials)
        others = others.reshape(trials, honest, 2, d)
    clean = Sums(honest, np.zeros((d, d)), np.zeros(d))
    sampler = Sampler.of(clean, q_noise=noise.q_noise, p_noise=noise.p_noise)
    for trial, (q, p) in enumerate(own):
        gram, moment = np.outer(q, q), p + pull
        if affordable:
            rows, targets = others[trial, :, 0], others[trial, :, 1]
            gram, moment = gram + rows.T @ rows, moment + targets.sum(axis=0)
        else:  # floats, whose last bits would betray the target, are rounded to the grid
            drawn = sampler.draw(generator)
            gram = gram + drawn.gram
            moment = to_grid(moment + drawn.moment, public.grid.dither, toward_zero=False)
        yield Sums(noise.quorum, gram, moment)


def models(
    public: PublicInput,
    record: FloatArray,
    pull: FloatArray,
    trials: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Return the published weights, a row for each trial; zeros where publishing was refused.

    (A refusal is an output too. Nothing else gives weights that are zero to the last bit.)
    """
    found = []
    for collected in sums(public, record, pull, trials, generator):
        try:
            found.append(solve(public, collected))
        except InfeasibleError:
            found.append(np.zeros(len(pull)))
    return np.array(found)


def exact_mu(public: PublicInput, pair: Pair) -> float:
    """Return μ of a pair of submissions: their distance in deviations of the noise."""
    noise = np.array([[public.calibration.q_noise], [public.calibration.p_noise]])
    return float(np.linalg.norm((pair.first - pair.second) / noise))


def audit_public_input(
    public: PublicInput, *, trials: int = TRIALS, confidence: float = CONFIDENCE, seed: int = 0
) -> Findings:
    """Attack a submission and the weights; the public input is not verified: to attack a broken one
    is the point.

    Args:
        public: what all stakeholders agreed on.
        trials: models of each neighbour; there are fifty times as many submissions.
        confidence: of each finding.
        seed: for the crowd, where it is drawn at once; contributors take none.
    """
    generator, local = np.random.default_rng(seed), public.calibration.local
    alone, findings = pairs(public)[0], Findings()
    noise = np.array([[public.calibration.q_noise], [public.calibration.p_noise]])
    direction = ((alone.first - alone.second) / noise**2).ravel()

    def submission(which: bool, count: int) -> FloatArray:
        record = alone.second if which else alone.first
        return submissions(public, record, count).reshape(count, -1)

    findings.append(
        examine(
            submission,
            trials=CHEAP * trials,
            confidence=confidence,
            promise=(local.epsilon, local.delta),
            labels=("submission", alone.name),
            gaussian=local.delta,
            attacks={"known direction": along(direction)},
            exact=epsilon_of(exact_mu(public, alone), local.delta),
            bridge=True,
        )
    )

    def model(pair: Pair) -> Draw:
        def draw(which: bool, count: int) -> FloatArray:
            record = pair.second if which else pair.first
            return models(public, record, pair.pull, count, generator)

        return draw

    for pair in pairs(public):
        findings.append(
            examine(
                model(pair),
                trials=trials,
                confidence=confidence,
                promise=(public.epsilon, public.delta),
                labels=("model", pair.name),
                gaussian=None,
            )
        )
    return findings
