"""What every room stands on: one exception tree, the checks that raise it, packages that only some
uses need, moments in time, and who is told of progress.

Catch `BlurfitError`, or the branch that you can act upon. Every message names the value that was
wrong and says what to do about it: each check takes its values by keyword, so that the message is
written by the call itself. `positive(epsilon=-1)` says "Expected epsilon=-1 > 0.".
"""

import datetime as dt
import importlib
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

from blurfit.version import __version__
from blurfit.wording import Message

# Answers of a service that may be another one soon.
TRY_AGAIN = frozenset({408, 425, 429, 502, 503, 504})


class BlurfitError(Exception):
    """Anything that blurfit refuses to do; `message` keeps the template and its values."""

    def __init__(self, message: str = "", /, **values: Any) -> None:
        self.message = Message(message, **values)
        super().__init__(self.message)


class InvalidValueError(BlurfitError, ValueError):
    """A value is outside what its parameter may be, whatever the others are."""


class InfeasibleError(BlurfitError, ValueError):
    """Each value is allowed, but together they cannot be had; the message says what to change."""


class NotCertifiedError(BlurfitError, ArithmeticError):
    """A number could not be shown to be right, so it is not returned."""


class ConflictError(InvalidValueError):
    """The name is taken by something else."""


class UnknownCollectionError(InvalidValueError):
    """Nothing is collected under this fingerprint."""


class NotInvitedError(InvalidValueError):
    """An invitation is missing, was never given, or has been used."""


class OtherGroupError(InfeasibleError):
    """The lot has put this person into another group of the plan than the one that collects."""


class ClosedError(InfeasibleError):
    """The collection takes no more submissions."""


class PausedError(InfeasibleError):
    """The collection takes no submissions for now; the same ones may be sent again later."""


class WaveClosedError(ClosedError):
    """The wave has been released meanwhile: the plan is at a later one, or at its end."""


class BetweenWavesError(InfeasibleError):
    """One wave of a plan is being published, and the next is not open yet: ask again soon."""


class DateClosedError(ClosedError):
    """The date until which the collection took submissions has passed."""


class NotPublishedError(InfeasibleError):
    """There is no model, or nothing may be shown of it."""


class BelowQuorumError(InfeasibleError):
    """Too few contributors for a model that protects them."""


class StorageError(BlurfitError, OSError):
    """The store is full, locked or away: nothing was kept, and trying again later may help."""


class ServiceError(BlurfitError):
    """A service refused, or could not be reached; `status` is its answer, 0 if there was none."""

    def __init__(self, message: str, status: int = 0, /, **values: Any) -> None:
        super().__init__(message, **values)
        self.status = status


class NotPrivateWarning(UserWarning):
    """What is being done does not keep the promise that it states; the message says why."""


class AdviceWarning(UserWarning):
    """What is being done is allowed, and perhaps not meant; the message says why."""


def finite(**values: Any) -> None:
    """Refuse what is not a finite real number (so NaN, infinities, strings, booleans)."""
    for name, value in values.items():
        # Most values are floats, and an abstract class takes longest to ask.
        if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
            raise InvalidValueError(
                "Expected {name}={value!r} to be a real number.", name=name, value=value
            )
        try:
            is_finite = math.isfinite(value)
        except OverflowError:  # a whole number or a fraction, with many digits
            raise InvalidValueError(
                "Expected {name} to be at most 1.8e308 in size.", name=name
            ) from None
        if not is_finite:
            raise InvalidValueError(
                "Expected {name}={value!r} to be finite.", name=name, value=value
            )


def positive(**values: Any) -> None:
    """Refuse what is not a finite number above zero."""
    finite(**values)
    _refuse_unless(values, lambda value: value > 0, "Expected {name}={value!r} > 0.")


def nonnegative(**values: Any) -> None:
    """Refuse what is not a finite number of at least zero."""
    finite(**values)
    _refuse_unless(values, lambda value: value >= 0, "Expected {name}={value!r} >= 0.")


def inside_unit_interval(**values: Any) -> None:
    """Refuse what does not lie strictly between 0 and 1."""
    finite(**values)
    _refuse_unless(
        values, lambda value: 0 < value < 1, "Expected {name}={value!r} strictly between 0 and 1."
    )


def whole(**values: Any) -> None:
    """Refuse what is not a whole number of at least one."""
    _whole_from(1, values)


def whole_from_zero(**values: Any) -> None:
    """Refuse what is not a whole number of at least zero."""
    _whole_from(0, values)


def one_of(allowed: Collection[str], **values: Any) -> None:
    """Refuse what is not among the allowed words."""
    for name, value in values.items():
        if value not in allowed:
            words = ", ".join(repr(word) for word in allowed)
            raise InvalidValueError(
                "Expected {name}={value!r} to be one of {words}.",
                name=name,
                value=value,
                words=words,
            )


@contextmanager
def within_floating_point() -> Iterator[None]:
    """Refuse what leaves the range of floats: an overflow, a division by zero, the logarithm of 0.

    For arithmetic on public numbers alone, as a decorator or in a `with` statement.
    """
    import numpy as np  # for which those who only ask for --help do not wait

    try:
        with np.errstate(all="ignore"):
            yield
    except BlurfitError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise NotCertifiedError(
            "Floating point cannot hold what follows from these numbers ({error}), so nothing is "
            "certified. Choose less extreme ones: bounds nearer to 1, or a larger epsilon or "
            "delta.",
            error=error,
        ) from error


def _whole_from(least: int, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        try:
            fits = not isinstance(value, bool) and least <= operator.index(value) < 2**64
        except TypeError:
            fits = False
        if not fits:
            raise InvalidValueError(
                "Expected {name}={value!r} to be a whole number >= {least}, and below 2**64.",
                name=name,
                value=value,
                least=least,
            )


def _refuse_unless(values: Mapping[str, Any], holds: Any, wrong: str) -> None:
    for name, value in values.items():
        if not holds(value):
            raise InvalidValueError(wrong, name=name, value=value)


# What brings which package that only some uses need, as `pip install` is asked for it.
EXTRAS = {
    "dask": "blurfit[cluster]",
    "distributed": "blurfit[cluster]",
    "formulaic": "blurfit[formulas]",
    "matplotlib": "blurfit[plots]",
    "openpyxl": "blurfit[surveys]",
    "pandas": "blurfit[tables]",
    "psycopg": "blurfit-server[postgresql]",
    "pyarrow": "blurfit[tables]",
    "segno": "blurfit-server[codes]",
    "yaml": "blurfit[yaml]",
}


def require_version(distribution: str, version: str) -> None:
    """Reject a distribution of another version: what both compute must agree to the last bit."""
    if version != __version__:
        raise BlurfitError(
            "{distribution} {version} needs blurfit {version}, and blurfit {version_2} is "
            "installed: run `pip install blurfit=={version} {distribution}=={version}`.",
            distribution=distribution,
            version=version,
            version_2=__version__,
        )


def optional(module: str) -> Any:
    """Import a module of a package that only some uses need, or say which extra has it.

    >>> optional("pyarrow.parquet").__name__
    'pyarrow.parquet'
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(package) from error


def axes(ax: Any, width: float, height: float) -> Any:
    """Return the axes that were given, or those of a new figure, by matplotlib."""
    if ax is None:
        size = width, height
        _, ax = optional("matplotlib.pyplot").subplots(figsize=size, layout="constrained")
        separate_thousands(ax)
    return ax


def separate_thousands(ax: Any) -> None:
    """Write the numbers of both axes as texts do: 150,000."""
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _place: f"{value:,.10g}")
    ax.locator_params(axis="x", nbins=6)  # so that long numbers stay apart


def missing(package: str) -> BlurfitError:
    """Return an error that says which of `EXTRAS` is not installed, and what to run."""
    return BlurfitError(
        "Expected the package {package} to be installed: run `pip install '{extras}'`.",
        package=package.replace("_", "-"),
        extras=EXTRAS[package],
    )


def instant(text: str) -> int:
    """Return the second since 1970 that a text names; a date alone is the end of its day in UTC.

    A time without its zone is refused: it would be another moment for each who reads it.

    >>> instant("2027-01-31") == instant("2027-02-01T00:00Z") == instant("2027-02-01T01:00+01:00")
    True
    """
    try:
        found = dt.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        found = None
    if found is None or found.year >= 9999 or (found.tzinfo is None and not _is_date(text)):
        raise InvalidValueError(
            "Expected {text!r} to be a date such as 2027-01-31, which lasts until the end of that "
            "day in UTC, or a time with its zone such as 2027-01-31T18:00+01:00.",
            text=text,
        )
    if found.tzinfo is None:
        found = found.replace(tzinfo=dt.UTC) + dt.timedelta(days=1)
    return int(found.timestamp())


def in_words(second: int) -> str:
    """Return a moment as people read it.

    >>> in_words(instant("2027-01-31T18:00+01:00"))
    '2027-01-31 17:00 UTC'
    """
    found = dt.datetime.fromtimestamp(second, dt.UTC)
    return f"{found:%Y-%m-%d %H:%M:%S} UTC" if found.second else f"{found:%Y-%m-%d %H:%M} UTC"


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


Progress = Callable[..., object]


def silent(*_done: object) -> None:
    """Tell nobody: the default of a parameter `progress`."""
