"""The shortcut against the long way round: contributors blur every record."""

import itertools
import signal
import sys
import threading
import time
from collections.abc import Iterable

import numpy as np
import pytest
from randomgen import ChaCha
from scipy.stats import ks_2samp, kstest

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    InvalidValueError,
    Numeric,
    Schema,
    chacha,
    learn,
)
from blurfit import randomness as bits
from blurfit.contributor.blur import blur, perturb_table
from blurfit.learning.sums import Totals
from blurfit.schema.schema import values
from blurfit.simulation import (
    exact_totals,
    generator_for,
    operating_system_generator,
    sampler_for,
    totals_of_products,
    weights_of,
)

TRIALS = 3000
MIXED = Schema(
    [Numeric("age", 18, 90), Binary("married"), Categorical("region", ["n", "s", "w"])],
    Numeric("income", 0, 100),
)


def numbers(dimension: int) -> Schema:
    features = [Numeric(f"x{place}", -1, 1) for place in range(dimension)]
    return Schema(features, Numeric("y", -1, 1), intercept=False)


def agreed(schema: Schema, quorum: int, **terms: float) -> Agreement:
    given = {"epsilon": 3.0, "delta": 1e-2, "quorum": quorum, **terms}
    return Agreement.propose(schema, **given)


def people(schema: Schema, count: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    table = {}
    for one in (*schema.features, schema.target):
        if isinstance(one, Numeric):
            table[one.name] = generator.uniform(one.lower, one.upper, count)
        elif isinstance(one, Binary):
            table[one.name] = generator.integers(0, 2, count)
        else:
            table[one.name] = generator.choice(np.array(one.levels, dtype=object), count)
    return table


def summaries(matrices: np.ndarray) -> dict[str, np.ndarray]:
    """Entries, log-determinant, smallest eigenvalue and an inverse entry of each matrix: what a
    wrong joint distribution would show in."""
    sign, logarithm = np.linalg.slogdet(matrices)
    singular = (sign == 0)[:, None, None]
    inverse = np.linalg.inv(np.where(singular, np.eye(matrices.shape[-1]), matrices))
    first, last, corner = matrices[:, 0, 0], matrices[:, -1, -1], matrices[:, 0, -1]
    return {
        "diagonal": first,
        "off-diagonal": corner,
        "product": first * last - corner**2,
        "smallest eigenvalue": np.linalg.eigvalsh(matrices)[:, 0],
        "last": last,
        "sum": matrices.sum(axis=(1, 2)),
        "log-determinant": sign * logarithm,
        "inverse": np.where(sign == 0, 0.0, inverse[:, 0, 0]),
    }


def assert_same_law(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> None:
    for name in left:
        # The exact method does not converge at this size.
        result = ks_2samp(left[name], right[name], method="asymp")
        assert result.pvalue > 1e-7, name  # what contributors draw cannot be replayed


def blurred_many(agreement: Agreement, table: dict[str, np.ndarray]) -> np.ndarray:
    """What contributors would send in so many collections: (TRIALS, count, width)."""
    exact = agreement.exact(table)
    sent = blur(agreement, np.tile(exact, (TRIALS, 1))).numbers
    return sent.reshape(TRIALS, *exact.shape)


@pytest.mark.statistical
@pytest.mark.parametrize("schema", [numbers(1), MIXED])
def test_moment_sampler_against_every_record(schema: Schema) -> None:
    """By the whole matrix that a release is read as, with what is public written into it."""
    agreement = agreed(schema, 20)
    table = people(schema, 25, seed=5)
    sampler = sampler_for(agreement, exact_totals(agreement, table))
    generator = np.random.default_rng(6)

    def read(sums: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        matrices = np.array([agreement.form.matrix(one, 25) for one in sums])
        first = {"mean": matrices[:, 0, 1], "target": matrices[:, 0, -1]}
        return summaries(matrices[:, 1:, 1:]) | first

    drawn = read(sampler.draw(generator).sums for _ in range(TRIALS))
    sent = blurred_many(agreement, table).sum(axis=1)
    assert_same_law(read(sent), drawn)


def test_nothing_but_noise_is_added() -> None:
    """A promise so weak that the noise hardly shows: the sampler's totals are the contributors'."""
    agreement = agreed(MIXED, 30, epsilon=1e9)
    table = people(MIXED, 40, seed=1)
    drawn = sampler_for(agreement, exact_totals(agreement, table)).draw(np.random.default_rng(0))
    sent = perturb_table(agreement, table).numbers
    assert drawn.sums == pytest.approx(sent.sum(axis=0), abs=0.1)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("label", [True, False])
def test_totals_follow_from_the_products_of_the_columns(label: bool, intercept: bool) -> None:
    """Against adding up what each record would send."""
    target = Numeric("income", 0, 100)
    schema = Schema(MIXED.features, target.above(30) if label else target, intercept)
    table = people(MIXED, 50, seed=2)
    agreement = agreed(schema, 50, epsilon=10.0)
    v = values(schema, table)
    rows = np.column_stack([np.ones(len(v)), v])
    found = totals_of_products(agreement, len(v), rows.T @ rows)
    exact = exact_totals(agreement, table)
    assert (found.count, found.fingerprint) == (exact.count, exact.fingerprint)
    assert found.sums == pytest.approx(exact.sums, abs=1e-10)


def test_the_same_seed_gives_the_same_draw() -> None:
    agreement = agreed(MIXED, 500)
    sampler = sampler_for(agreement, exact_totals(agreement, people(MIXED, 500, seed=0)))
    first, second = (sampler.draw(np.random.default_rng(1)) for _ in range(2))
    assert first == second
    assert first != sampler.draw(np.random.default_rng(2))


def test_blurred_or_foreign_sums_are_refused() -> None:
    agreement, joint = agreed(numbers(3), 301), agreed(numbers(3), 300)
    with pytest.raises(InvalidValueError, match="14 sums of this agreement"):
        sampler_for(joint, Totals(300, np.zeros(7), joint.fingerprint))
    with pytest.raises(InvalidValueError, match="another agreement"):
        sampler_for(joint, Totals(300, np.zeros(joint.width), agreement.fingerprint))


# ---- generators: by the operating system, or by a seed for experiments
def test_the_key_is_the_operating_systems_and_cryptographic(monkeypatch) -> None:
    monkeypatch.setattr(bits, "octets", lambda count: (7).to_bytes(count))
    generator = operating_system_generator()
    assert generator.random() == np.random.Generator(ChaCha(key=7, rounds=20)).random()
    assert kstest(generator.standard_normal(5000), "norm").pvalue > 1e-4  # the key is fixed here


@pytest.mark.parametrize(
    "draw",
    [
        lambda generator: generator.random(20_000),
        lambda generator: generator.standard_normal(999),
        lambda generator: generator.random(51, dtype=np.float32),
        lambda generator: generator.integers(0, 7, 33, dtype=np.uint32),
        lambda generator: generator.integers(0, 2**40, 100),
        lambda generator: generator.integers(0, 100, 7, dtype=np.uint8),
        lambda generator: generator.chisquare(5, 100),
        lambda generator: generator.poisson(3.0, 100),
        lambda generator: generator.permutation(50),
        lambda generator: generator.bytes(1001),
    ],
)
@pytest.mark.parametrize("key", [0, 7, 2**256 - 1])
def test_the_stream_is_the_same_without_randomgen(key: int, draw, monkeypatch) -> None:
    """The other package computes ChaCha20 by code of its own; 1 word before moves the rest."""
    compiled = np.random.Generator(ChaCha(key=key, rounds=20))
    monkeypatch.setitem(sys.modules, "randomgen", None)
    fed = chacha.generator(key)
    assert isinstance(fed.bit_generator, chacha.Stream)
    for early in (0, 1):
        for one in (compiled, fed):
            one.random(early, dtype=np.float32)  # 32 bits
        assert np.array_equal(draw(compiled), draw(fed))
    assert fed.random() == compiled.random()


def test_the_stream_goes_on_where_its_cipher_ends(monkeypatch) -> None:
    """`cryptography` refuses more than 2³² blocks; the counter of the other has 64 bits."""
    stream = np.frombuffer(next(chacha._octets(7, 1)), "<u8")
    words = 16 * 2**32
    assert np.array_equal(stream[:99], ChaCha(key=7, rounds=20, counter=words).random_raw(99))
    monkeypatch.setattr(chacha, "_OCTETS_OF_COUNTER", 2**17)
    fed = np.random.Generator(chacha.Stream(7))
    assert np.unique(fed.integers(0, 2**64, 2**16, dtype=np.uint64)).size == 2**16


def test_a_signal_between_two_numbers_leaves_none_of_them_zero(monkeypatch) -> None:
    """NumPy would take what a function of Python's fails to return for a 0."""
    unseen = []
    monkeypatch.setattr(sys, "unraisablehook", unseen.append)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    generator = np.random.Generator(chacha.Stream(7))
    timer = threading.Timer(0.02, signal.raise_signal, [signal.SIGINT])
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            generator.standard_normal(400_000)
            time.sleep(5)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert not unseen
    assert np.count_nonzero(generator.standard_normal(1000)) == 1000


def test_numpys_global_seed_has_no_say() -> None:
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        drawn.append(generator_for(None).random())
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("bad", [-1, "seed", 1.5])
def test_what_is_no_seed_is_refused(bad) -> None:
    with pytest.raises(InvalidValueError, match=r"random_state=.* whole number >= 0"):
        generator_for(bad)


# ---- weights
FEATURES = [Numeric("a", -1, 1), Numeric("b", 0, 5), Categorical("c", ["x", "y", "z"])]
SCHEMAS = {
    "number": Schema(FEATURES, Numeric("y", -1, 1)),
    "label": Schema(FEATURES, Numeric("y", -1, 1).above(0)),
    "classes": Schema(FEATURES[:2], FEATURES[2]),
}


def people_weights(count: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    a, b = generator.uniform(-1, 1, count), generator.uniform(0, 5, count)
    y = np.clip(0.4 * a - 0.1 * b + generator.normal(0, 0.2, count), -1, 1)
    return {"a": a, "b": b, "y": y, "c": generator.choice(["x", "y", "z"], count)}


@pytest.mark.parametrize(
    ("kind", "quorum"),
    [
        *itertools.product(SCHEMAS, [40, 900]),
    ],
)
def test_the_weights_are_those_that_would_be_published(kind: str, quorum) -> None:
    agreement = Agreement.propose(SCHEMAS[kind], epsilon=8, delta=1e-3, quorum=quorum)
    sampler = sampler_for(agreement, exact_totals(agreement, people_weights(quorum)))
    totals = sampler.draw(np.random.default_rng(2))
    model = learn(agreement, totals)
    assert np.array_equal(weights_of(agreement, totals), model.weights)
