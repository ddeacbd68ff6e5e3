"""Schemas and tables that Hypothesis draws."""

import math

import numpy as np
from hypothesis import strategies as st

from blurfit.schema.schema import Binary, Categorical, Numeric, Schema

ANY_FLOAT = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def numerics(draw, name, largest=1e300):
    lower = draw(st.floats(-largest, largest))
    near = lower + draw(st.integers(1, 9)) * max(math.ulp(lower), 1e-300)
    upper = draw(st.one_of(st.floats(-largest, largest), st.just(near)))
    lower, upper = min(lower, upper), max(lower, upper)
    if upper - lower < 1e-300:
        upper = near
    return Numeric(name, lower, upper)


@st.composite
def schemas(draw, numeric=numerics, most=5):
    features = []
    for i in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["numeric", "binary", "categorical"]))
        if kind == "numeric":
            features.append(draw(numeric(f"v{i}")))
        elif kind == "binary":
            features.append(Binary(f"v{i}"))
        else:
            words = st.text("abc=,é ", min_size=1, max_size=4)
            levels = st.lists(words, min_size=2, max_size=6, unique=True)
            features.append(Categorical(f"v{i}", draw(levels)))
    target = draw(st.one_of(numeric("y"), st.just(Binary("y")), numeric("y").map(label)))
    return Schema(features, target, draw(st.booleans()))


def label(column):
    inside = column.lower < column.centre < column.upper
    return column.above(column.centre) if inside else column


@st.composite
def tables(draw, schema, anywhere=True):
    rows = draw(st.integers(1, 5))
    return {
        column.name: [draw(values(column, anywhere)) for _ in range(rows)]
        for column in (*schema.features, schema.target)
    }


def values(column, anywhere):
    if isinstance(column, Binary):
        return st.sampled_from([0, 1, True, False, 1.0])
    if isinstance(column, Categorical):
        return st.sampled_from(column.levels)
    ends = st.sampled_from([column.lower, column.upper])
    inside = st.floats(column.lower, column.upper)
    return st.one_of(ends, inside, ANY_FLOAT) if anywhere else st.one_of(ends, inside)


def moderate(name):
    """Bounds in which a unit of the column is neither lost beside its values nor beyond them."""
    return st.tuples(st.integers(-1000, 1000), st.integers(1, 1000)).map(
        lambda found: Numeric(name, found[0] / 8, (found[0] + found[1]) / 8)
    )


def weights_for(schema):
    size = schema.dimension
    return st.lists(st.floats(-100, 100), min_size=size, max_size=size).map(np.array)
