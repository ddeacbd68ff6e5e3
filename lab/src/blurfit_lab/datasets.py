"""Populations to try things on: real people, from files (`make_census` of blurfit needs none).

Each gives a `Census`: the columns, and a schema whose bounds are constants that no column changes
(but for `load_uci`). A file is looked for where the caller says, else in the folder that the
environment variable BLURFIT_DATA names.

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

**Adult.** UCI Adult: 45,222 real people of the Current Population Survey of 1994; who earns over
50,000? B. Becker and R. Kohavi, Adult, 1996, https://doi.org/10.24432/C5XW20 (CC BY 4.0), without
the 3,620 records that have unknown values. In the file, a category is its place in `CATEGORIES`.

**Regression.** Twelve small sets of UCI, on which others compare private regression. Numbers only,
features x1, x2, … and target y, as they stand in the public repository of Iterative Hessian Mixing
(Lev et al. 2026, arXiv 2601.07545), which has them from UCI; some are centred there. They are not
part of this package: `load_uci` looks for uci/NAME.parquet. Their bounds are the smallest and
largest value of each column, rounded outwards to about two digits of the range, for every method
alike. They are read from the rows, so a private release would have to pay for them: this is a
convention for comparing methods, and nothing for people. A column that is the same in every row
(one of autos, one of solar) has no range and tells nothing: it is left out.
"""

import math
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, one_of
from blurfit.schema.columns import Binary, Categorical, Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation import INCOME, Census, census_schema

Column = npt.NDArray[Any]
PathLike = str | os.PathLike[str]
VARIABLE = "BLURFIT_DATA"


# ---- files


def locate(filename: str, path: PathLike | None = None) -> Path:
    """The file at `path`, or the one of this name in the folder `path`, or in BLURFIT_DATA."""
    remedy = (
        f"Pass the path of your copy, or set the environment variable {VARIABLE} to the folder "
        f"that holds {filename}; make_census(n, seed) needs no file."
    )
    folder = os.environ.get(VARIABLE)
    if path is None and not folder:
        raise InvalidValueError(f"Expected path to say where {filename!r} is. {remedy}")
    place = Path(path if path is not None else str(folder))
    return _existing(place / filename if path is None or place.is_dir() else place, remedy)


def _existing(file: Path, remedy: str) -> Path:
    if not file.is_file():
        raise InvalidValueError(f"Expected path={str(file.absolute())!r} to be a file. {remedy}")
    return file


def read(
    file: Path, required: Collection[str], others: Collection[str] = (), *, blanks: bool = False
) -> dict[str, Column]:
    """The required columns of a Parquet or CSV file, and those of the others that it has.

    CSV may be compressed (.csv.gz). Every value must be a number; a blank is refused, or becomes
    NaN where `blanks` are allowed.
    """
    is_csv = ".csv" in file.suffixes
    try:
        present = list(pd.read_csv(file, nrows=0) if is_csv else pq.read_schema(file).names)
        names = [*required, *(name for name in others if name in present)]
        known = [name for name in names if name in present]
        found = pd.read_csv(file, usecols=known) if is_csv else pd.read_parquet(file, columns=known)
    except (OSError, ValueError):  # whose words may tell values
        raise InvalidValueError(
            f"Expected {str(file)!r} to be a {'CSV' if is_csv else 'Parquet'} file (.csv, .csv.gz "
            "or .parquet) of its columns."
        ) from None
    if absent := [name for name in required if name not in present]:
        raise InvalidValueError(f"Expected columns {absent} in {file.name!r}; it has {present}.")
    for name in names:
        expected = f"Expected column {name!r} of {file.name!r} to be"
        if (missing := int(found[name].isna().sum())) and not blanks:
            raise InvalidValueError(
                f"{expected} complete, but {missing} of {len(found)} values are blank; remove "
                "those rows."
            )
        if found[name].to_numpy().dtype.kind not in "iufb":
            raise InvalidValueError(
                f"{expected} numbers, but it is {found[name].dtype}; export codes rather than "
                "labels."
            )
    return {name: found[name].to_numpy() for name in names}


def _load(
    filename: str,
    path: PathLike | None,
    schema: Schema,
    name: str,
    derived: Mapping[str, tuple[str, int]],
    others: Collection[str] = (),
) -> Census:
    """The schema's columns of a file, and others; a derived one says where another has a code."""
    attributes = [*(one.name for one in schema.questions), *others]
    stored = dict.fromkeys(derived.get(one, (one,))[0] for one in attributes)
    raw = read(locate(filename, path), stored)
    coded = {one: (raw[column] == code).astype(np.uint8) for one, (column, code) in derived.items()}
    table = {one: coded[one] if one in coded else raw[one] for one in attributes}
    return Census(table, schema, name, synthetic=False)


# ---- the American census


FILENAME = "us_acs2024_income.parquet"
MARRIED, NEVER_MARRIED = 1, 5  # of marital_status, where 2 is widowed, 3 divorced, 4 separated
RESIDENCE, ROOMS = Numeric("residence_years_band", 1, 7), Numeric("num_rooms", 0, 20)


def load_acs(path: PathLike | None = None) -> Census:
    """The survey from `path`, or from the folder that BLURFIT_DATA names.

    Marital status becomes two attributes, is_single (never married) and is_married, as in the
    paper; the widowed, divorced and separated are neither.
    """
    education = Numeric("education", 1, 24)
    schema = census_schema(education=education, residence=RESIDENCE, dwelling=ROOMS)
    codes = {"is_single": NEVER_MARRIED, "is_married": MARRIED}
    derived = {name: ("marital_status", code) for name, code in codes.items()}
    return _load(FILENAME, path, schema, "American Community Survey 2024", derived)


FULTON_FILENAME = "us_census2000_fulton_income.parquet"
_YES_OR_NO = (
    *("is_male", "is_married", "is_divorced", "is_us_citizen", "is_employed"),
    *("is_latino", "is_black", "is_asian", "has_disability", "has_own_minor_children"),
    *("has_military_service", "speaks_english_well"),
)
FULTON_SCHEMA = Schema(
    (Numeric("age", 0, 100), Numeric("education", 1, 16), *map(Binary, _YES_OR_NO)), INCOME
)


def load_fulton(path: PathLike | None = None) -> Census:
    """The county from `path`, or from the folder that BLURFIT_DATA names."""
    return _load(FULTON_FILENAME, path, FULTON_SCHEMA, "Census 2000, Fulton County", {})


Meaning = Callable[[FloatArray], FloatArray]  # from codes to values, NaN where unknown


def _within(lower: float, upper: float) -> Meaning:
    """The code is the value, if it is between these two."""
    return lambda codes: np.where((codes >= lower) & (codes <= upper), codes, np.nan)


def _coded(values: Mapping[int, int]) -> Meaning:
    """Each known code stands for a value."""
    return lambda codes: pd.Series(codes).map(values).to_numpy(dtype=float)


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


def load_ipums(path: PathLike) -> Census:
    """The extract at `path` (CSV, compressed or not, or Parquet), with IPUMS's variable names.

    `removed` is the number of rows with unknown values, which the table is without. The others keep
    the order of the extract, household by household: shuffle the file before you take a part.
    """
    file = _existing(Path(path), "Pass the path of the extract that you downloaded.")
    variables = {variable for meanings in SOURCES.values() for variable in meanings}
    raw = read(file, (), sorted(variables), blanks=True)
    codes = {variable: column.astype(np.float64) for variable, column in raw.items()}
    dwelling = Numeric("num_automobiles", 0, 7) if "VEHICLES" in codes else ROOMS
    education = Numeric("education", 0, 11)
    schema = census_schema(education=education, residence=RESIDENCE, dwelling=dwelling)
    table = {one.name: _attribute(one.name, codes, file) for one in schema.questions}
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


# ---- the repository of UCI


FOLDER, TARGET = "uci", "y"
FEATURES = {  # how many; of how many rows, and about what
    "airfoil": 5,  # 1,503: the noise of a wing
    "concrete": 8,  # 1,030: compressive strength
    "energy": 8,  # 768: the heating load of a building
    "autompg": 7,  # 392: miles per gallon
    "yacht": 6,  # 308: the resistance of a hull, centred
    "solar": 10,  # 1,066: flares, centred; almost no signal
    "fertility": 9,  # 100: a diagnosis, centred
    "autos": 25,  # 159: the price of a car, centred
    "forest": 12,  # 517: burnt area, centred
    "machine": 7,  # 209: the performance of a processor, centred
    "servo": 4,  # 167: the rise time of a motor, centred
    "pendulum": 9,  # 630: a simulated pendulum, centred
}
UCI_SETS = tuple(FEATURES)


def load_uci(name: str, path: PathLike | None = None) -> Census:
    """One of `UCI_SETS`, from the folder `path`, or from the one that BLURFIT_DATA names."""
    one_of(UCI_SETS, name=name)
    columns = [f"x{place}" for place in range(1, FEATURES[name] + 1)]
    raw = read(locate(f"{FOLDER}/{name}.parquet", path), [*columns, TARGET])
    kept = {key: values for key, values in raw.items() if values.min() < values.max()}
    features = tuple(Numeric(key, *outwards(kept[key])) for key in columns if key in kept)
    schema = Schema(features, Numeric(TARGET, *outwards(raw[TARGET])))
    return Census(kept, schema, f"UCI {name}", synthetic=False)


def outwards(values: Column) -> tuple[float, float]:
    """Least and largest value, rounded outwards to a tenth of the range's own power of ten.

    >>> outwards(np.array([103.38, 140.987])), outwards(np.array([0.0254, 0.3048]))
    ((103.0, 141.0), (0.02, 0.31))
    """
    lowest, highest = float(values.min()), float(values.max())
    digits = 1 - math.floor(math.log10(highest - lowest))
    step = 10.0**-digits
    lower, upper = math.floor(lowest / step), math.ceil(highest / step)
    return round(lower * step, max(digits, 0)), round(upper * step, max(digits, 0))


ADULT_FILENAME = "adult1994.parquet"
UNITED_STATES = 38  # of native_country, which has 41 codes
CATEGORIES = {
    name: tuple(levels.split())
    for name, levels in {
        "workclass": "Federal-gov Local-gov Private Self-emp-inc Self-emp-not-inc State-gov "
        "Without-pay",
        "marital_status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent "
        "Never-married Separated Widowed",
        "occupation": "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing "
        "Handlers-cleaners Machine-op-inspct Other-service Priv-house-serv Prof-specialty "
        "Protective-serv Sales Tech-support Transport-moving",
        "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
        "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    }.items()
}
ADULT_SCHEMA = Schema(
    (
        Numeric("age", 0, 100),
        Numeric("education_years", 1, 16),
        Numeric("hours_per_week", 0, 99),
        Numeric("capital_gain", 0, 100_000),
        Numeric("capital_loss", 0, 5_000),
        Binary("is_male"),
        Binary("born_in_united_states"),
        *(Categorical(name, levels) for name, levels in CATEGORIES.items()),
    ),
    Binary("income_over_50k"),
)


def load_adult(path: PathLike | None = None) -> Census:
    """The records from `path`, or from the folder that BLURFIT_DATA names.

    Both published parts are in, and `is_test` tells them apart. Categories come as
    their names. The 41 countries become one attribute, born_in_united_states: nine in ten are, and
    40 columns more would cost every contributor's noise for the few records in each.
    """
    derived = {"born_in_united_states": ("native_country", UNITED_STATES)}
    name = "Adult (Current Population Survey 1994)"
    raw = _load(ADULT_FILENAME, path, ADULT_SCHEMA, name, derived, ["is_test_split"])
    named = {one: _named(one, raw.table[one], levels) for one, levels in CATEGORIES.items()}
    return Census({**raw.table, **named}, ADULT_SCHEMA, name, synthetic=False)


def _named(name: str, codes: Column, levels: tuple[str, ...]) -> Column:
    if codes.dtype.kind not in "iu" or (
        len(codes) and not 0 <= codes.min() <= codes.max() < len(levels)
    ):
        raise InvalidValueError(
            f"Expected column {name!r} to hold codes from 0 to {len(levels) - 1}, got "
            f"{np.unique(codes)[:20]}."
        )
    return np.array(levels)[codes]
