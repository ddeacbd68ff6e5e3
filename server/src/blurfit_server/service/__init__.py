"""The database over HTTP, and its pages."""
