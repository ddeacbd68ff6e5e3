"""What a service signs, where an agreement names its key: receipts, withdrawals, publications.

A receipt is signed when it is given. What was published is signed when it is first asked for, at
the latest to answer whoever publishes it, and the signature is kept in the store. Of two databases
each signs for itself, and they hand each other their signatures once the result is at both: from
then on each serves the file with both. Until then the first asks again (`blurfit.service.jobs`):
no promise depends on it, but a file with one signature has only half of what was agreed.

A service that does not have the private key of an agreement refuses to open it; if it has lost the
key since, it refuses further submissions before any of them is stored, since nobody would take its
acknowledgement for one. What is there can still be published, unsigned.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.errors import InfeasibleError, InvalidValueError, NotPublishedError, ServiceError
from blurfit.messages.signing import (
    Deed,
    Signature,
    Signer,
    about_release,
    about_submissions,
    is_signed,
)
from blurfit.messages.submissions import Role
from blurfit.model.model import with_signatures
from blurfit.store.collections import Collection
from blurfit.store.store import Store

Document = Literal["model", "moments"]
EXPECTED = "signatures of a model and of moments"
_DOCUMENTS: tuple[Document, ...] = ("model", "moments")


class Signatures(msgspec.Struct):
    """Of what two databases have published, by either of them."""

    model: list[Signature] = msgspec.field(default_factory=list)
    moments: list[Signature] = msgspec.field(default_factory=list)


class Signed(NamedTuple):
    """A text with the signatures that there are, and how many of those agreed on are missing."""

    text: str
    missing: int


@dataclass(frozen=True, eq=False)
class Signatory:
    """Signs for a service; without a key, nothing."""

    store: Store
    signer: Signer | None = field(default=None, repr=False)

    @property
    def key(self) -> str | None:
        """Return the public key of this service, if it has one."""
        return None if self.signer is None else self.signer.key

    def refuse_another_key(self, agreement: Agreement, role: Role) -> None:
        """Refuse an agreement under which this service would have to sign, and cannot."""
        wanted = key_of(agreement, role)
        if wanted is not None and wanted != self.key:
            raise InfeasibleError(
                f"Expected this service to have the private key of {wanted}, with which the "
                "agreement says that it signs: start it with `blurfit serve --signing-key-file` "
                "and the file of that key, or agree on the key that it prints."
            )

    def of_submissions(self, deed: Deed, collection: Collection, identifiers: bytes) -> str | None:
        """The signature that submissions were stored here, or withdrawn; None if none is agreed."""
        if key_of(collection.agreement, collection.role) is None or self.signer is None:
            return None
        message = about_submissions(deed, collection.fingerprint, collection.role, identifiers)
        return self.signer.sign(message).signature

    def receipt(self, collection: Collection, rows: bytes | memoryview) -> str | None:
        """The signature for messages of the collection's layout, one after another."""
        if key_of(collection.agreement, collection.role) is None:
            return None
        layout = collection.layout
        table = np.frombuffer(rows, dtype=np.uint8).reshape(-1, layout.size)
        return self.of_submissions("receipt", collection, layout.identifiers(table).tobytes())

    def signed(self, fingerprint: str, document: Document, text: str) -> Signed:
        """A published text with its signatures; this service's own is made if need be."""
        collection = self.store.collection(fingerprint)
        keys = len(collection.agreement.signing_keys)
        if not keys:
            return Signed(text, 0)
        found = self._signatures(collection, document, text)
        return Signed(with_signatures(text, found), keys - len(found))

    def with_own(self, fingerprint: str, document: dict[str, Any]) -> dict[str, Any]:
        """Return what follows from something published, with this service's signature if agreed."""
        collection = self.store.collection(fingerprint)
        told = {"fingerprint": fingerprint} | document
        if self.signer is None or key_of(collection.agreement, collection.role) != self.key:
            return told
        made = self.signer.sign(about_release(told))
        return told | {"signatures": [msgspec.to_builtins(made)]}

    def missing(self, fingerprint: str, document: Document) -> int:
        """How many signatures of something published are still to come."""
        collection = self.store.collection(fingerprint)
        kept = self.store.signatures(collection, document)
        return len(collection.agreement.signing_keys) - len(kept)

    def _signatures(
        self, collection: Collection, document: Document, text: str
    ) -> tuple[Signature, ...]:
        kept = self.store.signatures(collection, document)
        own = key_of(collection.agreement, collection.role)
        if self.signer is None or own != self.key or own in {one.key for one in kept}:
            return kept
        made = self.signer.sign(about_release(json.loads(text)))
        self.store.keep_signatures(collection, document, [made])
        return self.store.signatures(collection, document)

    # ---- of two databases

    def all_of(self, collection: Collection) -> Signatures:
        """Every signature that there is of what a collection has published."""
        found: dict[Document, list[Signature]] = {}
        for document, text in self._published(collection).items():
            found[document] = list(self._signatures(collection, document, text))
        return Signatures(**found)

    def take(self, collection: Collection, given: Signatures) -> None:
        """Keep signatures that others made, if they are right."""
        for document, text in self._published(collection).items():
            message = about_release(json.loads(text))
            some = getattr(given, document)
            if not all(
                one.key in collection.agreement.signing_keys
                and is_signed(message, one.key, one.signature)
                for one in some
            ):
                raise InvalidValueError(
                    f"Expected signatures of the {document} that is published here, by the keys of "
                    "the agreement: both databases publish the same bytes."
                )
            self.store.keep_signatures(collection, document, some)

    def _published(self, collection: Collection) -> dict[Document, str]:
        found: dict[Document, str] = {}
        for document in _DOCUMENTS:
            try:
                found[document] = self._text(collection, document)
            except NotPublishedError:
                continue
        return found

    def _text(self, collection: Collection, document: Document) -> str:
        """Return what a wave shows: its sums, or the model of its course."""
        if document == "moments":
            return self.store.moments_text(collection.fingerprint)
        if self.store.shown_at(collection.fingerprint) != collection.fingerprint:
            raise NotPublishedError("The model is shown with another wave.")
        return self.store.model(collection.fingerprint)

    def require_all(self, collection: Collection) -> None:
        """Refuse while a signature is missing of something that is published."""
        for document in self._published(collection):
            if self.missing(collection.fingerprint, document):
                raise ServiceError(
                    f"Expected the signature of {collection.agreement.databases[1].name}, and it "
                    "has not signed yet."
                )


def key_of(agreement: Agreement, role: Role) -> str | None:
    """The public key with which the database in this role signs, if it does."""
    if not agreement.signing_keys:
        return None
    return agreement.signing_keys[role == "second"]
