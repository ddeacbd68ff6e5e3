"""A discrete Gaussian drawn in another way: Canonne, Kamath and Steinke, 2020, Algorithms 1 to 3.

One draw at a time, in Python's whole numbers: exact too, slow, and independent of ours.
"""

import secrets


def discrete_gaussian(a: int, b: int) -> int:
    """k with probability ∝ exp(−k²/(2s²)), s = a/b.

    Draw k with probability ∝ exp(−|k|/t), t = ⌊s⌋ + 1, and keep it with probability
    exp(−(|k| − s²/t)²/(2s²)), which is exp(−(|k|tb² − a²)²/(2a²b²t²)).
    """
    t = a // b + 1
    centre, unit, denominator = a * a, t * b * b, 2 * (a * b * t) ** 2
    while True:
        k = discrete_laplace(t)
        if happens((abs(k) * unit - centre) ** 2, denominator):
            return k


def discrete_laplace(t: int) -> int:
    """k with probability ∝ exp(−|k|/t): |k| = rest + t·quotient, then a sign."""
    while True:
        rest = secrets.randbelow(t)
        if not happens_below_one(rest, t):
            continue
        quotient = 0
        while happens_below_one(1, 1):
            quotient += 1
        size = rest + t * quotient
        negative = secrets.randbelow(2)
        if not negative:
            return size
        if size:  # zero must not be counted twice
            return -size


def happens(a: int, b: int) -> bool:
    """True with probability exp(−a/b): all of ⌊a/b⌋ times exp(−1), then the rest."""
    whole, rest = divmod(a, b)
    return all(happens_below_one(1, 1) for _ in range(whole)) and happens_below_one(rest, b)


def happens_below_one(a: int, b: int) -> bool:
    """True with probability exp(−a/b), a ≤ b: whether the first failure is at an odd trial."""
    k = 1
    while secrets.randbelow(b * k) < a:
        k += 1
    return k % 2 == 1
