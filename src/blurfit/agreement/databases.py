"""Shared trust: the two databases of an agreement, and when numbers can be shared at all.

Each contributor's blurred numbers, in whole steps of the grid, are a vector v. The first database
gets v + mask mod 2⁶⁴, the second the seed of the mask (`blurfit.messages.submissions`). What they
find together is Σv mod 2⁶⁴, and it is Σv itself if |Σv| < 2⁶³. Both of these are checked when an
agreement is made, and by everyone who receives one:

* **Fine enough.** Every number's noise has a deviation of at least 2¹⁰ steps, so that the noise is
  as good as continuous and what the grid costs is paid for (`blurfit.agreement.numbers`).
  With proofs (`blurfit.agreement.proving`) the noise of the sums has.
* **Coarse enough.** An honest |vⱼ| is at most B = (R + 40s)/g + 1: R bounds the record's own number
  (all of them together in the Frobenius norm), s is the deviation of its noise, g the step, and
  rounding adds at most one. Noise leaves ±40s with probability below 2e^{−800}. So 2³²
  contributors cannot overflow if 2³²·B < 2⁶³, that is B < 2³¹. (Their noise adds up like √N and
  not like N: this is conservative by far.)
"""

import ipaddress
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from blurfit.errors import InfeasibleError, InvalidValueError

if TYPE_CHECKING:  # the terms of an agreement are read where nothing is calculated: for `--help`
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.numbers import Grid
    from blurfit.theory.moments import MomentCalibration

Trust = Literal["one", "shared"]
MOST_CONTRIBUTORS = 2**32
LEAST_NOISE = 2.0**10  # steps that the deviation of a number's noise spans, at least
DEVIATIONS = 40.0  # beyond which noise does not go
_LARGEST_NAME = 100
# 1/ϱ: a common set may leave out at most one in so many of a database (`blurfit.store.joint`).
LEFT_OUT_ONE_IN: dict[str, int] = {"first": 10, "second": 2}


class Database(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of two databases: the name of whoever runs it, where its service is, and its public key
    if shares are sealed to it (`blurfit.messages.submissions`).

    >>> Database("Statistics Office", "https://first.example")
    Database(name='Statistics Office', url='https://first.example', key=None)
    """

    name: str
    url: str
    key: str | None = None

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or not name.strip() or len(name) > _LARGEST_NAME:
            raise InvalidValueError(
                f"Expected name={name!r} to say who runs a database, in 1 to {_LARGEST_NAME} "
                "characters."
            )
        if not name.isprintable() or name != name.strip():
            raise InvalidValueError(
                f"Expected name={name!r} to be one line without spaces around it."
            )
        if not isinstance(self.url, str) or not _is_origin(self.url):
            raise InvalidValueError(
                f"Expected url={self.url!r} to be an origin such as https://first.example: https, "
                "a host in lower case and perhaps a port (http only for this machine itself). "
                "Otherwise somebody who listens on the way could put the shares together."
            )
        if self.key is not None:
            from blurfit.messages.submissions import require_key

            require_key(self.key)


def databases_of(given: Sequence[Any]) -> tuple[Database, ...]:
    """Return the databases of an agreement: two different ones where trust is shared, else none."""
    found = tuple(one if isinstance(one, Database) else Database(*one) for one in given)
    if found:
        require_two(found)
    return found


def require_two(databases: Sequence[Database]) -> None:
    """Refuse anything but two databases of different names, at different addresses."""
    names, urls = ({getattr(one, part) for one in databases} for part in ("name", "url"))
    if not len(databases) == len(names) == len(urls) == 2:
        raise InvalidValueError(
            "Expected two databases of different names and addresses, and got "
            f"{[(one.name, one.url) for one in databases]}: whoever has both shares has "
            "the blurred record."
        )
    keys = [one.key for one in databases]
    if keys != [None, None] and (None in keys or keys[0] == keys[1]):
        raise InvalidValueError(
            "Expected a different key for each of the two databases, or none: shares are sealed to "
            "both, or to neither."
        )


def largest_steps(calibration: "MomentCalibration", grid: "Grid", scale: float = 1.0) -> float:
    """B: how many steps an honest blurred number has at most.

    `scale` is how much larger than on the diagonal numbers and their noise are where they are the
    largest: τ for Newton's p (`blurfit.theory.forms`), else 1.
    """
    one = calibration.reach.submission + DEVIATIONS * calibration.noise
    return scale * one / grid.quadratic + 1


def refuse_unless_shareable(
    calibration: "MomentCalibration", grid: "Grid", scale: float = 1.0, *, proofs: bool = False
) -> None:
    """Refuse a grid that is too coarse for its noise, or noise too large for 2³² to add."""
    least, step = calibration.noise / 2**0.5, grid.quadratic  # off the diagonal there is less
    if proofs:
        least *= calibration.quorum**0.5
    if least < LEAST_NOISE * step:
        raise InfeasibleError(
            f"Expected the noise {least:.4g} to span {LEAST_NOISE:g} steps of {step:.4g}. Propose "
            "the agreement again: its grid is too coarse for sharing."
        )
    largest = largest_steps(calibration, grid, scale)
    if largest * MOST_CONTRIBUTORS >= 2.0**63:
        raise InfeasibleError(
            "Expected a blurred number to stay below 2**31 steps, so that 2**32 contributors "
            f"cannot overflow, but it may have {largest:.4g}: the noise is too large for its grid. "
            "Leave local_epsilon out, or raise it: neither of the two sees a submission anyway."
        )


def most_left_out(agreement: "Agreement", role: str, held: int) -> int:
    """Return how many of those whom a database holds a set may leave out."""
    if agreement.database_noise or agreement.admission == "anyone":
        return held
    return held // LEFT_OUT_ONE_IN[role]


def _is_origin(url: str) -> bool:
    """Return whether this is scheme, host and perhaps port as browsers write an origin."""
    if not re.fullmatch(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?", url):
        return False
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if port is not None and (port > 65535 or port == {"http": 80, "https": 443}[parts.scheme]):
        return False
    return parts.scheme == "https" or _is_this_machine(host)


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
