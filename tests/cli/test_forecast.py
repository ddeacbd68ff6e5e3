"""Before anyone is asked: from a promise to noise and back, and what a collection will achieve."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from blurfit import Agreement, Binary, Numeric, Schema, calibrate_moment
from blurfit.agreement.numbers import ProofCosts
from blurfit.agreement.plan import Plan
from blurfit.cli import main
from blurfit.cli.agree import ProposalFile, read_proposal
from blurfit.cli.forecast import Asked, sweep_asked_for
from blurfit.forecast import choices
from blurfit.theory.moments import Reach, sensitivity

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
    assert len(document["cases"]) == 2 * 2
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
        *["--advise", "--json"],
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
    result = run(str(file), "--epsilon", "1")
    assert result.exit_code == 2
    assert "--epsilon" in result.output


def test_a_plan_is_not_forecast(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    schema = read_proposal(SURVEY).schema
    Plan.propose(schema, epsilon=2, delta=1e-6, quorum=30_000, waves=2).save(file)
    result = run(str(file))
    assert result.exit_code == 2
    assert "got a plan" in result.output


def test_rows_of_each_person_and_exits(tmp_path: Path) -> None:
    result = run(str(SURVEY), *SMALL, "--rows-each", "8")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "8 rows of each person, ε = 1: with 1,000 contributors they add next to nothing" in text
    document = json.loads(run(str(SURVEY), *SMALL, "--rows-each", "8", "--json").stdout)
    assert [one["rows_add_nothing"] for one in document["cases"]] == [True, False]
    assert run(str(SURVEY), *SMALL, "--alike", "0.3").exit_code == 2
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


# ---- forecast request


SCHEMA = Schema([Numeric("age", 0, 100), Binary("married")], Numeric("income", 0, 100))
NOTHING = Asked()


def proposal(**terms) -> ProposalFile:
    return ProposalFile(SCHEMA, terms)


def test_what_is_typed_comes_first() -> None:
    planned = proposal(epsilon=2.0, quorum=5, delta=1e-7)
    found = sweep_asked_for(planned, NOTHING)
    assert found["epsilons"] == (2.0,)
    assert found["terms"] == {"delta": 1e-7}
    found = sweep_asked_for(planned, Asked(epsilon=(0.5,), delta=1e-9))
    assert found["epsilons"] == (0.5,)
    assert found["terms"] == {"delta": 1e-9}


def test_a_local_delta_counts_only_with_a_target() -> None:
    assert sweep_asked_for(proposal(local_delta=1e-6), NOTHING)["terms"] == {}
    found = sweep_asked_for(proposal(local_delta=1e-6, local_epsilon=8.0), NOTHING)
    assert found["local_epsilons"] == (None, 8.0)
    assert found["terms"] == {"local_delta": 1e-6}


# ---- calibrate


MOMENT = ["--quorum", "32768", "--constant", "0.5"]
PROMISE = ["--epsilon", "1", "--delta", "1e-6"]


def told(result) -> str:
    assert result.returncode == 0, result.stderr
    return " ".join(result.stdout.split())


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_moment_is_calibrated_for_the_sensitivity_of_its_form(blurfit, neighbours) -> None:
    found = told(
        blurfit(
            *("calibrate", *PROMISE, *MOMENT, "--radius", "2", "--json"),
            *("--neighbours", neighbours),
        )
    )
    reach = Reach(sensitivity(0.5, 2, neighbours), sensitivity(0.5, 2, "replace"))
    expected = calibrate_moment(1, 1e-6, reach=reach, quorum=32768, neighbours=neighbours)
    assert json.loads(found) == json.loads(json.dumps(expected.to_dict()))


def test_guarantee_inverts_calibrate(blurfit) -> None:
    noise = json.loads(told(blurfit("calibrate", *PROMISE, "--json", *MOMENT)))
    sigma = ["--sigma", repr(noise["sigma"])]
    found = told(blurfit("guarantee --delta 1e-6 --json", *sigma, *MOMENT))
    assert json.loads(found)["epsilon"] == pytest.approx(1, rel=1e-6)
    found = told(blurfit("guarantee --epsilon 1 --json", *sigma, *MOMENT))
    assert json.loads(found)["delta"] == pytest.approx(1e-6, rel=1e-5)
    fewer = [*sigma, *MOMENT, "--count", "8192"]  # half as large a μ, for a quarter of the people
    half = told(blurfit("guarantee --delta 1e-6 --json", *fewer))
    assert json.loads(half)["epsilon"] > 2
    said = told(blurfit("guarantee --delta 1e-6", *sigma, *MOMENT))
    assert "delta = 1e-06 (replace, any number of models from one final collection)" in said
