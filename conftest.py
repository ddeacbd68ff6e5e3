"""For tests and for the examples of the documentation: noise is replayed, so none fails by luck."""

from support.replay import replayed

__all__ = ["replayed"]
