"""Files and ranges as people write them."""

from pathlib import Path

import click
import pytest

from blurfit import InvalidValueError, Numeric, Schema
from blurfit.cli.agree import read_proposal
from blurfit.cli.forecast import Numbers
from support.surveys import schema_text

SCHEMA = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 1))
PLAN = schema_text(most=1)


def test_a_plan_is_a_schema_with_terms(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    assert read_proposal(file).schema == SCHEMA
    assert read_proposal(file).terms == {}
    file.write_text(PLAN + "[terms]\nepsilon = 2.0\nquorum = 9\n")
    assert read_proposal(file).terms == {"epsilon": 2.0, "quorum": 9}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAN + "[terms]\nepsilom = 1\n", "epsilom"),
        (PLAN + "[schema]\nquorum = 100\n", "Unknown key 'schema'"),
        ("terms = 3\n" + PLAN, "to be a table"),
        ("[", "plan.toml"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(text)
    with pytest.raises(InvalidValueError, match=message):
        read_proposal(file)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1", (1.0,)),
        ("0.1,1,10", (0.1, 1.0, 10.0)),
        ("0.1:10", (0.1, 0.32, 1.0, 3.2, 10.0)),
        ("1e3:1e4", (1000.0, 3200.0, 10_000.0)),
        ("5:5", (5.0,)),
    ],
)
def test_ranges(text: str, numbers: tuple[float, ...]) -> None:
    assert Numbers().convert(text, None, None) == numbers


@pytest.mark.parametrize("text", ["", "one", "3:1", "0:1", "1:inf", "-1", "1,,2"])
def test_bad_ranges_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="neither a list"):
        Numbers().convert(text, None, None)
