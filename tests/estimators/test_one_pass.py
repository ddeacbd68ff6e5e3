"""One pass against the schema's own encoding, row by row."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from blurfit.agreement.agreement import Agreement
from blurfit.errors import InfeasibleError
from blurfit.estimators import blocks, passes
from blurfit.estimators.passes import Rows, added
from blurfit.estimators.people import People, one_of_each
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema
from blurfit.schema.schema import values as encoded_values
from blurfit.theory.forms import WaveForm
from blurfit.theory.maps import (
    LogisticNewton,
    NewtonMap,
    PoissonNewton,
    ResidualMap,
    Whitening,
)


def reference(values, targets, columns):
    """v of the schema, row by row."""
    schema = Schema(columns, Numeric("y", -1, 1))
    table = {column.name: values[:, place] for place, column in enumerate(columns)}
    v = encoded_values(schema, table, [column.name for column in columns])
    whole = np.column_stack([np.ones(len(v)), v, targets])
    return whole.T @ whole


def columns_of(count: int) -> list[Numeric]:
    return [Numeric(f"x{i}", -1.0 - i, 2.0 + i * i) for i in range(count)]


@pytest.mark.parametrize("rows", [1, 255, 256, 257, 10_000])
@pytest.mark.parametrize("layout", ["rows", "columns", "gaps", "read-only"])
def test_against_the_schemas_encoding(monkeypatch, layout, rows) -> None:
    monkeypatch.setattr(blocks, "NUMBERS_AT_ONCE", 64)  # so blocks have 256 rows, parts 4096
    generator = np.random.default_rng(rows)
    columns = columns_of(5)
    values = 4 * generator.standard_normal((rows, 5))  # many are outside of the bounds
    targets = generator.uniform(-1, 1, (rows, 3))
    given_values = {
        "rows": values,
        "columns": np.asfortranarray(values),
        "gaps": np.repeat(values, 2, axis=1)[:, ::2],
        "read-only": values,
    }[layout]
    given_values.setflags(write=layout != "read-only")
    before = given_values.copy()
    found = Rows(given_values, targets, columns).joint.matrix(rows)
    np.testing.assert_allclose(
        found, reference(values, targets, columns), rtol=1e-12, atol=1e-12 * rows
    )
    assert np.array_equal(before, given_values)


def test_the_number_of_threads_changes_no_bit(monkeypatch) -> None:
    generator = np.random.default_rng(0)
    values, targets = (
        generator.standard_normal((200_000, 6)),
        generator.standard_normal((200_000, 2)),
    )
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(passes, "usable_cores", lambda threads=threads: threads)
        found.append(Rows(values, targets, columns_of(6)).joint.matrix(200_000))
    for other in found[1:]:
        assert np.array_equal(found[0], other)


def test_wide_tables() -> None:
    generator = np.random.default_rng(0)
    values, targets = generator.standard_normal((700, 80)), generator.standard_normal((700, 1))
    found = Rows(values, targets, columns_of(80)).joint.matrix(700)
    np.testing.assert_allclose(found, reference(values, targets, columns_of(80)), atol=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
def test_levels_and_signs_in_any_order(order) -> None:
    generator = np.random.default_rng(0)
    columns = [
        Categorical("a", ["x", "y", "z"]),
        Numeric("b", 0, 2),
        Binary("c"),
        Categorical("d", ["0", "1"]),
    ]
    values = np.column_stack(
        [
            generator.integers(0, 3, 1000),
            generator.normal(1, 1, 1000),
            generator.integers(0, 2, 1000),
            generator.integers(0, 2, 1000),
        ]
    )
    targets = generator.uniform(-1, 1, (1000, 2))
    found = Rows(np.asarray(values, order=order), targets, columns).joint.matrix(1000)
    table = {"a": np.array(["x", "y", "z"])[values[:, 0].astype(int)], "b": values[:, 1]}
    table |= {"c": values[:, 2], "d": values[:, 3]}
    v = encoded_values(Schema(columns, Numeric("t", 0, 1)), table, ["a", "b", "c", "d"])
    whole = np.column_stack([np.ones(1000), v, targets])
    np.testing.assert_allclose(found, whole.T @ whole, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float32])
def test_any_real_type_without_a_copy_of_the_table(dtype) -> None:
    values = np.random.default_rng(0).integers(0, 2, (500, 2)).astype(dtype)
    columns = [Numeric("a", -1, 3), Numeric("b", 0, 0.5)]
    found = Rows(values, np.zeros((500, 0)), columns).joint.matrix(500)
    expected = Rows(values.astype(np.float64), np.zeros((500, 0)), columns).joint.matrix(500)
    assert np.array_equal(found, expected)


@given(arrays(np.float64, (7, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_no_value_adds_more_than_one(values) -> None:
    """Whatever the data are, each |z| ≤ 1 to the last bit: privacy rests upon it."""
    columns = [Numeric("a", -1e-300, 1e300), Numeric("b", 1e9, 1e9 + 1)]
    for row in values:
        gram = Rows(row[None], np.zeros((1, 0)), columns).joint.gram
        assert (np.abs(gram) <= 1.0).all()


def test_narrow_bounds_far_from_zero_lose_no_digits() -> None:
    far = Numeric("a", 2.0**40, 2.0**40 + 1)
    found = Rows(np.array([[2.0**40 + 0.75]]), np.zeros((1, 0)), [far]).joint
    assert found.gram.tolist() == [[0.25]]


# ---- later waves, against what each row would send (`WaveForm.products`)


def a_map(kind: str, p: int, radius: float):
    """A map of p columns, of any kind: W is triangular, and far from diagonal."""
    generator = np.random.default_rng(p)
    matrix = np.tril(generator.normal(0, 0.5 / p, (p, p))) + 1.5 * np.eye(p)
    beta = generator.normal(0, 0.5 / np.sqrt(p), p)
    white = Whitening(generator.uniform(-0.2, 0.2, p), matrix, beta, 0.1)
    if kind == "residual":
        return ResidualMap(white, radius=radius, scale=0.4, bound=1.5)
    loss = LogisticNewton() if kind == "label" else PoissonNewton.of(5.0, 2.0, 3.0)
    return NewtonMap(white, loss, radius=radius, robust=kind == "label")


def sent(chart, rows: Rows) -> np.ndarray:
    """Return the sum of what each row sends, encoded by the schema and mapped by itself."""
    columns = rows.columns
    table = {column.name: rows.values[:, place] for place, column in enumerate(columns)}
    names = [column.name for column in columns]
    v = encoded_values(Schema(columns, Numeric("y", -1, 1)), table, names)
    kept = tuple(range(v.shape[1]))[: chart.whitening.dimension]
    form = WaveForm(chart, tuple(f"v{i}" for i in range(v.shape[1] + 1)), kept)
    return form, form.products(np.column_stack([v, rows.targets[:, 0]])).sum(axis=0)


@pytest.mark.parametrize("kind", ["residual", "label", "count"])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("radius", [1.2, 50.0])
@pytest.mark.parametrize(("rows", "p"), [(9000, 5), (600, 150)])
def test_later_waves_are_the_sum_of_what_each_row_sends(kind, outside, radius, rows, p) -> None:
    """Some weights are below 1 at the smaller radius, and none by public facts at the larger; with
    150 columns W is multiplied by parts. (Rows of people: `test_people`.)
    """
    generator = np.random.default_rng(0)
    columns = columns_of(p)
    low, high = (np.array([getattr(one, end) for one in columns]) for end in ("lower", "upper"))
    middle, half = (low + high) / 2, (high - low) / 2
    values = middle + (1.5 if outside else 0.999) * half * generator.uniform(-1, 1, (rows, p))
    y = generator.uniform(-1, 1, (rows, 1))
    target = np.sign(y) if kind == "label" else y
    chart = a_map(kind, p, radius)
    table = Rows(values, target, columns)
    form, expected = sent(chart, table)
    in_columns = Rows(np.asfortranarray(values), target, columns)
    for one in (table.sums(form), in_columns.sums(form)):
        np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_levels_are_whitened_where_they_are() -> None:
    """Columns of a block are in another order than those of the schema."""
    generator = np.random.default_rng(0)
    columns = [Categorical("a", ["x", "y", "z"]), Numeric("b", 0, 2), Binary("c")]
    values = np.column_stack(
        [generator.integers(0, 3, 800), generator.uniform(0, 2, 800), generator.integers(0, 2, 800)]
    )
    target = generator.uniform(-1, 1, (800, 1))
    rows = Rows(values, target, columns)
    table = {"a": np.array(["x", "y", "z"])[values[:, 0].astype(int)]}
    table |= {"b": values[:, 1], "c": values[:, 2]}
    v = encoded_values(Schema(columns, Numeric("y", -1, 1)), table, ["a", "b", "c"])
    for radius in (1.2, 50.0):
        form = WaveForm(a_map("residual", 4, radius), tuple("xyzbct"), (0, 1, 3, 4))
        assert len(rows.joint.total) == 5
        expected = form.products(np.column_stack([v, target])).sum(axis=0)
        np.testing.assert_allclose(rows.sums(form), expected, rtol=1e-12, atol=1e-10)


def test_one_record_stays_in_the_ball_where_every_weight_is_known_to_be_one() -> None:
    """At the corner that is farthest, with the least radius that reaches it."""
    chart = a_map("residual", 5, 1.0)
    white = chart.whitening
    farthest = np.linalg.norm(np.abs(white.matrix) @ (1 + np.abs(white.mean))) / np.sqrt(5)
    form = WaveForm(replace(chart, radius=float(farthest)), tuple("abcdet"), (0, 1, 2, 3, 4))
    columns = [Numeric(name, 3, 7) for name in "abcde"]
    for corner in itertools.product((3.0, 7.0), repeat=5):
        rows = Rows(np.array([corner]), np.array([[1.0]]), columns)
        assert rows.joint.matrix(1).shape == (7, 7)
        assert np.sqrt(rows.sums(form) ** 2 @ form.counts) <= form.bound


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("kind", ["residual", "label", "count"])
def test_squares_are_of_one_of_each_k_rows_or_people(kind, stride) -> None:
    """Against what each row, or each person, would send."""
    generator = np.random.default_rng(4)
    values, y = generator.uniform(-1, 1, (500, 3)), generator.uniform(-1, 1, (500, 1))
    target = np.sign(y) if kind == "label" else y
    chart = replace(a_map(kind, 3, 1.2), robust=True, stride=stride)
    form = WaveForm(chart, ("x0", "x1", "x2", "y"), (0, 1, 2))
    columns = [Numeric(f"x{place}", -1, 1) for place in range(3)]
    rows = np.column_stack([values, target])
    sent, squares = form.products(rows), 10  # of three columns and the constant
    parts = [(slice(-squares), 1), (slice(-squares, None), stride)]  # of how many rows is one
    got = Rows(values, target, columns).sums(form)
    for part, each in parts:
        np.testing.assert_allclose(got[part], sent[one_of_each(500, each), part].sum(axis=0))
    whose = generator.integers(0, 60, 500)
    got = Rows(values, target, columns, People.of(whose, 500)).sums(form)
    sent = np.array([form.pooled(rows[whose == one]) for one in np.unique(whose)])
    for part, each in parts:
        mine = sent[one_of_each(60, each), part]
        np.testing.assert_allclose(got[part], mine.sum(axis=0), atol=1e-12)


# ---- many columns


def many(rows: int, p: int, outside: bool = False, lower: float = 0.0) -> Rows:
    """Rows of p columns with bounds of their own; one of them a little outside, if asked for."""
    generator = np.random.default_rng(p)
    width = 1 + np.arange(p) % 3
    columns = [Numeric(f"x{i}", lower, lower + width[i]) for i in range(p)]
    values = lower + width * generator.uniform(0, 1, (rows, p))
    values[-1, 0] += 2.0 * outside
    return Rows(values, generator.uniform(-1, 1, (rows, 1)), columns)


def a_form(p: int, radius: float = 1.0, *, robust: bool = False, kind: str = "residual"):
    chart = a_map(kind, p, radius)
    white = replace(chart.whitening, matrix=1.12 * chart.whitening.matrix)  # ‖f‖/√p near 1
    chart = replace(chart, whitening=white, **({"robust": robust} if kind == "residual" else {}))
    return WaveForm(chart, tuple(f"v{i}" for i in range(p + 1)), tuple(range(p)))


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("radius", [1.05, 1.2, 40.0])
def test_many_columns_give_what_each_row_sends(radius, outside, robust) -> None:
    """A few rows are cut at the smallest radius, one or none at the next, none at the largest."""
    p = 70
    table, form = many(9000, p, outside), a_form(p, radius, robust=robust)
    columns = [Numeric(one.name, one.lower, one.upper) for one in table.columns]
    names = {one.name: table.values[:, at] for at, one in enumerate(columns)}
    v = encoded_values(Schema(columns, Numeric("y", -1, 1)), names, list(names))
    expected = form.products(np.column_stack([v, table.targets])).sum(axis=0)
    np.testing.assert_allclose(
        table.sums(form), expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max()
    )


@pytest.mark.parametrize("seed", range(4))
def test_one_record_changes_no_sum_by_more_than_its_own_share(seed) -> None:
    """It may leave its bounds, or be cut: what rounding adds is far below what Δ keeps back."""
    p, generator = 70, np.random.default_rng(seed)
    table, form = many(2000, p), a_form(p, 1.05, robust=bool(seed % 2))
    place = int(generator.choice([0, 1500]))
    sums = []
    for value in (0.5, 1e6, -1e6, 3.0):
        values = table.values.copy()
        values[place] = value if seed < 2 else generator.choice([0.5, value], p)
        one = Rows(values, table.targets, table.columns)
        assert one.joint.gram.shape == (p, p)
        alone = Rows(values[[place]], table.targets[[place]], table.columns)
        _, v = next(alone.encoder.blocks(alone.values))
        own = form.products(np.column_stack([v, alone.targets]))[0]
        sums.append(one.sums(form) - own)
    for other in sums[1:]:
        assert np.sqrt((other - sums[0]) ** 2 @ form.counts) < 2.0**-22


# ---- no bit of a row's numbers depends on another row


@pytest.mark.parametrize("kind", ["residual", "label", "count"])
@pytest.mark.parametrize("p", [5, 70])
def test_what_is_computed_alone_is_the_same_at_every_place(kind, p) -> None:
    generator, form = np.random.default_rng(1), a_form(p, 1.2, kind=kind)
    v, t = generator.uniform(-1, 1, (400, p)), generator.uniform(-1, 1, 400)

    def numbers(order):
        rows = np.ascontiguousarray(v[order]), t[order]
        if kind == "residual":
            return form.chart.columns(*rows, form.sizes(*rows))
        x, g, h = form.chart.columns(*form._read(*rows), alone=True)
        return np.vstack([x, g, h])

    together = numbers(np.arange(400))
    for start in (1, 3, 7, 130):
        assert np.array_equal(numbers(np.arange(start, 400)), together[:, start:])
    order = generator.permutation(400)
    assert np.array_equal(numbers(order), together[:, order])
    for place in (0, 5, 399):
        assert np.array_equal(numbers(np.array([place])), together[:, [place]])


def test_sums_of_many_parts_are_right_to_the_last_bits() -> None:
    generator = np.random.default_rng(0)
    parts = generator.standard_normal((20_000, 3)) * 10.0 ** generator.integers(-8, 9, (20_000, 1))
    exact = [math.fsum(column) for column in parts.T]
    np.testing.assert_allclose(added(parts), exact, rtol=2.0**-51)
    assert (np.abs(np.cumsum(parts, axis=0)[-1] - exact) > 2.0**-51 * np.abs(exact)).any()


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("kind", ["residual", "label", "count"])
@pytest.mark.parametrize("robust", [False, True])
def test_rounding_is_within_what_is_kept_back_up_to_the_largest_count(
    kind, robust, neighbours
) -> None:
    """Nobody's numbers are longer than Δ, of which 2⁻¹³ pay for the order of additions."""
    chart = replace(a_map(kind, 5, 1.2), robust=robust)
    form = WaveForm(chart, tuple("abcdet"), (0, 1, 2, 3, 4))
    assert form.bound <= form.sensitivity(neighbours)
    most = (blocks.MAX_ROWS + 20) * 2.0**-52 * passes.LARGEST_COUNT
    assert most * form.bound <= 2.0**-13 * form.sensitivity(neighbours)


def test_more_rows_than_rounding_is_paid_for_are_refused() -> None:
    schema = Schema([Numeric("a", 0, 1)], Numeric("y", 0, 1))
    agreement = Agreement.propose(schema, epsilon=50.0, delta=1e-6, quorum=1000)
    passes.require_room(agreement, 10**8)
    with pytest.raises(InfeasibleError, match="at most 100,000,000 rows"):
        passes.require_room(agreement, 10**8 + 1)
