"""A schema as a file for people, and back."""

import pytest

from blurfit import Binary, Categorical, Numeric, Schema, Wording
from blurfit.schema.schema import to_toml
from support.surveys import survey_schema

ODD = Schema(
    [
        Numeric("a b", -1.5, 1e20, outside="refuse", wording=Wording(hint='"\\ üñ')),
        Categorical("c", ["x=y", "1.5", 'quo"te'], wording=Wording(labels={"x=y": "an x"})),
    ],
    Numeric("z", 0, 10).above(5),
    intercept=False,
    targets=["z"],
)


@pytest.mark.parametrize("schema", [survey_schema(), ODD, Schema([Binary("a")], Binary("b"))])
def test_written_and_read(schema, tmp_path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(to_toml(schema), encoding="utf-8")
    assert Schema.from_toml(file) == schema
