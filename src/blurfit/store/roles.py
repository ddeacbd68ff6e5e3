"""Which of an agreement's two databases a store is: written down when a collection is opened, and
never changed.

A store that collects whole submissions has the role "whole". Where trust is shared, the first gets
the masked numbers and the second the seeds of the masks (`blurfit.messages.shares`), and each step
of `blurfit.store.joint_publication` is for one of them alone.
"""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.errors import ConflictError, InfeasibleError, InvalidValueError
from blurfit.messages.shares import ROLES, Role
from blurfit.store.collections import Collection
from blurfit.store.tables import insert_if_absent, sharing
from blurfit.validate import one_of


def refuse_unless_fitting(agreement: Agreement, role: Role) -> None:
    """Refuse whole submissions where there are two databases, and shares where there is one."""
    one_of(ROLES, role=role)
    if not agreement.databases and role != "whole":
        raise InvalidValueError(
            f"Expected role={role!r} to be 'whole': the agreement names no second database."
        )
    if agreement.databases and role == "whole":
        raise InvalidValueError(
            f"Expected role={role!r} to be first or second, because the agreement is between two "
            "databases: say which of them this is, like `--as first`."
        )


def take_role(connection: Connection, key: int, role: Role) -> None:
    """Write down which of the two databases this is; another role than before is a conflict."""
    values = {"collection": key, "role": role, "delivered": False}
    connection.execute(insert_if_absent(connection, sharing).values(values))
    before = connection.scalar(sa.select(sharing.c.role).where(sharing.c.collection == key))
    if before != role:
        raise ConflictError(
            f"Expected role={role!r} to be {before!r}, as when the collection was opened: that "
            "cannot be changed afterwards."
        )


def require_role(collection: Collection, role: Role) -> None:
    """Refuse what is for the other database."""
    if collection.role != role:
        raise InfeasibleError(
            f"Expected the {role} of an agreement's two databases, and this one was opened as "
            f"{collection.role!r}. Is the address right?"
        )
