r"""Fix one contributor set with the other database, and sum over it.

For each wave: the first asks the second whose shares it holds, then asks it to close the wave; each
stores the digest of C, the contributors whom both hold; the first computes

    Σ shares over C − Σ masks over C = Σ v      (words mod 2⁶⁴; with proofs, elements of a field)

and reports it with what follows, which the second checks and publishes to the same bytes. Every
request may be repeated, and is answered the same.

**Guarantee.** A database answers for one set per wave, permanently: it stores
SHA-256("blurfit common set\n" ‖ fingerprint ‖ identifiers in order, 16 bytes each) before it
reveals anything that depends on the set. So each wave has one release, which is (ε, δ)-private for
a contributor of one wave against readers and, as far as the masks hide, against either database, if
the databases do not combine their shares, follow the protocol, and the set holds n honest
contributors; with `database_noise`, if the other database is honest. Against a database that
invents contributors (without `database_noise`) the guarantee holds only as far as the other side's
invitations keep them out: a set leaves out at most a tenth of the first's shares and half of the
second's, so n honest contributors stay if H ≥ n + ϱN of the N shares there are honest, ϱ being that
fraction (with proofs, further terms). Where anyone may take part, nothing is guaranteed against
such a database.

Protocol, conditions, proofs and the limits with validity proofs: `docs/theory/two-databases.md`.
Tests: `server/tests/store/test_joint.py`, `test_joint_walks.py`.
"""

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import largest_scale
from blurfit.agreement.terms import DEVIATIONS, largest_steps, most_left_out
from blurfit.data import BoolArray, ByteArray, WordArray
from blurfit.errors import (
    BelowQuorumError,
    ClosedError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
)
from blurfit.learning.sums import Totals
from blurfit.messages.submissions import Role
from blurfit.model.release import Release
from blurfit.proofs import field
from blurfit.randomness import database_words
from blurfit.release_record import ReleaseRecord
from blurfit.theory.moments import MomentCalibration
from blurfit_server.store import blocks
from blurfit_server.store.arrivals import Intake
from blurfit_server.store.blocks import WIDTH, among, in_order, minus
from blurfit_server.store.collections import (
    Collection,
    Course,
    CourseState,
    Standing,
    come,
    shut,
    standing,
    update_wave,
)
from blurfit_server.store.database import IDENTITY, insert_if_absent, settings, verdicts, waves

# And because their proofs failed, where people are invited: one in so many, or as many as there are
# if so many times the quorum remain.
FAILED_ONE_IN, ENOUGH = 10, 4
_INSIDE = b"+"  # before a list of those who are in a set
_AT_ONCE = 256  # rows whose digits are added together: some megabytes


@dataclass(frozen=True)
class News:
    """What the first database tells the second: how its course stands, a wave's sums, and the
    agreement that follows them; when the course has ended, why, and with which model.
    """

    state: CourseState
    reason: str | None = None
    model: str | None = None
    wave: str | None = None  # its fingerprint
    moments: str | None = None
    following: str | None = None


class Peer(Protocol):
    """The second database, as the first sees it; `ServiceError` if it cannot be reached."""

    def identifiers(self, wave: Collection) -> ByteArray:
        """Return everyone whose share it has, in order."""

    def close(self, wave: Collection) -> None:
        """Let it close the wave."""

    def verify(self, wave: Collection, theirs: ByteArray) -> None:
        """Find a verdict, here and there, on everyone whose shares both have."""

    def masks(self, wave: Collection, digest: bytes, count: int, left_out: ByteArray) -> WordArray:
        """Return Σ mask over the set that is left without these, which it commits to."""

    def tell(self, course: Course, news: News) -> None:
        """Let it know."""

    def sign(self, wave: Collection) -> None:
        """Exchange the signatures of what was published; raise if one is still missing."""


class TooFewError(BelowQuorumError):
    """Fewer are at both databases than a wave waits for; `missing` more are needed."""

    def __init__(self, quorum: int, common: int) -> None:
        super().__init__(
            "Expected at least the quorum {quorum} of contributors whose shares both databases "
            "have, and there are {common}. With fewer the noise is too small to protect anyone.",
            quorum=quorum,
            common=common,
        )
        self.missing = quorum - common


# ---- the common set


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

    def has(self, names: ByteArray) -> BoolArray:
        """Tell which of some identifiers in this database are in the set."""
        found = among(names, self.listed)
        return found if self.inside else ~found


def recorded(connection: Connection, wave: Collection) -> Commitment | None:
    """Return the set that was fixed, if one was."""
    w = waves.c
    query = sa.select(w.digest, w.count, w.left_out, w.noise).where(w.key == wave.key)
    digest, count, left_out, noise = connection.execute(query).one()
    if digest is None:
        return None
    drawn = np.frombuffer(noise, dtype="<u8").astype(np.uint64)
    inside = left_out[:1] == _INSIDE and len(left_out) % WIDTH == len(_INSIDE)
    listed = memoryview(left_out)[len(_INSIDE) :] if inside else left_out
    return Commitment(bytes(digest), count, blocks.as_identifiers(listed), drawn, inside)


def record(
    connection: Connection, wave: Collection, left_out: ByteArray, here: ByteArray
) -> Commitment:
    """Fix the set of all who are here but these; below the quorum nothing is fixed.

    The caller holds the course's row, and the wave is fixed; who is `here` may have been read since
    then. A set that was fixed before stays: if it is another one, this is a conflict, for ever.
    """
    common, agreement = minus(here, left_out), wave.agreement
    if len(common) + len(left_out) != len(here):
        raise InvalidValueError(
            "Expected the {left_out_count} identifiers left out to be among the {here_count} "
            "here, each once: a set must be of contributors whose shares both databases have.",
            left_out_count=len(left_out),
            here_count=len(here),
        )
    if len(common) < agreement.quorum:
        raise TooFewError(agreement.quorum, len(common))
    missing, most = len(left_out), most_left_out(agreement, wave.role, len(here))
    if agreement.proofs:
        missing -= _without_proof(connection, wave, common, left_out, len(here))
    if missing > most:
        raise InfeasibleError(
            "Expected a set of almost all whose shares are here, and this one leaves out "
            "{missing} of the {here_count}, where at most {most} may be missing: the other "
            "database has lost shares, or names only some, so that those who are left could be "
            "alone among made-up contributors. Find out which; if it is honest, let those who are "
            "missing send again, or collect again.",
            missing=missing,
            here_count=len(here),
            most=most,
        )
    digest, noise = digest_of(wave, common), database_words(agreement)
    inside = len(common) < len(left_out)
    listed = common if inside else in_order(left_out)
    if (before := recorded(connection, wave)) is not None:
        if before.digest != digest:
            raise ConflictError(
                "Expected the set {digest} to be {digest_2}, which was fixed "
                "before: two sums over different sets would give away whoever is in one of them "
                "alone. There will never be another.",
                digest=digest.hex(),
                digest_2=before.digest.hex(),
            )
        return before
    update_wave(
        connection,
        wave.key,
        digest=digest,
        count=len(common),
        left_out=(_INSIDE if inside else b"") + listed.tobytes(),
        noise=noise.astype("<u8").tobytes(),
    )
    return Commitment(digest, len(common), listed, noise, inside)


def _without_proof(
    connection: Connection, wave: Collection, common: ByteArray, left_out: ByteArray, held: int
) -> int:
    """Count those left out because their proofs failed; refuse too many, or one too few."""
    good, bad = (judged(connection, wave, valid=one) for one in (True, False))
    if len(minus(common, good)):
        raise InvalidValueError(
            "Expected a set of people who have proved here what they sent, and "
            "{minus_count} of {common_count} have not: verify their proofs first.",
            minus_count=len(minus(common, good)),
            common_count=len(common),
        )
    failed = len(left_out) - len(minus(left_out, bad))
    agreement, most = wave.agreement, held // FAILED_ONE_IN
    limited = agreement.admission == "invited" and not agreement.database_noise
    if limited and failed > most and len(common) < ENOUGH * agreement.quorum:
        raise InfeasibleError(
            "Expected at most {most} of the {held} contributors here to fail to prove that what "
            "they sent is short, or {enough} who did not fail, and {failed} "
            "failed and {common_count} did not: those who were invited send garbage, or the other "
            "database lies about its half of the proofs, so that those who are left could be alone "
            "among made-up contributors. Find out which, and collect again from more people.",
            most=most,
            held=held,
            enough=ENOUGH * agreement.quorum,
            failed=failed,
            common_count=len(common),
        )
    return failed


def digest_of(wave: Collection, common: ByteArray) -> bytes:
    """Return what stands for a set of identifiers, which are in order."""
    whole = hashlib.sha256(b"blurfit common set\n")
    whole.update(bytes.fromhex(wave.fingerprint))
    whole.update(common.tobytes())
    return whole.digest()


# ---- the first database


def refuse_if_too_few(connection: Connection, wave: Collection, theirs: ByteArray) -> None:
    """Refuse to close a wave unless enough are at both, so that nobody who sends one share alone
    can end a course; nor one of which the set would be refused.
    """
    here, agreement = blocks.held_identifiers(connection, wave.key), wave.agreement
    common = int(among(here, in_order(theirs)).sum())
    if common < agreement.quorum:
        raise TooFewError(agreement.quorum, common)
    roles: tuple[tuple[Role, int], ...] = (("first", len(here)), ("second", len(theirs)))
    for role, held in roles:
        if held - common > (most := most_left_out(agreement, role, held)):
            raise InfeasibleError(
                "Expected almost all shares to be at both databases, and of {held} at one of them "
                "{held_2} are not at the other, where at most {most} may be: the wave goes "
                "on collecting. Find out who sends one share alone.",
                held=held,
                held_2=held - common,
                most=most,
            )


def fix(
    connection: Connection, now: Standing, wave: Collection, theirs: ByteArray
) -> tuple[Commitment, ByteArray]:
    """Close the wave and fix the common set; return it, and whom the second must leave out.

    The caller holds the course's row. Below the quorum nothing is fixed, and the wave goes on.
    """
    theirs, here = in_order(theirs), blocks.held_identifiers(connection, wave.key)
    chosen = recorded(connection, wave)
    if chosen is None:
        if now.newest.state == "collecting":
            shut(connection, now)
        both = here[among(here, theirs)]
        if wave.agreement.proofs:
            both = both[among(both, in_order(judged(connection, wave, valid=True)))]
        chosen = record(connection, wave, minus(here, both), here)
    common = here[chosen.has(here)]
    if not among(common, theirs).all():
        raise ConflictError(
            "Expected the other database to hold all of the {chosen_count} contributors that were "
            "fixed, and it has fewer now: it lost some, or it is another one. Restore it.",
            chosen_count=chosen.count,
        )
    return chosen, minus(theirs, common)


# ---- the second database


def consenting(connection: Connection, wave: Collection, *, alone: bool = False) -> Standing:
    """Refuse what a second database does only if its administrator lets it.

    Not if the course has ended here, as in a restored store: the original may have answered for a
    set since, and a second one would give away whom they differ in.
    """
    wave.require_role("second")
    now = standing(connection, wave.course, alone=alone)
    name = wave.course.document.databases[1].name
    if now.state == "ended":
        raise ClosedError(now.reason or "The collection has come to its end here.")
    if wave.course.by_hand and not now.is_fixed:
        raise InfeasibleError(
            "Expected {name} to have closed the collection too: the administrators of both "
            "databases must agree. Ask the one there to run `blurfit close`.",
            name=name,
        )
    if not wave.course.by_hand and now.state != "collecting":
        raise InfeasibleError(
            "{name} holds the plan: no wave is released until it is resumed.", name=name
        )
    return now


# ---- sums


def sums_over(connection: Connection, wave: Collection) -> tuple[Commitment, WordArray]:
    """Return the set that was fixed, and Σ over exactly this set, of shares or of masks; with the
    noise of this database where that was agreed.

    The sums of the blocks, minus those of the rows that are left out: where nobody is left out, no
    row is read.
    """
    chosen, proofs = recorded(connection, wave), wave.agreement.proofs
    if chosen is None:
        raise InfeasibleError("Expected a set to be fixed before anything is summed over it.")
    sum_of = _sums_in_the_field if proofs else _sums_of_blocks
    count, total = sum_of(connection, wave, chosen)
    if count != chosen.count:
        raise NotCertifiedError(
            "Expected {chosen_count} shares in the set that was fixed, and found {count}: the "
            "storage is damaged. Restore it from a backup.",
            chosen_count=chosen.count,
            count=count,
        )
    return chosen, _plus(total, chosen.noise) if proofs else total + chosen.noise


def together(connection: Connection, wave: Collection, masks: WordArray) -> tuple[int, WordArray]:
    """Return how many are in the set that was fixed, and Σv mod 2⁶⁴ over it from both sums."""
    chosen, shares = sums_over(connection, wave)
    if masks.shape != shares.shape:
        raise NotCertifiedError(
            "Expected {size} sums from the other database, and got {size_2}.",
            size=shares.size,
            size_2=masks.size,
        )
    if not wave.agreement.proofs:
        return chosen.count, shares - masks
    if not (field.is_canonical(shares) and field.is_canonical(masks)):
        raise NotCertifiedError(
            "Expected sums below {modulus} from the other database: it does not add in the "
            "field that the proofs are about. Let both use the same release of blurfit.",
            modulus=field.MODULUS,
        )
    circuit = wave.agreement.proving.circuit
    return chosen.count, circuit.decode(field.add(shares, masks), chosen.count).view(np.uint64)


def totals_of(agreement: Agreement, count: int, words: WordArray) -> Totals:
    """Return the totals from Σv mod 2⁶⁴, exactly: the sums that one database would have found.

    Signed, since |Σv| < 2⁶³. An honest sum is at most N·B steps (`blurfit.agreement.terms`),
    so a larger one is refused: then somebody has sent what is no share of a blurred record.
    """
    assert isinstance(agreement.calibration, MomentCalibration)
    # One rounding each, as in `blurfit.learning.sums`; to multiply by a power of two is exact.
    steps = words.view(np.int64).astype(np.float64)
    scale = largest_scale(agreement.form)
    largest = count * largest_steps(agreement.calibration, agreement.step, scale)
    if agreement.database_noise:
        most = DEVIATIONS * float(agreement.database_ratios.max())
        largest += agreement.database_draws * most
    if (np.abs(steps) > largest).any():
        raise InfeasibleError(
            "The sums are larger than {count:,} blurred records can add up to: somebody sent "
            "shares that are no shares of a blurred record. Shares cannot be screened; collect "
            "again, by invitation.",
            count=count,
        )
    sums, draws = steps * agreement.step, agreement.database_draws
    return Totals(count, sums, agreement.fingerprint, draws)


def _sums_of_blocks(
    connection: Connection, wave: Collection, chosen: Commitment
) -> tuple[int, WordArray]:
    if chosen.inside:  # a mask costs more than a look at its name
        return _sums_of_rows(connection, wave, chosen, inside=True)
    count, total = 0, np.zeros(1, dtype=np.uint64)
    for rows, sums in blocks.parts(connection, wave):
        count += rows
        total = total + np.frombuffer(sums, dtype="<u8")
    if len(chosen.listed):
        fewer, excluded = _sums_of_rows(connection, wave, chosen, inside=False)
        return count - fewer, total - excluded
    return count, total


def _sums_of_rows(
    connection: Connection, wave: Collection, chosen: Commitment, *, inside: bool
) -> tuple[int, WordArray]:
    """Count the rows that are in the set, or left out of it, and add them up."""
    count, total = 0, np.zeros(1, dtype=np.uint64)
    for names, numbers in blocks.rows(connection, wave):
        wanted = chosen.has(names) == inside
        if wanted.any():
            count += int(wanted.sum())
            total = total + wave.sums(numbers[wanted])
    return count, total


def _sums_in_the_field(
    connection: Connection, wave: Collection, chosen: Commitment
) -> tuple[int, WordArray]:
    """Count those of the set who are here, and add up their shares of numbers."""
    circuit, prio3 = wave.agreement.proving.circuit, wave.agreement.proving.prio3
    count, digits = 0, np.zeros(circuit.inputs, dtype=np.uint64)
    for names, numbers in blocks.rows(connection, wave):
        counted = numbers[chosen.has(names)]
        count += len(counted)
        for start in range(0, len(counted), _AT_ONCE):
            some = counted[start : start + _AT_ONCE].astype(np.uint64, copy=False)
            first = wave.role == "first"
            inputs = some[:, : circuit.inputs] if first else prio3.helper_inputs(some)
            digits = field.add(digits, field.total(inputs, axis=0))
    return count, circuit.truncate(digits[None])[0]


def _plus(total: WordArray, noise: WordArray) -> WordArray:
    """Add noise, which is in words mod 2⁶⁴, of whole numbers with a sign, to a sum in the field."""
    signed = noise.view(np.int64)
    below = np.uint64(field.MODULUS) - np.abs(signed).astype(np.uint64)
    return field.add(total, np.where(signed < 0, below, noise))


# ---- verdicts on proofs


def judged(connection: Connection, wave: Collection, *, valid: bool | None = None) -> ByteArray:
    """Return whose proofs were found valid, or not; by default all that have a verdict."""
    query = sa.select(verdicts.c.identifier).where(verdicts.c.wave == wave.key)
    if valid is not None:
        query = query.where(verdicts.c.valid if valid else ~verdicts.c.valid)
    return blocks.as_identifiers(b"".join(connection.scalars(query)))


def _identity(connection: Connection) -> bytes:
    """Return a store's identity, which copies and backups of it have, too."""
    query = sa.select(settings.c.value).where(settings.c.name == IDENTITY)
    return bytes(connection.scalars(query).one())


class Sharing(Intake):
    """What a store does as one of two databases: the answers of a second, and verdicts of both."""

    def record_of(self, wave: Collection) -> ReleaseRecord:
        """Return the record of what a wave releases, under what the store is now: another process
        may have marked it as restored while it was open here.
        """
        return ReleaseRecord.of_store(wave.fingerprint, self.read(_identity))

    def require_consent(self, wave: Collection) -> None:
        """Refuse what a second database does only if its administrator lets it."""
        self.read(consenting, wave)

    def show_identifiers(self, wave: Collection, after: bytes, most: int) -> bytes:
        """Return the identifiers here, a part at a time."""
        self.require_consent(wave)
        return self.read(blocks.page_of_identifiers, wave.key, after, most)

    def close_for_first(self, wave: Collection) -> None:
        """Close a wave that has its quorum here, for the first, which has found it at both."""
        quorum = wave.agreement.quorum
        with self._writing() as connection:
            now = consenting(connection, wave, alone=True)
            if wave.course.by_hand or now.newest.key != wave.key or now.is_fixed:
                return
            if (count := come(connection, wave.key)) < quorum:
                raise BelowQuorumError(
                    "Expected at least the quorum {quorum} of shares here before the wave is "
                    "closed, and there are {count}.",
                    quorum=quorum,
                    count=count,
                )
            shut(connection, now)

    def sum_of_masks(
        self, wave: Collection, digest: bytes, count: int, bits: bytes
    ) -> tuple[bytes, int, WordArray]:
        """Commit to the set that the first has fixed, if it is one that may be summed over, for
        ever; and return the sum of its masks.

        `bits` has one for each of those who are here, in order: whether it is in the set.
        """
        self._commit(wave, digest, count, bits)  # what it takes of memory is given back
        chosen = Release(refusal=f"Masks were summed over the set {digest.hex()}.")
        if self.record_of(wave).record(chosen) != chosen:
            raise ConflictError(
                "A sum over another set was given away by this store, or a copy of it: a second "
                "one would give away whom the two differ in."
            )
        fixed, found = self.read(sums_over, wave)
        return fixed.digest, fixed.count, found

    def _commit(self, wave: Collection, digest: bytes, count: int, bits: bytes) -> None:
        now = self.read(consenting, wave)
        if not now.is_fixed and now.newest.key == wave.key:
            raise InfeasibleError("Expected the wave to be closed before it is summed.")
        here = self.read(blocks.held_identifiers, wave.key)  # which never changes from then on
        left_out = blocks.left_out_by(here, bits)
        with self._writing() as connection:
            now = consenting(connection, wave, alone=True)
            if now.newest.key == wave.key and now.newest.state == "collecting":
                shut(connection, now)  # at its date: no clock that is set back opens it
            before = recorded(connection, wave)
            if before is not None and before.digest == digest:
                return
            chosen = record(connection, wave, left_out, here)
            if (chosen.digest, chosen.count) != (digest, count):
                raise InvalidValueError(
                    "Expected the set {digest} of {count} to be {digest_2} of "
                    "{chosen_count}, which is what is left here: it names somebody whose share is "
                    "not here, or was damaged on its way.",
                    digest=digest.hex(),
                    count=count,
                    digest_2=chosen.digest.hex(),
                    chosen_count=chosen.count,
                )

    def fix_verification_key(self, wave: Collection, key: bytes) -> None:
        """Write the verification key down, if there is none yet; another one is a conflict."""
        here, written = waves.c.key == wave.key, waves.c.verification
        fresh = sa.update(waves).where(here & written.is_(None)).values(verification=key)
        with self._writing() as connection:
            connection.execute(fresh)
            before = connection.scalars(sa.select(written).where(here)).one()
        if bytes(before) != key:
            raise ConflictError(
                "Expected the secret that proofs were verified with before: with another one they "
                "could betray what they are about. Start the service with the --peer-token-file "
                "that it had."
            )

    def record_verdicts(self, wave: Collection, names: ByteArray, good: BoolArray) -> BoolArray:
        """Write some verdicts down, and tell those that stand: what was there before stays."""
        keys = [name.tobytes() for name in names]
        rows = [
            {"wave": wave.key, "identifier": key, "valid": bool(one)}
            for key, one in zip(keys, good, strict=True)
        ]
        v = verdicts.c
        query = sa.select(v.identifier).where(
            (v.wave == wave.key) & v.identifier.in_(keys) & v.valid
        )
        with self._writing() as connection:
            if rows:
                connection.execute(insert_if_absent(connection, verdicts), rows)
            stands = {bytes(one) for one in connection.scalars(query)}
        return np.array([key in stands for key in keys], dtype=np.bool_)
