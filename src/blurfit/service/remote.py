"""A database from afar, as its administrator and the model's users see it.

What was agreed on is an agreement or a plan of waves; everything here is for either.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Agreed
from blurfit.errors import BlurfitError, ConflictError
from blurfit.messages.shares import KIND_OF, Role
from blurfit.model.model import PublishedModel
from blurfit.model.moments import PublishedMoments
from blurfit.protocol import tokens
from blurfit.protocol.http import COLLECTIONS, Caller, decoded, path_of, texts_in

HASHES_AT_ONCE = 5000
_SECONDS_TO_COUNT = 3.0
_MOST_BYTES = 2**16  # of a state
State = dict[str, Any]


class RemoteDatabase(Caller):
    """A service; arguments as for `blurfit.protocol.http.Exchange`."""

    def open(self, agreed: Agreed, *, role: Role = "whole", until: str | None = None) -> State:
        """Start collecting, from those whom the agreement admits; the state is returned.

        `until` is a date, or a time with its zone: nothing is taken from then on.
        """
        given = {"role": role} if until is None else {"role": role, "until": until}
        path = f"{COLLECTIONS}?{urlencode(given)}"
        found: State = decoded(self._exchange.post(path, agreed.to_json().encode()))
        return found

    def invite(self, agreed: Agreed, count: int, shares: Sequence[int] = ()) -> list[str]:
        """Make new one-time invitations here; the service gets their hashes alone.

        Those to a plan are for waves that have not been released, by a lot in proportion to what
        each of them waits for; `shares` says how many are for each wave, where that is drawn
        already, for another database.
        """
        made = tokens.new_in_groups(agreed.lot, shares or self.shares(agreed, count))
        for start in range(0, count, HASHES_AT_ONCE):
            part = made[start : start + HASHES_AT_ONCE]
            self._post(
                agreed, "invitations", {"hashes": [tokens.hashed(one).hex() for one in part]}
            )
        return made

    def shares(self, agreed: Agreed, count: int) -> list[int]:
        """Draw how many of so many invitations are for each wave that is not released."""
        lot = agreed.lot
        if len(lot.people) == 1:
            return [count]
        waves = decoded(self._exchange.get(path_of(lot.plan)))["waves"]
        released = sum(one["state"] == "released" for one in waves)
        return tokens.new_shares(lot, count, min(released + 1, len(lot.people)))

    def status(self, agreed: Agreed) -> State:
        """Return state, count and quorum, and those of each wave."""
        found: State = decoded(self._exchange.get(path_of(agreed.fingerprint)))
        return found

    def halves(self, fingerprint: str) -> State:
        """Tell whether those who came first and later send alike: for its administrator alone."""
        found: State = decoded(self._exchange.get(f"{path_of(fingerprint)}/halves"))
        return found

    def pause(self, agreed: Agreed) -> State:
        """Take nothing until it is resumed, and release nothing by itself."""
        return self._changed(agreed, "pause")

    def hold(self, agreed: Agreed) -> State:
        """Release no wave of a plan until it is resumed; the open one goes on collecting."""
        return self._changed(agreed, "hold")

    def resume(self, agreed: Agreed) -> State:
        """Let go on what was paused or held."""
        return self._changed(agreed, "resume")

    def move_date(self, agreed: Agreed, until: str | None) -> State:
        """Let it close at another moment, or at none."""
        return self._changed(agreed, "until", {"until": until})

    def close_collection(self, agreed: Agreed) -> State:
        """Stop collecting without publishing anything; a plan closes its waves by itself."""
        return self._changed(agreed, "close")

    def publish(self, agreed: Agreed) -> PublishedModel:
        """Close the collection, and publish its model, once; asked again, the same is returned.

        A plan publishes by itself; this ends it early, with the best model so far.
        """
        return PublishedModel.from_json(self._post(agreed, "publish").decode())

    def publish_sums(self, agreed: Agreed) -> PublishedMoments:
        """Close the collection, and publish sums that have no model of their own, once."""
        return PublishedMoments.from_json(self._post(agreed, "publish"))

    def model(self, agreed: Agreed) -> PublishedModel:
        """Return the published model."""
        found = self._exchange.get(f"{path_of(agreed.fingerprint)}/model")
        return PublishedModel.from_json(found.decode())

    def moments(self, agreement: Agreement) -> PublishedMoments:
        """Return the blurred sums of one wave, from which further models follow."""
        path = f"{path_of(agreement.fingerprint)}/moments"
        return PublishedMoments.from_json(self._exchange.get(path))

    def releases(self, agreed: Agreed) -> list[PublishedMoments]:
        """Return what the waves have published so far, in their order."""
        texts = texts_in(self._exchange.get(f"{path_of(agreed.fingerprint)}/releases"))
        return [PublishedMoments.from_json(text) for text in texts]

    def _post(self, agreed: Agreed, what: str, body: Any = None) -> bytes:
        content = b"" if body is None else msgspec.json.encode(body)
        return self._exchange.post(f"{path_of(agreed.fingerprint)}/{what}", content)

    def _changed(self, agreed: Agreed, what: str, body: Any = None) -> State:
        found: State = decoded(self._post(agreed, what, body))
        return found


# ---- before one of two databases is closed for good: do both hold about the same?

Counts = Sequence[int | None]


def counts_at(agreement: Agreement, patience: float = _SECONDS_TO_COUNT) -> Counts:
    """Return how many shares each of the two says that it holds; None where one does not say."""
    return [_count_at(agreement, one.url, patience) for one in agreement.databases]


def refuse_if_uneven(agreement: Agreement, counts: Counts) -> None:
    """Refuse to close where so many are at one database alone that nothing could be published."""
    from blurfit.store.joint import most_left_out  # which whoever only asks does not need

    known = [one for one in counts if one is not None]
    if len(known) < len(counts):
        return
    common = min(known)  # at most: those at both
    for database, role, held in zip(agreement.databases, KIND_OF, known, strict=True):
        missing = held - common
        if missing > (most := most_left_out(agreement, role, held)):
            raise ConflictError(
                f"Expected at most {most:,} of the {held:,} shares at {database.name} to be "
                f"missing at the other database, and {missing:,} are: nothing could be published "
                "once this is closed. Let those contributors send again while both collect, or "
                "close with --anyway."
            )


def _count_at(agreement: Agreement, url: str, patience: float) -> int | None:
    try:
        with RemoteDatabase(url, patience=patience, most_bytes=_MOST_BYTES) as database:
            return int(database.status(agreement)["count"])
    except (BlurfitError, KeyError, TypeError, ValueError):  # unreachable, or not a blurfit service
        return None
