"""The administrator's token of a store: made at the first start of its service."""

from pathlib import Path
from typing import Any

from blurfit.errors import InvalidValueError
from blurfit.protocol import tokens


def appoint(store: Any, token_file: Path | None, *, replace: bool = False) -> str:
    """See to it that there is an administrator's token, and say where it is.

    It is made at the first start, and the store keeps its hash alone.
    """
    written = token_file is not None and token_file.exists()
    if written and not replace:
        assert token_file is not None
        token = tokens.read_token(token_file)
        if not store.appoint(tokens.hashed(token)) and not tokens.matches(
            token, store.administrator()
        ):
            raise InvalidValueError(
                f"Expected {str(token_file)!r} to hold the token that this store was started "
                "with. Find that one, or make a new one with --new-admin-token."
            )
        return f"The administrator's token is in {token_file}."
    if store.administrator() is not None and not replace:
        return "The administrator's token is the one of the first start (--new-admin-token: anew)."
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
