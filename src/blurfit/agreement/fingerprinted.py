"""Canonical JSON with a fingerprint: how agreements and plans are written, read and told apart.

The text is canonical (RFC 8785), so one document has one text and one SHA-256. `to_dict` leaves the
fingerprint out, `to_document` carries it, and reading refuses a text whose fingerprint is not its
own, or that writes the same values differently: others could take them for something else.
"""

import hashlib
import hmac
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

from blurfit.errors import BlurfitError, InvalidValueError, NotCertifiedError
from blurfit.json_reader import canonical, read_json

_WHOLE_BEYOND = re.compile(rb"[:\[,]-?[0-9]{16,}[,\]}]")  # may also be found within a text


class Fingerprinted(ABC):
    """A document with a fingerprint; a subclass says what its fields are, and reads them."""

    CALLED: ClassVar[str]  # in errors: "an agreement"
    STATED: ClassVar[Mapping[str, Any]]  # what every text of this kind says of itself
    FIELDS: ClassVar[frozenset[str]]  # that are always there, beside what is stated
    OPTIONAL: ClassVar[frozenset[str]] = frozenset()  # left out where they have their default

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The document as plain values, without its fingerprint."""

    @classmethod
    @abstractmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        """Read fields that are there; whatever is wrong with them may be raised."""

    @cached_property
    def _canonical(self) -> bytes:
        """The document in canonical JSON, without its fingerprint; neither ever changes."""
        text = canonical(self.to_dict())
        if _WHOLE_BEYOND.search(text):
            _refuse_beyond(json.loads(text))
        return text

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(self._canonical).hexdigest()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def require_fingerprint(self, expected: str | None) -> None:
        """Refuse to be another document than the one that is expected, if one is."""
        if expected is not None and not alike(expected, self.fingerprint):
            raise NotCertifiedError(
                f"Expected {self.CALLED} with fingerprint {expected}, but this one has "
                f"{self.fingerprint}: it is not the one that you were invited to."
            )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`. What it promises is not trusted: an agreement has `verify`."""
        if not isinstance(document, Mapping):
            raise InvalidValueError(f"Expected {cls.CALLED}: an object with named fields.")
        stated = {name: document.get(name) for name in cls.STATED}
        if _words(stated) != _words(cls.STATED):
            raise InvalidValueError(
                f"Expected {_words(cls.STATED)}, and got {_words(stated)}. Is this {cls.CALLED}, "
                "and of this version of blurfit?"
            )
        fields = cls.FIELDS | set(cls.STATED)
        if set(document) - cls.OPTIONAL != fields:
            raise InvalidValueError(
                f"Expected the fields {sorted(fields)}, and got {sorted(document)}."
            )
        try:
            found = cls._read(document)
            # only plain, finite values have a fingerprint, and one fingerprint has one text
            if found._canonical != canonical(dict(document)):
                raise InvalidValueError(
                    f"Expected {cls.CALLED} as blurfit writes it, and this one writes the same "
                    "values differently: other readers could take them for something else."
                )
        except BlurfitError:
            raise
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidValueError(
                f"Expected {cls.CALLED} as blurfit writes it: {error!r}."
            ) from error
        return found

    def to_document(self) -> dict[str, Any]:
        """Plain values with the fingerprint: for what carries the document.

        The values are those of the canonical text, where 10.0 is 10: so whatever carries the
        document has the same bytes, whether it was made here or read from a file.
        """
        canonical: dict[str, Any] = json.loads(self._canonical)
        return canonical | {"fingerprint": self.fingerprint}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The inverse of `to_document`; refuses a document whose fingerprint is not its own."""
        if not isinstance(document, dict):
            raise InvalidValueError(f"Expected {cls.CALLED} in JSON: an object with named fields.")
        fields = dict(document)
        stated = fields.pop("fingerprint", None)
        found = cls.from_dict(fields)
        if not isinstance(stated, str) or not alike(stated, found.fingerprint):
            raise InvalidValueError(
                f"Expected fingerprint={stated!r} to be {found.fingerprint!r}: the text was "
                f"changed after it was written. Ask for {cls.CALLED} again."
            )
        return found

    def to_json(self) -> str:
        """The file that is handed round: the document and its fingerprint, canonical."""
        return canonical(self.to_document()).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote; refuses a text whose fingerprint is not its own.

        A service reads the same few texts at every step: one that was read lately is not read
        again. What it says cannot change, nor can what was read from it.
        """
        found = _found_in(cls, text)
        assert isinstance(found, cls)
        return found

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it from a file."""
        return cls.from_json(Path(path).read_bytes())


@lru_cache(maxsize=64)
def _found_in(kind: type[Fingerprinted], text: str | bytes) -> Fingerprinted:
    """What a text says; errors are not remembered."""
    try:
        document = read_json(text)
    except ValueError as error:
        raise InvalidValueError(f"Expected {kind.CALLED} in JSON: {error}.") from error
    return kind.from_document(document)


def alike(stated: str, fingerprint: str) -> bool:
    """Whether two texts are one fingerprint; any text may be asked about."""
    if not isinstance(stated, str):
        raise InvalidValueError(
            f"Expected fingerprint={stated!r} to be a text of 64 hexadecimal digits."
        )
    return hmac.compare_digest(stated.encode(errors="surrogatepass"), fingerprint.encode())


def _refuse_beyond(values: Any) -> None:
    """Refuse whole numbers from 2⁵³ on, also floats that are written as such."""
    if isinstance(values, dict | list):
        for value in values.values() if isinstance(values, dict) else values:
            _refuse_beyond(value)
    elif isinstance(values, int) and abs(values) >= 2**53:
        raise InvalidValueError(
            f"Expected every whole number to be below 2**53 = 9007199254740992, and got {values}: "
            "readers differ in what they make of larger ones. Choose larger units."
        )


def _words(stated: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in stated.items())
