"""Exact simulation of whole collections: for experiments, forecasts, and data in one place.

`make_census(n, seed)` gives people who do not exist, to try things on.
"""

from blurfit.simulation.census import Census, make_census

__all__ = ["Census", "make_census"]
