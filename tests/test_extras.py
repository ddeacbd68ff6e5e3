"""`pip install blurfit` alone: the library, the estimators and what contributors and users type.

Packages of the extras are installed where tests run, so they are hidden here.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from blurfit.cli import SERVER
from blurfit.errors import EXTRAS
from support.surveys import schema_text

SERVED = ("blurfit_server", "httptools", "prometheus_client", "sqlalchemy", "starlette", "uvicorn")
HIDE = f"""
import importlib.metadata
import sys
importlib.metadata.entry_points = lambda **_group: ()
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted({*EXTRAS, *SERVED, "PIL", "polars"})!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""
# Each of the lines typed, one after the other: [exit code, what was said, what went wrong].
TYPE = """
import contextlib, io, json
from blurfit.cli import main
found = []
for line in sys.argv[1:]:
    said, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
        try:
            main(line.split(), prog_name="blurfit")
        except SystemExit as end:
            found.append([end.code or 0, said.getvalue(), wrong.getvalue()])
print(json.dumps(found))
"""
SCHEMA = schema_text()
LIBRARY = """
import numpy as np
import blurfit
from blurfit.estimators import MomentPerturbationClassifier, MomentPerturbationRegressor
x = np.linspace(0, 1, 500)[:, None]
number = MomentPerturbationRegressor(bounds=(0, 1), target_bounds=(0, 1)).fit(x, x[:, 0])
label = MomentPerturbationClassifier(bounds=(0, 1), classes=[0, 1]).fit(x, x[:, 0] > 0.5)
assert number.predict(x).shape == label.predict(x).shape == (500,)
for name in blurfit.__all__:
    getattr(blurfit, name)
from blurfit.model.statement import as_yaml
moments = MomentPerturbationRegressor(bounds=(0, 1), target_bounds=(0, 1), waves=1)
try:
    as_yaml(moments.fit(x, x[:, 0]).moments_)
except blurfit.BlurfitError as error:
    assert "pip install 'blurfit[yaml]'" in str(error)
else:
    raise AssertionError("pyyaml is not hidden")
"""
DONE = [
    "calibrate --epsilon 1 --delta 1e-6 --quorum 300 --constant 0.5",
    "agree schema.toml --epsilon 1 --delta 1e-6 --quorum 300 --out agreement.json",
    "forecast agreement.json --contributors 300 --draws 4",
]
# Nobody listens, which is found out after all that needs a package.
SENT = "contribute agreement.json people.csv --to http://127.0.0.1:9 --patience 0"
NEEDS = {
    **dict.fromkeys(SERVER, "blurfit-server"),
    "forecast agreement.json --public-data people.parquet": "'blurfit[tables]'",
    "forecast agreement.json --contributors 300 --draws 4 --plot x.png": "'blurfit[plots]'",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, tuple[int, str, str]]:
    """What the library does, and then what each line gets, in one process that has no extra."""
    folder = tmp_path_factory.mktemp("extras")
    (folder / "schema.toml").write_text(SCHEMA)
    rows = [f"{row % 101},{row}" for row in range(300)]
    (folder / "people.csv").write_text("\n".join(["age,income", *rows]))
    (folder / "people.parquet").write_bytes(b"PAR1")
    lines = [*DONE, SENT, *NEEDS]
    result = subprocess.run(
        [sys.executable, "-c", HIDE + LIBRARY + TYPE, *lines],
        cwd=folder,
        env=os.environ | {"BLURFIT_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return {
        line: tuple(found) for line, found in zip(lines, json.loads(result.stdout), strict=True)
    }


def test_the_library_and_what_contributors_and_users_type(answers) -> None:
    for code, said, wrong in (answers[line] for line in DONE):
        assert code == 0, wrong
        assert said
    code, _, wrong = answers[SENT]
    assert code == 3, wrong


def test_what_needs_more_names_its_extra(answers) -> None:
    for line, extra in NEEDS.items():
        code, _, wrong = answers[line]
        assert code == 2, (line, wrong)
        assert f"pip install {extra}`" in wrong, wrong
        assert "Traceback" not in wrong


def test_all_has_every_extra() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert everything == f"blurfit[{','.join(sorted(extras))}]", json.dumps(sorted(extras))
