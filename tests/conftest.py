"""What the tests of the library share."""

from server_support.stores import in_memory, place, places, postgresql
from support.proposals import agreement

__all__ = ["agreement", "in_memory", "place", "places", "postgresql"]
