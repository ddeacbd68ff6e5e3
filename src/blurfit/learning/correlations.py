"""Correlations and principal components of blurred joint sums, and what the noise leaves of them.

Per person, in units of the columns v: the mean is m_j = S_0j/(Nc·ω_j), a covariance C_ij = S_ij/(N
ω_iω_j) − m_im_j. The noise on S_0j is independent of that on S_ij, so C_ij is unbiased off the
diagonal, and its variance is V_ij + m_i²V_0j + m_j²V_0i; on the diagonal E[m_j²] is too large by
V_0j, which is added back. A correlation r = C_ij/√(d_id_j) then errs, to first order, by

    Var r = Var C_ij/(d_id_j) + r²/4·(Var d_i/d_i² + Var d_j/d_j²) + (1 − r²)²/N,

the last term for who happened to take part. Where a variance is not above its own noise, the
column's correlations are not a number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.joint_sums import JointSums
from blurfit.validate import whole


@dataclass(frozen=True, eq=False)
class Correlations:
    """r of each pair of columns, and its standard error; nan where the noise drowns a column."""

    names: tuple[str, ...]
    values: FloatArray
    standard_errors: FloatArray

    def __str__(self) -> str:
        return _table(self.names, self.names, self.values)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True, eq=False)
class Components:
    """Directions in which the standardised columns differ most.

    `variances` are eigenvalues of the correlation matrix, `directions` their vectors, one a row.
    Eigenvalues within `noise` of 1 may be the work of the noise alone: it is the edge of the
    spectrum that the noise on the correlations would have by itself (semicircle, 2·sd·√k).
    """

    names: tuple[str, ...]
    variances: FloatArray
    directions: FloatArray
    noise: float

    @property
    def shares(self) -> FloatArray:
        """Of the total variance."""
        found: FloatArray = self.variances / len(self.names)
        return found

    def __str__(self) -> str:
        heads = [f"{share:.1%}" for share in self.shares]
        return _table(self.names, heads, self.directions.T)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def correlations(sums: JointSums) -> Correlations:
    """Of all columns of a release."""
    weights = np.array([sums.constant, *(column.weight for column in sums.columns)])
    both = sums.count * np.outer(weights, weights)
    matrix, variance = sums.matrix / both, sums.noise.variance / both**2
    mean, of_mean = matrix[0, 1:], variance[0, 1:]
    covariance = matrix[1:, 1:] - np.outer(mean, mean) + np.diag(of_mean)
    product = np.outer(mean**2, of_mean)
    noise = variance[1:, 1:] + product + product.T
    spread, of_spread = np.diag(covariance), np.diag(variance)[1:] + 4 * mean**2 * of_mean
    clear = spread > np.sqrt(of_spread)
    scale = np.where(clear, spread, np.nan)
    with np.errstate(invalid="ignore"):
        found = np.clip(covariance / np.sqrt(np.outer(scale, scale)), -1.0, 1.0)
        relative = of_spread / scale**2
        errors = noise / np.outer(scale, scale)
        errors += found**2 / 4 * (relative[:, None] + relative[None, :])
        errors += (1 - found**2) ** 2 / sums.count
    np.fill_diagonal(found, np.where(clear, 1.0, np.nan))
    np.fill_diagonal(errors, np.where(clear, 0.0, np.nan))
    return Correlations(tuple(column.name for column in sums.columns), found, np.sqrt(errors))


def components(sums: JointSums, count: int | None = None) -> Components:
    """The first few principal components of the correlations, or all."""
    found = correlations(sums)
    drowned = [
        name for name, row in zip(found.names, found.values, strict=True) if np.isnan(row).all()
    ]
    if drowned:
        raise InfeasibleError(
            f"The noise is larger than the spread of {drowned}: principal components need every "
            "column's. Collect more records, or allow a larger epsilon."
        )
    size = len(found.names)
    most = size if count is None else count
    whole(count=most)
    values, vectors = np.linalg.eigh(found.values)
    order = np.argsort(values)[::-1][:most]
    beside = ~np.eye(size, dtype=bool)
    noise = float(np.sqrt(np.mean(found.standard_errors[beside] ** 2))) if size > 1 else 0.0
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(size)])
    return Components(
        found.names,
        np.maximum(values[order], 0.0),
        np.ascontiguousarray((vectors * signs).T[order]),
        2 * noise * float(np.sqrt(size)),
    )


def _table(rows: Sequence[str], heads: Sequence[str], values: FloatArray) -> str:
    first = max(map(len, rows), default=0)
    widths = [max(len(head), 6) for head in heads]
    lines = [" " * first + "".join(f"  {h:>{w}}" for h, w in zip(heads, widths, strict=True))]
    for name, line in zip(rows, values, strict=True):
        cells = "".join(f"  {value:>{w}.2f}" for value, w in zip(line, widths, strict=True))
        lines.append(f"{name:<{first}}{cells}")
    return "\n".join(lines)
