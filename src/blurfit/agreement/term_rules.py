"""What some terms need: checked when they are chosen, and when an agreement is verified."""

import re
from typing import Any

from blurfit.agreement.databases import Database
from blurfit.errors import InvalidValueError
from blurfit.validate import one_of

LEAST_DELTA = 1e-30
MOST_EPSILON_BEHIND_NOISE = 500.0


def require_rules(agreed: Any) -> None:
    """All rules below, for terms or an agreement; but terms may leave open whether to prove."""
    require_delta(agreed.delta)
    require_digest(agreed.public_rows)
    require_database_noise(agreed.database_noise, agreed.epsilon)
    require_sends(agreed.sends, agreed.public_rows)
    require_signing_keys(agreed.signing_keys, databases=agreed.databases)


def require_delta(delta: float) -> None:
    """Refuse a δ below what the random bits themselves are worth.

    Noise comes of a block cipher in counter mode, whose blocks differ from chance by up to 10⁻³⁷ in
    one submission (`blurfit.randomness.bits`): a smaller δ would be a promise about the cipher.
    """
    if delta < LEAST_DELTA:
        raise InvalidValueError(
            f"Expected delta={delta!r} to be at least {LEAST_DELTA:g}: noise from a cipher's bits "
            "cannot promise less."
        )


def require_database_noise(database_noise: Any, epsilon: float) -> None:
    """Refuse what is neither true nor false, and such noise where submissions cannot be screened.

    Sums must be exact before noise is added to them, so each submission must be bounded; for an ε
    beyond some hundreds nothing is refused by its size (`blurfit.learning.sums`).
    """
    if type(database_noise) is not bool:
        raise InvalidValueError(f"Expected database_noise={database_noise!r} to be true or false.")
    if database_noise and epsilon > MOST_EPSILON_BEHIND_NOISE:
        raise InvalidValueError(
            f"Expected epsilon={epsilon!r} to be at most {MOST_EPSILON_BEHIND_NOISE:g} with "
            "database_noise: a larger one promises nothing that noise could keep."
        )


def require_digest(public_rows: Any) -> None:
    """Refuse what is neither nothing nor the SHA-256 of a file."""
    if public_rows is not None and not (
        isinstance(public_rows, str) and re.fullmatch("[0-9a-f]{64}", public_rows)
    ):
        raise InvalidValueError(
            f"Expected public_rows={public_rows!r} to be the SHA-256 of a file, 64 hexadecimal "
            "digits in lower case."
        )


def require_sends(sends: Any, public_rows: str | None) -> None:
    """Refuse to leave the features' own products out where no public rows stand for them."""
    one_of(("everything", "targets"), sends=sends)
    if sends == "targets" and public_rows is None:
        raise InvalidValueError(
            "Expected public_rows with sends='targets': without rows of the features nothing can "
            "be learned from products with the target alone. Name a public file, or send "
            "everything."
        )


def require_proofs(proofs: Any, *, databases: tuple[Database, ...]) -> bool:
    """Refuse proofs where one database sees whole submissions, and can measure them itself."""
    if not isinstance(proofs, bool):
        raise InvalidValueError(f"Expected proofs={proofs!r} to be true or false.")
    if proofs and not databases:
        raise InvalidValueError(
            "Expected two databases with proofs=True: one database sees how long a submission is."
        )
    return proofs


def require_signing_keys(keys: Any, *, databases: tuple[Database, ...]) -> None:
    """Refuse what are no public keys, and more or fewer of them than databases that sign."""
    if not isinstance(keys, tuple | list):  # null would be a second text for none
        raise InvalidValueError(f"Expected signing_keys={keys!r} to be a list of public keys.")
    if not keys:
        return
    from blurfit.messages.signing import require_public_key  # `--help` needs no cryptography

    for key in keys:
        require_public_key(key)
    wanted = max(1, len(databases))
    if len(set(keys)) != len(keys) or len(keys) != wanted:
        raise InvalidValueError(
            f"Expected {wanted} different signing_keys, one for each database in their order, and "
            f"got {len(keys)}."
        )
