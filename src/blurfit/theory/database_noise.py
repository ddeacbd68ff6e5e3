"""Noise of the database itself: readers are kept out even where every other contributor lies.

The promise of `moment` counts on n honest contributors, of whose noise (variance σ²/n each) the
sums hold σ² in all. Whether they are honest nobody can check. If the database adds D ~ N(0, σ²) of
its own to the sums, in the same geometry and on the same grid, once, this is no longer needed.

**Theorem.** Let a database publish R = x + a + e + D, where x are the exact numbers of one honest
person (another record of hers moves them by at most Δ), e her own noise, a whatever all others
sent, and D is drawn independently of all that, by an honest database, which publishes nothing else
of them. Then R, and whatever is computed from it, is μ-GDP with μ = Δ/σ, whatever the others sent
and whatever noise they know.

*Proof.* Fix a and e, on neither of which her record has any influence: a is chosen by others, who
have not seen x, and e is drawn independently of it. Given both, R is x + D shifted by a known
vector: a Gaussian mechanism of deviation σ and sensitivity Δ, which is Δ/σ-GDP (Dong, Roth and Su
2022, Theorem 1). That holds for each value of (a, e), so it holds for their mixture, even if an
attacker is told both: GDP is closed under mixing with what does not depend on the record. ∎ On the
grid D is a discrete Gaussian of s = σ/g steps, √n times as many as one contributor's: the
thousandth of δ that is kept back for discrete noise (`blurfit.agreement.grid`) pays for it n times
over. The screen, by which a submission may be refused, looks at x + e alone and is paid for there
as well.

So (ε, δ) against readers holds **if the database is honest, or if n contributors are**: two
premises of which one suffices. Their noise is not counted together in the promise, which would need
both. Against the database itself, which knows D, everything is as without.

**Two databases** each add their own, D₁ and D₂, before sums are exchanged: the first to its sum of
masked numbers, the second to its sum of masks. Readers see both. The first sees Σv + D₂, the second
Σv + D₁. So against readers one honest database suffices, and against either database the other's
honesty suffices: **even if it invents contributors**, whose noise it knows.

**What it costs.** The contributors' noise is in the sums all the same, and counts for the errors:
the variance is σ²(N/n + k) for N contributors and k databases, which at N = n is (1 + k) times as
much: twice, or three times. For N much larger than n it fades.
"""

import math

from blurfit.validate import nonnegative, positive, whole


def total_deviation(sigma: float, quorum: int, count: int, draws: int = 0) -> float:
    """σ√(N/n + k): the deviation of all noise in the sums of N contributors and k databases.

    With `count` the honest contributors and `draws` the honest databases, Δ divided by it is the
    exact μ against somebody who knows all other noise: at most Δ/σ if N ≥ n or k ≥ 1.

    >>> total_deviation(10.0, quorum=100, count=100, draws=1) / total_deviation(10.0, 100, 100)
    1.4142135623730951
    """
    positive(sigma=sigma)
    whole(quorum=quorum, count=count)
    nonnegative(draws=draws)
    return sigma * math.sqrt(count / quorum + draws)


def variance_factor(quorum: int, count: int, draws: int) -> float:
    """1 + k·n/N: how many times the variance of the noise the databases' own makes it.

    >>> variance_factor(quorum=100, count=100, draws=2), variance_factor(100, 400, 1)
    (3.0, 1.25)
    """
    whole(quorum=quorum, count=count)
    nonnegative(draws=draws)
    return 1 + draws * quorum / count
