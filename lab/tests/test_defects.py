"""lab/docs/defects.md names regression tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = [ROOT / "tests", ROOT / "server" / "tests", ROOT / "lab" / "tests"]


def test_every_defect_names_regression_tests_that_exist() -> None:
    page = (ROOT / "lab" / "docs" / "defects.md").read_text(encoding="utf-8")
    rows = page.split("\n| ")[3:]  # without the head of the table
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)`: ((?:`test_\w+`(?:, )?)+)", row)
        assert named, row
        for file, names in named:
            places = [place for room in ROOMS for place in room.rglob(file)]
            text = "".join(place.read_text(encoding="utf-8") for place in places)
            for name in re.findall(r"`(\w+)`", names):
                assert f"def {name}(" in text, f"{file}: {name}"
