"""Twelve small regression sets of the UCI repository, on which others compare private regression.

Numbers only, features x1, x2, … and target y, as they stand in the public repository of Iterative
Hessian Mixing (Lev et al. 2026, arXiv 2601.07545), which has them from UCI; some are centred there.
They are not part of this package: `load_uci` looks for uci/NAME.parquet in the folder that
BLURFIT_DATA names.

**Bounds.** The smallest and largest value of each column, rounded outwards to about two digits of
the range, for every method alike. They are read from the rows, so a private release would have to
pay for them: this is a convention for comparing methods, and nothing for people. A column that is
the same in every row (one of autos, one of solar) has no range and tells nothing: it is left out.

| set | rows | features | of |
| --- | --- | --- | --- |
| airfoil | 1,503 | 5 | the noise of a wing |
| concrete | 1,030 | 8 | compressive strength |
| energy | 768 | 8 | the heating load of a building |
| autompg | 392 | 7 | miles per gallon |
| yacht | 308 | 6 | the resistance of a hull, centred |
| solar | 1,066 | 10 | flares, centred; almost no signal |
| fertility | 100 | 9 | a diagnosis, centred |
| autos | 159 | 25 | the price of a car, centred |
| forest | 517 | 12 | burnt area, centred |
| machine | 209 | 7 | the performance of a processor, centred |
| servo | 167 | 4 | the rise time of a motor, centred |
| pendulum | 630 | 9 | a simulated pendulum, centred |
"""

import math

from blurfit import validate
from blurfit.schema.columns import Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation.census import Census, Column
from blurfit_lab.datasets import data_files

FOLDER, TARGET = "uci", "y"
FEATURES = {
    "airfoil": 5,
    "concrete": 8,
    "energy": 8,
    "autompg": 7,
    "yacht": 6,
    "solar": 10,
    "fertility": 9,
    "autos": 25,
    "forest": 12,
    "machine": 7,
    "servo": 4,
    "pendulum": 9,
}
UCI_SETS = tuple(FEATURES)


def load_uci(name: str, path: data_files.PathLike | None = None) -> Census:
    """One of `UCI_SETS`, from the folder `path`, or from the one that BLURFIT_DATA names."""
    validate.one_of(UCI_SETS, name=name)
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
