"""What the tests of the server share: stores of both kinds."""

from blurfit_server.store import database
from server_support.stores import in_memory, place, places, postgresql
from support.proposals import agreement

__all__ = ["agreement", "in_memory", "place", "places", "postgresql"]

database._SECONDS_FOR_A_LOCK = 60  # a busy machine may take longer than a service should wait
