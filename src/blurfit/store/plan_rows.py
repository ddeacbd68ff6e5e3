"""A plan's rows: what is written down of it, and held by whoever takes it a step further.

Each step (`blurfit.store.advance`, `blurfit.store.joint_plans`) holds the plan's row first and the
wave's second, so that no two of them can wait for each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.errors import ClosedError, ConflictError, UnknownCollectionError
from blurfit.messages.shares import Role
from blurfit.model.model import PublishedModel
from blurfit.store import collections, roles, tables

State = Literal["collecting", "held", "ended"]

_plans, _c = tables.plans.c, tables.collections.c
_ROW = sa.select(tables.plans).where(_plans.fingerprint == sa.bindparam("fingerprint"))
_HELD_ROW = _ROW.with_for_update()
_AGREEMENTS = tables.of_waves(sa.bindparam("plan"), _c.agreement)


@dataclass(frozen=True)
class Held:
    """A plan whose row nobody else changes until the transaction ends."""

    plan: Plan
    state: State
    reason: str | None
    learned: bool

    def refuse_if_ended(self) -> None:
        """Refuse what changes a plan that has come to its end."""
        if self.state == "ended":
            raise ClosedError(self.reason or "The plan has come to its end here.")


def hold_row(connection: Connection, fingerprint: str, *, update: bool = True) -> Held:
    """The plan, whose row is held until the transaction ends; or only looked at."""
    row = row_of(connection, fingerprint, update=update)
    return Held(plan_in(row.document), row.state, row.reason, bool(row.learned))


def agreements(connection: Connection, fingerprint: str) -> list[Agreement]:
    """Those of the waves that were opened, in their order."""
    found = connection.scalars(_AGREEMENTS, {"plan": fingerprint})
    return [_agreement_in(text) for text in found]


@lru_cache(maxsize=64)
def plan_in(text: str) -> Plan:
    """What never changes is read once, although everybody asks for it."""
    return Plan.from_json(text)


@lru_cache(maxsize=64)
def _agreement_in(text: str) -> Agreement:
    """Likewise."""
    return Agreement.from_json(text)


def open_wave(
    connection: Connection, agreement: Agreement, role: Role, closes: int | None = None
) -> None:
    """Collect under the agreement of a plan's next wave, until the plan's date if it has one."""
    agreement.verify()
    wave = agreement.wave
    assert wave is not None
    key, is_new = collections.begin(connection, agreement, closes)
    if not is_new:  # it may have been published or exported: a second release, of another set
        raise ConflictError(
            f"Expected wave {wave.number} to be opened by its plan, and {agreement.fingerprint} is "
            "collected here by itself. Begin the plan in a store of its own, or propose another."
        )
    if role != "whole":
        roles.take_role(connection, key, role)
    row = {"plan": wave.plan, "number": wave.number, "collection": key}
    connection.execute(sa.insert(tables.waves).values(row))


def end(connection: Connection, fingerprint: str, reason: str | None) -> None:
    """Write down that a plan has ended, and why, if that was not after its last wave."""
    _update(connection, fingerprint, state="ended", reason=reason)


def unfinished(connection: Connection) -> Sequence[tuple[str, State]]:
    """Fingerprint and state of every plan whose model is still to come."""
    query = sa.select(_plans.fingerprint, _plans.state).where(sa.not_(_plans.learned))
    return [(row.fingerprint, row.state) for row in connection.execute(query)]


def learned(
    connection: Connection, fingerprint: str, model: PublishedModel | None, text: str | None = None
) -> None:
    """Write down the model of a plan, with the last wave that it is from; or that it has none.

    `text` is the model's own, where it came from elsewhere: written anew, last digits may differ.
    """
    if model is not None:
        values = {"model": text or model.to_json(), "state": "published", "refusal": None}
        here = _c.fingerprint == model.fingerprint
        connection.execute(sa.update(tables.collections).where(here).values(values))
    _update(connection, fingerprint, learned=True)


def change_state(connection: Connection, fingerprint: str, state: State) -> None:
    """Hold a plan, or let it go on, unless it has ended."""
    if hold_row(connection, fingerprint).state == "ended":
        raise ClosedError("The plan has come to its end: there is nothing to hold or to resume.")
    _update(connection, fingerprint, state=state)


def _update(connection: Connection, fingerprint: str, **values: str | bool | None) -> None:
    here = _plans.fingerprint == fingerprint
    connection.execute(sa.update(tables.plans).where(here).values(**values))


def row_of(connection: Connection, fingerprint: str, *, update: bool = False) -> Any:
    """The plan as it is written down; an error if there is none."""
    row = None
    if collections.is_fingerprint(fingerprint):  # others are no text that every database takes
        query = _HELD_ROW if update else _ROW
        row = connection.execute(query, {"fingerprint": fingerprint}).first()
    if row is None:
        raise UnknownCollectionError(
            f"No plan with fingerprint={fingerprint!r} was begun here. Is this the service that "
            "you were invited to, and has the plan been opened?"
        )
    return row
