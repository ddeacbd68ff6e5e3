"""The database's memory: durable, and one release from each collection."""
