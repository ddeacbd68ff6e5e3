"""Two databases verify what contributors have proved, before they fix the set that they sum over.

::

    first                                            second
    ─────                                            ──────
    its half of some verifiers                ─────► its own half; decides, writes verdicts down,
    confirms, writes verdicts down            ◄───── the seeds of the joint randomness, or zeros

This is the draft's ping-pong topology (section 5.7.1), `BATCH` contributors at a time. What is
answered follows from the shares, the key and the half that was sent, and a verdict is written once:
so a batch may be asked again, by whoever was killed in between, and no verdict changes. Whoever
sends another half afterwards learns whether it fits, which it does by chance once in 2⁶⁴.
A contributor whose proof fails is left out of the set, and nobody else is.

The key follows from the secret that both services were started with, which no contributor knows
(section 9.1); it is written down before the first proof is looked at.
"""

import time
from typing import Protocol

import numpy as np

from blurfit.arrays import BoolArray, ByteArray, WordArray
from blurfit.errors import InvalidValueError
from blurfit.proofs import field
from blurfit.proofs.prio3 import HELPER, LEADER, SEED_WORDS, Halves, Prepared
from blurfit.protocol import problems
from blurfit.protocol.problems import RequestError
from blurfit.store import identifiers
from blurfit.store.collections import Collection
from blurfit.store.store import Store

BATCH = 512
_AT_ONCE = 64  # rows that are computed together, so that they stay in the cache
_SECONDS = 20.0  # after which whoever waits is told how far it is


class Verifier(Protocol):
    """The second database, as far as proofs are concerned."""

    def verify(self, names: ByteArray, words: WordArray) -> WordArray:
        """Its answers to the first's half of some verifiers: seeds, or zeros."""


def verify(
    store: Store,
    collection: Collection,
    peer: Verifier,
    theirs: ByteArray,
    key: bytes,
    seconds: float = _SECONDS,
) -> None:
    """Find a verdict on everyone whose shares both have; `RequestError` if that takes longer."""
    store.fix_verification_key(collection, key)
    done = identifiers.in_order(store.verdicts(collection))
    waiting = identifiers.in_order(identifiers.minus(theirs, done))
    ends, left = time.monotonic() + seconds, len(waiting)
    for block in store.block_keys(collection):
        found = store.rows_of(collection, block)
        if found is None:  # put together with others meanwhile: look at what is there now
            verify(store, collection, peer, theirs, key, ends - time.monotonic())
            return
        names, words = found
        wanted = identifiers.among(names, waiting)
        names, words = names[wanted], words[wanted]
        for start in range(0, len(names), BATCH):
            if time.monotonic() > ends:
                raise RequestError(
                    problems.BUSY,
                    f"Proofs are being verified, and {left:,} are still to be. Ask again: nothing "
                    "is done twice.",
                )
            some = slice(start, start + BATCH)
            _verify(store, collection, peer, names[some], words[some], key)
            left -= len(names[some])


def _verify(
    store: Store,
    collection: Collection,
    peer: Verifier,
    names: ByteArray,
    words: WordArray,
    key: bytes,
) -> None:
    prio3 = collection.agreement.proving.prio3
    prepared, canonical = _prepared(collection, names, words, key)
    answers = peer.verify(names, prepared.words())
    if answers.shape != (len(names), SEED_WORDS):
        raise InvalidValueError(f"Expected {len(names)} answers, and got {answers.shape}.")
    store.record_verdicts(collection, names, canonical & prio3.confirm(prepared, answers))


def judge(
    store: Store, collection: Collection, names: ByteArray, words: WordArray, key: bytes
) -> WordArray:
    """The second database's answers to the first's half of some verifiers."""
    store.require_consent(collection)
    store.fix_verification_key(collection, key)
    prio3 = collection.agreement.proving.prio3
    here, shares = store.rows_among(collection, names)
    places = np.flatnonzero(identifiers.among(names, here))
    answers = np.zeros((len(names), SEED_WORDS), dtype=np.uint64)
    if not len(places):
        return answers
    order = np.searchsorted(identifiers.keys(here), identifiers.keys(names[places]))
    prepared, canonical = _prepared(collection, names[places], shares[order], key)
    valid, seeds = prio3.decide(prepared, words[places])
    valid &= canonical
    valid = store.record_verdicts(collection, names[places], valid)
    answers[places[valid]] = seeds[valid]
    return answers


def _prepared(
    collection: Collection, names: ByteArray, words: WordArray, key: bytes
) -> tuple[Prepared, BoolArray]:
    """One's own half of some verifiers, and which shares are made of elements of the field."""
    prio3 = collection.agreement.proving.prio3
    parts, good = [], []
    for start in range(0, len(names), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        rows = words[some].astype(np.uint64, copy=False)
        who = LEADER if collection.role == "first" else HELPER
        halves = prio3.leader_halves(rows) if who == LEADER else prio3.helper_halves(rows)
        canonical = field.is_canonical(halves.inputs) & field.is_canonical(halves.proofs)
        modulus = np.uint64(field.MODULUS)
        halves = Halves(
            halves.inputs % modulus, halves.proofs % modulus, halves.blinds, halves.parts
        )
        parts.append(prio3.prepare(who, halves, names[some], key))
        good.append(canonical)
    fields = zip(*(vars(part).values() for part in parts), strict=True)
    return Prepared(*map(np.concatenate, fields)), np.concatenate(good)

