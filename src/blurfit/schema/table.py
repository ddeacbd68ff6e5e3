"""Any kind of table as named columns, of numbers or of words, or an error that says why not.

Tables of all libraries are read through narwhals, so that none of them needs to be installed.
Columns are found by name: their order does not matter, and others are ignored.

Messages say in which row and column something is wrong, and never what stands there: whoever reads
an error may not be allowed to see the records. Nor do they repeat names that were not asked for: in
a file without a heading those are somebody's answers. For the same reason no error of a library is
handed on, nor chained.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from blurfit.data import AnyArray
from blurfit.errors import InvalidValueError
from blurfit.wording import Message, Series


class RowError(InvalidValueError):
    """What is wrong in one row, counted from 0; whoever knows where the row stands says that."""

    def __init__(self, row: int, wrong: str, /, **values: Any) -> None:
        self.row, self.wrong = row, Message(wrong, **values)
        super().__init__("Row {row} has {wrong}", row=row, wrong=self.wrong)


class Table(NamedTuple):
    """Columns of the same length, at least 1. `single` says that they came as one record."""

    columns: dict[str, AnyArray]
    rows: int
    single: bool


def read(records: Any, wanted: Sequence[str], names: Sequence[str] | None = None) -> Table:
    """Read the wanted columns of a table, or of one record.

    A table is a dict of sequences, a DataFrame of any library that narwhals knows (pandas, polars,
    Modin and others), an Arrow table or record batch, a NumPy structured array, or a NumPy array
    (n, k) with its k `names`. One record is a dict of single values, a row
    of a structured array, or a NumPy array (k,) with its `names`.

    >>> table = read({"age": [30, 41], "pets": [0, 2], "sex": ["f", "m"]}, ["sex", "age"])
    >>> table.columns["age"].tolist(), table.rows, table.single
    ([30, 41], 2, False)
    >>> read({"age": 30}, ["age"]).single
    True
    """
    present, column = _open(records, names)
    _refuse_unless_present(wanted, present)
    given = {name: _unmasked(column(name)) for name in wanted}
    single = [name for name, value in given.items() if _is_single(value)]
    if single and (many := [name for name in wanted if name not in single]):
        raise InvalidValueError(
            "Expected either one record or a table, and {single!r} is a single value where "
            "{many!r} is a column of them; give all columns the same length.",
            single=single[0],
            many=many[0],
        )
    given = {name: [value] if single else value for name, value in given.items()}
    columns = {name: _array(name, value) for name, value in given.items()}
    return Table(columns, _rows(columns), bool(single))


def codes(name: str, values: AnyArray, levels: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return the place of each value among the levels; each distinct value is looked up once.

    A level is found by how it writes the value: "7" stands for 7 and 7.0, "True" for True.
    """
    place: dict[str | None, int] = {level: i for i, level in enumerate(levels)}
    objects = values.tolist()
    try:
        distinct = set(objects)
        if values.dtype.kind == "O" and not all(isinstance(value, str) for value in distinct):
            objects = [_word(value) for value in objects]  # True == 1, but they are two words
            distinct = set(objects)
        code = {value: place.get(_word(value), -1) for value in distinct}
    except (TypeError, ValueError):
        code = None
    if code is None:
        refuse_missing(name, values)
        raise InvalidValueError(
            "Expected the column {name!r} to contain words or whole numbers.", name=name
        )
    found = np.fromiter(map(code.__getitem__, objects), dtype=np.intp, count=len(objects))
    if found.min() < 0:
        refuse_missing(name, values)
        remedy = f"which is none of its levels {listed(levels)}; map it to one of them"
        refuse_first(name, found < 0, remedy)
    return found


def missing(values: AnyArray) -> npt.NDArray[np.bool_]:
    """Tell where there is no value: None, NaN, NaT or NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "biuSU":
        return np.zeros(len(values), dtype=np.bool_)
    return np.array([_is_missing(value) for value in values], dtype=np.bool_)


def refuse_missing(name: str, values: AnyArray) -> None:
    """Raise for the first None, NaN, NaT or NA, if any: what is missing cannot be blurred."""
    silent = missing(values)
    if silent.any():
        raise RowError(
            int(silent.argmax()),
            "a missing value of {name!r}; set optional = true for a feature that people may leave "
            "unsaid, or fill in a value that does not depend on other records, such as the middle "
            "of the public bounds. To leave the record out would let the number of contributors "
            "depend on an answer.",
            name=name,
        )


def refuse_first(name: str, bad: npt.ArrayLike, remedy: str) -> None:
    """Raise for the first bad row, if any, naming it but not its value (one record is row 0)."""
    culprits = np.asarray(bad)
    if culprits.any():
        raise RowError(
            int(culprits.argmax()), "a value of {name!r} {remedy}.", name=name, remedy=remedy
        )


def listed(words: Iterable[object]) -> Series:
    """Return 'a', 'b', 'c', for messages."""
    return Series(map(repr, words))


def refuse_keys(entry: Any, needs: Collection[str], may: Collection[str] | None = ()) -> None:
    """Refuse what has no keys, lacks one that it needs, or has an unknown one (`may=None`: any)."""
    if not isinstance(entry, Mapping):
        raise InvalidValueError(
            "Expected a table of keys and values, and got {entry!r}.", entry=entry
        )
    if absent := [key for key in needs if key not in entry]:
        raise InvalidValueError(
            "Expected the key {listed} besides {listed_2}.",
            listed=listed(absent),
            listed_2=listed(entry),
        )
    if may is not None and (unknown := [key for key in entry if key not in (*needs, *may)]):
        raise InvalidValueError(
            "Unknown key {listed}; the keys here are {listed_2}.",
            listed=listed(unknown),
            listed_2=listed((*needs, *may)),
        )


def _open(records: Any, names: Sequence[str] | None) -> tuple[list[str], Callable[[str], Any]]:
    fields = getattr(getattr(records, "dtype", None), "names", None)
    if isinstance(records, np.ndarray) and not fields:
        if names is None:
            raise InvalidValueError(
                "Expected names=[…] with a plain NumPy array: columns are found by name and never "
                "by position."
            )
        present, array = list(names), records
        if array.ndim not in (1, 2) or array.shape[-1] != len(present):
            raise InvalidValueError(
                "Expected an array of shape (n, {present_count}), or ({present_count},) for one "
                "record, because there are {present_count} names, and got {shape}.",
                present_count=len(present),
                shape=array.shape,
            )
        return present, lambda name: array[..., present.index(name)]
    if names is not None:
        raise InvalidValueError(
            "Expected names={names!r} only with a plain NumPy array; "
            "a {name} has its own, so leave them out.",
            names=list(names),
            name=type(records).__name__,
        )
    if isinstance(records, Mapping):
        return list(records), records.__getitem__
    if fields:  # a structured array, or a row of one
        return list(fields), records.__getitem__
    frame = as_frame(records)
    if frame is None:
        raise InvalidValueError(
            "Expected records to be a dict, a DataFrame of any library, an Arrow table, a NumPy "
            "structured array or a NumPy array with names, and got a {name}.",
            name=type(records).__name__,
        )
    return frame.columns, lambda name: frame[name].to_numpy()


def as_frame(records: Any) -> Any:
    """Wrap a table of any library of DataFrames by narwhals; None for anything else."""
    import narwhals.stable.v2 as nw  # here, as dicts and arrays do not need it

    try:
        if hasattr(records, "column_names") and hasattr(records, "__arrow_c_stream__"):  # Arrow
            return nw.from_arrow(records, backend="pyarrow")
        frame = nw.from_native(records, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InvalidValueError(
            "Expected column names that differ, and some columns of the table have one name; "
            "rename or drop the others."
        ) from None
    return frame if isinstance(frame, nw.DataFrame) else None


def _refuse_unless_present(wanted: Sequence[str], present: list[str]) -> None:
    count = Counter(present)
    if missing := [name for name in wanted if not count[name]]:
        raise InvalidValueError(
            "Expected a column {listed}, and none of the {present_count} columns has "
            "that name, to the letter.",
            listed=listed(missing),
            present_count=len(present),
        )
    if repeated := [name for name in wanted if count[name] > 1]:
        raise InvalidValueError(
            "Expected one column {listed}, and there are {count} of that "
            "name; rename or drop the others.",
            listed=listed(repeated),
            count=count[repeated[0]],
        )


def _is_single(value: Any) -> bool:
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return True
    return getattr(value, "ndim", 1) == 0


def _unmasked(values: Any) -> Any:
    """Put None in place of each masked value: what lies under a mask is nobody's."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    objects = np.array(values.data, dtype=object)
    objects[np.ma.getmaskarray(values)] = None
    return objects[()]  # one value as itself


def _array(name: str, values: Any) -> AnyArray:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise InvalidValueError(
            "Expected the column {name!r} to have one value for each record.", name=name
        ) from None
    if array.ndim != 1:
        raise InvalidValueError(
            "Expected the column {name!r} to have one value for each record, "
            "and got a {name_2} of shape {shape}.",
            name=name,
            name_2=type(values).__name__,
            shape=array.shape,
        )
    if array.dtype.kind in "SU" and isinstance(values, list | tuple):
        return np.array(values, dtype=object)  # one word would have made words of all numbers
    return array


def _rows(columns: Mapping[str, AnyArray]) -> int:
    lengths = {name: len(values) for name, values in columns.items()}
    shortest, longest = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
    if lengths[shortest] != lengths[longest]:
        raise InvalidValueError(
            "Expected columns of the same length, and {shortest!r} has {lengths} rows "
            "where {longest!r} has {lengths_2}.",
            shortest=shortest,
            lengths=lengths[shortest],
            longest=longest,
            lengths_2=lengths[longest],
        )
    if not lengths[shortest]:
        raise InvalidValueError("Expected at least one record, and the table has 0 rows.")
    return lengths[shortest]


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas' own two
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.generic) and bool(value != value)


def _word(value: Any) -> str | None:
    """Return how a level writes the value, if it can be one."""
    if isinstance(value, str | bool | np.bool_):
        return str(value)
    if isinstance(value, Integral) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return None
