"""American Community Survey 2024, public use microdata: real people, and their incomes.

2,183,085 people of 15 and over in housing units of 48 states and the District of Columbia, in
random order. The columns follow the paper's 13 attributes, except that rooms stand in for
automobiles and that the years in the dwelling come as a band from 1 (up to 12 months) to 7 (30
years or more). Source: US Census Bureau.
"""

import numpy as np

from blurfit.schema.columns import Numeric
from blurfit.simulation.census import Census, census_schema
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
