"""Public files: what a release and a model have in common when they are written and read.

Each carries its agreement, so whoever has the file can compute again what was promised to whom.
Reading verifies the agreement inside; one text belongs to one release or model, byte by byte.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.conditions import premise_in_words
from blurfit.agreement.terms import Admission
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.json_reader import read_json
from blurfit.messages.signing import SIGNATURES, Signature
from blurfit.validate import whole


class PublishedFile(ABC):
    """Something that is published under an agreement; a subclass says what else it holds."""

    CALLED: ClassVar[str]  # in errors: "a model"
    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 1

    agreement: Agreement
    count: int
    software: str
    caveat: str | None
    signatures: tuple[Signature, ...]  # of the file without them, by the agreement's keys

    @abstractmethod
    def _contents(self) -> dict[str, Any]:
        """What the file says beside `to_dict`'s own fields, as plain values."""

    @classmethod
    @abstractmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        """Read a document of this format; whatever is wrong with its fields may be raised."""

    def _require_quorum(self) -> None:
        whole(count=self.count)
        if self.count < self.agreement.quorum:
            raise InvalidValueError(
                f"Expected count={self.count} to be at least the quorum {self.agreement.quorum}: "
                f"{self.CALLED} is not published below it, where the noise would be too small to "
                "protect anyone."
            )

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the agreement that it was collected under."""
        return self.agreement.fingerprint

    @property
    def admission(self) -> Admission:
        """Who could take part: those who were "invited", or "anyone"."""
        return self.agreement.admission

    @property
    def quorum_in_words(self) -> str:
        """How many honest people the promise needs."""
        return f"{self.agreement.quorum:,}"

    @property
    def condition(self) -> str:
        """What the promise needs, and whether anybody can check it."""
        return premise_in_words(self.agreement, self.quorum_in_words)

    def to_dict(self) -> dict[str, Any]:
        """Everything, the agreement included, as plain values."""
        return {
            "format": self.FORMAT,
            "version": self.VERSION,
            "software": self.software,
            "caveat": self.caveat,
            "fingerprint": self.fingerprint,
            "admission": self.admission,
            "condition": self.condition,
            "count": self.count,
            "agreement": self.agreement.to_document(),
            **self._contents(),
            **_written(self.signatures),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; the agreement inside is verified."""
        if not isinstance(document, dict):
            raise InvalidValueError(f"Expected {cls.CALLED} in JSON: an object with named fields.")
        if document.get("format") != cls.FORMAT or document.get("version") != cls.VERSION:
            raise InvalidValueError(
                f"Expected format={cls.FORMAT!r}, version={cls.VERSION}, and got "
                f"format={document.get('format')!r}, version={document.get('version')!r}. "
                f"Is this {cls.CALLED}, and of this version of blurfit?"
            )
        try:
            return cls._read(document)
        except BlurfitError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidValueError(
                f"Expected {cls.CALLED} as blurfit writes it: {error!r}."
            ) from error

    def to_json(self) -> str:
        """The file's text: equal contents give equal bytes."""
        return as_text(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote."""
        try:
            document = read_json(text)
        except ValueError as error:
            raise InvalidValueError(f"Expected {cls.CALLED} in JSON: {error}.") from error
        return cls.from_dict(document)

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it from a file."""
        return cls.from_json(Path(path).read_bytes())


def with_signatures(text: str, signatures: Sequence[Signature]) -> str:
    """The text of a file with signatures of it, instead of those that it may have."""
    document = json.loads(text)
    document.pop(SIGNATURES, None)
    return as_text(document | _written(signatures))


def signatures_in(document: Mapping[str, Any]) -> tuple[Signature, ...]:
    """Those that a file carries, right or wrong."""
    return tuple(Signature(**one) for one in document.get(SIGNATURES, ()))


def _written(signatures: Sequence[Signature]) -> dict[str, Any]:
    """Left out where there are none."""
    return {SIGNATURES: [asdict(one) for one in signatures]} if signatures else {}


def as_text(document: Mapping[str, Any]) -> str:
    """The one text of a document."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
