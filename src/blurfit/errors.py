"""One exception tree: catch `BlurfitError`, or the branch that you can act upon.

Every message names the value that was wrong and says what to do about it.
"""

# Answers of a service that may be another one soon.
TRY_AGAIN = frozenset({408, 425, 429, 502, 503, 504})


class BlurfitError(Exception):
    """Anything that blurfit refuses to do."""


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

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NotPrivateWarning(UserWarning):
    """What is being done does not keep the promise that it states; the message says why."""
