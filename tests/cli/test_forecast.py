"""`blurfit forecast` as a user meets it."""

import json
from dataclasses import asdict
from pathlib import Path

from click.testing import CliRunner, Result

from blurfit import Agreement
from blurfit.agreement.numbers import ProofCosts
from blurfit.agreement.plan import Plan
from blurfit.cli import main
from blurfit.cli.agree import read_proposal
from blurfit.forecast import choices

SURVEY = Path(__file__).parents[2] / "docs" / "examples" / "survey.toml"
SMALL = ["--contributors", "1000,100000", "--epsilon", "1", "--draws", "8"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["forecast", *arguments], catch_exceptions=False)


def test_table_and_plot(tmp_path: Path) -> None:
    picture = tmp_path / "forecast.png"
    result = run(str(SURVEY), *SMALL, "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert "within 5% of no privacy" in result.output
    assert picture.exists()


def test_json_has_every_cell() -> None:
    result = run(str(SURVEY), *SMALL, "--local-epsilon", "4", "--json")
    document = json.loads(result.stdout)
    assert len(document["cases"]) == 2 * 2 * 2
    assert {one["mechanism"] for one in document["cases"]} == {"moment", "input"}
    assert all(one["lower"] <= one["error"] <= one["upper"] for one in document["cases"])


def test_public_data_and_spectrum_are_populations(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    rows = [f"{20 + i % 50},{i % 60},{i % 2},{1000 * (i % 90)}" for i in range(500)]
    file.write_text("age,hours_per_week,married,income\n" + "\n".join(rows) + "\n")
    result = run(str(SURVEY), *SMALL, "--public-data", str(file), "--json")
    assert json.loads(result.stdout)["population"] == "people.csv"
    spectrum = ["--spectrum", "0.3,0.2"]
    result = run(str(SURVEY), *SMALL, *spectrum, "--json")
    assert "spectrum" in json.loads(result.stdout)["population"]
    result = run(str(SURVEY), *SMALL, *spectrum, "--public-data", str(file))
    assert result.exit_code == 2


def test_advice(monkeypatch) -> None:
    monkeypatch.setattr(choices, "EVALUATIONS", 12)
    result = run(
        *[str(SURVEY), "--contributors", "2000", "--epsilon", "1", "--draws", "8"],
        *["--mechanism", "moment", "--advise", "--json"],
    )
    (advice,) = json.loads(result.stdout)["advice"]
    assert advice["after"]["error"] <= advice["before"]["error"]


def test_an_agreement_fixes_its_terms(tmp_path: Path) -> None:
    file = tmp_path / "agreement.json"
    schema = read_proposal(SURVEY).schema
    two = [("First", "https://first.example"), ("Second", "https://second.example")]
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 500, "databases": two, "admission": "anyone"}
    agreement = Agreement.propose(schema, **terms)
    agreement.save(file)
    result = run(str(file), "--contributors", "500,5000", "--draws", "8", "--json")
    document = json.loads(result.stdout)
    assert [one["contributors"] for one in document["cases"]] == [500, 5000]
    assert document["proofs"] == asdict(ProofCosts.of(agreement, 5000))
    assert set(document["liars"]) == {"(intercept)", "age", "hours_per_week", "married"}
    result = run(str(file), "--epsilon", "1")
    assert result.exit_code == 2
    assert "--epsilon" in result.output


def test_of_a_plan_it_says_what_liars_could_do(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    schema = read_proposal(SURVEY).schema
    Plan.propose(schema, epsilon=2, delta=1e-6, quorum=30_000, waves=2).save(file)
    document = json.loads(run(str(file), "--json").stdout)
    assert set(document["liars"]) == {"(intercept)", "age", "hours_per_week", "married"}
    words = run(str(file)).stdout
    assert words.startswith("If 1 % of the contributors lie together, knowing everything, they can")
    assert run(str(file), "--epsilon", "1").exit_code == 2, "which the plan has fixed"


def test_rows_of_each_person_and_exits(tmp_path: Path) -> None:
    result = run(str(SURVEY), *SMALL, "--rows-each", "8")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "8 rows of each person, ε = 1: with 1,000 contributors they add next to nothing" in text
    document = json.loads(run(str(SURVEY), *SMALL, "--rows-each", "8", "--json").stdout)
    assert [one["rows_add_nothing"] for one in document["cases"]] == [True, False]
    assert {one["mechanism"] for one in document["cases"]} == {"moment"}
    assert run(str(SURVEY), *SMALL, "--alike", "0.3").exit_code == 2
    assert run(str(SURVEY), *SMALL, "--rows-each", "3", "--mechanism", "input").exit_code == 2
    assert run(str(SURVEY), *SMALL, "--events", "0.3").exit_code == 2
    file = tmp_path / "stays.toml"
    file.write_text(
        '[[features]]\nname = "age"\nkind = "numeric"\nlower = 20\nupper = 60\n\n'
        '[target]\nname = "left"\nkind = "exit"\ntime = "months"\nhorizon = 24\nbands = 6\n'
    )
    result = run(str(file), *SMALL, "--events", "0.5")
    assert result.exit_code == 0, result.output
    assert "hazards" in result.output
    document = json.loads(run(str(file), *SMALL, "--json").stdout)
    assert document["population"] == "generated (33% events)"
    assert document["cases"][1]["error"] < document["constant"]
    assert run(str(file), *SMALL, "--advise").exit_code == 2
