r"""The one set of contributors that two databases sum over, fixed once and never changed.

Two sums over sets that differ in one person differ by that person's blurred record. So each of the
two databases commits to one set of contributors for each collection: it writes the set's digest
down, durably, before it gives away anything that depends on the set, and from then on answers for
this set alone. Written down are the digest, how many are in it, and which of the identifiers that
are here are in it or, if those are fewer, which are *not*: nobody can be added once a collection is
closed, so that says who is.

    digest = SHA-256("blurfit common set\n" ‖ fingerprint ‖ the identifiers in order, 16 bytes each)

**How many a set may leave out.** The other database says whose shares it holds, and so could leave
out honest people until a victim is alone among contributors whom it invented, whose noise it knows.
Let a database hold N shares, H of them of honest people, and let a set leave out L ≤ ϱN of them.
Then at least H − L ≥ H − ϱN honest people are in the set, whoever they are. So the quorum n of
honest people is kept, whatever the other side claims, if

    H ≥ n + ϱN,    or: it invented f = N − H ≤ ((1 − ϱ)H − n)/ϱ contributors at most.

Without such a limit (ϱ = 1) f = n − 1 would do, however many honest people there are.
The first database takes ϱ = 1/10. Contributors send the seed first, so that every honest share here
has its seed at the second, and honest losses are next to none; ϱ = 0 would let whoever sends a
single share without a seed end the collection. With H = 2n that is f ≤ 8n. The second takes
ϱ = 1/2: it also holds the seeds of people who gave up half-way, or came while the first was away.
With H = 3n that is f ≤ n. Keeping f small is what invitations are for.

Where anyone may send, f has no bound, and neither has what ϱ would give; but a stranger who sends
seeds without shares, or shares without seeds, would end a collection for good by more than ϱN of
them. So there is no such limit **where anyone may take part**: what is promised against a database
that invents contributors is nothing, with the limit or without it, and the agreement's words say
so. Nor is there one **where databases add noise of their own**: then the promise against either of
them counts on nobody else in the set (`blurfit.theory.moments`).

**With proofs** (`blurfit.agreement.proving`) a set holds only people whose proofs were found valid
here, and leaves out those whose proofs were not. A database that lies about its half of a proof can
make it fail, and nobody can tell that from garbage (`docs/verified-shares.md` says why). What has
to be kept is the quorum, and not everybody's place: of S people in a set at least S − f are honest,
however many were left out. So where people are invited, proofs may fail if

    S ≥ 4n,    and then f ≤ 3n may be invented;    or    at most a tenth of those here failed,

besides those whose shares are missing: then ϱ = 1/5 at the first, and with H = 2n that is f ≤ 3n as
well. So garbage ends a collection only if it comes from more than a tenth of those who were
invited, and there are few others. Where anyone may take part, whoever runs the other database could
invent as many as it likes anyway, and no limit would protect anybody; where databases add noise of
their own, nobody needs one: there garbage is left out however much of it there is, and never ends a
collection.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import ByteArray, WordArray
from blurfit.errors import BelowQuorumError, ConflictError, InfeasibleError, InvalidValueError
from blurfit.messages.shares import Role
from blurfit.randomness.database import words
from blurfit.store import verdicts
from blurfit.store.collections import Collection
from blurfit.store.identifier_sets import (
    WIDTH,
    among,
    as_identifiers,
    identifiers_of,
    in_order,
    minus,
)
from blurfit.store.tables import sharing

# 1/ϱ: a set may leave out at most one in so many of those whom a database holds.
LEFT_OUT_ONE_IN: dict[Role, int] = {"first": 10, "second": 2}
# And because their proofs failed, where people are invited: one in so many, or as many as there are
# if so many times the quorum remain.
FAILED_ONE_IN, ENOUGH = 10, 4
_INSIDE = b"+"  # before a list of those who are in a set


@dataclass(frozen=True, eq=False)
class Commitment:
    """A set by its digest, its size, and some of the identifiers in this database: those that are
    in it (`inside`), or those that are not, whichever are fewer.

    `noise` is what this database adds to its sum, mod 2⁶⁴: drawn when the set is fixed, in the same
    transaction, so that whoever asks again gets the same sum.
    """

    digest: bytes
    count: int
    listed: ByteArray  # in order
    noise: WordArray
    inside: bool = False

    def has(self, names: ByteArray) -> npt.NDArray[np.bool_]:
        """Which of some identifiers in this database are in the set."""
        found = among(names, self.listed)
        return found if self.inside else ~found


def recorded(connection: Connection, collection: Collection) -> Commitment | None:
    """The set that was fixed, if one was."""
    query = sa.select(sharing.c.digest, sharing.c.count, sharing.c.left_out, sharing.c.noise)
    here = sharing.c.collection == collection.key
    digest, count, left_out, noise = connection.execute(query.where(here)).one()
    if digest is None:
        return None
    drawn = np.frombuffer(noise, dtype="<u8").astype(np.uint64)
    inside = left_out[:1] == _INSIDE and len(left_out) % WIDTH == len(_INSIDE)
    listed = memoryview(left_out)[len(_INSIDE) :] if inside else left_out
    return Commitment(bytes(digest), count, as_identifiers(listed), drawn, inside)


def record(
    connection: Connection,
    collection: Collection,
    left_out: ByteArray,
    here: ByteArray | None = None,
) -> Commitment:
    """Fix the set of all who are here but these; below the quorum nothing is fixed.

    The caller holds the collection's row, and has closed it, and may have read since then who is
    `here`. A set that was fixed before stays: if it is another one, this is a conflict, for ever.
    """
    here = identifiers_of(connection, collection) if here is None else here
    common = minus(here, left_out)
    if len(common) + len(left_out) != len(here):
        raise InvalidValueError(
            f"Expected the {len(left_out)} identifiers left out to be among the {len(here)} "
            "here, each once: a set must be of contributors whose shares both databases have."
        )
    if len(common) < collection.agreement.quorum:
        raise BelowQuorumError(
            f"Expected at least the quorum {collection.agreement.quorum} of contributors whose "
            f"shares both databases have, and there are {len(common)}. With fewer the noise is too "
            "small to protect anyone."
        )
    most = most_left_out(collection.agreement, collection.role, len(here))
    missing = len(left_out)
    if collection.agreement.proofs:
        missing -= _without_proof(connection, collection, common, left_out, len(here))
    if missing > most:
        raise InfeasibleError(
            f"Expected a set of almost all whose shares are here, and this one leaves out "
            f"{missing} of the {len(here)}, where at most {most} may be missing: the other "
            "database has lost shares, or names only some, so that those who are left could be "
            "alone among made-up contributors. Find out which; if it is honest, let those who are "
            "missing send again, or collect again."
        )
    digest, noise = digest_of(collection, common), words(collection.agreement)
    inside = len(common) < len(left_out)
    listed = common if inside else in_order(left_out)
    chosen = Commitment(digest, len(common), listed, noise, inside)
    before = recorded(connection, collection)
    if before is not None:
        if before.digest != chosen.digest:
            raise ConflictError(
                f"Expected the set {chosen.digest.hex()} to be {before.digest.hex()}, which was "
                "fixed before: two sums over different sets would give away whoever is in one of "
                "them alone. There will never be another."
            )
        return before
    connection.execute(
        sa.update(sharing)
        .where((sharing.c.collection == collection.key) & sharing.c.digest.is_(None))
        .values(
            digest=chosen.digest,
            count=chosen.count,
            left_out=(_INSIDE if inside else b"") + chosen.listed.tobytes(),
            noise=noise.astype("<u8").tobytes(),
        )
    )
    return chosen


def _without_proof(
    connection: Connection,
    collection: Collection,
    common: ByteArray,
    left_out: ByteArray,
    held: int,
) -> int:
    """How many are left out because their proofs failed; too many, or one too few, is refused."""
    good, bad = (verdicts.found(connection, collection, valid=one) for one in (True, False))
    if len(minus(common, good)):
        raise InvalidValueError(
            f"Expected a set of people who have proved here what they sent, and "
            f"{len(minus(common, good))} of {len(common)} have not: verify their proofs first."
        )
    failed = len(left_out) - len(minus(left_out, bad))
    agreement, most = collection.agreement, held // FAILED_ONE_IN
    limited = agreement.admission == "invited" and not agreement.database_noise
    if limited and failed > most and len(common) < ENOUGH * agreement.quorum:
        raise InfeasibleError(
            f"Expected at most {most} of the {held} contributors here to fail to prove that what "
            f"they sent is short, or {ENOUGH * agreement.quorum} who did not fail, and {failed} "
            f"failed and {len(common)} did not: those who were invited send garbage, or the other "
            "database lies about its half of the proofs, so that those who are left could be alone "
            "among made-up contributors. Find out which, and collect again from more people."
        )
    return failed


def most_left_out(agreement: Agreement, role: Role, held: int) -> int:
    """How many of those whom a database holds a set may leave out."""
    if agreement.database_noise or agreement.admission == "anyone":
        return held
    return held // LEFT_OUT_ONE_IN[role]


def digest_of(collection: Collection, common: ByteArray) -> bytes:
    """What stands for a set of identifiers, which are in order."""
    whole = hashlib.sha256(b"blurfit common set\n")
    whole.update(bytes.fromhex(collection.agreement.fingerprint))
    whole.update(common.tobytes())
    return whole.digest()
