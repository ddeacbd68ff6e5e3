"""The documentation: its commands run, its links lead somewhere, its modules exist."""

import re
import shlex
from pathlib import Path

import pytest

import blurfit
import blurfit_lab
import blurfit_server
from support import processes

ROOT = Path(__file__).parents[1]
SOURCES = [Path(one.__file__).parent for one in (blurfit, blurfit_server, blurfit_lab)]
THEORY = sorted((ROOT / "docs" / "theory").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *THEORY]
NOT_OURS = ("pip", "make", "$")  # the environment, which tests run in already


def commands(page: Path) -> list[list[str]]:
    """What stands behind $ in its blocks for the shell, lines that go on put together."""
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]


def run(typed: list[list[str]], folder: Path, home: Path) -> str:
    """One after the other, as pasted; what the last one said."""
    said = ""
    for command, *words in typed:
        if command == "cd":
            folder = folder / words[0]
            continue
        if command in NOT_OURS:
            continue
        assert command == "blurfit", command
        done = processes.run(words, folder=folder, environment={"BLURFIT_HOME": str(home)})
        assert done.returncode == 0, f"{words}: {done.stderr}"
        said = done.stdout
    return said


def test_the_readme_can_be_pasted(tmp_path) -> None:
    typed = commands(ROOT / "README.md")
    said = run(typed, tmp_path, tmp_path / "home")
    assert said.startswith("Shares: owns_home × marital\n")
    assert typed[:2] == [["make", "demo"], ["make", "test"]]
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(
        r"^demo: .*\n\t\$\(BIN\)/blurfit demo$", makefile, re.MULTILINE
    )  # test_demo.py


def test_the_first_steps_can_be_pasted_and_lead_to_the_page_about_moments(tmp_path) -> None:
    home = tmp_path / "home"
    said = run(commands(ROOT / "docs" / "start.md"), tmp_path, home)
    assert "# Privacy statement" in said
    folder = tmp_path / "survey"
    assert (folder / "predictions.csv").read_text().startswith("income,lower,upper\n")
    run(commands(ROOT / "docs" / "moments.md"), folder, home)


@pytest.fixture
def survey(tmp_path) -> Path:
    """What `blurfit init` writes, whose people later tests divide."""
    run([["blurfit", "init", "survey"]], tmp_path, tmp_path / "home")
    return tmp_path / "survey"


def test_waves_can_be_pasted(survey) -> None:
    heading, *lines = (survey / "people.csv").read_text().splitlines()
    for name, part in (("first", lines[:10_000]), ("second", lines[10_000:])):
        (survey / f"{name}.csv").write_text("\n".join([heading, *part]) + "\n")
    said = run(commands(ROOT / "docs" / "waves.md"), survey, survey.parent / "home")
    assert "rows:        20,000" in said  # each file was blurred by somebody who held its rows


def test_calibrations_can_be_pasted(tmp_path) -> None:
    said = run(commands(ROOT / "docs" / "calibrating.md"), tmp_path, tmp_path)
    assert said.startswith("Kept: epsilon = 1.29963")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_page_is_in_the_index() -> None:
    listed = (ROOT / "docs" / "index.md").read_text() + (
        ROOT / "docs" / "api-inside.md"
    ).read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or re.search(rf"^{page.stem}$", listed, re.MULTILINE), page


def test_the_index_of_theory_lists_every_page() -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "theory" / "index.md").read_text())
    assert sorted([*listed, "index.md"]) == [page.name for page in THEORY]


def test_theorems_name_tests_that_exist() -> None:
    folders = (ROOT / "tests", ROOT / "server" / "tests", ROOT / "lab" / "tests")
    tests = {path.name for folder in folders for path in folder.rglob("test_*.py")}
    for page in THEORY:
        for named in re.findall(r"`([\w/]*test_\w+\.py)`", page.read_text()):
            assert (ROOT / named).exists() if "/" in named else named in tests, (page.name, named)


def test_modules_name_pages_of_theory_that_exist() -> None:
    linked = {
        name
        for source in SOURCES
        for module in source.rglob("*.py")
        for name in re.findall(r"docs/theory/([\w-]+\.md)", module.read_text())
    }
    assert len(linked) > 15
    assert linked <= {page.name for page in THEORY}


def test_the_architecture_names_modules_that_exist_and_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`([a-z_/]+\.(?:py|js|html))`", text)
    assert len(named) > 25
    for module in named:
        places = [ROOT] if "tests/" in module else SOURCES
        assert any((place / module).exists() for place in places), module
    for room in (one for source in SOURCES for one in source.iterdir()):
        if room.is_dir() and (room / "__init__.py").exists():
            assert f"`{room.name}`" in text, room.name
