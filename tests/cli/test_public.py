"""Public rows as a user types them: agreed on by a digest, checked, matched, and told."""

import hashlib
import json
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from blurfit import Agreement
from blurfit.model.course import fit_public
from blurfit.model.release import moments_of
from blurfit.simulation import exact_totals, sampler_for
from support.joint_release import SCHEMA, people, release
from support.surveys import schema_text

MOMENTS = release(20_000, epsilon=3.0)
FORMULA = "married ~ income + age + C(region, 'south')"
ROWS = people(1000, 77)
NAMES = ("age", "education", "region", "married", "income")
TOML = schema_text(18, 90, 100_000)


def write(path, columns=ROWS, names=NAMES):
    """A CSV file with every digit, and what its columns are when they are read again."""
    lines = [",".join(names)]
    lines += [",".join(map(str, row)) for row in zip(*(columns[n].tolist() for n in names))]  # noqa: B905
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def folder(blurfit):
    MOMENTS.save(blurfit.folder / "moments.json")
    write(blurfit.folder / "rows.csv")
    return blurfit.folder


def test_the_model_and_the_balance_are_the_librarys(blurfit, folder) -> None:
    done = blurfit.done(
        *("fit", "moments.json", FORMULA, "--public", "rows.csv"),
        *("--plot", "balance.png", "--out", "model.json"),
    )
    model, balance = fit_public(MOMENTS, ROWS, MOMENTS.formula(FORMULA, None, None))
    assert model.link == "logistic"
    assert (folder / "model.json").read_text() == model.to_json()
    assert str(balance) in done.stdout
    assert f"worth {balance.effective_rows:,.0f}; the largest weight is" in done.stdout
    assert "assumed to be public, and not those of the people who are protected" in done.stdout
    assert str(model.summary()) in done.stdout
    assert (folder / "balance.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def agreed(folder) -> str:
    """The digest of rows.csv, which the agreement of named.json names."""
    digest = hashlib.sha256((folder / "rows.csv").read_bytes()).hexdigest()
    agreement = Agreement.propose(SCHEMA, epsilon=3, delta=1e-6, quorum=20_000, public_rows=digest)
    sampler = sampler_for(agreement, exact_totals(agreement, people(20_000, 0)))
    moments_of(agreement, sampler.draw(np.random.default_rng(1))).save(folder / "named.json")
    return digest


def test_only_the_agreed_file_is_taken(blurfit, folder, agreed) -> None:
    blurfit.done("fit named.json", FORMULA, "--public", "rows.csv")
    other = write(folder / "other.csv", people(1000, 78))
    blurfit.refused(
        "fit named.json",
        FORMULA,
        "--public",
        "other.csv",
        "--out",
        "model.json",
        says=(agreed, hashlib.sha256(other.read_bytes()).hexdigest()),
    )
    assert not (folder / "model.json").exists()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["--family", "poisson"], "Expected --public FILE with --family"),
        (["--public", "rows.csv", "--ridge", "1"], "no --ridge, --lasso, --uneven"),
        (["--public", "rows.txt"], ".csv, .xlsx or .parquet"),
        (["--public", "few.csv"], "Expected the columns income in 'few.csv'"),
        (["--public", "wrong.csv"], "of 'wrong.csv' (the heading is row 1)"),
        (["--public", "empty.csv"], "Expected at least one public row"),
        (["--public", "rows.csv", "--family", "linear"], "it is yes or no"),
    ],
)
def test_refusals(blurfit, folder, typed, message: str) -> None:
    (folder / "rows.txt").write_text("age\n")
    write(folder / "few.csv", names=NAMES[:-1])
    (folder / "wrong.csv").write_text("age,income,region\nold,3,north\n")
    (folder / "empty.csv").write_text("age,income,region\n")
    blurfit.refused("fit moments.json", FORMULA, *typed, "--out", "model.json", says=message)
    assert not (folder / "model.json").exists()
    assert not (folder / "balance.png").exists()


def test_an_agreement_names_the_file_and_says_what_is_assumed(blurfit, folder) -> None:
    (folder / "schema.toml").write_text(TOML)
    typed = ("agree", "schema.toml", "--epsilon", "1", "--delta", "1e-6", "--quorum", "5000")
    done = blurfit.done(*typed, "--public", "rows.csv")
    digest = hashlib.sha256((folder / "rows.csv").read_bytes()).hexdigest()
    written = Agreement.load(folder / "agreement.json")
    assert written.public_rows == digest
    words = " ".join(done.stdout.split())
    assert f"Public rows: SHA-256 {digest}." in words
    assert "assumed to be public, and not those of the people who are protected" in words
    plain = Agreement.propose(written.schema, epsilon=1, delta=1e-6, quorum=5000)
    assert plain.weights != written.weights  # the target is weighted for them


@pytest.mark.usefixtures("agreed")
def test_everyone_can_fetch_the_file_and_have_it_checked(blurfit, folder, monkeypatch) -> None:
    (fetched := folder / "fetched").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(fetched))
    write(folder / "other.csv", people(1000, 9))
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        typed = ("fit", "named.json", FORMULA, "--json", "--public")
        here, there = (blurfit(*typed, place) for place in ("rows.csv", f"{address}/rows.csv"))
        other = blurfit(*typed, f"{address}/other.csv")
        missing = blurfit(*typed, f"{address}/nothing.csv")
        server.shutdown()
    assert there.returncode == 0, there.stderr
    assert there.stdout == here.stdout
    assert other.returncode == missing.returncode == 2
    assert "to be the file of public rows that was agreed on" in other.stderr
    assert "Cannot fetch the public rows at" in missing.stderr
    assert "404" in missing.stderr
    assert not list(fetched.iterdir()), "what was fetched is gone with the command"


def test_agree_says_first_what_the_rows_are_worth(blurfit, folder) -> None:
    (folder / "schema.toml").write_text(TOML)
    terms = ("--epsilon", "1", "--delta", "1e-7", "--quorum", "400000", "--local-epsilon", "1")
    typed = ("agree", "schema.toml", *terms, "--public", "rows.csv")
    done = blurfit.done(*typed)
    assert "With 400,000 contributors at ε = 1 and a local ε = 1, public rows" in done.stdout
    found = json.loads(blurfit(*typed, "--json").stdout)
    assert found["local_delta"] == 1e-7  # that of what is published, if none is typed
    told = found["public_rows_worth"]
    assert told["rows"] == 500
    assert told["cases"][0]["with_public_rows"] < told["constant"] * 1.2


def test_a_forecast_compares_with_and_without_public_rows(blurfit, folder) -> None:
    (folder / "schema.toml").write_text(TOML)
    typed = ("forecast", "schema.toml", "--public", "rows.csv", "--contributors", "2000,20000")
    done = blurfit.done(*typed, "--epsilon", "1", "--draws", "3")
    assert done.stdout.startswith("With 20,000 contributors at ε = 1, public rows")
    assert "with public rows" in done.stdout
    found = json.loads(blurfit(*typed, "--epsilon", "1", "--draws", "3", "--json").stdout)
    assert [case["contributors"] for case in found["cases"]] == [2000, 20_000]
    blurfit.refused(*typed, "--mechanism", "input", says="--mechanism input")


def test_a_contributor_checks_the_public_file_before_anything_is_blurred(blurfit, folder) -> None:
    (folder / "schema.toml").write_text(TOML)
    terms = ("--epsilon", "1", "--delta", "1e-6", "--quorum", "100")
    blurfit.done("agree schema.toml", *terms, "--public", "rows.csv")
    write(folder / "people.csv", people(5, 3), ("age", "income"))
    write(folder / "other.csv", people(1000, 78))
    typed = ("contribute", "agreement.json", "people.csv", "--out", "sent.parquet", "--public")
    blurfit.refused(*typed, "other.csv", says="Fetch the agreed file again")
    assert not (folder / "sent.parquet").exists()
    blurfit.done(*typed, "rows.csv")
    blurfit.done("agree schema.toml", *terms, "--out", "plain.json")
    blurfit.refused(
        "contribute plain.json", *typed[2:], "rows.csv", says="names no file of public rows"
    )


def test_only_products_with_the_target_are_read_beside_public_rows(blurfit, folder) -> None:
    (folder / "schema.toml").write_text(TOML)
    terms = ("--epsilon", "5", "--delta", "1e-6", "--quorum", "1000", "--sends", "targets")
    blurfit.done("agree schema.toml", *terms, "--public", "rows.csv")
    write(folder / "people.csv", people(1000, 3), ("age", "income"))
    blurfit.done("contribute agreement.json people.csv --out sent.parquet")
    learned = blurfit("learn agreement.json sent.parquet --moments moments.json")
    assert "public rows that the agreement names" in learned.stderr + learned.stdout
    fitted = blurfit.done("fit moments.json --public rows.csv")
    assert "age" in fitted.stdout
    assert "1,000 public rows, taken as they are: only products with the target" in fitted.stdout
    assert "matching" not in fitted.stdout
    told = json.loads(blurfit("fit moments.json --public rows.csv --json").stdout)
    assert told["public"]["columns"]["age"]["contributors"] is None  # which nobody knows
    blurfit.refused("agree schema.toml", *terms, says="Expected public_rows with sends='targets'")
