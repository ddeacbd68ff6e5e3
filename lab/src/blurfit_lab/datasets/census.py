"""Real people of the American census: a public file, or your own extract.

**ACS.** American Community Survey 2024, public use microdata: 2,183,085 people of 15 and over in
housing units of 48 states and the District of Columbia, in random order. The columns follow the
paper's 13 attributes, except that rooms stand in for automobiles and that the years in the dwelling
come as a band from 1 (up to 12 months) to 7 (30 years or more). Source: US Census Bureau.

**Fulton County.** 25,766 people of 18 and over in Fulton County, Georgia, of the census of 2000:
its five-percent public use sample.

**IPUMS.** Your own extract from IPUMS USA (usa.ipums.org), as the paper used. IPUMS data may not be
redistributed, so everybody makes their own extract: choose a sample (the paper's is of the year
2000), the variables of `SOURCES`, and CSV as the format. A row with a blank or any other code is
removed, as in the paper ("after removing unknown values and missing values"), and the census says
how many were. The codes are those of IPUMS USA; IPUMS CPS and IPUMS International use the same
names for other codes.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Binary, Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation import INCOME, Census, census_schema
from blurfit_lab.datasets import data_files

FILENAME = "us_acs2024_income.parquet"
NAME = "American Community Survey 2024"
MARRIED, NEVER_MARRIED = 1, 5  # of marital_status, where 2 is widowed, 3 divorced, 4 separated


def load_acs(path: data_files.PathLike | None = None) -> Census:
    """The survey from `path`, or from the folder that BLURFIT_DATA names.

    Marital status becomes two attributes, is_single (never married) and is_married, as in the
    paper; the widowed, divorced and separated are neither.
    """
    schema = census_schema(
        education=Numeric("education", 1, 24),
        residence=Numeric("residence_years_band", 1, 7),
        dwelling=Numeric("num_rooms", 0, 20),
    )
    attributes = [*(feature.name for feature in schema.features), schema.target.name]
    derived = {"is_single": NEVER_MARRIED, "is_married": MARRIED}
    stored = [name for name in attributes if name not in derived]
    raw = data_files.read(data_files.locate(FILENAME, path), [*stored, "marital_status"])
    for name, code in derived.items():
        raw[name] = (raw["marital_status"] == code).astype(np.uint8)
    return Census({name: raw[name] for name in attributes}, schema, NAME, synthetic=False)


FULTON_FILENAME = "us_census2000_fulton_income.parquet"
FULTON_NAME = "Census 2000, Fulton County"
FULTON_SCHEMA = Schema(
    (
        Numeric("age", 0, 100),
        Numeric("education", 1, 16),
        *(
            Binary(name)
            for name in (
                *("is_male", "is_married", "is_divorced", "is_us_citizen", "is_employed"),
                *("is_latino", "is_black", "is_asian", "has_disability", "has_own_minor_children"),
                *("has_military_service", "speaks_english_well"),
            )
        ),
    ),
    INCOME,
)


def load_fulton(path: data_files.PathLike | None = None) -> Census:
    """The county from `path`, or from the folder that BLURFIT_DATA names."""
    names = [one.name for one in FULTON_SCHEMA.questions]
    table = data_files.read(data_files.locate(FULTON_FILENAME, path), names)
    return Census(table, FULTON_SCHEMA, FULTON_NAME, synthetic=False)


Meaning = Callable[[FloatArray], FloatArray]  # from codes to values, NaN where unknown


def _within(lower: float, upper: float) -> Meaning:
    """The code is the value, if it is between these two."""
    return lambda codes: np.where((codes >= lower) & (codes <= upper), codes, np.nan)


def _coded(values: Mapping[int, int]) -> Meaning:
    """Each known code stands for a value."""

    def meaning(codes: FloatArray) -> FloatArray:
        result = np.full(codes.shape, np.nan)
        for code, value in values.items():
            result[codes == code] = value
        return result

    return meaning


def _born_in_the_us(codes: FloatArray) -> FloatArray:
    known = _within(1, 950)(codes)  # 997 and 999 are unknown
    return np.where(np.isnan(known), np.nan, known <= 120)


DIFFICULTIES = ("DIFFREM", "DIFFPHYS", "DIFFMOB", "DIFFCARE", "DIFFSENS", "DIFFEYE", "DIFFHEAR")

# Attribute → variable → meaning; the first variable that the extract has is used, except that any
# difficulty is a disability.
SOURCES: dict[str, dict[str, Meaning]] = {
    "age": {"AGE": _within(0, 135)},
    "is_male": {"SEX": _coded({1: 1, 2: 0})},
    "is_single": {"MARST": _coded({1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 1})},  # 6 never married
    "is_married": {"MARST": _coded({1: 1, 2: 1, 3: 0, 4: 0, 5: 0, 6: 0})},
    "education": {"EDUC": _within(0, 11), "EDUCD": lambda codes: _within(0, 11)(codes // 10)},
    "has_disability": dict.fromkeys(DIFFICULTIES, _coded({0: 0, 1: 0, 2: 1})),
    "is_native_born": {"BPL": _born_in_the_us, "NATIVITY": _coded({1: 1, 2: 1, 3: 1, 4: 1, 5: 0})},
    "hours_per_week": {"UHRSWORK": _within(0, 99)},  # 0 also for those who did not work
    "residence_years_band": {"MOVEDIN": _within(1, 7)},  # up to a year, to 30 years and more
    "owns_dwelling": {"OWNERSHP": _coded({1: 1, 2: 0})},
    "family_size": {"FAMSIZE": _within(1, 29)},
    "num_children": {"NCHILD": _within(0, 9)},
    "num_automobiles": {"VEHICLES": _coded({9: 0} | {number: number for number in range(1, 8)})},
    "num_rooms": {"ROOMS": _within(1, 30)},
    "annual_income": {"INCTOT": _within(-np.inf, 9_999_997)},
}


def load_ipums(path: data_files.PathLike) -> Census:
    """The extract at `path` (CSV, compressed or not, or Parquet), with IPUMS's variable names.

    `removed` is the number of rows with unknown values, which the table is without. The others keep
    the order of the extract, household by household: shuffle the file before you take a part.
    """
    file = data_files.existing(Path(path), "Pass the path of the extract that you downloaded.")
    variables = {variable for meanings in SOURCES.values() for variable in meanings}
    raw = data_files.read(file, (), sorted(variables), blanks=True)
    codes = {variable: column.astype(np.float64) for variable, column in raw.items()}

    dwelling = Numeric("num_automobiles", 0, 7)
    if "VEHICLES" not in codes:
        dwelling = Numeric("num_rooms", 0, 20)
    schema = census_schema(
        education=Numeric("education", 0, 11),
        residence=Numeric("residence_years_band", 1, 7),
        dwelling=dwelling,
    )
    names = [*(feature.name for feature in schema.features), schema.target.name]
    table = {name: _attribute(name, codes, file) for name in names}
    known = ~np.any([np.isnan(column) for column in table.values()], axis=0)
    if not known.any():
        raise InvalidValueError(
            f"Expected a row without unknown values in {file.name!r}, but of its {len(known)} rows "
            "there is none. Is it an extract of IPUMS USA, of people of 15 and over?"
        )
    whole = {name: column[known].astype(np.int32) for name, column in table.items()}
    name = f"IPUMS USA extract {file.name}"
    return Census(whole, schema, name, synthetic=False, removed=int((~known).sum()))


def _attribute(name: str, codes: Mapping[str, FloatArray], file: Path) -> FloatArray:
    sources = SOURCES[name]
    values = [
        meaning(codes[variable]) for variable, meaning in sources.items() if variable in codes
    ]
    if not values:
        raise InvalidValueError(
            f"Expected {' or '.join(sources)} in {file.name!r} for {name!r}: add the variable to "
            f"your extract, which has {sorted(codes)}."
        )
    # NaN, if one of several difficulties is unknown, is what np.maximum hands on.
    return np.maximum.reduce(values) if name == "has_disability" else values[0]
