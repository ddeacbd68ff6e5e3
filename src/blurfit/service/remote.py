"""A database from afar, as its administrator and the model's users see it."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.waves import Lot
from blurfit.messages.shares import Role
from blurfit.model.model import PublishedModel
from blurfit.model.moments import PublishedMoments
from blurfit.protocol import tokens
from blurfit.protocol.http import Caller, decoded, texts_in
from blurfit.protocol.wire import COLLECTIONS, PLANS, path_of, plan_path

HASHES_AT_ONCE = 5000


class RemoteDatabase(Caller):
    """A service; arguments as for `blurfit.protocol.http.Exchange`."""

    def open(
        self, agreement: Agreement | Plan, *, role: Role = "whole", until: str | None = None
    ) -> dict[str, Any]:
        """Start collecting, from those whom the agreement admits; the state is returned.

        `until` is a date, or a time with its zone: nothing is taken from then on.
        """
        given = {"role": role} if until is None else {"role": role, "until": until}
        path = f"{PLANS if isinstance(agreement, Plan) else COLLECTIONS}?{urlencode(given)}"
        return self._state(self._exchange.post(path, agreement.to_json().encode()))

    def invite(
        self, agreement: Agreement | Plan, count: int, shares: Sequence[int] = ()
    ) -> list[str]:
        """New one-time invitations. They are made here, and the service gets their hashes alone.

        Those to a plan are for waves that have not been released, by a lot in proportion to what
        each of them waits for; `shares` says how many are for each wave, where that is drawn
        already, for another database.
        """
        lot = lot_of(agreement)
        if lot is None:
            made = [tokens.new_token() for _ in range(count)]
        else:
            made = tokens.new_in_groups(lot, shares or self.shares(agreement, count))
        for start in range(0, count, HASHES_AT_ONCE):
            part = made[start : start + HASHES_AT_ONCE]
            body = {"hashes": [tokens.hashed(token).hex() for token in part]}
            self._exchange.post(f"{_path(agreement)}/invitations", msgspec.json.encode(body))
        return made

    def shares(self, agreement: Agreement | Plan, count: int) -> list[int]:
        """How many of so many invitations to a plan are for each of its waves: drawn now."""
        lot = lot_of(agreement)
        if lot is None:
            return []
        waves = decoded(self._exchange.get(plan_path(lot.plan)))["waves"]
        released = sum(one["state"] == "released" for one in waves)
        return tokens.new_shares(lot, count, min(released + 1, len(lot.people)))

    def status(self, agreement: Agreement | Plan) -> dict[str, Any]:
        """State, count and quorum; of a plan, those of each wave."""
        return self._state(self._exchange.get(_path(agreement)))

    def halves(self, fingerprint: str) -> dict[str, Any]:
        """Whether those who came first and later send alike: for its administrator alone."""
        return self._state(self._exchange.get(f"{path_of(fingerprint)}/halves"))

    def move_closing(self, agreement: Agreement | Plan, until: str | None) -> dict[str, Any]:
        """Let an open collection or plan close at another moment, or at none."""
        body = msgspec.json.encode({"until": until})
        return self._state(self._exchange.post(f"{_path(agreement)}/until", body))

    def close_collection(self, agreement: Agreement) -> dict[str, Any]:
        """Close the collection without publishing anything."""
        return self._state(self._exchange.post(f"{path_of(agreement.fingerprint)}/close"))

    def publish(self, agreement: Agreement | Plan) -> PublishedModel:
        """Close the collection, and publish its model, once; asked again, the same is returned.

        A plan publishes by itself; this ends it early, with the best model so far.
        """
        return PublishedModel.from_json(self._exchange.post(f"{_path(agreement)}/publish").decode())

    def publish_sums(self, agreement: Agreement) -> PublishedMoments:
        """Close the collection, and publish sums that have no model of their own, once."""
        return PublishedMoments.from_json(self._exchange.post(f"{_path(agreement)}/publish"))

    def model(self, agreement: Agreement | Plan) -> PublishedModel:
        """The published model."""
        return PublishedModel.from_json(self._exchange.get(f"{_path(agreement)}/model").decode())

    def moments(self, agreement: Agreement) -> PublishedMoments:
        """The blurred sums of a published `moment` collection, from which further models follow."""
        return PublishedMoments.from_json(
            self._exchange.get(f"{path_of(agreement.fingerprint)}/moments")
        )

    def hold(self, plan: Plan) -> dict[str, Any]:
        """Release no wave until the plan is resumed; its state is returned."""
        return self._state(self._exchange.post(f"{_path(plan)}/hold"))

    def resume(self, plan: Plan) -> dict[str, Any]:
        """Let a plan go on that was held."""
        return self._state(self._exchange.post(f"{_path(plan)}/resume"))

    def releases(self, plan: Plan) -> list[PublishedMoments]:
        """What the waves of a plan have published so far, in their order."""
        texts = texts_in(self._exchange.get(f"{_path(plan)}/releases"))
        return [PublishedMoments.from_json(text) for text in texts]

    def _state(self, answer: bytes) -> dict[str, Any]:
        found: dict[str, Any] = decoded(answer)
        return found


def lot_of(agreed: Agreement | Plan) -> Lot | None:
    """The lot of a plan, or of the plan that a wave belongs to."""
    place = agreed if isinstance(agreed, Plan) else agreed.wave
    return None if place is None else place.lot


def _path(agreed: Agreement | Plan) -> str:
    """Where a service keeps the collection of an agreement, or a plan."""
    name = agreed.fingerprint
    return plan_path(name) if isinstance(agreed, Plan) else path_of(name)
