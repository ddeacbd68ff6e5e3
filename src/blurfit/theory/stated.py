"""What a calibration states is compared with what follows from its noise, or it is refused."""

import math

from blurfit.errors import NotCertifiedError


def require_close(name: str, stated: float, follows: float) -> None:
    """Refuse a number that differs by more than rounding."""
    if not math.isclose(stated, follows, rel_tol=1e-9, abs_tol=1e-300):
        require_equal(name, stated, follows)


def require_equal(name: str, stated: object, follows: object) -> None:
    """Refuse anything else than what follows."""
    if stated != follows:
        raise NotCertifiedError(
            f"Expected {name} to be {follows!r}, which follows from public facts and the noise, "
            f"but {stated!r} is stated. Do not rely on this calibration; make a new one."
        )
