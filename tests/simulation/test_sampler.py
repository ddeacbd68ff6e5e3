"""The shortcut against the long way round: contributors blur every record."""

import itertools
import math
import sys
from collections.abc import Iterable
from typing import Any

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
from blurfit.learning.sums import Statistics, Totals
from blurfit.model.release import statistics_of
from blurfit.schema.schema import values
from blurfit.simulation import (
    InputSampler,
    exact_totals,
    generator_for,
    input_totals,
    operating_system_generator,
    sampler_for,
    totals_of_products,
    weights_of,
)
from blurfit.theory import forms

TRIALS = 3000
MIXED = Schema(
    [Numeric("age", 18, 90), Binary("married"), Categorical("region", ["n", "s", "w"])],
    Numeric("income", 0, 100),
)


def numbers(dimension: int) -> Schema:
    features = [Numeric(f"x{place}", -1, 1) for place in range(dimension)]
    return Schema(features, Numeric("y", -1, 1), intercept=False)


def agreed(schema: Schema, quorum: int, mechanism: str = "input", **terms: float) -> Agreement:
    given = {"epsilon": 3.0, "delta": 1e-2, "quorum": quorum, "mechanism": mechanism, **terms}
    if mechanism == "input":
        given |= {"weight_bound": 1.0}
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


def drawn_many(
    agreement: Agreement, sampler: InputSampler, seed: int | list[int]
) -> tuple[Any, Any]:
    """(A, c) of so many draws of the sampler: (TRIALS, d, d) and (TRIALS, d)."""
    generator = np.random.default_rng(seed)
    d = agreement.schema.dimension
    sums = np.array([sampler.draw(generator).sums for _ in range(TRIALS)])
    return forms.unpack(sums[:, : forms.size(d)], d), sums[:, forms.size(d) :]


def blurred_many(agreement: Agreement, table: dict[str, np.ndarray]) -> np.ndarray:
    """What contributors would send in so many collections: (TRIALS, count, width)."""
    exact = agreement.exact(table)
    sent = blur(agreement, np.tile(exact, (TRIALS, 1))).numbers
    return sent.reshape(TRIALS, *exact.shape)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("count", "dimension", "kind"),
    [
        *((*size, kind) for size in ((40, 4), (7, 4), (12, 6)) for kind in ("random", "equal")),
        (1, 1, "random"),
        (30, 1, "random"),
    ],
)
def test_input_sampler_against_every_record(count: int, dimension: int, kind: str) -> None:
    agreement = agreed(numbers(dimension), 300)
    table = people(agreement.schema, count, seed=count + dimension)
    if kind == "equal":
        table = {name: np.repeat(column[:1], count) for name, column in table.items()}
    sampler = sampler_for(agreement, exact_totals(agreement, table))
    assert sampler.draw(np.random.default_rng(0)).count == count
    drawn, drawn_moment = drawn_many(agreement, sampler, [count, dimension, len(kind)])
    sent = blurred_many(agreement, table)
    q, p = sent[..., :dimension], sent[..., dimension:]
    gram, moment = np.swapaxes(q, 1, 2) @ q, p.sum(axis=1)
    assert_same_law(summaries(gram), summaries(drawn))
    moments = (moment, drawn_moment)
    assert_same_law(*({"first": one[:, 0], "sum": one.sum(axis=1)} for one in moments))


@pytest.mark.statistical
def test_fewer_records_than_dimensions() -> None:
    """N = 2 < d = 3: the Gram matrix stays of rank 2, and its entries are right."""
    agreement = agreed(numbers(3), 300)
    table = people(agreement.schema, 2, seed=3)
    sampler = sampler_for(agreement, exact_totals(agreement, table))
    drawn, _ = drawn_many(agreement, sampler, seed=3)
    assert (np.linalg.matrix_rank(drawn, tol=1e-9) == 2).all()
    q = blurred_many(agreement, table)[..., :3]
    right = (np.swapaxes(q, 1, 2) @ q)[:, 0, 1]
    assert ks_2samp(drawn[:, 0, 1], right, method="asymp").pvalue > 1e-7


@pytest.mark.statistical
@pytest.mark.parametrize("schema", [numbers(1), MIXED])
def test_moment_sampler_against_every_record(schema: Schema) -> None:
    """By the whole matrix that a release is read as, with what is public written into it."""
    agreement = agreed(schema, 20, mechanism="moment")
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


@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_nothing_but_noise_is_added(mechanism: str) -> None:
    """A promise so weak that the noise hardly shows: the sampler's totals are the contributors'."""
    agreement = agreed(MIXED, 30, mechanism, epsilon=1e9)
    table = people(MIXED, 40, seed=1)
    drawn = sampler_for(agreement, exact_totals(agreement, table)).draw(np.random.default_rng(0))
    sent = perturb_table(agreement, table).numbers
    if mechanism == "moment":
        assert drawn.sums == pytest.approx(sent.sum(axis=0), abs=0.1)
        return
    d = agreement.schema.dimension
    seen = statistics_of(agreement, drawn)
    assert seen.gram == pytest.approx(sent[:, :d].T @ sent[:, :d], abs=0.1)
    assert seen.moment == pytest.approx(sent[:, d:].sum(axis=0), abs=0.1)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("label", [True, False])
@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_totals_follow_from_the_products_of_the_columns(
    mechanism: str, label: bool, intercept: bool
) -> None:
    """Against adding up what each record would send."""
    target = Numeric("income", 0, 100)
    schema = Schema(MIXED.features, target.above(30) if label else target, intercept)
    table = people(MIXED, 50, seed=2)
    agreement = agreed(schema, 50, mechanism, epsilon=10.0)
    v = values(schema, table)
    rows = np.column_stack([np.ones(len(v)), v])
    found = totals_of_products(agreement, len(v), rows.T @ rows)
    exact = exact_totals(agreement, table)
    assert (found.count, found.fingerprint) == (exact.count, exact.fingerprint)
    assert found.sums == pytest.approx(exact.sums, abs=1e-10)


@pytest.mark.statistical
def test_a_billion_contributors() -> None:
    """wᵀAw is known exactly: s² times a noncentral χ²_N, here normal to within 10⁻⁴."""
    n, d = 10**9, 5
    agreement = agreed(numbers(d), n, epsilon=1.0, delta=1e-6)
    clean = input_totals(agreement, Statistics(n, n / d * np.eye(d), np.zeros(d)))
    sampler = sampler_for(agreement, clean)
    s2 = agreement.calibration.sigma_u**2 / n
    mean = n / d + n * s2
    deviation = math.sqrt(2 * s2**2 * n + 4 * s2 * n / d)
    drawn, _ = drawn_many(agreement, sampler, seed=9)
    assert kstest((drawn[:, 2, 2] - mean) / deviation, "norm").pvalue > 1e-4


@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_the_same_seed_gives_the_same_draw(mechanism: str) -> None:
    agreement = agreed(MIXED, 500, mechanism)
    sampler = sampler_for(agreement, exact_totals(agreement, people(MIXED, 500, seed=0)))
    first, second = (sampler.draw(np.random.default_rng(1)) for _ in range(2))
    assert first == second
    assert first != sampler.draw(np.random.default_rng(2))


def test_blurred_or_foreign_sums_are_refused() -> None:
    agreement = agreed(numbers(3), 300)

    def sampled(count: int, gram: np.ndarray) -> None:
        sampler_for(agreement, input_totals(agreement, Statistics(count, gram, np.ones(3))))

    with pytest.raises(InvalidValueError, match="Are these blurred statistics"):
        sampled(100, -np.eye(3))
    with pytest.raises(InvalidValueError, match="rank at most 2"):
        sampled(2, np.eye(3))
    with pytest.raises(InvalidValueError, match="nothing to blur"):
        sampled(0, np.zeros((3, 3)))
    joint = agreed(numbers(3), 300, mechanism="moment")
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
    ("kind", "mechanism", "quorum"),
    [
        *itertools.product(SCHEMAS, ["moment"], [40, 900]),
        *itertools.product(["number", "label"], ["input"], [900]),
    ],
)
def test_the_weights_are_those_that_would_be_published(kind: str, mechanism: str, quorum) -> None:
    bound = {"weight_bound": 2.0} if mechanism == "input" else {}
    agreement = Agreement.propose(
        SCHEMAS[kind], epsilon=8, delta=1e-3, quorum=quorum, mechanism=mechanism, **bound
    )
    sampler = sampler_for(agreement, exact_totals(agreement, people_weights(quorum)))
    totals = sampler.draw(np.random.default_rng(2))
    model = learn(agreement, totals)
    assert np.array_equal(weights_of(agreement, totals), model.weights)
