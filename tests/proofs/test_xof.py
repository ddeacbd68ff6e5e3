"""What the standard generator gives, and what it passes over."""

import numpy as np

from blurfit.proofs.field import MODULUS
from blurfit.proofs.prio3 import Xof, _elements


class Stream:
    """Bytes that are given, where a generator would hardly ever give them."""

    def __init__(self, words):
        self.left = np.array(words, dtype="<u8").tobytes()

    def read(self, size):
        found, self.left = self.left[:size], self.left[size:]
        return found


def test_elements_that_are_too_large_are_passed_over():
    found = _elements(Stream([5, MODULUS, MODULUS - 1, 2**64 - 1, MODULUS + 3, 7, 9]), 4)
    assert found.tolist() == [5, MODULUS - 1, 7, 9]


def test_every_part_of_the_question_changes_the_answer():
    asked = [
        Xof(algorithm, context).seed(usage, seed, binder)
        for algorithm, context, usage, seed, binder in [
            (1, b"a", 1, bytes(32), b""),
            (2, b"a", 1, bytes(32), b""),
            (1, b"b", 1, bytes(32), b""),
            (1, b"a", 2, bytes(32), b""),
            (1, b"a", 1, bytes(31) + b"\1", b""),
            (1, b"a", 1, bytes(32), b"\0"),
        ]
    ]
    assert len(set(asked)) == len(asked)
    xof = Xof(1, b"a")
    rows = xof.rows(3, [bytes(32), b"s" * 32], [b"x", b"y"], 5)
    assert np.array_equal(rows[1], xof.elements(3, b"s" * 32, b"y", 5))
