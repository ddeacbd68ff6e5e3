"""Public files: what a release and a model have in common when they are written and read.

Each carries its agreement, so whoever has the file can compute again what was promised to whom.
Reading verifies the agreement inside; one text belongs to one release or model, byte by byte.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.terms import Admission
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.json_reader import read_json
from blurfit.messages.signing import SIGNATURES, Signature
from blurfit.model.promise import Promise
from blurfit.theory.guarantees import LocalGuarantee
from blurfit.validate import whole


class PublishedFile(ABC):
    """Something that is published under an agreement; a subclass says what else it holds.

    `caveats` say why nothing is promised, where that is so, and `held` that somebody held the rows
    that it was made of, as whoever calls `fit(X, y)` does. Both are handed on to every model.
    """

    CALLED: ClassVar[str]  # in errors: "a model"
    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 1

    agreement: Agreement
    count: int
    software: str
    caveats: tuple[str, ...]
    held: bool
    models: int = 1  # of one fit, which share the promise
    signatures: tuple[Signature, ...]  # of the file without them, by the agreement's keys

    @abstractmethod
    def _contents(self) -> dict[str, Any]:
        """What the file says beside `to_dict`'s own fields, as plain values."""

    @classmethod
    @abstractmethod
    def _read(cls, document: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """Read a document of this format, `common` being the fields that all have; whatever is
        wrong with the others may be raised.
        """

    def _require_quorum(self) -> None:
        if self.held and self.agreement.databases:
            raise InvalidValueError(
                "Expected held=False under an agreement of two databases: no part of a record is "
                "in one hand there."
            )
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
    def admission(self) -> Admission | None:
        """Who could take part: those who were "invited", or "anyone"; nobody took part in rows
        that somebody held.
        """
        return None if self.held else self.agreement.admission

    @property
    def quorum_in_words(self) -> str:
        """How many must have taken part."""
        return f"{self.agreement.quorum:,}"

    @property
    def honest_in_words(self) -> str:
        """How many honest people the promise needs."""
        return f"{self.agreement.honest:,}"

    @property
    def local(self) -> LocalGuarantee:
        """What one submission keeps by itself, where there is one and its noise is real."""
        return self.agreement.calibration.local

    @cached_property
    def guarantee(self) -> Promise:
        """What is promised to everyone in it, and on which conditions: all papers say this."""
        return Promise.of(
            self.agreement,
            self.count,
            self.honest_in_words,
            self.local,
            caveats=self.caveats,
            held=self.held,
            models=self.models,
        )

    @property
    def condition(self) -> str:
        """What the promise needs, and whether anybody can check it; or why there is none."""
        return self.guarantee.condition

    def to_dict(self) -> dict[str, Any]:
        """Everything, the agreement included, as plain values."""
        return {
            "format": self.FORMAT,
            "version": self.VERSION,
            "software": self.software,
            "caveats": list(self.guarantee.caveats),
            "seen_by": self.guarantee.seen_by,
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
            return cls._read(document, _common(document))
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


_NEXT = '\n  "software": '  # what stands after the signatures, as names are in order


def with_signatures(text: str, signatures: Sequence[Signature]) -> str:
    """The text of a file with signatures of it, instead of those that it may have.

    In a text that `to_json` wrote they are put where they belong, without reading the rest, which
    may be long: only what is outermost is indented by two spaces, and no string has a line break.
    """
    before, mark, after = text.partition(_NEXT)
    if signatures and mark and f'\n  "{SIGNATURES}": ' not in before:
        return before + "\n" + as_text(_written(signatures))[2:-3] + "," + mark + after
    document = json.loads(text)
    document.pop(SIGNATURES, None)
    return as_text(document | _written(signatures))


def _common(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that all files have, the signatures as they are, right or wrong."""
    agreement = Agreement.from_document(document["agreement"])
    agreement.verify(str(document["fingerprint"]), allow_unproved=True)
    seen_by, caveats = document["seen_by"], document["caveats"]
    if seen_by not in ("holder", "nobody" if agreement.databases else "collector"):
        raise InvalidValueError(
            f"Expected seen_by={seen_by!r} to be 'holder', or what its agreement says: 'nobody' "
            "with two databases, and 'collector' with one."
        )
    if not isinstance(caveats, list) or not all(isinstance(one, str) and one for one in caveats):
        raise InvalidValueError("Expected caveats to be a list of sentences.")
    return {
        "agreement": agreement,
        "count": document["count"],
        "software": str(document["software"]),
        "caveats": tuple(caveats),
        "held": seen_by == "holder",
        "signatures": tuple(Signature(**one) for one in document.get(SIGNATURES, ())),
    }


def _written(signatures: Sequence[Signature]) -> dict[str, Any]:
    """Left out where there are none."""
    return {SIGNATURES: [asdict(one) for one in signatures]} if signatures else {}


def as_text(document: Mapping[str, Any]) -> str:
    """The one text of a document."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
