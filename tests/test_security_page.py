"""docs/security.md: each claim names tests that exist, or says that it is none."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
# What is no claim that something holds, or follows from a number that a command prints.
NOT_SHOWN = ("not prevented", "prints how little")


def rows() -> list[list[str]]:
    """The cells of the table by attacker, without its head."""
    table = PAGE.split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    return [
        [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        for line in lines
    ]


@pytest.mark.parametrize("cells", rows(), ids=lambda cells: cells[1][:60])
def test_each_claim_names_tests_or_says_that_it_is_none(cells) -> None:
    shown = re.findall(r"`((?:\w+/)*tests/[^`]+)`", cells[3])
    assert shown or any(words in cells[3] for words in NOT_SHOWN), cells[3]
    for name in shown:
        assert (ROOT / name).exists(), name


def test_problems_of_the_page_are_problems_of_the_service() -> None:
    from blurfit import protocol as problems

    kinds = {one.name for one in vars(problems).values() if isinstance(one, problems.Kind)}
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    table = page.split("| status | `type`")[1].split("\n\n")[0]
    named = {
        name for line in table.splitlines()[2:] for name in re.split(", ", line.split(" | ")[1])
    }
    assert named <= kinds
    unsaid = kinds - named
    assert unsaid == {"method-not-allowed", "other-database"}
