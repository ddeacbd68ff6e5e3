"""The private keys of a service: made at its first start, and kept in files for its owner alone."""

from collections.abc import Callable
from pathlib import Path

from blurfit.errors import InvalidValueError
from blurfit.protocol import tokens


def share_key_in(path: Path) -> tuple[str, str]:
    """The private key in a file, written if there is none; and the public one, in words."""
    from blurfit.messages.sealing import new_key, public_key

    private, public = key_in("--share-key-file", path, new_key, public_key)
    return private, f"Shares can be sealed to {public} (`blurfit agree --database-key`)."


def signing_key_in(path: Path | None) -> tuple[str | None, str]:
    """Likewise, of the key that signs; nothing where there is no place for it."""
    from blurfit.messages.signing import Signer, new_key

    if path is None:
        return None, ""
    private, public = key_in("--signing-key-file", path, new_key, lambda one: Signer(one).key)
    return private, f"It signs with {public} (`blurfit agree --signing-key`)."


def beside(place: str) -> Path | None:
    """Where the signing key of an SQLite store is kept: beside it, and in no backup of it.

    Processes that share a PostgreSQL store are given the same file by whoever starts them.
    """
    from blurfit.store.connecting import file_of

    found = file_of(place)
    return None if found is None else found.with_name(found.name + ".signing-key")


def key_in(
    option: str, path: Path, new_key: Callable[[], str], public_key: Callable[[str], str]
) -> tuple[str, str]:
    """The private key in a file, written if there is none, for its owner alone; and the public."""
    if not path.exists():
        tokens.write_token(path, new_key())
    private = path.read_text().strip()
    try:
        return private, public_key(private)
    except ValueError as error:
        raise InvalidValueError(
            f"Expected {option} {str(path)!r} to hold a private key in 64 hexadecimal digits, as "
            f"this command writes one: {error}."
        ) from error
