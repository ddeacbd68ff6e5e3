"""One exception tree: catch `BlurfitError`, or the branch that you can act upon.

Every message names the value that was wrong and says what to do about it.
"""


class BlurfitError(Exception):
    """Anything that blurfit refuses to do."""


class InvalidValueError(BlurfitError, ValueError):
    """A value is outside of what its parameter may be, whatever the others are."""


class InfeasibleError(BlurfitError, ValueError):
    """Each value is allowed, but together they cannot be had; the message says what to change."""


class NotCertifiedError(BlurfitError, ArithmeticError):
    """A number could not be shown to be right, so it is not returned."""
