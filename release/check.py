"""Build wheel and sdist, check their metadata, and try the wheel as a stranger would.

    python release/check.py [--python PATH ...]

For each Python from 3.11 on that is found here: a new environment outside the clone, the wheel with
its extras for tables, formulas, pictures and the service, and the first survey from the schema to
predictions and another question, the demo, then a service that answers with its pages. What fails
ends it with the output of what failed.
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
    ("demo", "--contributors", "2000", "--out", "demo"),
)


def clean() -> dict[str, str]:
    """The environment, without what would find the clone."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(*words: str | Path, folder: Path | None = None, **environment: str) -> str:
    """What a command printed; what it printed before it failed goes with the error."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command, cwd=folder, env=clean() | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


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


def build(folder: Path) -> Path:
    """The wheel; both archives pass twine's check."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    archives = sorted(folder.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *archives)
    print("built and checked:", ", ".join(path.name for path in archives))
    return next(path for path in archives if path.suffix == ".whl")


def attempt(python: Path, wheel: Path, folder: Path) -> None:
    """A stranger's first quarter of an hour."""
    environment = folder / "environment"
    run(python, "-m", "venv", environment)
    pip = environment / "bin" / "python", "-m", "pip", "install", "--quiet"
    run(*pip, "--disable-pip-version-check", f"{wheel}[plots,formulas,service,tables]")
    blurfit, home = environment / "bin" / "blurfit", {"BLURFIT_HOME": str(folder / "home")}
    version = run(blurfit, "--version", folder=folder, **home).split()[-1]
    for words in SURVEY:
        run(blurfit, *words, folder=folder, **home)
    rows = len((folder / "predictions.csv").read_text().splitlines()) - 1
    pages = serve(blurfit, folder)
    print(f"{python}: blurfit {version}, {rows:,} predictions, {pages} pages served")


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
    """Build once, and try it on every Python."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--python", type=Path, action="append", help="Instead of all found.")
    chosen = arguments.parse_args().python or pythons()
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        for python in chosen:
            with tempfile.TemporaryDirectory() as away:
                attempt(python, wheel, Path(away))


if __name__ == "__main__":
    main()
