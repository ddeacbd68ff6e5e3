"""Ed25519 written down plainly, after RFC 8032, section 6: to check signatures by another route."""

import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)

Point = tuple[int, int, int, int]  # extended coordinates


def add(a: Point, b: Point) -> Point:
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, d - c, d + c, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(scalar: int, point: Point) -> Point:
    found: Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            found = add(found, point)
        point, scalar = add(point, point), scalar >> 1
    return found


def same(a: Point, b: Point) -> bool:
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 == (a[1] * b[2] - b[1] * a[2]) % P


def decoded(data: bytes) -> Point | None:
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, (y & (2**255 - 1)) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P:
        return None
    if x & 1 != sign:
        x = -x % P
    return x, y, 1, x * y % P


_BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = decoded(_BASE_Y.to_bytes(32, "little"))


def verifies(message: bytes, key: str, signature: str) -> bool:
    """Section 5.1.7: 8sB = 8R + 8kA."""
    first, s = (
        bytes.fromhex(signature)[:32],
        int.from_bytes(bytes.fromhex(signature)[32:], "little"),
    )
    public, point = decoded(bytes.fromhex(key)), decoded(first)
    if public is None or point is None or s >= ORDER:
        return False
    hashed = hashlib.sha512(first + bytes.fromhex(key) + message).digest()
    k = int.from_bytes(hashed, "little") % ORDER
    return same(times(8 * s, BASE), times(8, add(point, times(k, public))))
