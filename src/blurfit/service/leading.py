"""The first of a plan's two databases leads it from wave to wave: `blurfit.store.joint_plans`, step
by step, over a wire that may break at any of them.

Each plan has a thread of its own while there is something to do, so that a database that hangs
keeps nobody else waiting. Whatever fails is tried again, soon and then less often: nothing is done
twice, wherever it was broken off.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.arrays import ByteArray, WordArray
from blurfit.errors import (
    BelowQuorumError,
    BlurfitError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    ServiceError,
)
from blurfit.protocol import tokens
from blurfit.protocol.http import Closeable, Exchange
from blurfit.protocol.wire import plan_path
from blurfit.service.documents import ReleasedWave, ToldPlan
from blurfit.service.peer import RemotePeer, shared_secret
from blurfit.service.signatory import Signatory
from blurfit.store import (
    commitment,
    joint_plans,
    joint_publication,
    plan_leader,
    plan_rows,
    plans,
    shared_sums,
)
from blurfit.store.advance import learn_model
from blurfit.store.collections import Collection
from blurfit.store.joint_plans import News
from blurfit.store.store import Store

_log = logging.getLogger(__name__)

SECONDS_TO_ANSWER = 5.0  # for which the second database is tried, each time
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before it is tried again
_SHORTEST_PAUSE = 0.1
_MOST_BYTES = 2**22  # of an answer to news


class TooFewError(BelowQuorumError):
    """Enough shares are here, but `missing` of them are not at the other database."""

    def __init__(self, missing: int) -> None:
        super().__init__(
            f"Expected the quorum of the wave at both databases, and {missing} more are needed: "
            "some contributors have reached this database and not the other."
        )
        self.missing = missing


class WavePeer(Protocol):
    """The second database, as the first sees it in one wave."""

    def identifiers(self) -> ByteArray:
        """Everyone whose share it has, in order."""

    def close_wave(self) -> None:
        """Let it close the wave."""

    def masks(self, digest: bytes, count: int, left_out: ByteArray) -> WordArray:
        """Σ mask over the set that is left without these, which it commits to."""

    def release(self, moments: str, following: str | None) -> None:
        """Give it a wave's sums, and the fingerprint of the wave that follows."""


class Follower(Protocol):
    """The second of a plan's databases, as the first sees it."""

    def wave(self, agreement: Agreement) -> WavePeer:
        """It, in one wave."""

    def tell(self, news: News) -> None:
        """Let it know how the plan stands here."""


def lead(store: Store, fingerprint: str, follower: Follower) -> None:
    """Take a plan as far as it goes now, and let the second database know."""
    if store.read(plan_leader.is_past, fingerprint):  # also if a release was not taken so far
        end(store, fingerprint, follower)
        return
    deliver(store, fingerprint, follower)
    while (wave := store.read(plan_leader.ready, fingerprint)) is not None:
        step(store, wave, follower.wave(wave.agreement))
        deliver(store, fingerprint, follower)
    learn_model(store, fingerprint)
    tell(store, fingerprint, follower)


def step(store: Store, wave: Collection, peer: WavePeer, *, end: bool = False) -> None:
    """Publish the open wave with the second database, and open the next; or end with it."""
    if store.read(commitment.recorded, wave) is None:
        missing = store.read(plan_leader.missing, wave, peer.identifiers())
        if missing > 0:
            raise TooFewError(missing)
        peer.close_wave()
    chosen, left_out = store.write(plan_leader.fix, wave, peer.identifiers(), end=end)
    masks = peer.masks(chosen.digest, chosen.count, left_out)
    count, words = store.read(shared_sums.together, wave, masks)
    release = plan_leader.release_of(wave, count, words)
    store.write(plan_leader.publish, wave, release, end=end)


def deliver(store: Store, fingerprint: str, follower: Follower) -> None:
    """Give the second database each release that it may not have, in their order."""
    for wave, moments, following in store.read(plan_leader.undelivered, fingerprint):
        follower.wave(wave.agreement).release(moments, following)
        store.write(joint_publication.deliver, wave)


def tell(store: Store, fingerprint: str, follower: Follower) -> None:
    """Let the second database know if the plan is held, goes on, or has ended."""
    news = store.read(plan_leader.news, fingerprint)
    if news is not None:
        follower.tell(news)
        store.write(joint_plans.tell, fingerprint, news.state)


def end(store: Store, fingerprint: str, follower: Follower) -> str | None:
    """End a plan now, with the open wave if both have its quorum; the model's text, if any.

    What cannot be reached is tried again later by `lead`. Only if the open wave may be full, and
    the second database does not answer, an error is raised and nothing has ended, unless the plan
    is held: then it ends without that wave.
    """
    wave = store.read(plan_leader.ready, fingerprint, end=True)
    if wave is not None:
        try:
            step(store, wave, follower.wave(wave.agreement), end=True)
        except ServiceError as error:
            if store.read(plans.status, fingerprint).state != "held":
                raise ServiceError(
                    f"{error} Nothing has ended. Ask again when it is back; or hold the plan, and "
                    "end it without the open wave.",
                    error.status,
                ) from error
        except (InfeasibleError, InvalidValueError, NotCertifiedError) as refusal:
            _log.info("Plan %s ends without its open wave: %s", fingerprint, refusal)
    store.write(plan_leader.end_without_the_open_wave, fingerprint)
    text = learn_model(store, fingerprint)
    try:
        deliver(store, fingerprint, follower)
        tell(store, fingerprint, follower)
    except BlurfitError as error:
        _log.warning(
            "Plan %s has ended here, and not yet at the other database: %s", fingerprint, error
        )
    return text


class RemoteWavePeer(RemotePeer):
    """The second database over HTTP, in one wave of a plan."""

    def close_wave(self) -> None:
        """Let it close the wave."""
        self._exchange.post(f"{self._path}/close")

    def release(self, moments: str, following: str | None) -> None:
        """Give it a wave's sums, and the fingerprint of the wave that follows."""
        body = msgspec.json.encode(ReleasedWave(moments, following))
        self._exchange.post(f"{self._path}/release", body)


class RemoteFollower(Closeable):
    """The second database of a plan over HTTP; options are those of `RemotePeer`."""

    def __init__(self, plan: Plan, secret: str, **options: Any) -> None:
        self._plan, self._secret = plan, secret
        self._options = {"patience": SECONDS_TO_ANSWER} | options
        self._peers: dict[str, RemoteWavePeer] = {}
        self._exchange = Exchange(
            plan.databases[1].url,
            token=tokens.for_agreement(secret, plan.fingerprint),
            most_bytes=_MOST_BYTES,
            **self._options,
        )

    def wave(self, agreement: Agreement) -> RemoteWavePeer:
        """It, in one wave."""
        if (found := self._peers.get(agreement.fingerprint)) is None:
            found = RemoteWavePeer(agreement, self._secret, **self._options)
            self._peers[agreement.fingerprint] = found
        return found

    def tell(self, news: News) -> None:
        """Let it know how the plan stands here."""
        body = msgspec.json.encode(ToldPlan(*news))
        self._exchange.post(f"{plan_path(self._plan.fingerprint)}/shares/state", body)

    def close(self) -> None:
        """Hang up."""
        self._exchange.close()
        for peer in self._peers.values():
            peer.close()


@dataclass(eq=False)
class Leading:
    """Leads the plans of a store whose first database this is; `secret` is what both share."""

    store: Store
    secret: str | None = field(repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    clock: Callable[[], float] = time.monotonic
    signing: Signatory | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._pauses: dict[str, float] = {}  # by plan, in seconds
        self._not_before: dict[str, float] = {}
        self._wanted: dict[str, int] = {}  # shares here, before it is worth asking again

    def due(self) -> list[str]:
        """The plans for which something is to be done now."""
        if self.secret is None:
            return []
        now = self.clock()
        return [
            one
            for one in self.store.read(plan_leader.leading)
            if self._not_before.get(one, 0.0) <= now or self._is_worth_asking(one)
        ]

    def seconds_to_wait(self, at_most: float) -> float:
        """How long nothing is to be tried again."""
        now = self.clock()
        soonest = min(self._not_before.values(), default=now + at_most)
        return min(at_most, max(soonest - now, _SHORTEST_PAUSE))

    def forward(self, fingerprint: str) -> None:
        """Take a plan forward, or note when to try again."""
        try:
            with self._follower(fingerprint) as follower:
                lead(self.store, fingerprint, follower)
            self._sign(fingerprint)
        except BlurfitError as error:
            pause = self._pauses.get(fingerprint, FIRST_PAUSE)
            self._pauses[fingerprint] = min(2 * pause, LONGEST_PAUSE)
            self._not_before[fingerprint] = self.clock() + pause
            if isinstance(error, TooFewError):
                self._wanted[fingerprint] = error.missing + self._come(fingerprint)
            _log.warning("Plan %s was not taken forward yet: %s", fingerprint, error)
            return
        self._pauses.pop(fingerprint, None)
        self._not_before.pop(fingerprint, None)
        self._wanted.pop(fingerprint, None)

    def end(self, fingerprint: str) -> str | None:
        """End a plan now: see `end`."""
        with self._follower(fingerprint) as follower:
            text = end(self.store, fingerprint, follower)
        self._sign(fingerprint)
        return text

    def _sign(self, fingerprint: str) -> None:
        """Let each have the other's signatures of what both have published, where they sign."""
        for wave in self.store.read(plan_rows.agreements, fingerprint):
            if self.signing is not None and wave.signing_keys:
                self.signing.exchange(wave.fingerprint, self.secret, **self.options)

    def _is_worth_asking(self, fingerprint: str) -> bool:
        wanted = self._wanted.get(fingerprint)
        return wanted is not None and self._come(fingerprint) >= wanted

    def _come(self, fingerprint: str) -> int:
        return self.store.read(plans.newest, fingerprint)[0]

    def _follower(self, fingerprint: str) -> AbstractContextManager[RemoteFollower]:
        secret = shared_secret(self.secret)
        plan = self.store.read(plans.plan_of, fingerprint)
        return RemoteFollower(plan, secret, **self.options)
