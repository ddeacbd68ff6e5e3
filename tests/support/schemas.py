"""Schemas and tables that Hypothesis draws."""

import math

from hypothesis import strategies as st

from blurfit.schema.schema import Binary, Categorical, Numeric, Schema

ANY_FLOAT = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def numerics(draw, name="v", largest=1e300):
    """Bounds of every size: huge, tiny, and a few representable numbers apart."""
    lower = draw(st.floats(-largest, largest))
    near = lower + draw(st.integers(1, 9)) * max(math.ulp(lower), 1e-300)
    upper = draw(st.one_of(st.floats(-largest, largest), st.just(near)))
    lower, upper = min(lower, upper), max(lower, upper)
    if upper - lower < 1e-300:
        upper = near
    return Numeric(name, lower, upper)


@st.composite
def schemas(draw, most=5):
    features = []
    for i in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["numeric", "binary", "categorical"]))
        if kind == "numeric":
            features.append(draw(numerics(f"v{i}")))
        elif kind == "binary":
            features.append(Binary(f"v{i}"))
        else:
            words = st.text("abc=,é ", min_size=1, max_size=4)
            levels = st.lists(words, min_size=2, max_size=6, unique=True)
            features.append(Categorical(f"v{i}", draw(levels)))
    target = draw(st.one_of(numerics("y"), st.just(Binary("y")), numerics("y").map(label)))
    return Schema(features, target, draw(st.booleans()))


def label(column):
    inside = column.lower < column.centre < column.upper
    return column.above(column.centre) if inside else column


@st.composite
def tables(draw, schema):
    rows = draw(st.integers(1, 5))
    return {one.name: [draw(values(one)) for _ in range(rows)] for one in schema.questions}


def values(column):
    if isinstance(column, Binary):
        return st.sampled_from([0, 1, True, False, 1.0])
    if isinstance(column, Categorical):
        return st.sampled_from(column.levels)
    ends = st.sampled_from([column.lower, column.upper])
    return st.one_of(ends, st.floats(column.lower, column.upper), ANY_FLOAT)
