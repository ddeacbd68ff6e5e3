"""What a proof proves depends on a test point that nobody knows, and that may be used."""

import numpy as np

from blurfit.proofs import field
from blurfit.proofs.prio3 import Flp
from support.proofs import CIRCUIT, KEY, PRIO3, identifiers, vectors


def test_a_guessed_test_point_is_needed_to_cheat():
    """With the verification key one can prove anything: so it is never told, and the tests above
    can fail.
    """
    flp = Flp(CIRCUIT)
    digits = CIRCUIT.digits_of(np.array([[31, -32, 31, -32, 31]]))
    inputs = np.hstack([digits, np.full((1, CIRCUIT.norm_digits), 3, np.uint64)])
    names = identifiers(1)
    joint = np.array([[5]], dtype=np.uint64)
    query = PRIO3.xof.rows(5, [KEY], [b"\3" + names[0].tobytes()], 3 * flp.query_random)
    random = query[:, :1]
    proof = flp.prove(inputs, np.full((1, CIRCUIT.arity), 7, np.uint64), joint)
    verifier, usable = flp.query(inputs, proof[:, None], random[:, None], joint[:, None], 1)
    assert usable.all()
    assert not flp.decide(verifier).any()

    def moved(scale):  # f + λ·(x − t) is f at t, and gives another output
        changed = proof.copy()
        start, t = CIRCUIT.arity, int(random[0, 0])
        changed[0, start + 1] = field.add(changed[0, start + 1], np.uint64(scale))
        changed[0, start] = field.sub(changed[0, start], field.element(scale * t))
        found, _ = flp.query(inputs, changed[:, None], random[:, None], joint[:, None], 1)
        assert np.array_equal(found[..., 1:], verifier[..., 1:])
        return found

    slope = int(field.sub(moved(1), verifier)[0, 0, 0])
    scale = -int(verifier[0, 0, 0]) * field.inverse(slope) % field.MODULUS
    assert flp.decide(moved(scale)).all()


def test_test_points_that_are_roots_of_unity_are_refused():
    flp = Flp(CIRCUIT)
    inputs = CIRCUIT.encode(vectors(1))
    joint = np.array([[5]], dtype=np.uint64)
    proof = flp.prove(inputs, np.full((1, CIRCUIT.arity), 7, np.uint64), joint)
    for power in (0, 1, flp.order - 1):
        root = pow(field.root_of_unity(flp.order), power, field.MODULUS)
        random = np.array([[root]], dtype=np.uint64)
        _, usable = flp.query(inputs, proof[:, None], random[:, None], joint[:, None], 1)
        assert not usable.any()
