"""The database's memory: durable, and one release from each collection."""

from blurfit.optional import optional

optional("sqlalchemy")  # or an error that names the extra, at the door rather than in a room
