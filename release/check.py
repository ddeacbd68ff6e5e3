"""Build wheels and sdists of the three distributions, and try each alone as a stranger would.

    python release/check.py [--python PATH ...]

For each Python from 3.11 on that is found here, each distribution gets a new environment outside
the clone, with nothing in it but what its wheel asks for:

| wheel | tried by |
| --- | --- |
| `blurfit` | the first survey, from schema to predictions; `demo`, which names what is missing |
| `blurfit-server` | the demo, then a service that answers with its pages |
| `blurfit-lab` | `blurfit-lab --help`, and one of the paper's experiments |

What fails ends it with the output of what failed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEAST = (3, 11)
SURVEY = (
    ("init", "survey"),
    ("agree", "survey/schema.toml", "--out", "agreement.json"),
    ("contribute", "agreement.json", "survey/people.csv", "--out", "submissions.parquet"),
    ("learn", "agreement.json", "submissions.parquet", "--moments", "moments.json"),
    ("fit", "moments.json", "owns_home ~ age + income", "--out", "home.json"),
    ("show", "model.json"),
    ("predict", "model.json", "survey/people.csv", "--out", "predictions.csv"),
)
EXTRAS = {"blurfit": "[formulas,plots,tables,yaml]"}


def clean() -> dict[str, str]:
    """The environment, without what would find the clone."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(*words: str | Path, folder: Path | None = None, code: int = 0) -> str:
    """What a command printed; what it printed before it ended otherwise goes with the error."""
    command = [str(word) for word in words]
    home = {} if folder is None else {"BLURFIT_HOME": str(folder / "home")}
    done = subprocess.run(
        command, cwd=folder, env=clean() | home, capture_output=True, text=True, check=False
    )
    if done.returncode != code:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + (done.stderr if code else "")


def pythons() -> list[Path]:
    """Every version that blurfit is for, once: on the path, and where pyenv keeps them."""
    names = {f"python3.{minor}" for minor in range(LEAST[1], 20)}
    found = [Path(known) for name in names if (known := shutil.which(name))]
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found += [path for path in kept.glob("3.*/bin/python") if path.exists()]
    versions: dict[tuple[int, ...], Path] = {}
    for path in [Path(sys.executable), *found]:
        asked = [str(path), "-c", "import sys; print(*sys.version_info[:2])"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        version = tuple(map(int, done.stdout.split()))
        if done.returncode == 0 and version >= LEAST:
            versions.setdefault(version, path)
    return [versions[version] for version in sorted(versions)]


def build(folder: Path) -> None:
    """Build each sdist, and from it the wheel; all archives pass twine's check."""
    for source in (ROOT, ROOT / "server", ROOT / "lab"):
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source)
    archives = sorted(folder.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *archives)
    print("built and checked:", ", ".join(path.name for path in archives))


def install(distribution: str, python: Path, wheels: Path, folder: Path) -> Path:
    """Install one distribution into a new environment, and return where its commands are."""
    run(python, "-m", "venv", folder / "environment")
    commands = folder / "environment" / "bin"
    pip = commands / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"
    run(*pip, "--find-links", wheels, distribution + EXTRAS.get(distribution, ""))
    run(commands / "python", "-m", "pip", "check")
    return commands


def try_library(commands: Path, folder: Path) -> str:
    """Run a stranger's first quarter of an hour, without the server."""
    blurfit = commands / "blurfit"
    version = run(blurfit, "--version", folder=folder).split()[-1]
    for words in SURVEY:
        run(blurfit, *words, folder=folder)
    rows = len((folder / "predictions.csv").read_text().splitlines()) - 1
    run(commands / "python", "-c", "import blurfit.estimators", folder=folder)
    if "pip install blurfit-server" not in run(blurfit, "demo", folder=folder, code=2):
        raise SystemExit("`blurfit demo` did not name the distribution that is missing.")
    return f"blurfit {version}, {rows:,} predictions"


def try_server(commands: Path, folder: Path) -> str:
    """Let generated people share answers between two databases, then ask a service for pages."""
    blurfit = commands / "blurfit"
    run(blurfit, "demo", "--contributors", "2000", "--out", "demo", folder=folder)
    return f"blurfit-server, demo, {serve(blurfit, folder)} pages served"


def try_laboratory(commands: Path, folder: Path) -> str:
    """Ask for help, then draw one figure of the paper from few trials."""
    laboratory = commands / "blurfit-lab"
    run(laboratory, "--help", folder=folder)
    run(laboratory, "reproduce", "fig1a", "--trials", "2", "--out", "figures", folder=folder)
    return f"blurfit-lab, {len(list((folder / 'figures').iterdir()))} files of one figure"


TRIED = {"blurfit": try_library, "blurfit-server": try_server, "blurfit-lab": try_laboratory}


def serve(blurfit: Path, folder: Path) -> int:
    """How many pages a service of the installed wheel answers with."""
    words = [str(blurfit), "serve", "--store", "sqlite:///service.db", "--port", "0"]
    process = subprocess.Popen(words, cwd=folder, env=clean(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = re.search(r"http://\S+", process.stdout.readline())
        if address is None:
            raise SystemExit("The service did not say where it is.")
        served = 0
        for path in ("/", "/admin", "/pages/page.js", "/pages/style.css", "/openapi.json"):
            with urllib.request.urlopen(address.group() + path, timeout=30) as answer:
                served += answer.status == 200
        return served
    finally:
        process.terminate()
        process.wait(20)


def main() -> None:
    """Build once, and try each distribution on every Python."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--python", type=Path, action="append", help="Instead of all found.")
    chosen = arguments.parse_args().python or pythons()
    with tempfile.TemporaryDirectory() as wheels:
        build(Path(wheels))
        for python in chosen:
            for distribution, attempt in TRIED.items():
                with tempfile.TemporaryDirectory() as away:
                    folder = Path(away)
                    commands = install(distribution, python.absolute(), Path(wheels), folder)
                    print(f"{python}: {attempt(commands, folder)}", flush=True)


if __name__ == "__main__":
    main()
