"""What a service makes at its first start, for its owner alone: a token, and private keys."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from blurfit.errors import InvalidValueError
from blurfit.protocol import tokens


def appoint(store: Any, token_file: Path | None, *, replace: bool = False) -> str:
    """Make sure that there is an administrator's token, and say where it is.

    It is made at the first start, and the store keeps only its hash.
    """
    written = token_file is not None and token_file.exists()
    if written and not replace:
        assert token_file is not None
        token = tokens.read_token(token_file)
        if not store.appoint(tokens.hashed(token)) and not tokens.matches(
            token, store.administrator()
        ):
            raise InvalidValueError(
                f"Expected {str(token_file)!r} to hold the token of this store's first start. Find "
                "that one, or make a new one with --new-admin-token."
            )
        return f"The administrator's token is in {token_file}."
    if store.administrator() is not None and not replace:
        return (
            "The administrator's token is that of the first start; --new-admin-token replaces it."
        )
    token = tokens.new_token()
    if token_file is not None:
        token_file.unlink(missing_ok=True)
        tokens.write_token(token_file, token)
    if not store.appoint(tokens.hashed(token), replace=replace):
        if token_file is not None:
            token_file.unlink()
        return "Another process has just made the administrator's token."
    if token_file is not None:
        return f"The administrator's token is in {token_file}, which is new."
    return f"The administrator's token, shown this once, is {token}"


def share_key_in(path: Path) -> tuple[str, str]:
    """The private key that opens shares, made if there is none, and a sentence with the public."""
    from blurfit.messages.shares import new_key, public_key

    private, public = key_in("--share-key-file", path, new_key, public_key)
    return private, f"Shares can be sealed to {public} (`blurfit agree --database-key`)."


def signing_key_in(path: Path | None) -> tuple[str | None, str]:
    """The private key that signs, likewise; None where there is no place for it."""
    from blurfit.messages.signing import Signer, new_key

    if path is None:
        return None, ""
    private, public = key_in("--signing-key-file", path, new_key, lambda one: Signer(one).key)
    return private, f"It signs with {public} (`blurfit agree --signing-key`)."


def beside(place: str) -> Path | None:
    """Where the signing key of an SQLite store is kept: beside it, and in no backup of it.

    Processes that share a PostgreSQL store need --signing-key-file, with the same file for each.
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
