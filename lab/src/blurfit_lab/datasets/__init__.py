"""Populations to try things on: a generated one that needs no file, and real ones from files.

    make_census(n, seed)   people who do not exist: synthetic, and said to be wherever it shows
    load_acs(path)         American Community Survey 2024: 2,183,085 people, income
    load_fulton(path)      Census 2000, Fulton County: 25,766 people, income
    load_adult(path)       UCI Adult, from the Current Population Survey 1994: income over 50,000
    load_ipums(path)       your own extract from IPUMS USA, as the paper used
    load_uci(name, path)   twelve small regression sets, on which others compare

Each gives a `Census`: the columns, and a schema whose bounds are constants that no column changes
(but for `load_uci`, which says why).
"""

from blurfit.simulation.census import Census, make_census
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
