"""Split trust: the two databases that share an agreement, and when numbers can be shared at all.

Each contributor's blurred numbers, in whole steps of the grid, are a vector v. The first database
gets v + mask mod 2⁶⁴, the second the seed of the mask (`blurfit.messages.masks`). What they find
together is Σv mod 2⁶⁴, and it is Σv itself if |Σv| < 2⁶³. Both of these are checked when an
agreement is made, and by everyone who receives one:

* **Fine enough.** Every number's noise has a deviation of at least 2¹⁰ steps, so that the noise is
  as good as continuous and what the grid costs is paid for (`blurfit.agreement.grid`).
* **Coarse enough.** An honest |vⱼ| is at most B = (R + 40s)/g + 1: R bounds the record's own number
  (R_q² for qqᵀ, R_p for p), s is the deviation of its noise, g the step, and rounding adds at most
  one. Noise leaves ±40s with probability below 2e^{−800}. So 2³² contributors cannot overflow if
  2³²·B < 2⁶³, that is B < 2³¹. (Their noise adds up like √N and not like N: this is conservative by
  far.)
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from blurfit.agreement.grid import Grid
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.theory.calibration import InputCalibration, MomentCalibration

Trust = Literal["one", "split"]
TRUSTS: tuple[Trust, ...] = ("one", "split")
MOST_CONTRIBUTORS = 2**32
LEAST_NOISE = 2.0**10  # steps that the deviation of a number's noise spans, at least
DEVIATIONS = 40.0  # beyond which noise does not go
_LARGEST_NAME = 100


@dataclass(frozen=True)
class Database:
    """One of two databases: the name of whoever runs it, and where its service is.

    >>> Database("Statistics Office", "https://first.example")
    Database(name='Statistics Office', url='https://first.example')
    """

    name: str
    url: str

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
                f"Expected url={self.url!r} to be https, a host in small letters and perhaps a "
                "port, and nothing else, like https://first.example (http on the machine itself "
                "alone): whoever listens on the way could otherwise put the shares together."
            )


def databases_of(given: Sequence[Any] | None, trust: Trust) -> tuple[Database, ...]:
    """The databases of an agreement: two different ones for split trust, else none."""
    if trust == "one":
        if given:
            raise InvalidValueError("Expected no databases with trust='one'; use trust='split'.")
        return ()
    found = tuple(one if isinstance(one, Database) else Database(*one) for one in given or ())
    require_two(found)
    return found


def require_two(databases: Sequence[Database]) -> None:
    """Refuse anything but two databases of different names, at different addresses."""
    names, urls = ({getattr(one, part) for one in databases} for part in ("name", "url"))
    if not len(databases) == len(names) == len(urls) == 2:
        raise InvalidValueError(
            f"Expected trust='split' with two databases of different names and addresses, and got "
            f"{[(one.name, one.url) for one in databases]}: one that has both shares has the "
            "blurred record."
        )


def largest_steps(calibration: MomentCalibration, grid: Grid) -> tuple[float, float]:
    """B: how many steps an honest blurred number of qqᵀ and of p has at most."""
    setting = calibration.setting
    return (
        (setting.q_bound**2 + DEVIATIONS * calibration.m_noise) / grid.quadratic + 1,
        (setting.p_bound + DEVIATIONS * calibration.p_noise) / grid.linear + 1,
    )


def refuse_unless_shareable(calibration: InputCalibration | MomentCalibration, grid: Grid) -> None:
    """Refuse noise that is too coarse for its grid, or too large for 2³² contributors to add."""
    if not isinstance(calibration, MomentCalibration):
        raise InfeasibleError(
            "Expected mechanism='moment' with trust='split': only what adds can be shared."
        )
    beside = calibration.m_noise / 2**0.5  # the smaller of the two deviations of qqᵀ
    for name, least, step, largest in zip(
        ("qqᵀ", "p"),
        (beside, calibration.p_noise),
        (grid.quadratic, grid.linear),
        largest_steps(calibration, grid),
        strict=True,
    ):
        if least < LEAST_NOISE * step:
            raise InfeasibleError(
                f"Expected the noise {least:.4g} on {name} to span {LEAST_NOISE:g} steps of "
                f"{step:.4g}. Propose the agreement again: its grid is too coarse for sharing."
            )
        if largest * MOST_CONTRIBUTORS >= 2.0**63:
            raise InfeasibleError(
                f"Expected a blurred number of {name} to stay below 2**31 steps, so that 2**32 "
                f"contributors cannot overflow, but it may have {largest:.4g}: the noise is too "
                "large for its grid. Drop local_epsilon or raise it; with split "
                "trust neither database sees a submission anyway."
            )


def _is_origin(url: str) -> bool:
    """Whether this is scheme, host and perhaps port as browsers write an origin."""
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
