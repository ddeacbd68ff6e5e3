"""Write down which wheels the container is built from: each by version and SHA-256.

    python release/hashes.py

Asks pip, as it is set up here, what blurfit-server with PostgreSQL needs on the Python of
`deploy/Containerfile`, on both kinds of processors, in the versions of `requirements/`; and what
building blurfit's own wheel needs. Nothing is downloaded but what pip reads to find that out, and
no address is written: whoever builds gets the same files from wherever their pip does, or none.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROCESSORS = ("x86_64", "aarch64")
GLIBC = range(17, 37)  # that of Debian 12 is 2.36
PINS = ("runtime.txt", "dev.txt")


def main() -> None:
    """Write both files."""
    for name, wanted in direct().items():
        write(name, wanted)


def direct() -> dict[str, list[str]]:
    """The requirements of the container and of its build, as both distributions name them."""
    library, server = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
        for folder in ("", "server")
    )
    container = [
        *library["project"]["dependencies"],
        *(one for one in server["project"]["dependencies"] if not one.startswith("blurfit==")),
        *server["project"]["optional-dependencies"]["postgresql"],
    ]
    build = {*library["build-system"]["requires"], *server["build-system"]["requires"]}
    return {"container.txt": container, "build.txt": sorted(build)}


def write(name: str, wanted: list[str]) -> None:
    """Write the requirements that some direct ones come to."""
    found: dict[str, set[str]] = {}
    for processor in PROCESSORS:
        for one in asked(wanted, processor):
            known = f"{one['metadata']['name'].lower()}=={one['metadata']['version']}"
            sha256 = one["download_info"]["archive_info"]["hashes"]["sha256"]
            found.setdefault(known, set()).add(sha256)
    lines = [
        "# Written by `make hashes`: the wheels of deploy/Containerfile, which takes no others."
    ]
    for known, hashes in sorted(found.items()):
        lines.append(" \\\n".join([known, *(f"    --hash=sha256:{one}" for one in sorted(hashes))]))
    path = ROOT / "requirements" / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"Wrote {path}: {len(found)} packages.")


def asked(wanted: list[str], processor: str) -> list[dict[str, Any]]:
    """What pip would install for one kind of processor."""
    pins = [(ROOT / "requirements" / name).read_text(encoding="utf-8") for name in PINS]
    tags = [f"manylinux_2_{minor}_{processor}" for minor in GLIBC] + [f"manylinux2014_{processor}"]
    with tempfile.TemporaryDirectory() as folder:
        constraints, report = Path(folder, "pins.txt"), Path(folder, "report.json")
        constraints.write_text("\n".join(re.findall(r"^\S+==\S+$", "\n".join(pins), re.MULTILINE)))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--only-binary", ":all:", "--implementation", "cp"]
        command += ["--python-version", container_python(), "--target", str(Path(folder, "none"))]
        command += [word for tag in tags for word in ("--platform", tag)]
        command += ["--constraint", str(constraints), "--report", str(report), *wanted]
        subprocess.run(command, check=True)
        found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
    return found


def container_python() -> str:
    """The version of Python that the container has."""
    text = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
    (version,) = set(re.findall(r"^FROM \S+/python:(3\.\d+)", text, re.MULTILINE))
    return str(version)


if __name__ == "__main__":
    main()
