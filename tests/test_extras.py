"""`pip install blurfit` alone: the library, the estimators and what contributors and users type.

Packages of the extras are installed where tests run, so they are hidden here.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

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
# Each of the lines typed, one after the other: [exit code, what was said, what went wrong].
MAIN = (
    HIDE
    + """
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
)
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


def typed(*lines: str, folder: Path) -> list[tuple[int, str, str]]:
    result = run(MAIN, *lines, folder=folder)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert len(found) == len(lines)
    return [tuple(one) for one in found]


def test_what_contributors_and_users_type(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    rows = [f"{row % 101},{row}" for row in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["age,income", *rows]))
    *done, sent = typed(
        "calibrate --mechanism input --epsilon 1 --delta 1e-6 --dimension 2 --quorum 300 "
        "--q-bound 1 --p-bound 1 --weight-bound 2",
        "agree schema.toml --epsilon 1 --delta 1e-6 --quorum 300 --out agreement.json",
        "forecast agreement.json --contributors 300 --draws 4",
        # nobody listens, which is found out after all that needs a package
        "contribute agreement.json people.csv --to http://127.0.0.1:9 --patience 0",
        folder=tmp_path,
    )
    for code, said, wrong in done:
        assert code == 0, wrong
        assert said
    assert sent[0] == 3, sent[2]


NEEDS = {
    "serve": "service",
    "demo": "service",
    "forecast agreement.json --public-data people.parquet": "tables",
    "forecast agreement.json --contributors 300 --draws 4 --plot x.png": "experiments",
    "reproduce noise --trials 1 --rows 5000": "experiments",
}


def test_what_needs_more_names_its_extra(tmp_path: Path) -> None:
    schema = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 1000))
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=300)
    agreement.save(tmp_path / "agreement.json")
    (tmp_path / "people.parquet").write_bytes(b"PAR1")
    for (line, extra), (code, _, wrong) in zip(
        NEEDS.items(), typed(*NEEDS, folder=tmp_path), strict=True
    ):
        assert code == 2, (line, wrong)
        assert f"pip install 'blurfit[{extra}]'" in wrong, wrong
        assert "Traceback" not in wrong


def test_all_has_every_extra() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert everything == f"blurfit[{','.join(sorted(extras))}]", json.dumps(sorted(extras))
