"""What is published is a document: one JSON text, the same bytes for the same content."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.conditions import premise_in_words
from blurfit.agreement.terms import Admission
from blurfit.errors import InvalidValueError


class PublishedDocument:
    """A model or moments as a file, with the agreement and on what its promise depends."""

    agreement: Agreement

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
        raise NotImplementedError

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; the agreement inside is verified."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The file: the same content gives the same bytes."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise InvalidValueError(
                f"Expected {cls.__name__} in JSON, as blurfit writes it: {error}."
            ) from error
        return cls.from_dict(document)

    def save(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it from a file."""
        return cls.from_json(Path(path).read_bytes())
