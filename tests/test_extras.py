"""`pip install blurfit` alone: the library, the estimators and what contributors and users type.

Packages of the extras are installed where tests run, so they are hidden here.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from blurfit import Agreement, Numeric, Schema
from blurfit.optional import EXTRAS

HIDE = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted({*EXTRAS, "PIL", "uvloop", "polars"})!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""
MAIN = HIDE + "from blurfit.cli import main\nmain(prog_name='blurfit')"
SCHEMA = """
[[features]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
[target]
name = "income"
kind = "numeric"
lower = 0
upper = 1000
"""


def run(script: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_library_and_the_estimators(tmp_path: Path) -> None:
    script = """
import numpy as np
import blurfit
from blurfit.estimators import MomentPerturbationClassifier, MomentPerturbationRegressor
x = np.linspace(0, 1, 500)[:, None]
number = MomentPerturbationRegressor(bounds=(0, 1), target_bounds=(0, 1)).fit(x, x[:, 0])
label = MomentPerturbationClassifier(bounds=(0, 1), classes=[0, 1]).fit(x, x[:, 0] > 0.5)
assert number.predict(x).shape == label.predict(x).shape == (500,)
for name in blurfit.__all__:
    if name != "Store":
        getattr(blurfit, name)
try:
    blurfit.Store
except blurfit.BlurfitError as error:
    assert "pip install 'blurfit[service]'" in str(error)
else:
    raise AssertionError
"""
    result = run(HIDE + script, folder=tmp_path)
    assert result.returncode == 0, result.stderr


def test_what_contributors_and_users_type(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    rows = [f"{row % 101},{row}" for row in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["age,income", *rows]))
    for line in (
        "calibrate --mechanism input --epsilon 1 --delta 1e-6 --dimension 2 --quorum 300 "
        "--q-bound 1 --p-bound 1 --weight-bound 2",
        "agree schema.toml --epsilon 1 --delta 1e-6 --quorum 300 --out agreement.json",
        "forecast agreement.json --contributors 300 --draws 4",
    ):
        result = run(MAIN, *line.split(), folder=tmp_path)
        assert result.returncode == 0, f"{line}: {result.stderr}"
        assert result.stdout
    # nobody listens, which is found out after all that needs a package
    sending = "contribute agreement.json people.csv --to http://127.0.0.1:9 --patience 0"
    result = run(MAIN, *sending.split(), folder=tmp_path)
    assert result.returncode == 3, result.stderr


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("serve", "service"),
        ("demo", "service"),
        ("forecast agreement.json --public-data people.parquet", "tables"),
        ("forecast agreement.json --contributors 300 --draws 4 --plot x.png", "experiments"),
        ("reproduce noise --trials 1 --rows 5000", "experiments"),
    ],
)
def test_what_needs_more_names_its_extra(tmp_path: Path, line: str, extra: str) -> None:
    schema = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 1000))
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=300)
    agreement.save(tmp_path / "agreement.json")
    (tmp_path / "people.parquet").write_bytes(b"PAR1")
    result = run(MAIN, *line.split(), folder=tmp_path)
    assert result.returncode == 2, result.stderr
    assert f"pip install 'blurfit[{extra}]'" in result.stderr, result.stderr
    assert "Traceback" not in result.stderr


def test_all_has_every_extra() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert everything == f"blurfit[{','.join(sorted(extras))}]", json.dumps(sorted(extras))
