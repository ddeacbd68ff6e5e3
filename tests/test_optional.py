"""What is not installed is refused with the extra that brings it."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from blurfit.errors import BlurfitError
from blurfit.optional import EXTRAS, optional

ROOT = Path(__file__).parents[1]


def test_what_is_there_is_imported() -> None:
    assert optional("pyarrow.parquet") is importlib.import_module("pyarrow.parquet")


@pytest.mark.parametrize("package", sorted(EXTRAS))
def test_what_is_missing_names_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(BlurfitError, match=rf"pip install 'blurfit\[{EXTRAS[package]}\]'"):
        optional(f"{package}.part")


@pytest.mark.parametrize("package", sorted(EXTRAS))
def test_the_extra_brings_the_package(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pattern = re.compile(rf"{package.replace('_', '-')}\b")
    assert any(map(pattern.match, project["optional-dependencies"][EXTRAS[package]]))
    assert not any(map(pattern.match, project["dependencies"]))
