"""A whole collection's blurred statistics in one draw: exact, in O(d³), whatever n is.

The database sees a collection only through N, A and c, so to know how a collection will turn out
one need not blur its records one by one: for experiments, forecasts and audits, and for data that
is in one place anyway. Only a generator that nobody can repeat protects anyone
(`blurfit.simulation.entropy`).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.learning.sums import Statistics, Totals
from blurfit.model.learner import statistics_of
from blurfit.theory import forms
from blurfit.theory.forms import JointForm
from blurfit.theory.moments import MomentCalibration


def exact_totals(agreement: Agreement, records: Any) -> Totals:
    """What a database would hold if nobody had blurred anything: for `draw` to start from."""
    exact = np.atleast_2d(agreement.exact(records))
    if agreement.mechanism == "moment":
        return Totals(len(exact), exact.sum(axis=0), agreement.fingerprint)
    d = agreement.schema.dimension
    return input_totals(agreement, Statistics.of_records(exact[:, :d], exact[:, d:]))


def totals_of_products(agreement: Agreement, count: int, products: FloatArray) -> Totals:
    """`exact_totals` of `count` records of which only Σ(1, v)(1, v)ᵀ is known, v the columns of
    `blurfit.schema.vectors.values`, the target's last.

    moment: what is sent of zzᵀ, z = (c, ωv). input: q = R_q·x and p = R_p·yx for both losses that
    an agreement can name, and x = s·(v, 1) (`blurfit.schema.schema.Schema`).
    """
    if agreement.mechanism == "moment":
        form = agreement.form
        if not isinstance(form, JointForm):
            raise InvalidValueError(
                "Expected the agreement of a first wave: what a later one sends does not follow "
                "from second moments. Use `exact_totals`."
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
        return cls(
            count=clean.count,
            factor=_factor(clean),
            moment=clean.moment,
            q_noise=q_noise,
            p_noise=p_noise * math.sqrt(clean.count),
            fingerprint=clean.fingerprint or "",
        )

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
    """Σ of each product + N(0, N·s²), s the deviation of one contributor's noise on it: a sum of
    independent Gaussians is Gaussian, so one draw replaces N.
    """

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
