"""Plans of waves from the shell, by files: agreed on, followed, checked, learned."""

import json

import pytest

from blurfit import Agreement, Numeric, PublishedModel, PublishedMoments, Schema
from blurfit.agreement.plan import Plan
from blurfit.model.course import learn_plan, next_agreement
from blurfit.schema.imports import to_toml
from support.command import Blurfit
from support.plans import people, rows, written

NAMES = ("age", "education", "region", "married", "income")
INCOME = Numeric("income", 0, 100_000).above(45_000)
SCHEMA = Schema([Numeric("age", 18, 90), Numeric("education", 0, 20)], INCOME)
TOML = f"{to_toml(SCHEMA)}\n[terms]\nepsilon = 1\ndelta = 1e-6\nquorum = 600\n"


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """Two waves from schema to model; what each command said, by its first words."""
    folder = tmp_path_factory.mktemp("waves")
    run, said = Blurfit(folder), {}

    def blurfit(*words: str):
        done = run(*words, BLURFIT_HOME=str(folder / "home"))
        assert done.returncode == 0, done.stderr
        said[" ".join(" ".join(words).split()[:2])] = done

    (folder / "schema.toml").write_text(TOML)
    blurfit("agree schema.toml --waves 2 --out agreement1.json")
    everyone, first = people(600, 4), Plan.load(folder / "plan.json").quorums[0]
    for number, part in ((1, rows(everyone, 0, first)), (2, rows(everyone, first, 600))):
        (folder / f"wave{number}").mkdir()
        written(folder / f"wave{number}" / "people.csv", part, NAMES)
    checked = ["--plan", "plan.json"]
    for number in (1, 2):
        agreement, files = f"agreement{number}.json", f"wave{number}/blurred.parquet"
        blurfit("contribute", agreement, f"wave{number}/people.csv", "--out", files, *checked)
        told = ["--out", f"model{number}.json", "--moments", f"release{number}.json"]
        blurfit("learn", agreement, files, *checked, *told)
        if number == 1:
            blurfit("next plan.json release1.json --out agreement2.json")
            checked += ["--release", "release1.json"]
    return run, said


def test_the_shell_does_what_the_library_does(collected) -> None:
    run, said = collected
    plan = Plan.load(run.folder / "plan.json")
    assert len(plan) == 2
    assert plan == Plan.propose(plan.schema, waves=2, epsilon=1, delta=1e-6, quorum=600)
    assert Agreement.load(run.folder / "agreement1.json") == plan.first()
    releases = [PublishedMoments.load(run.folder / f"release{one}.json") for one in (1, 2)]
    assert Agreement.load(run.folder / "agreement2.json") == next_agreement(plan, releases[:1])
    for number in (1, 2):
        found = PublishedModel.load(run.folder / f"model{number}.json")
        assert found.to_json() == learn_plan(plan, releases[:number]).to_json()
    assert "2 waves, which wait for" in said["agree schema.toml"].stdout
    assert "wave 2 of 2" in said["next plan.json"].stdout
    hint = "Next: `blurfit next plan.json release1.json --out agreement2.json`, for wave 2."
    assert hint in said["learn agreement1.json"].stderr
    assert "no further wave" in said["learn agreement2.json"].stderr


def test_show_tells_the_plan_and_a_later_wave(collected) -> None:
    run, _ = collected
    plan = Plan.load(run.folder / "plan.json")
    facts = json.loads(run("show", "plan.json", "--json").stdout)
    assert facts["plan_fingerprint"] == plan.fingerprint
    assert [one["quorum"] for one in facts["waves"]] == list(plan.quorums)
    shown = run("show", "agreement2.json")
    assert shown.returncode == 0, shown.stderr
    assert "(1, 1e-06)-differentially private" in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["agreement2.json", "--plan", "plan.json"], "Expected wave 1"),
        (["agreement2.json", "--plan", "other.json", "--release", "release1.json"], "the plan"),
        (["alone.json", "--plan", "plan.json"], "belongs to None"),
        (["agreement2.json", "--release", "release1.json"], "Expected --plan PLAN"),
    ],
    ids=["a release is missing", "another plan", "no wave", "no plan"],
)
def test_contributors_send_nothing_under_what_does_not_follow(collected, typed, message) -> None:
    run, _ = collected
    plan = Plan.load(run.folder / "plan.json")
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 700}
    Plan.propose(plan.schema, waves=2, **terms).save(run.folder / "other.json")
    Agreement.propose(plan.schema, **terms).save(run.folder / "alone.json")
    agreement, *rest = typed
    refused = run("contribute", agreement, "wave2/people.csv", "--out", "sent.parquet", *rest)
    assert refused.returncode == 2
    assert message in " ".join(refused.stderr.split())
    assert not (run.folder / "sent.parquet").exists()


def test_a_later_wave_is_not_learned_alone(collected) -> None:
    run, _ = collected
    refused = run("learn", "agreement2.json", "wave2/blurred.parquet", "--out", "none.json")
    assert refused.returncode == 2
    assert "Expected --plan and --release: agreement2.json is wave 2" in refused.stderr
    assert not (run.folder / "none.json").exists()
