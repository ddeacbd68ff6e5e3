"""What the tests of the library share."""

from support.proposals import agreement

__all__ = ["agreement"]
