"""Before a collection of shares is closed for good: do the two databases hold about the same?

People who reached one of them alone are left out of the model, and a set that leaves out too many
is refused by the database that holds them (`blurfit.store.commitment`). While both collect, whoever
is missing can send again; once one is closed, nobody can. Both counts are public.
"""

from typing import TYPE_CHECKING

from blurfit.errors import ConflictError, ServiceError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement

_PATIENCE = 3.0


def counts_at(agreement: "Agreement", patience: float = _PATIENCE) -> list[int] | None:
    """How many shares each of the two holds; None where one of them does not say."""
    from blurfit.service.remote import RemoteDatabase

    found = []
    for one in agreement.databases:
        try:
            with RemoteDatabase(one.url, patience=patience) as database:
                found.append(int(database.status(agreement)["count"]))
        except ServiceError:
            return None
    return found


def refuse_if_uneven(agreement: "Agreement", counts: list[int] | None) -> None:
    """Refuse to close where so many are at one database alone that nothing could be published."""
    from blurfit.messages.shares import PART_OF
    from blurfit.store.commitment import most_left_out

    if counts is None:
        return
    common = min(counts)  # at most: those at both
    for database, role, held in zip(agreement.databases, PART_OF, counts, strict=True):
        missing = held - common
        if missing > (most := most_left_out(agreement, role, held)):
            raise ConflictError(
                f"Expected at most {most:,} of the {held:,} shares at {database.name} to be there "
                f"alone, and {missing:,} are: nothing could be published once this is closed. Let "
                "those who are missing send again while both collect, or close with --anyway."
            )
