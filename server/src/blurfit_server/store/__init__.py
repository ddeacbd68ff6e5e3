"""The database's memory: durable, and one release of each wave."""

from blurfit.errors import optional

optional("sqlalchemy")  # or an error that names the extra, at the door rather than in a room
