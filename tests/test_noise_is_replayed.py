"""Tests draw the same noise in every run, and different tests different noise."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from blurfit import randomness as noise
from blurfit.simulation import operating_system_generator
from support import processes

NOISY = """
import numpy as np
import pytest
from blurfit import Agreement, Numeric, Schema, perturb_table
from blurfit import randomness as noise
from blurfit.contributor import blur
from blurfit.simulation import operating_system_generator

SCHEMA = Schema(features=[Numeric("x", 0, 1)], target=Numeric("y", 0, 1))
AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=100)

def draw():
    return [noise.add(np.zeros(3), 100.0, 1.0).tolist(), noise.new_identifiers(1).tolist()]

AT_IMPORT = draw()

@pytest.fixture(scope="session")
def once_for_all():
    return draw()

@pytest.fixture(scope="module")
def shared(request, once_for_all):
    return draw()

@pytest.mark.parametrize("case", [1, 2])
def test_noise(case):
    drawn = noise.add(np.zeros(3), 100.0, 1.0).tolist()
    print("drawn", case, drawn, operating_system_generator().random())

@pytest.mark.parametrize("case", [1, 2])
def test_shared(case, once_for_all, shared):
    print("drawn once", AT_IMPORT, once_for_all, shared)

def test_table():
    rows = 8 * blur._NUMBERS_AT_ONCE // AGREEMENT.width  # in eight parts, which threads share
    table = {"x": np.zeros(rows), "y": np.zeros(rows)}
    print("drawn", perturb_table(AGREEMENT, table).numbers[:: rows // 16].tolist())
"""


def test_noise_is_replayed(tmp_path: Path) -> None:
    """In a process that starts from nothing, and in one that is forked: two seeds of hashes."""
    (tmp_path / "test_noisy.py").write_text(NOISY)
    (tmp_path / "conftest.py").write_text("from support.replay import *\n")
    arguments = ["-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    arguments += ["-o", f"pythonpath={Path(__file__).parent}", str(tmp_path)]
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # which take long to import
    everything = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=alone,
    ).stdout
    some = [*arguments, "-k", "2 or table"]  # in any order, and whoever runs the others
    forked = processes.start(
        pytest.main, some, out=tmp_path / "said", folder=tmp_path, environment=alone
    )
    assert forked.wait(300) == 0
    first, second, shared, again, table = drawn(everything)
    assert drawn((tmp_path / "said").read_text()) == [second, again, table]
    assert shared == again
    assert first.partition("[")[2] != second.partition("[")[2]


def drawn(said: str) -> list[str]:
    return [line.lstrip(".") for line in said.splitlines() if "drawn" in line]


def test_within_a_test_noise_goes_on() -> None:
    first, second = (noise.add(np.zeros(8), 100.0, 1.0) for _ in range(2))
    assert not np.array_equal(first, second)
    first, second = (operating_system_generator().random(4) for _ in range(2))
    assert not np.array_equal(first, second)
