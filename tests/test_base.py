"""The modules on which every room stands: checks, dates, extras, notebooks, the version."""

import importlib
import math
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import blurfit
from blurfit import InvalidValueError, errors
from blurfit.data import html_table
from blurfit.errors import EXTRAS, BlurfitError, in_words, instant, optional

ROOT = Path(__file__).parents[1]
PROJECTS = {
    name: tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, folder in (("blurfit", ""), ("blurfit-server", "server"), ("blurfit-lab", "lab"))
}
PACKAGED = {"yaml": "pyyaml"}  # where a package is not called as its module


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InvalidValueError, ValueError),
        (errors.InfeasibleError, ValueError),
        (errors.NotCertifiedError, ArithmeticError),
    ],
)
def test_each_error_is_ours_and_pythons(error, builtin) -> None:
    assert issubclass(error, errors.BlurfitError)
    assert issubclass(error, builtin)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", None, True, np.bool_(1), 1j])
def test_only_finite_real_numbers(value) -> None:
    for check in (errors.finite, errors.positive, errors.nonnegative):
        with pytest.raises(InvalidValueError, match="Expected share="):
            check(share=value)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3)])
def test_numbers_of_all_kinds_pass(value) -> None:
    errors.finite(a=value)
    errors.positive(a=value)
    errors.nonnegative(a=0, b=value)


def test_messages_are_written_by_the_call() -> None:
    with pytest.raises(InvalidValueError, match=r"^Expected epsilon=-1 > 0\.$"):
        errors.positive(delta=1, epsilon=-1)
    with pytest.raises(InvalidValueError, match=r"^Expected ridge=-0\.5 >= 0\.$"):
        errors.nonnegative(ridge=-0.5)
    with pytest.raises(InvalidValueError, match=r"^Expected split=1 strictly between 0 and 1\.$"):
        errors.inside_unit_interval(split=1)
    with pytest.raises(InvalidValueError, match="rule='x' to be one of 'a', 'b'"):
        errors.one_of(("a", "b"), rule="x")


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", None, True])
def test_whole_numbers(value) -> None:
    errors.whole(quorum=np.int64(3))
    with pytest.raises(InvalidValueError, match=r"quorum=.* to be a whole number >= 1"):
        errors.whole(quorum=value)


@pytest.mark.parametrize("value", [-1, 1.0, "1", True, None, np.True_])
def test_whole_numbers_from_zero(value) -> None:
    errors.whole_from_zero(a=0, b=np.int64(3))
    with pytest.raises(InvalidValueError, match="whole number >= 0"):
        errors.whole_from_zero(count=value)


def test_a_date_lasts_until_its_end_in_utc() -> None:
    assert in_words(instant("2027-01-31")) == "2027-02-01 00:00 UTC"
    assert in_words(instant("2028-02-29")) == "2028-03-01 00:00 UTC"


def test_a_time_needs_its_zone() -> None:
    assert in_words(instant("2027-01-31T18:00:07-05:00")) == "2027-01-31 23:00:07 UTC"
    for text in ("2027-01-31T18:00", "tomorrow", "", "9999-12-31", "2027-02-29", None):
        with pytest.raises(InvalidValueError, match="a time with its zone"):
            instant(text)


@pytest.mark.parametrize("package", sorted(EXTRAS))
def test_what_is_missing_names_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(BlurfitError, match=re.escape(f"pip install '{EXTRAS[package]}'")):
        optional(f"{package}.part")


@pytest.mark.parametrize("package", sorted(EXTRAS))
def test_the_extra_brings_the_package(package: str) -> None:
    distribution, extra = EXTRAS[package].removesuffix("]").split("[")
    project = PROJECTS[distribution]
    pattern = re.compile(rf"{PACKAGED.get(package, package)}\b")
    assert any(map(pattern.match, project["optional-dependencies"][extra]))
    assert not any(map(pattern.match, project["dependencies"]))


@pytest.mark.parametrize("distribution", ["blurfit-server", "blurfit-lab"])
def test_distributions_have_one_version_and_say_so(distribution: str) -> None:
    package = importlib.import_module(distribution.replace("-", "_"))
    assert package.__version__ == version(distribution) == blurfit.__version__
    needed = re.compile(rf"blurfit(\[.+\])?=={re.escape(blurfit.__version__)}$")
    assert any(map(needed.match, PROJECTS[distribution]["dependencies"]))


@pytest.mark.parametrize("package", ["blurfit_server", "blurfit_lab"])
def test_another_version_is_rejected_at_start(package: str, monkeypatch) -> None:
    """Both ends must agree to the last bit."""
    module = importlib.import_module(package)
    monkeypatch.setattr(errors, "__version__", "9.9.9")
    with pytest.raises(BlurfitError, match=r"blurfit 9\.9\.9 is installed: run `pip install"):
        importlib.reload(module)


def test_distributions_promise_the_same_pythons() -> None:
    promised = [
        {one for one in project["classifiers"] if "Python :: 3." in one}
        for project in PROJECTS.values()
    ]
    assert promised[0]
    assert all(one == promised[0] for one in promised)
    assert len({project["requires-python"] for project in PROJECTS.values()}) == 1


def test_names_are_text_and_nothing_else() -> None:
    text = html_table(["<script>"], [["a & b"], ["<img src=x>"]], caption="<i>")
    assert "<script>" not in text
    assert "<img" not in text
    assert "<caption>&lt;i&gt;</caption>" in text
    assert text.count("<tr>") == 3
    assert "<caption>" not in html_table(["a"], [])


def test_the_module_is_the_command_and_has_one_version() -> None:
    asked = [sys.executable, "-m", "blurfit", "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said.startswith("blurfit")
    assert blurfit.__version__ == version("blurfit")
    assert blurfit.__version__ in said
