"""UCI Adult: 45,222 real people of the Current Population Survey of 1994; who earns over 50,000?

B. Becker and R. Kohavi, Adult, 1996, https://doi.org/10.24432/C5XW20 (CC BY 4.0), without the 3,620
records that have unknown values. In the file, a category is its place in the lists below.
"""

import numpy as np

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Binary, Categorical, Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation.census import Census, Column
from blurfit_lab.datasets import data_files

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
