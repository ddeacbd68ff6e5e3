"""A database from afar, as its administrator and the model's users see it."""

from typing import Any, Self

import httpx2 as httpx
import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.messages.shares import Role
from blurfit.model.moments import PublishedMoments
from blurfit.model.published import PublishedModel
from blurfit.protocol import tokens
from blurfit.protocol.http import PATIENCE, Exchange, decoded
from blurfit.protocol.wire import COLLECTIONS, path_of

HASHES_AT_ONCE = 5000


class RemoteDatabase:
    """A service; arguments as for `blurfit.protocol.http.Exchange`."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        patience: float = PATIENCE,
        transport: httpx.BaseTransport | None = None,
        **options: Any,
    ) -> None:
        self._exchange = Exchange(
            url, token=token, patience=patience, transport=transport, **options
        )

    def open(self, agreement: Agreement, *, role: Role = "whole") -> dict[str, Any]:
        """Start collecting, from those whom the agreement admits; the state is returned."""
        path = f"{COLLECTIONS}?role={role}"
        return self._state(self._exchange.post(path, agreement.to_json().encode()))

    def invite(self, agreement: Agreement, count: int) -> list[str]:
        """New one-time invitations. They are made here, and the service gets their hashes alone."""
        made = [tokens.new_token() for _ in range(count)]
        for start in range(0, count, HASHES_AT_ONCE):
            part = made[start : start + HASHES_AT_ONCE]
            body = {"hashes": [tokens.hashed(token).hex() for token in part]}
            self._exchange.post(
                f"{path_of(agreement.fingerprint)}/invitations", msgspec.json.encode(body)
            )
        return made

    def status(self, agreement: Agreement) -> dict[str, Any]:
        """State, count and quorum."""
        return self._state(self._exchange.get(path_of(agreement.fingerprint)))

    def close_collection(self, agreement: Agreement) -> dict[str, Any]:
        """Close the collection without publishing anything."""
        return self._state(self._exchange.post(f"{path_of(agreement.fingerprint)}/close"))

    def publish(self, agreement: Agreement) -> PublishedModel:
        """Close the collection, and publish its model, once; again, the same is returned."""
        return PublishedModel.from_json(
            self._exchange.post(f"{path_of(agreement.fingerprint)}/publish").decode()
        )

    def model(self, agreement: Agreement) -> PublishedModel:
        """The published model."""
        return PublishedModel.from_json(
            self._exchange.get(f"{path_of(agreement.fingerprint)}/model").decode()
        )

    def moments(self, agreement: Agreement) -> PublishedMoments:
        """The blurred sums of a published `moment` collection, from which further models follow."""
        return PublishedMoments.from_json(
            self._exchange.get(f"{path_of(agreement.fingerprint)}/moments")
        )

    def _state(self, answer: bytes) -> dict[str, Any]:
        found: dict[str, Any] = decoded(answer)
        return found

    def close(self) -> None:
        """Hang up."""
        self._exchange.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
