"""Draw what a whole collection would publish, without blurring its records one by one.

The database sees a collection only through its sums, and a sum of independent Gaussians is
Gaussian, so one draw with the total variance replaces those of N contributors: for experiments,
forecasts and audits, and for data that is in one place anyway. It protects people only if nobody
can repeat it (`operating_system_generator`).

`weights_of` has the weights that a collection would publish, in a millisecond. One reading takes
longer: where noise dominates, a `moment` collection publishes a posterior mean, which is sampled
for a tenth of a second (`blurfit.learning.shrinkage`). Without `sampled`, linear Bayes stands for
it, the reading of all other collections.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from randomgen import ChaCha  # type: ignore[import-untyped]

from blurfit import randomness
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.data import FloatArray, IntArray
from blurfit.errors import BelowQuorumError, InvalidValueError
from blurfit.learning.public_features import Family, fit_with_public_rows
from blurfit.learning.shrinkage import linear_bayes, shrink
from blurfit.learning.sums import JointSums, Statistics, Totals
from blurfit.model.course import Course
from blurfit.model.model import PublishedModel
from blurfit.model.release import (
    PublishedMoments,
    moments_of,
    published,
    released_weights,
    statistics_of,
)
from blurfit.schema.columns import Numeric
from blurfit.theory import forms
from blurfit.theory.forms import JointColumn, JointForm, WaveForm
from blurfit.theory.moments import MomentCalibration

Generator = np.random.Generator  # for rooms that hand one on, and draw nothing themselves


def operating_system_generator() -> np.random.Generator:
    """ChaCha20 under a key of 256 bits that the operating system draws, a new one at each call.

    >>> bool(operating_system_generator().random() == operating_system_generator().random())
    False
    """
    return np.random.Generator(ChaCha(key=randomness.whole(256), rounds=20))


def generator_for(random_state: Any) -> np.random.Generator:
    """The operating system's for None; for a seed or a NumPy generator a reproducible one.

    >>> generator_for(7).random() == generator_for(7).random()
    True
    """
    if random_state is None:
        return operating_system_generator()
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            f"Expected random_state={random_state!r} to be None, for noise that protects, or for "
            "experiments a whole number >= 0 or a NumPy generator."
        ) from error


def clean_sums(columns: Sequence[JointColumn], constant: float, values: FloatArray) -> FloatArray:
    """Σzzᵀ without noise, from the rows v themselves."""
    weights = [column.weight for column in columns]
    rows = np.column_stack([np.full(len(values), constant), values * weights])
    found: FloatArray = rows.T @ rows
    return found


def draw_joint_sums(
    columns: Sequence[JointColumn],
    constant: float,
    count: int,
    clean: FloatArray,
    deviation: float,
    generator: np.random.Generator,
) -> JointSums:
    """Σzzᵀ + E from the clean Σzzᵀ of N records, of deviation s on the diagonal of the sum."""
    size = len(columns) + 1
    draw = np.triu(generator.normal(size=(size, size)) * deviation)
    draw[np.triu_indices(size, 1)] /= np.sqrt(2)
    noise = draw + np.triu(draw, 1).T
    symmetric = np.triu(clean) + np.triu(clean, 1).T
    return JointSums(tuple(columns), constant, count, symmetric + noise, deviation)


def exact_totals(agreement: Agreement, records: Any) -> Totals:
    """What a database would hold if nobody had blurred anything: for `draw` to start from."""
    exact = np.atleast_2d(agreement.exact(records))
    if agreement.shows_sums:
        return Totals(len(exact), exact.sum(axis=0), agreement.fingerprint)
    d = agreement.schema.dimension
    return input_totals(agreement, Statistics.of_records(exact[:, :d], exact[:, d:]))


def totals_of_products(agreement: Agreement, count: int, products: FloatArray) -> Totals:
    """`exact_totals` of `count` records of which only Σ(1, v)(1, v)ᵀ is known, v the columns of
    `blurfit.schema.schema.values`, the target's last.

    moment: what is sent of zzᵀ, z = (c, ωv). input: q = R_q·x and p = R_p·yx for both losses that
    an agreement can name, and x = s·(v, 1) (`blurfit.schema.schema.Schema`).
    """
    if agreement.shows_sums:
        form = agreement.form
        if not isinstance(form, JointForm):
            raise InvalidValueError(
                "Expected the agreement of a first wave, without groups and weights: what others "
                "send does not follow from second moments (`exact_totals`). A group of n people "
                "has the errors of a collection of n people without groups: forecast that one."
            )
        sums = form.take(form.scale[:, None] * products * form.scale)
        return Totals(count, sums, agreement.fingerprint)
    schema, loss = agreement.schema, agreement.loss
    features = [*range(1, len(products) - 1), *([0] if schema.intercept else [])]
    gram = (loss.q_bound * schema.scale) ** 2 * products[np.ix_(features, features)]
    moment = loss.p_bound * schema.scale * products[features, -1]
    return input_totals(agreement, Statistics(count, gram, moment))


def input_totals(agreement: Agreement, statistics: Statistics) -> Totals:
    """A and c as the totals of an `input` collection."""
    sums = np.concatenate([forms.pack(statistics.gram), statistics.moment])
    return Totals(statistics.count, sums, agreement.fingerprint)


def sampler_for(agreement: Agreement, clean: Totals) -> "Sampler":
    """The sampler of the agreement's mechanism, for records whose unblurred totals are `clean`."""
    if clean.fingerprint != agreement.fingerprint:
        raise InvalidValueError(
            f"Expected totals under {agreement.fingerprint}, and got some of another agreement, "
            f"{clean.fingerprint}. Make them with `exact_totals`."
        )
    calibration = agreement.calibration
    if isinstance(calibration, MomentCalibration):
        (part,) = agreement.parts
        if clean.count < 1 or clean.sums.shape != part.deviations.shape:
            raise InvalidValueError(
                f"Expected count={clean.count} >= 1 and the {len(part.deviations)} sums of this "
                f"agreement, and got sums of shape {clean.sums.shape}."
            )
        # each of N contributors adds noise, and a database as much as a whole quorum of them
        draws = agreement.database_draws
        growth = math.sqrt(clean.count + draws * agreement.honest)
        return MomentSampler(clean, part.deviations * growth, draws)
    return InputSampler.of(
        statistics_of(agreement, clean), q_noise=calibration.q_noise, p_noise=calibration.p_noise
    )


@dataclass(frozen=True, eq=False)
class InputSampler:
    """(Q + U)ᵀ(Q + U) ~ (R + Z)ᵀ(R + Z) + W and Σp̃ ~ Σp + N(0, (N/n)σ_b²·I).

    Let RᵀR = QᵀQ with R of k = min(N, d) rows. An orthogonal O takes Q to (R, 0), and U is as
    likely as OU, so the first k rows of OU are Z, with entries N(0, s²), s² = σ_u²/n, and the N − k
    others add their own Gram matrix W ~ Wishart_d(s²I, N − k). For N ≥ 2d, Bartlett's decomposition
    draws W = s²·LLᵀ with L lower triangular, L_jj² ~ χ²_{N−k−j} (j from 0) and N(0, 1) below the
    diagonal; for fewer, the N − k rows are drawn themselves.
    """

    count: int
    factor: FloatArray  # R
    moment: FloatArray  # Σp
    q_noise: float  # s
    p_noise: float  # σ_b·√(N/n)
    fingerprint: str

    @classmethod
    def of(cls, clean: Statistics, *, q_noise: float, p_noise: float) -> "InputSampler":
        """From the unblurred statistics, and how much noise one contributor adds to each number."""
        if clean.count < 1:
            raise InvalidValueError(f"Expected count={clean.count} >= 1: there is nothing to blur.")
        p_noise *= math.sqrt(clean.count)
        name = clean.fingerprint or ""
        return cls(clean.count, _factor(clean), clean.moment, q_noise, p_noise, name)

    def draw(self, generator: np.random.Generator) -> Totals:
        """One draw of (A, c), as totals."""
        drawn = self.statistics(generator)
        sums = np.concatenate([forms.pack(drawn.gram), drawn.moment])
        return Totals(self.count, sums, self.fingerprint)

    def statistics(self, generator: np.random.Generator) -> Statistics:
        """One draw of (A, c)."""
        k, d = self.factor.shape
        others = self.count - k
        if others >= d:
            pure = np.tril(generator.standard_normal((d, d)), -1)
            np.fill_diagonal(pure, np.sqrt(generator.chisquare(others - np.arange(d))))
            pure = pure.T
        else:
            pure = generator.standard_normal((others, d))
        blurred = self.factor + self.q_noise * generator.standard_normal((k, d))
        rows = np.vstack([blurred, self.q_noise * pure])
        noise = self.p_noise * generator.standard_normal(d)
        return Statistics(self.count, rows.T @ rows, self.moment + noise)


@dataclass(frozen=True, eq=False)
class MomentSampler:
    """Σ of each product + N(0, N·s²), s the deviation of one contributor's noise on it."""

    clean: Totals
    deviations: FloatArray
    draws: int = 0  # of databases, whose noise is in the deviations

    def draw(self, generator: np.random.Generator) -> Totals:
        """One draw of all sums."""
        noise = self.deviations * generator.standard_normal(len(self.deviations))
        sums = self.clean.sums + noise
        return Totals(self.clean.count, sums, self.clean.fingerprint, self.draws)


Sampler = InputSampler | MomentSampler  # draws what a database would hold after a collection


def _factor(clean: Statistics) -> FloatArray:
    """R with RᵀR = G and min(N, d) rows: √Λ·Vᵀ of the eigendecomposition, so that a singular G is
    welcome.
    """
    rows = min(clean.count, clean.dimension)
    values, vectors = np.linalg.eigh(clean.gram)
    largest = max(float(values[-1]), 0.0)
    rounding = 1e-10 * largest
    if values[0] < -rounding or (values[: clean.dimension - rows] > rounding).any():
        raise InvalidValueError(
            f"Expected gram to be the sum of {clean.count} products qqᵀ: positive semidefinite, "
            f"of rank at most {rows}. Are these blurred statistics?"
        )
    kept = slice(clean.dimension - rows, None)
    return np.asarray(np.sqrt(np.maximum(values[kept], 0.0))[:, None] * vectors[:, kept].T)


def weights_of(
    agreement: Agreement, totals: Totals, *, sampled: bool = True, public: FloatArray | None = None
) -> FloatArray:
    """The weights of `learn`'s model, on (1, v): (outputs, 1 + features).

    With `public`, encoded rows of the features, those of `fit_public`: of log-odds for labels.
    Raises InfeasibleError where nothing could be published.
    """
    if not agreement.shows_sums:
        weights = released_weights(agreement, statistics_of(agreement, totals))
        return published(agreement, weights, totals.count).weights
    read = shrink if sampled else linear_bayes
    moments, target = moments_of(agreement, totals), agreement.schema.target
    if public is not None:
        family: Family = "linear" if isinstance(target, Numeric) else "logistic"
        features = [name for one in agreement.schema.features for name in one.columns]
        joint, match = moments.beside(features, public), agreement.sends == "everything"
        parts = [joint.submodel(name, features) for name in target.columns]
        found = [fit_with_public_rows(one, public, family, match=match) for one in parts]
        return np.array([one.coefficients for one in found])
    joint = moments.joint
    return np.array([read(joint.submodel(name)).coefficients for name in target.columns])


# ---- a plan of waves

ROWS_AT_ONCE = 8192  # few enough for the cache


class Fitted(NamedTuple):
    """The model, and the release of each wave: all of it may be published."""

    model: PublishedModel
    releases: tuple[PublishedMoments, ...]


def fit_in_waves(plan: Plan, values: FloatArray, generator: np.random.Generator) -> Fitted:
    """Go through all waves of a plan, from encoded rows to the model: see `course_in_waves`."""
    course = course_in_waves(plan, values, generator)
    return Fitted(course.model(), course.releases)


def course_in_waves(plan: Plan, values: FloatArray, generator: np.random.Generator) -> Course:
    """Go through all waves of a plan, from encoded rows to the last release.

    Rows are divided by a random order that is drawn before any of them is looked at, so no answer
    decides anybody's wave; more rows than the plan's quorum are shared out in proportion. Everybody
    keeps the plan's (ε, δ) in all, if nobody can repeat the draw (`blurfit.simulation.sampler`).

    `values` are all columns of each row, the target's last (`blurfit.schema.schema.values`); the
    generator draws assignment and noise.
    """
    count = len(values)
    if count < plan.terms.quorum:
        raise BelowQuorumError(
            f"Expected at least {plan.terms.quorum} rows, which the plan's waves wait for, and got "
            f"{count}."
        )
    shares = np.cumsum(plan.quorums[:-1]) / plan.terms.quorum
    ends = np.ceil(shares * count).astype(int)  # the last wave's share is rounded down, and
    ends = np.minimum(ends, count - np.cumsum(plan.quorums[:0:-1])[::-1])  # has its quorum still
    course = Course.of(plan, ())
    for rows in np.split(generator.permutation(count), ends):
        agreement = course.next_agreement()
        clean = Totals(len(rows), _sums(agreement, values, rows), agreement.fingerprint)
        totals = sampler_for(agreement, clean).draw(generator)
        course = course.then(moments_of(agreement, totals))
    return course


def _sums(agreement: Agreement, values: FloatArray, rows: IntArray) -> FloatArray:
    form = agreement.form
    parts = np.array_split(rows, max(1, len(rows) // ROWS_AT_ONCE))
    if isinstance(form, WaveForm):
        return np.asarray(np.sum([form.sums(values[part]) for part in parts], axis=0))
    return np.asarray(np.sum([form.products(values[part]).sum(axis=0) for part in parts], axis=0))
