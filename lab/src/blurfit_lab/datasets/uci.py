"""Sets of the UCI repository.

**Regression.** Twelve small sets, on which others compare private regression. Numbers only,
features x1, x2, … and target y, as they stand in the public repository of Iterative Hessian Mixing
(Lev et al. 2026, arXiv 2601.07545), which has them from UCI; some are centred there. They are not
part of this package: `load_uci` looks for uci/NAME.parquet in the folder that BLURFIT_DATA names.

**Bounds.** The smallest and largest value of each column, rounded outwards to about two digits of
the range, for every method alike. They are read from the rows, so a private release would have to
pay for them: this is a convention for comparing methods, and nothing for people. A column that is
the same in every row (one of autos, one of solar) has no range and tells nothing: it is left out.

**Adult.** UCI Adult: 45,222 real people of the Current Population Survey of 1994; who earns over
50,000?

B. Becker and R. Kohavi, Adult, 1996, https://doi.org/10.24432/C5XW20 (CC BY 4.0), without the 3,620
records that have unknown values. In the file, a category is its place in the lists below.
"""

import math

import numpy as np

from blurfit.errors import InvalidValueError, one_of
from blurfit.schema.columns import Binary, Categorical, Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation import Census, Column
from blurfit_lab.datasets import data_files

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


def load_uci(name: str, path: data_files.PathLike | None = None) -> Census:
    """One of `UCI_SETS`, from the folder `path`, or from the one that BLURFIT_DATA names."""
    one_of(UCI_SETS, name=name)
    columns = [f"x{place}" for place in range(1, FEATURES[name] + 1)]
    raw = data_files.read(data_files.locate(f"{FOLDER}/{name}.parquet", path), [*columns, TARGET])
    kept = {key: values for key, values in raw.items() if values.min() < values.max()}
    features = tuple(Numeric(key, *outwards(kept[key])) for key in columns if key in kept)
    schema = Schema(features, Numeric(TARGET, *outwards(raw[TARGET])))
    return Census(kept, schema, f"UCI {name}", synthetic=False)


def outwards(values: Column) -> tuple[float, float]:
    """Least and largest value, rounded outwards to a tenth of the range's own power of ten.

    >>> import numpy as np
    >>> outwards(np.array([103.38, 140.987]))
    (103.0, 141.0)
    >>> outwards(np.array([0.0254, 0.3048]))
    (0.02, 0.31)
    """
    lowest, highest = float(values.min()), float(values.max())
    digits = 1 - math.floor(math.log10(highest - lowest))
    step = 10.0**-digits
    lower, upper = math.floor(lowest / step), math.ceil(highest / step)
    return round(lower * step, max(digits, 0)), round(upper * step, max(digits, 0))


FILENAME = "adult1994.parquet"
NAME = "Adult (Current Population Survey 1994)"
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

SCHEMA = Schema(
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


def load_adult(path: data_files.PathLike | None = None) -> Census:
    """The records from `path`, or from the folder that BLURFIT_DATA names.

    Both published parts are in, and `is_test` tells them apart. Categories come as
    their names. The 41 countries become one attribute, born_in_united_states: nine in ten are, and
    40 columns more would cost every contributor's noise for the few records in each.
    """
    derived = "born_in_united_states"
    attributes = [*(feature.name for feature in SCHEMA.features), SCHEMA.target.name]
    attributes.append("is_test_split")
    stored = [name for name in attributes if name != derived]
    file = data_files.locate(FILENAME, path)
    raw = data_files.read(file, [*stored, "native_country"])
    raw[derived] = (raw["native_country"] == UNITED_STATES).astype(np.uint8)
    for name, levels in CATEGORIES.items():
        raw[name] = _named(name, raw[name], levels)
    return Census({name: raw[name] for name in attributes}, SCHEMA, NAME, synthetic=False)


def _named(name: str, codes: Column, levels: tuple[str, ...]) -> Column:
    if codes.dtype.kind not in "iu" or (
        len(codes) and not 0 <= codes.min() <= codes.max() < len(levels)
    ):
        raise InvalidValueError(
            f"Expected column {name!r} to hold codes from 0 to {len(levels) - 1}, got "
            f"{np.unique(codes)[:20]}."
        )
    return np.array(levels)[codes]
