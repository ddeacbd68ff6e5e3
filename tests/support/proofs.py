"""A small circuit, and both databases' verdicts on what is shared under it."""

import secrets

import numpy as np

from blurfit.proofs.prio3 import HELPER, LEADER, Prio3, ShortVector, Xof

WEIGHTS, DIGITS, CEILING = (1, 2, 2, 1, 2), 3, 300
CIRCUIT = ShortVector(WEIGHTS, DIGITS, CEILING)
PRIO3 = Prio3(CIRCUIT, 3, Xof(0xFFFFB1F1, b"f" * 32))
KEY = b"k" * 32


def identifiers(count, seed=1):
    return np.random.default_rng(seed).integers(0, 256, (count, 16), dtype=np.uint8)


def shared(inputs, names, prio3=PRIO3):
    return prio3.shard(inputs, names, [secrets.token_bytes(128) for _ in names])


def verdicts(first, second, names, *, helper_names=None, prio3=PRIO3, key=KEY):
    """Both databases' verdicts, by the protocol."""
    others = names if helper_names is None else helper_names
    leader = prio3.prepare(LEADER, prio3.leader_halves(first), names, key)
    helper = prio3.prepare(HELPER, prio3.helper_halves(second), others, key)
    valid, answers = prio3.decide(helper, leader.words())
    confirmed = prio3.confirm(leader, answers)
    assert not (confirmed & ~valid).any()
    return confirmed


def vectors(count, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(-6, 7, (count, len(WEIGHTS)))


def norms(vector):
    return (np.array(WEIGHTS) * vector**2).sum(axis=1)
