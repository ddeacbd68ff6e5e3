"""The field of 2⁶⁴ − 2³² + 1 elements, on whole arrays of 64-bit words.

This is Field64 of the VDAF draft (section 6.1.3). With E = 2³² − 1 a product, in limbs
x = h₁·2⁹⁶ + h₀·2⁶⁴ + l with h₁, h₀ < 2³² and l < 2⁶⁴, is brought below the modulus without a
division, because

    2⁶⁴ ≡ E,   2⁹⁶ ≡ −1,   so   x ≡ l − h₁ + h₀·E.

Every function takes and returns *canonical* elements, below the modulus: what comes from outside is
checked by `is_canonical` first. Multiplying by 2³² − 1 and its like wraps around on purpose.
"""

from functools import lru_cache

import numpy as np

from blurfit.data import BoolArray, FloatArray, WordArray

MODULUS = 2**64 - 2**32 + 1
_GENERATOR, _LOG_ORDER = pow(7, 2**32 - 1, MODULUS), 32  # of the roots of unity of order 2³²
_P, _E, _LOW, _HALF = (np.uint64(one) for one in (MODULUS, 2**32 - 1, 2**32 - 1, 32))
_LIMB, _EXACT = np.uint64(2**22 - 1), 2**9
_wrapping = np.errstate(over="ignore")  # which NumPy would speak of where an array is one number
_AT_ONCE = 2**13  # elements of a product, so that what is between stays in the cache


def is_canonical(words: WordArray) -> BoolArray:
    """Return which rows hold elements of the field alone, each in its one form."""
    return np.asarray((words < _P).all(axis=-1))


def element(value: int) -> WordArray:
    """Return a whole number, positive or negative, as an element."""
    return np.array(value % MODULUS, dtype=np.uint64)


def inverse(value: int) -> int:
    """Return 1/value."""
    return pow(value, -1, MODULUS)


@_wrapping
def add(one: WordArray, other: WordArray) -> WordArray:
    """Return one + other."""
    total: WordArray = one + other
    total += _E * (total < one)  # 2⁶⁴ ≡ E
    total -= _P * (total >= _P)
    return total


@_wrapping
def sub(one: WordArray, other: WordArray) -> WordArray:
    """Return one − other."""
    difference = one - other
    difference -= _E * (one < other)
    return difference


def mul(one: WordArray, other: WordArray) -> WordArray:
    """Return one · other, whose shapes may be broadcast."""
    left, right = np.broadcast_arrays(one, other)
    if left.size <= _AT_ONCE or left.ndim == 0 or left.shape[0] == 1:
        return _mul(left, right)
    product = np.empty(left.shape, dtype=np.uint64)
    rows = max(1, _AT_ONCE * left.shape[0] // left.size)
    for start in range(0, left.shape[0], rows):
        part = slice(start, start + rows)
        product[part] = _mul(left[part], right[part])
    return product


@_wrapping
def _mul(one: WordArray, other: WordArray) -> WordArray:
    one_high, one_low = one >> _HALF, one & _LOW
    other_high, other_low = other >> _HALF, other & _LOW
    low = one_low * other_low
    cross, other_cross = one_low * other_high, one_high * other_low
    high = one_high * other_high
    middle = (low >> _HALF) + (cross & _LOW) + (other_cross & _LOW)  # below 3·2³²
    high += (cross >> _HALF) + (other_cross >> _HALF) + (middle >> _HALF)
    low &= _LOW
    low |= middle << _HALF
    # x = high·2⁶⁴ + low
    top = high >> _HALF
    reduced: WordArray = low - top
    reduced -= _E * (low < top)
    high &= _LOW
    rest = (high << _HALF) - high  # h₀·E, below 2⁶⁴
    reduced += rest
    reduced += _E * (reduced < rest)
    reduced -= _P * (reduced >= _P)
    return reduced


def total(words: WordArray, axis: int) -> WordArray:
    """Return the sum along an axis of fewer than 2³¹ elements."""
    high: WordArray = (words >> _HALF).sum(axis=axis, dtype=np.uint64)  # below 2⁶³
    low: WordArray = (words & _LOW).sum(axis=axis, dtype=np.uint64)
    # high·2³² = (high >> 32)·2⁶⁴ + (high mod 2³²)·2³²
    over = high >> _HALF
    carried = (over << _HALF) - over  # over·E, below 2⁶³
    return add(add(carried, (high & _LOW) << _HALF), low)  # each of the three is canonical


def dot(one: WordArray, other: WordArray, axis: int) -> WordArray:
    """Return the sum of products along an axis."""
    return total(mul(one, other), axis)


def limbs(matrices: WordArray) -> FloatArray:
    """Matrices (n, rows, columns) in limbs of 22 bits, (3, n, rows, columns), for `combine`."""
    shifts = (matrices & _LIMB, (matrices >> np.uint64(22)) & _LIMB, matrices >> np.uint64(44))
    return np.stack(shifts).astype(np.float64)


def combine(weights: WordArray, matrices: FloatArray) -> WordArray:
    """Return weights (n, m, rows) · matrices (n, rows, columns), the latter in their `limbs`.

    Products of limbs are below 2⁴⁴ and sums of up to 2⁹ of them below 2⁵³, so they are exact in
    floating point, and BLAS does the work.
    """
    count, some, rows = weights.shape
    wide = np.moveaxis(limbs(weights), 0, 1).reshape(count, 3 * some, rows)
    columns = matrices.shape[-1]
    sums = np.zeros((5, count, some, columns), dtype=np.uint64)  # of products of equal weight
    for place, matrix in enumerate(matrices):
        for start in range(0, rows, _EXACT):
            part = slice(start, start + _EXACT)
            found = np.matmul(wide[:, :, part], matrix[:, part]).astype(np.uint64)
            for other in range(3):
                sums[place + other] += found[:, other * some : (other + 1) * some]
    result: WordArray = sums[0] % _P
    for place in range(1, 5):
        result = add(result, mul(sums[place] % _P, element(2 ** (22 * place))))
    return result


def powers(base: WordArray, count: int) -> WordArray:
    """Return base⁰ … base^{count−1} along a new last axis."""
    found = np.ones((*base.shape, 1), dtype=np.uint64)
    step = base[..., None]  # base to the power of as many as were found
    while found.shape[-1] < count:
        found = np.concatenate([found, mul(found, step)], axis=-1)
        step = mul(step, step)
    return np.ascontiguousarray(found[..., :count])


def root_of_unity(order: int) -> int:
    """Return the draft's root of unity of an order that is a power of two."""
    return pow(_GENERATOR, 2**_LOG_ORDER // order, MODULUS)


def transform(values: WordArray) -> WordArray:
    """Return Σ_c values_c·ωᵏᶜ for every k: along the last axis, whose length is a power of two."""
    return _transform(values, inverse=False)


def inverse_transform(values: WordArray) -> WordArray:
    """Invert `transform`: from a polynomial's values at the roots to its coefficients."""
    size = values.shape[-1]
    return mul(_transform(values, inverse=True), element(inverse(size)))


def _transform(values: WordArray, *, inverse: bool) -> WordArray:
    size = values.shape[-1]
    order = _bit_reversed(size)
    found = values[..., order]
    half = 1
    while half < size:
        twiddles = _twiddles(2 * half, inverse)
        pairs = found.reshape(*found.shape[:-1], size // (2 * half), 2, half)
        low, high = pairs[..., 0, :], mul(pairs[..., 1, :], twiddles)
        found = np.stack([add(low, high), sub(low, high)], axis=-2).reshape(values.shape)
        half *= 2
    return found


@lru_cache(maxsize=64)
def _twiddles(order: int, inverse: bool) -> WordArray:
    root = root_of_unity(order)
    if inverse:
        root = pow(root, -1, MODULUS)
    found = powers(np.array(root, dtype=np.uint64), order // 2)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=32)
def _bit_reversed(size: int) -> WordArray:
    bits = size.bit_length() - 1
    places = np.array([int(f"{one:0{bits}b}"[::-1], 2) if bits else 0 for one in range(size)])
    places.setflags(write=False)
    return places
