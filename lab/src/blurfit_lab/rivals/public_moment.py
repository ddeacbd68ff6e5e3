"""Public second moments: whiten with public rows, cut to a public radius, perturb the sums.

Cao and Zhang 2025 (arXiv 2508.18037), and Cao, Bi and Zhang 2026 (arXiv 2602.22282), whose
truncation "depends only on non-private quantities: data dimension and sample size". We could read
their abstracts and no more, so the constants below are ours, chosen in the method's favour:

    S = mean of xxᵀ over public rows,   z = S^{−½}x,   z ← z·min(1, R/‖z‖),   u = z/R
    R² = d + 2√(d·ln n) + 2·ln n
    ũ by AdaSSP with exact accounting from Σuuᵀ and Σyu,   w = S^{−½}ũ/R

R is what ‖z‖ of a Gaussian z exceeds once in n rows at most (Laurent and Massart 2000, Lemma 1 with
t = ln n). Whitened sums are well conditioned, so that a ridge costs little and noise is spread as
people are; AdaSSP's ridge is added to what the authors describe, without which a noisy matrix may
have no inverse worth having.

**Privacy.** S is public and n is public, so u is a function of one record, with ‖u‖ ≤ 1 whatever it
is: the proof is AdaSSP's (`blurfit_lab.rivals.adassp`), and the map back is post-processing.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data  # type: ignore[import-untyped]

from blurfit.arrays import AnyArray, FloatArray
from blurfit.schema.schema import Schema
from blurfit_lab.rivals.adassp import Accounting, AdaSSPRegressor

LEAST_SPREAD = 1e-6  # of S's trace: what public rows do not show is not blown up without bound


def radius(dimension: int, count: int) -> float:
    """R, where whitened rows are cut.

    >>> round(radius(5, 1000), 2)
    5.53
    """
    tail = math.log(count)
    return math.sqrt(dimension + 2 * math.sqrt(dimension * tail) + 2 * tail)


def whitening(public: FloatArray) -> FloatArray:
    """S^{−½}, symmetric, from public rows of x."""
    values, vectors = np.linalg.eigh(public.T @ public / len(public))
    values = np.maximum(values, LEAST_SPREAD * values.sum())
    return np.asarray(vectors / np.sqrt(values) @ vectors.T)


@dataclass(kw_only=True, eq=False, repr=False)
class PublicMomentRegressor(AdaSSPRegressor):
    """Least squares from noisy sums of rows that public rows have whitened.

    Args:
        public_X: rows of the same features that are public; without them it is AdaSSP.
        accounting: as for AdaSSP.
    """

    source = "Cao and Zhang 2025, public second moments"
    published_neighbours = "zero-out"

    public_X: Any = None  # noqa: N815 - as scikit-learn writes tables
    accounting: Accounting = "exact"
    _whitening: FloatArray | None = field(default=None, init=False)

    def _fit(self, schema: Schema, values: AnyArray, target: AnyArray) -> tuple[FloatArray, float]:
        self._whitening = None
        if self.public_X is not None:
            rows = validate_data(self, self.public_X, reset=False, dtype="numeric")
            names = [feature.name for feature in schema.features]
            self._whitening = whitening(schema.encode_features(rows, names))
        return super()._fit(schema, values, target)

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        if self._whitening is None:
            return super()._weights(x, y, generator)
        reach = radius(x.shape[1], len(y))
        whitened = x @ self._whitening
        lengths = np.linalg.norm(whitened, axis=1, keepdims=True)
        inside = whitened / np.maximum(lengths, reach)
        return np.asarray(self._whitening @ super()._weights(inside, y, generator)) / reach
