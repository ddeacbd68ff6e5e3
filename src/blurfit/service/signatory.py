"""What a service signs, where an agreement names its key: receipts, withdrawals, publications.

A receipt is signed when it is given. What was published is signed when it is first asked for, at
the latest to answer whoever publishes it, and the signature is kept (`blurfit.store.signatures`).
Of two databases each signs for itself, and they hand each other their signatures once the result is
at both: from then on each serves the file with both.

A service that does not have the private key of an agreement refuses to open it; if it has lost the
key since, it refuses further submissions before any of them is stored, since nobody would take its
acknowledgement for one. What is there can still be published, unsigned.
"""

import json
import logging
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError, NotPublishedError
from blurfit.messages.shares import Role
from blurfit.messages.signing import (
    Deed,
    Signature,
    Signer,
    about_release,
    about_submissions,
    is_signed,
)
from blurfit.model.model import with_signatures
from blurfit.protocol import tokens
from blurfit.protocol.http import Exchange
from blurfit.protocol.wire import path_of
from blurfit.service.documents import Signatures
from blurfit.service.limits import document_from
from blurfit.store import publication, signatures
from blurfit.store.collections import Collection
from blurfit.store.signatures import Document
from blurfit.store.store import Store

_log = logging.getLogger(__name__)
EXPECTED = "signatures of a model and of moments"
_DOCUMENTS: tuple[Document, ...] = ("model", "moments")
_SECONDS = 15.0  # for the other database to answer


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
        """The public key of this service, if it has one."""
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

    def missing(self, fingerprint: str, document: Document) -> int:
        """How many signatures of something published are still to come."""
        collection = self.store.collection(fingerprint)
        kept = self.store.read(signatures.kept, collection, document)
        return len(collection.agreement.signing_keys) - len(kept)

    def _signatures(
        self, collection: Collection, document: Document, text: str
    ) -> tuple[Signature, ...]:
        kept = self.store.read(signatures.kept, collection, document)
        own = key_of(collection.agreement, collection.role)
        if self.signer is None or own != self.key or own in {one.key for one in kept}:
            return kept
        made = self.signer.sign(about_release(json.loads(text)))
        self.store.write(signatures.keep, collection, document, [made])
        return self.store.read(signatures.kept, collection, document)

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
            self.store.write(signatures.keep, collection, document, some)

    def _published(self, collection: Collection) -> dict[Document, str]:
        found: dict[Document, str] = {}
        for document in _DOCUMENTS:
            try:
                read = publication.model if document == "model" else publication.moments
                found[document] = self.store.read(read, collection)
            except NotPublishedError:
                continue
        return found

    def exchange(self, fingerprint: str, token: str | None, **options: Any) -> None:
        """Hand the second database the first's signatures, and get its own.

        What fails is logged, and done later (`blurfit.service.countersigning`).
        """
        collection = self.store.collection(fingerprint)
        agreement = collection.agreement
        kept = self.all_of(collection)
        some = {len(kept.model), len(kept.moments)} - {0, len(agreement.signing_keys)}
        if token is None or not some:
            return
        secret = tokens.for_agreement(token, fingerprint)
        patience = options.pop("patience", _SECONDS)
        url = agreement.databases[1].url
        try:
            with Exchange(url, token=secret, patience=patience, **options) as other:
                answer = other.post(
                    f"{path_of(fingerprint)}/shares/signatures", msgspec.json.encode(kept)
                )
            self.take(collection, document_from(answer, Signatures, EXPECTED))
        except BlurfitError as error:
            _log.warning("%s has not signed yet: %s", agreement.databases[1].name, error)


def key_of(agreement: Agreement, role: Role) -> str | None:
    """The public key with which the database in this role signs, if it does."""
    if not agreement.signing_keys:
        return None
    return agreement.signing_keys[role == "second"]
