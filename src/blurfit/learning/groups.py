"""Models in each of several groups out of their blurred sums, with the covariance between them.

The sums of two groups g and h have noise of the covariance S_gh·C, where S = s²X⁻¹ follows from the
code (`blurfit.theory.coded`) and C is the same for all pairs: the noise of one block, for s = 1.

**One system for all groups.** A model has coefficients θ = (θ₁, …, θ_K), of which group g uses
θ_g = P_gθ: all of its own, or slopes in common with the others beside an intercept of its own. With
A = ΣP_gᵀA_gP_g and t = ΣP_gᵀt_g, everything in `blurfit.learning.inference` stands, with sums over
pairs of groups where that has one matrix:

    bias        H = ΣΣ P_gᵀ·E[E_g(P_gA⁻¹P_hᵀ)E_h]·P_h,   θ̃ = Bt with B = (A + H)⁻¹
    privacy     Cov θ̃ = BVB,  V = ΣΣ P_gᵀ·E[E_g r_g r_hᵀ E_h]·P_h with r_g = (−θ_g, 1)
    sampling    B(Σσ_g²P_gᵀ(A_g + …)P_g)B, σ_g² of each group, or one for all with common slopes.

So two models have the covariance B_gV_ghB_h: for isotropic noise V_gh = S_gh/2·((r_g·r_h)I +
θ_hθ_gᵀ), which is negative where codes overlap. Leaving it out makes the errors of differences too
small or too large by what the groups' noises have in common.

**Any number that is smooth in the sums** has the noise Σ_g⟨L_g, E_g⟩ to first order, L_g its slope,
and two of them the covariance ΣΣ S_gh⟨L_g, C·L'_h⟩ (`covariance`). For a coefficient L_g is the
product of a row of BP_gᵀ with r_g.

**Oaxaca and Blinder's decomposition** of the gap between the means of two groups A and B,

    ȳ_A − ȳ_B = (x̄_A − x̄_B)·β_B  +  ȳ_A − ȳ_B − (x̄_A − x̄_B)·β_B,

says how much of it B's model explains by what the people are like, and what it leaves, which is
(1, x̄_A)·(θ_A − θ_B). With a_g = (1, x̄_g) from the first row of a block, so that c·a_g·θ =
A_g0·θ/(cN_g) in units of z, the noise follows from the slopes. The sampling part takes people's
answers as drawn independently: with C_g that of θ_g, V_g = Cov(x)/N_g, D = a_A − a_B and
Δ = θ_A − θ_B,

    explained    D·C_B·D + θ_B(V_A + V_B)θ_B
    the rest     a_A(C_A + C_B)a_A + ΔV_AΔ
    both         −D·C_B·a_A + θ_BV_AΔ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.inference import LARGEST_CONDITION, Refusal, refusal
from blurfit.learning.sums import Blurred, JointSums, Noise, Submodel
from blurfit.learning.tables import Answer
from blurfit.theory.forms import JointColumn

LEAST_EIGENVALUE = 3.0  # of a group's block, in deviations of its noise
# A mean alone is told of smaller groups than a model is: at 3 deviations mostly of those whose
# count the noise has made larger, which pulls the mean to the middle (7 of 14 intervals held it).
LEAST_COUNT = 6.0
HIDDEN = (
    "The noise is too large beside this group's sums for a model of its own: join groups, use "
    "fewer features, collect more records, or allow a larger epsilon. With the group among the "
    "features, moments.fit gives a model with common slopes and an intercept for each group."
)


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Blurred Σzzᵀ of each group, and how their noises go together."""

    names: tuple[str, ...]
    columns: tuple[JointColumn, ...]  # of z after the constant
    constant: float  # c, the first entry of z
    matrices: FloatArray  # Σzzᵀ of each group, (groups, size, size)
    spread: FloatArray  # s²X⁻¹: the covariance of the noise on a diagonal entry of any two groups
    count: int | None  # how many people there are in all, where that is public

    def block(self, place: int) -> JointSums:
        """Return the sums of one group; refuse one that the noise hides."""
        deviation = float(np.sqrt(self.spread[place, place]))
        return JointSums.uncounted(self.columns, self.constant, self.matrices[place], deviation)

    def counts(self) -> Blurred:
        """Return how many people each group has; together as many as there are."""
        found = self.matrices[:, 0, 0] / self.constant**2
        noise = self.spread / self.constant**4
        if self.count is None or not noise.any():
            return Blurred(found, noise)
        along = noise.sum(axis=1)
        gain = along / along.sum()
        return Blurred(found - gain * (found.sum() - self.count), noise - np.outer(gain, along))

    def parts(
        self, target: str, features: Sequence[str], *, models: bool = True
    ) -> tuple[dict[int, Submodel], dict[str, str]]:
        """Return the sums of the groups of which a model of their own can be told, and why not of
        the others; without `models`, of those that the noise does not hide.
        """
        told: dict[int, Submodel] = {}
        hidden: dict[str, str] = {}
        for place, name in enumerate(self.names):
            try:
                part = self.block(place).submodel(target, features)
            except InfeasibleError as error:
                hidden[name] = str(error)
                continue
            least = float(np.linalg.eigvalsh(part.gram)[0])
            if not models:
                told[place] = part
            elif least < (LEAST_EIGENVALUE if features else LEAST_COUNT) * part.deviation:
                hidden[name] = HIDDEN
            elif (reason := refusal(part)) is not None:
                hidden[name] = str(reason)
            else:
                told[place] = part
        return told, hidden


@dataclass(frozen=True, eq=False)
class Fitted:
    """θ in z-space with the two parts of its covariance, and what it was found from."""

    parts: tuple[Submodel, ...]  # the sums of each group
    spread: FloatArray  # the covariance of the noise of any two of them
    maps: tuple[FloatArray, ...]  # P_g of each
    theta: FloatArray  # θ̃
    inverse: FloatArray  # B
    residual: FloatArray  # r_g of each, by the sizes of θ without what noise adds to them
    variances: FloatArray  # σ_g² of each
    sampling: FloatArray  # its part of the covariance
    unit: Noise  # C

    @cached_property
    def slopes(self) -> FloatArray:
        """L of each coefficient and group: (coefficients, groups, size, size)."""
        size = len(self.parts[0].gram) + 1
        found = np.zeros((len(self.theta), len(self.parts), size, size))
        for place, chosen in enumerate(self.maps):
            rows = self.inverse @ chosen.T
            found[:, place, :-1, :] = rows[:, :, None] * self.residual[place]
        return found

    @property
    def answer(self) -> Answer:
        """θ with both parts of its covariance."""
        return Answer(self.theta, self.sampling, covariance(self.unit, self.spread, self.slopes))


def covariance(unit: Noise, spread: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return ΣΣ S_gh⟨L_g, C·L'_h⟩ for all pairs of numbers, of slopes (numbers, groups, d, d)."""
    rows, columns = np.triu_indices(slopes.shape[-1])
    both = slopes + np.swapaxes(slopes, -1, -2)
    entries = both[..., rows, columns] / np.where(rows == columns, 2.0, 1.0)
    seen = entries * unit.variance[rows, columns]
    at = np.zeros(unit.variance.shape, dtype=np.intp)
    at[rows, columns] = at[columns, rows] = np.arange(len(rows))
    for (i, j, k, m), tie in zip(unit.pairs, unit.covariances, strict=True):
        seen[..., at[i, j]] += tie * entries[..., at[k, m]]
        seen[..., at[k, m]] += tie * entries[..., at[i, j]]
    joined = np.einsum("gh,khm->kgm", spread, seen)
    found = np.einsum("kgm,lgm->kl", entries, joined)
    return np.asarray((found + found.T) / 2, dtype=np.float64)


def fit_groups(parts: Sequence[Submodel], spread: FloatArray, *, common: bool = False) -> Fitted:
    """Return a model in each group, or one with `common` slopes and an intercept for each, from the
    sums of one target and its features in each group; `spread` is s²X⁻¹ of these groups.
    """
    groups, size = len(parts), len(parts[0].gram)
    unit = _unit(parts[0])
    features = unit.take(range(size))
    if common:
        ends = np.eye(groups + size - 1)
        maps = [np.vstack([ends[g], ends[groups:]]) for g in range(groups)]
        together = [list(range(groups))]
    else:
        maps = [np.eye(groups * size)[g * size : (g + 1) * size] for g in range(groups)]
        together = [[g] for g in range(groups)]
    pairs = list(zip(maps, parts, strict=True))
    A = np.asarray(sum(chosen.T @ part.gram @ chosen for chosen, part in pairs))
    t = sum(chosen.T @ part.cross for chosen, part in pairs)
    if np.linalg.eigvalsh(A)[0] <= 0:
        raise InfeasibleError(str(Refusal.NOT_DEFINITE))
    plain = np.asarray(np.linalg.inv(A), dtype=np.float64)
    halves = []
    for g, chosen in enumerate(maps):
        right = np.zeros_like(chosen)
        for h in np.flatnonzero(spread[g]):
            right += spread[g, h] * features.sandwich(chosen @ plain @ maps[h].T) @ maps[h]
        half = chosen.T @ right
        halves.append((half + half.T) / 2)
    H = sum(halves)
    root = np.linalg.inv(np.linalg.cholesky(A))
    if np.linalg.eigvalsh(root @ H @ root.T)[-1] >= LARGEST_CONDITION:
        raise InfeasibleError(str(Refusal.TOO_NOISY))
    inverse = np.linalg.inv(A + H)
    theta, first = inverse @ t, plain @ t

    def left_by(members: Sequence[int], r: FloatArray) -> float:
        """Return σ² of some groups together: the least squares, which the noise makes too small."""
        left, count, used = 0.0, 0, np.zeros(len(first), dtype=bool)
        for g in members:
            ends = np.append(-maps[g] @ first, 1.0)
            left += float(ends @ parts[g].extended @ ends)
            count += parts[g].count
            used |= maps[g].any(axis=0)
            for h in members:
                if spread[g, h]:
                    moved = spread[g, h] * unit.sandwich(np.outer(r[g], r[h]))[:-1, :-1]
                    left += float(np.trace((maps[h] @ plain @ maps[g].T) @ moved))
        slopes = np.zeros((1, len(parts), *unit.variance.shape))
        slopes[0, members] = [np.outer(r[g], r[g]) for g in members]
        floor = float(np.sqrt(covariance(unit, spread, slopes)[0, 0])) / (2 * count)
        return max(left / max(count - int(used.sum()), 1), floor)

    shorter, variances = np.ones(groups), np.zeros(groups)
    found = None
    for _ in range(2):  # θ̃² is too large by the variance that the first pass finds
        r = np.array([[*(-k * one @ theta), 1.0] for k, one in zip(shorter, maps, strict=True)])
        for members in together:
            variances[members] = left_by(members, r)
        middle_of = sum(
            variances[g] * (chosen.T @ parts[g].gram @ chosen + halves[g])
            for g, chosen in enumerate(maps)
        )
        found = Fitted(
            parts=tuple(parts),
            spread=spread,
            maps=tuple(maps),
            theta=theta,
            inverse=inverse,
            residual=r,
            variances=variances.copy(),
            sampling=inverse @ middle_of @ inverse,
            unit=unit,
        )
        own = np.array([np.trace(one @ found.answer.covariance @ one.T) for one in maps])
        shorter = np.sqrt(1 - own / np.maximum([np.sum((one @ theta) ** 2) for one in maps], own))
    assert found is not None
    return found


def _unit(part: Submodel) -> Noise:
    """Return C: the noise of a block of deviation 1, with the target's row."""
    noise, scale = part.noise, part.deviation**2 or 1.0
    return Noise(noise.variance / scale, noise.pairs, noise.covariances / scale)


def decomposed(fitted: Fitted, one: int, other: int, questions: Sequence[Sequence[int]]) -> Answer:
    """Return the gap between the means of two groups, by their places, what the other's model
    explains of it, by each question and in all, and the rest, in z-space: by of the target.

    `questions` are the places of each question's features among the coefficients of models of the
    groups' own.
    """
    A, B = fitted.parts[one], fitted.parts[other]
    c, size, count = A.constant, len(A.gram), len(questions)
    masks = np.array([np.isin(np.arange(size), chosen) for chosen in questions]).reshape(-1, size)
    theta = [fitted.maps[place] @ fitted.theta for place in (one, other)]
    # c·along·(1, x̄, ȳ) of each group: what its answers are worth to B's model; and its own mean
    along = np.zeros((count + 1, size + 1))
    along[:count, :-1], along[-1, -1] = masks * theta[1], 1.0
    slopes = np.zeros((count + 1, len(fitted.parts), size + 1, size + 1))
    means = [np.append(part.gram[0], part.cross[0]) / part.gram[0, 0] for part in (A, B)]
    for part, place, mean, sign in ((A, one, means[0], c), (B, other, means[1], -c)):
        slopes[:, place, 0] += sign / part.gram[0, 0] * along
        slopes[:, place, 0, 0] -= sign / part.gram[0, 0] * (along @ mean)
    a, b = (mean[:-1] for mean in means)
    D, T, delta = masks * (a - b), along[:count, :-1], theta[0] - theta[1]
    rows = fitted.maps[other] @ fitted.inverse @ fitted.maps[other].T
    slopes[:count, other, :-1] += c * (D @ rows)[:, :, None] * fitted.residual[other]
    values = c * along @ (means[0] - means[1])
    # the last is the gap so far: what is explained is taken from it
    slopes[-1] -= slopes[:count].sum(axis=0)
    values[-1] -= values[:count].sum()
    C = [fitted.maps[place] @ fitted.sampling @ fitted.maps[place].T for place in (one, other)]
    each = ((A, a), (B, b))
    V = [(part.gram / part.gram[0, 0] - np.outer(mean, mean)) / part.count for part, mean in each]
    explained = D @ C[1] @ D.T + T @ (V[0] + V[1]) @ T.T
    both = (-D @ C[1] @ a + T @ V[0] @ delta)[:, None]
    rest = a @ (C[0] + C[1]) @ a + delta @ V[0] @ delta
    sampling = c**2 * np.block([[explained, both], [both.T, np.array([[rest]])]])
    told = np.vstack([np.ones(count + 1), np.append(np.ones(count), 0.0), np.eye(count + 1)])
    return Answer(values, sampling, covariance(fitted.unit, fitted.spread, slopes)).through(told)
