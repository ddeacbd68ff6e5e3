"""Populations to try things on: a generated one that needs no file, and real ones from files.

Each gives a `Census`: the columns, and a schema whose bounds are constants that no column changes
(but for `load_uci`, which says why).
"""

from blurfit.simulation import Census, make_census
from blurfit_lab.datasets.census import load_acs, load_fulton, load_ipums
from blurfit_lab.datasets.uci import UCI_SETS, load_adult, load_uci

__all__ = [
    "UCI_SETS",
    "Census",
    "load_acs",
    "load_adult",
    "load_fulton",
    "load_ipums",
    "load_uci",
    "make_census",
]
