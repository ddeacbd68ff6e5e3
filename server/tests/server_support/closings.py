"""Let a course's date come without waiting for it."""

import sqlalchemy as sa

from blurfit_server.store.database import courses, outbox
from blurfit_server.store.store import Store


def let_pass(store: Store, fingerprint: str) -> None:
    """Write a date into the row of a course that is past."""
    with store._writing() as connection:
        here = courses.c.fingerprint == fingerprint
        (key,) = connection.scalars(sa.select(courses.c.key).where(here)).all()
        connection.execute(sa.update(courses).where(here).values(closes=1_000_000_000))
        waits = (outbox.c.course == key) & (outbox.c.next > 0)
        connection.execute(sa.update(outbox).where(waits).values(next=1_000_000_000))


def let_pauses_pass(store: Store) -> None:
    """Let everything that was put off be due again."""
    with store._writing() as connection:
        connection.execute(sa.update(outbox).values(next=0))
