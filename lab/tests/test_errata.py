"""The errata's numbers: the page is what the script writes, and it finds what is known."""

import importlib.util
from pathlib import Path

import pytest

LAB = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def errata():
    path = LAB / "experiments" / "errata.py"
    specification = importlib.util.spec_from_file_location("errata", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.statistical
def test_the_page_is_what_the_script_writes(errata) -> None:
    assert (LAB.parent / "docs" / "errata.md").read_text(encoding="utf-8") == errata.render()


def test_known_numbers(errata) -> None:
    assert errata.delta_for_replaced_records(1e-9) == pytest.approx(5.6e-9, rel=0.05)
    exact, printed = errata.local_epsilons()
    assert exact == pytest.approx(2.1e5, rel=0.05)
    assert printed == pytest.approx(2.1e3, rel=0.05)
    bounded, free = errata.unbounded_ratio()
    assert bounded == pytest.approx(3 / 2**0.5, rel=1e-3)
    assert free == pytest.approx(5**0.5, rel=1e-3)


def test_claimed_probability_is_missed(errata) -> None:
    import numpy as np

    every, one = errata.curvature_reached(32_768, 14, 0.1, 32_768 / 14 * np.eye(14), draws=200)
    assert every == 0
    assert one < 0.9
