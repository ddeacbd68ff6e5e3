"""A small agreement that many tests make, its people, and what some submissions come to."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.learning.sums import Totals
from blurfit.messages.files import Writer
from blurfit.messages.submissions import Submissions
from blurfit.schema.schema import Numeric, Schema, TimeToEvent

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PEOPLE = {"age": np.linspace(0, 100, 40), "income": np.linspace(0, 100, 40)}


@pytest.fixture
def agreement() -> Agreement:
    """The agreement that most tests use."""
    return propose()


def propose(**changes) -> Agreement:
    """With little noise, so that few people make a model."""
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 20, "admission": "anyone"}
    return Agreement.propose(SCHEMA, **promise | changes)


def leavers(**changes) -> tuple[Agreement, dict[str, np.ndarray]]:
    """An agreement about who left when, whose sums have no model of their own, and its people."""
    features = [Numeric("age", 0, 100), Numeric("months", 0, 12, outside="refuse")]
    schema = Schema(features, TimeToEvent("months", "left", horizon=12, bands=2))
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 20, "admission": "anyone"}
    left = {"months": np.linspace(1, 11, 40), "left": np.arange(40) % 2 == 0}
    return Agreement.propose(schema, **promise | changes), {"age": PEOPLE["age"]} | left


def write_file(path: Path, agreement: Agreement, table: Submissions) -> str:
    """Write submissions into a file, in a folder that is made if need be; return its name."""
    path.parent.mkdir(exist_ok=True)
    with Writer(path, agreement.layout) as writer:
        writer.add(table)
    return str(path)


def totals_of(agreement: Agreement, *tables: Submissions) -> Totals:
    """What some submissions come to, by a plain way: exact sums of fractions, rounded once."""
    numbers = [[Fraction(one) for one in row] for table in tables for row in table.numbers.tolist()]
    sums = [float(sum(column)) for column in zip(*numbers, strict=True)]
    return Totals(len(numbers), np.array(sums), agreement.fingerprint)
