"""What is not installed is refused with the extra that brings it."""

import importlib
import re
from importlib.metadata import metadata

import pytest

from blurfit.errors import BlurfitError
from blurfit.optional import EXTRAS, optional


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
    wanted = package.replace("_", "-")
    required = metadata("blurfit").get_all("Requires-Dist") or []
    assert any(
        re.match(rf"{wanted}\b", line) and f"extra == '{EXTRAS[package]}'" in line.replace('"', "'")
        for line in required
    )
