"""The errata's numbers: the page is what is computed, and it finds what is known."""

from pathlib import Path

import numpy as np
import pytest

from blurfit_lab.experiments import errata

PAGE = Path(__file__).parents[1] / "docs" / "errata.md"


@pytest.mark.statistical
def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == errata.render()


def test_known_numbers() -> None:
    assert errata.delta_for_replaced_records(1e-9) == pytest.approx(5.6e-9, rel=0.05)
    exact, printed = errata.local_epsilons()
    assert exact == pytest.approx(2.1e5, rel=0.05)
    assert printed == pytest.approx(2.1e3, rel=0.05)
    bounded, free = errata.unbounded_ratio()
    assert bounded == pytest.approx(3 / 2**0.5, rel=1e-3)
    assert free == pytest.approx(5**0.5, rel=1e-3)


def test_claimed_probability_is_missed() -> None:
    every, one = errata.curvature_reached(32_768, 14, 0.1, 32_768 / 14 * np.eye(14), draws=200)
    assert every == 0
    assert one < 0.9
