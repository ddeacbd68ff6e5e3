"""One pass against the schema's own encoding, row by row."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from blurfit.estimators import blocks, passes
from blurfit.estimators.blocks import add_products, reaches_all, symmetric
from blurfit.estimators.passes import Rows
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
    found = [table.sums(form)]
    assert table.joint.gram.shape == (p, p)  # now it is known what is inside
    assert table.inside is not outside
    assert table.folded(chart) == (not outside and kind in ("residual", "label"))
    assert reaches_all(chart) == (radius == 50)
    found.append(table.sums(form))
    found.append(Rows(np.asfortranarray(values), target, columns, inside=not outside).sums(form))
    for one in found:
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
        assert not rows.folded(form.chart)
        expected = form.products(np.column_stack([v, target])).sum(axis=0)
        np.testing.assert_allclose(rows.sums(form), expected, rtol=1e-12, atol=1e-10)


def test_one_record_stays_in_the_ball_where_every_weight_is_known_to_be_one() -> None:
    """At the corner that is farthest, with the least radius that reaches it."""
    chart = a_map("residual", 5, 1.0)
    white = chart.whitening
    farthest = np.linalg.norm(np.abs(white.matrix) @ (1 + np.abs(white.mean))) / np.sqrt(5)
    form = WaveForm(replace(chart, radius=float(farthest)), tuple("abcdet"), (0, 1, 2, 3, 4))
    assert reaches_all(form.chart)
    assert not reaches_all(replace(chart, radius=float(farthest) * (1 - 1e-6)))
    columns = [Numeric(name, 3, 7) for name in "abcde"]
    for corner in itertools.product((3.0, 7.0), repeat=5):
        rows = Rows(np.array([corner]), np.array([[1.0]]), columns)
        assert rows.joint.matrix(1).shape == (7, 7)
        assert np.sqrt(rows.sums(form) ** 2 @ form.counts) <= form.bound


@pytest.mark.parametrize(
    ("lower", "rows", "large", "folds"),
    [(0, 1, 1.0, True), (2**40, 1, 1.0, False), (0, 1, 1e9, False), (200, 10**6, 1e4, False)],
)
def test_what_would_lose_digits_is_not_folded(lower, rows, large, folds) -> None:
    """Narrow bounds far from zero; a map whose large numbers cancel, or do for very many rows."""
    values = np.broadcast_to(lower + 0.75, (rows, 1))
    table = Rows(values, np.zeros((rows, 1)), [Numeric("a", lower, lower + 1)])
    assert table.joint.total.tolist() == [0.5 * rows]
    assert table.inside
    chart = ResidualMap(Whitening([0.5], [[large]], [0.1]), radius=1.0, scale=0.4, bound=1.5)
    assert table.folded(chart) == folds


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


def test_rows_with_weights_keep_them_where_every_record_is_reached() -> None:
    """The products of the first wave are not taken again for rows that do not count alike."""
    generator = np.random.default_rng(0)
    values, target = generator.uniform(-1, 1, (300, 5)), generator.uniform(-1, 1, (300, 1))
    scales, columns = generator.uniform(0, 1, 300), [Numeric(name, -1, 1) for name in "abcde"]
    rows = Rows(values, target, columns, scales=scales)
    form = WaveForm(a_map("residual", 5, 50.0), tuple("abcdet"), (0, 1, 2, 3, 4))
    assert reaches_all(form.chart)
    assert rows.joint.gram.shape == (5, 5)
    expected = scales @ form.products(np.column_stack([values, target]))
    np.testing.assert_allclose(rows.sums(form), expected, rtol=1e-12, atol=1e-12)


# ---- many columns: lengths in single precision, and products that are known


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


@pytest.mark.parametrize("lower", [0.0, -0.5, 100.0])
@pytest.mark.parametrize("folded", [False, True])
def test_lengths_in_single_precision_are_within_their_error(lower, folded) -> None:
    """At corners above all, whose products are largest, and of a W whose products cancel."""
    p, generator = 80, np.random.default_rng(0)
    rows, form = many(200, p, lower=lower), a_form(p)
    white = form.chart.whitening
    matrix = white.matrix + np.tril(generator.choice([-30.0, 30.0], (p, p)))
    form = replace(form, chart=replace(form.chart, whitening=replace(white, matrix=matrix)))
    v = generator.uniform(-1, 1, (200, p))
    v[:100] = np.sign(matrix @ v[:100].T).T  # corners
    screen = blocks.Screen(form, rows, folded=folded)
    low, high = (
        np.array([getattr(one, end) for one in rows.columns]) for end in ("lower", "upper")
    )
    x = (low + high) / 2 + v * (high - low) / 2
    exact = np.asarray(x if folded else v, dtype=np.longdouble)
    if folded:
        exact = (exact - (low + high) / 2) * 2 / (high - low)
    longest = np.sqrt((((exact - white.mean) @ matrix.T.astype(np.longdouble)) ** 2).sum(axis=1))
    wrong = np.abs(screen(x if folded else v) - longest).max()
    assert 0 < wrong <= screen.error
    assert screen.error < 0.1 * longest.max()


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("radius", [1.05, 1.2, 40.0])
def test_known_products_give_what_each_row_sends(radius, outside, robust) -> None:
    """A few rows are cut at the smallest radius, one or none at the next, none at the largest."""
    p = 70
    table, form = many(9000, p, outside), a_form(p, radius, robust=robust)
    assert table.joint.gram.shape == (p, p)
    assert table.inside is not outside
    about = table.lengths(form)
    assert table._knows_products(form, about)
    assert reaches_all(form.chart) == (radius == 40)
    assert (about is None) == (radius == 40)
    assert radius == 40 or (about.sizes > radius * np.sqrt(p)).any() == (radius == 1.05)
    columns = [Numeric(one.name, one.lower, one.upper) for one in table.columns]
    names = {one.name: table.values[:, at] for at, one in enumerate(columns)}
    v = encoded_values(Schema(columns, Numeric("y", -1, 1)), names, list(names))
    expected = form.sums(np.column_stack([v, table.targets]))
    np.testing.assert_allclose(
        table.sums(form), expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max()
    )


def test_products_are_not_taken_as_known_where_most_rows_are_cut() -> None:
    """Nor where rounding errors of so many rows could come near what Δ keeps back."""
    p = 70
    table, form = many(2000, p), a_form(p, 0.7)
    assert table.joint.gram.shape == (p, p)
    assert table.lengths(form) is None
    form = a_form(p, 1.01)
    narrow = replace(form.chart.whitening, matrix=3 * form.chart.whitening.matrix)
    form = replace(form, chart=replace(form.chart, whitening=narrow))
    assert not table._knows_products(form, table.lengths(form))
    values = np.broadcast_to(table.values[0], (10**8, p))
    huge = replace(table, values=values, targets=np.broadcast_to([[0.0]], (10**8, 1)))
    huge.__dict__["joint"] = table.joint
    form = a_form(p, 1.2)
    assert table._knows_products(form, table.lengths(form))
    assert not huge._knows_products(form, table.lengths(form))


def test_lengths_are_found_once_for_each_whitening(monkeypatch) -> None:
    """Also by a wave that reads half of the rows; another whitening is another length."""
    p, table, calls = 70, many(600, 70), []
    found = blocks.Screen.__call__
    monkeypatch.setattr(
        blocks.Screen,
        "__call__",
        lambda self, block: calls.append(len(block)) or found(self, block),
    )
    wave = a_form(p, 1.2)
    assert table.joint.gram.shape == (p, p)
    table.every(2).sums(wave)
    table.sums(wave)
    assert sum(calls) == 600
    assert replace(table, values=table.values / 2).known_lengths is None
    assert replace(table.every(2), values=table.values[:300]).source is None
    other = replace(wave.chart.whitening, mean=wave.chart.whitening.mean + 0.01)
    table.sums(replace(wave, chart=replace(wave.chart, whitening=other)))
    assert sum(calls) == 1200


@pytest.mark.parametrize("seed", range(4))
def test_one_record_changes_no_sum_by_more_than_its_own_share(seed) -> None:
    """It may leave its bounds, so that nothing is folded, be cut, or be what is looked at first:
    what rounding adds is far below the 2⁻¹² of Δ that is kept back for it.
    """
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
        _, v = next(alone.blocks(slice(0, 1), folded=False))
        own = form.products(np.column_stack([v, alone.targets]))[0]
        sums.append(one.sums(form) - own)
    for other in sums[1:]:
        assert np.sqrt((other - sums[0]) ** 2 @ form.counts) < passes.MOST_KNOWN / 2**8


@pytest.mark.parametrize("shape", [(3, 50), (16, 3840), (40, 900), (80, 100), (80, 700)])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_are_the_same_by_either_kernel(shape, weighted) -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal(shape)
    weight = generator.random(shape[1]) if weighted else None
    expected = np.einsum("ik,jk,k->ij", x, x, np.ones(shape[1]) if weight is None else weight)
    for ordered in (x, np.asfortranarray(x)):
        total = np.ones((len(x), len(x)), order="F")
        found = add_products(total, ordered, weight, np.empty_like(ordered))
        np.testing.assert_allclose(symmetric(found), 1 + expected, rtol=1e-9, atol=1e-9)
