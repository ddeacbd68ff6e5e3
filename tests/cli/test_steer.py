"""A plan of waves from the shell, against a real service: opened, held, filled, published."""

import json
import shlex
import shutil
import time
from pathlib import Path

import pytest

from blurfit.agreement.plan import Plan
from blurfit.errors import instant
from blurfit.model.course import learn_plan
from blurfit.model.model import PublishedModel
from blurfit.protocol import tokens
from blurfit.protocol.http import RemoteDatabase
from blurfit.store.store import Store
from support.closings import let_pass
from support.plans import people, rows, written
from support.surveys import schema_text

NAMES = ("age", "education", "region", "married", "income")
TERMS = ["--epsilon", "1", "--delta", "1e-6"]
SCHEMA = schema_text(18, 90, 100_000) + "above = 45000\n"


@pytest.fixture
def plan(blurfit, request):
    """A plan that no other test has: each has its own quorum."""
    (blurfit.folder / "schema.toml").write_text(SCHEMA)
    quorum = 60 + tokens.hashed(request.node.name)[0]
    who = [] if "early" in request.node.name else ["--anyone"]
    terms = [*TERMS, "--quorum", str(quorum), *who]
    agreed = blurfit("agree", "schema.toml", *terms, "--waves", "2")
    assert agreed.returncode == 0, agreed.stderr
    assert "`blurfit serve` and `blurfit open plan.json` collect" in agreed.stderr
    return Plan.load(blurfit.folder / "plan.json")


@pytest.fixture
def run(blurfit):
    def run(*words: str, code: int = 0):
        done = blurfit(*words, BLURFIT_HOME=str(blurfit.folder / "home"))
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done

    return run


def table(blurfit, name: str, start: int, stop: int) -> str:
    written(blurfit.folder / name, rows(people(400, 4), start, stop), NAMES)
    return name


def test_from_agree_to_the_model(blurfit, service, plan, run, asked, as_administrator) -> None:
    opened = run("open", "plan.json", *as_administrator)
    first, second = plan.quorums
    assert f"in 2 waves. Wave 1 has 0 of {first}. Wave 2 waits for {second}." in opened.stdout
    assert f"The page for contributors: {service.url}/c/{plan.fingerprint}\n" in opened.stdout
    run("hold", "plan.json", *as_administrator)
    table(blurfit, "all.csv", 0, first + second)
    sent = run("contribute", "plan.json", "all.csv", *asked).stdout
    assert f"{first} rows of all.csv are stored there, each counted once." in sent
    assert f"Others wait, {second} for group 2: run this again" in sent
    run("resume", "plan.json", *as_administrator)
    while "Wave 1 released" not in (told := run("status", "plan.json", *asked).stdout):
        time.sleep(0.1)  # the service takes the step by itself
    assert f"Wave 1 released, from {first}. Wave 2 has 0 of {second}." in told
    refused = run("publish", "plan.json", *as_administrator, code=4)
    assert "add --early" in refused.stderr
    run("contribute", "plan.json", "all.csv", *asked)
    refused = run("contribute", "plan.json", "all.csv", *asked, code=4)
    assert "took part in this plan, and nobody takes part twice" in refused.stderr
    published = run("publish", "plan.json", *as_administrator)
    assert "Next: " in published.stderr
    model = PublishedModel.load(blurfit.folder / "model.json")
    with RemoteDatabase(service.url) as database:
        releases = database.releases(plan)
        assert database.model(plan).to_json() == model.to_json()
    assert model.to_json() == learn_plan(plan, releases).to_json()
    assert model.count == first + second
    state = json.loads(run("status", "plan.json", *asked, "--json").stdout)
    assert (state["state"], state["model"]) == ("ended", model.fingerprint)


def test_held_resumed_and_ended_early(blurfit, plan, run, asked, as_administrator) -> None:
    run("open", "plan.json", *as_administrator)
    first = plan.quorums[0]
    count = ["--count", str(plan.terms.quorum)]
    out = ["--csv", "--out", "invitations.txt"]
    made = run("invite", "plan.json", *count, *out, *as_administrator)
    assert f"drawn {first} for group 1, {plan.quorums[1]} for group 2." in made.stdout
    lines = (blurfit.folder / "invitations.txt").read_text().splitlines()
    assert lines[0] == "number,group,link"
    assert sum(line.split(",")[1] == "1" for line in lines[1:]) == first
    held = run("hold", "plan.json", *as_administrator)
    assert "Held: no wave is released" in held.stdout
    assert "Next: `blurfit resume plan.json" in held.stderr
    invited = ["--invitations", "invitations.txt"]
    everyone = table(blurfit, "all.csv", 0, plan.terms.quorum)
    told = run("contribute", "plan.json", everyone, *invited, *asked, "--json").stdout
    assert json.loads(told)["waiting"] == {"2": plan.quorums[1]}
    assert f"Wave 1 has {first} of {first}." in run("status", "plan.json", *asked).stdout
    assert "Wave 1" in run("resume", "plan.json", *as_administrator).stdout
    run("publish", "plan.json", "--early", *as_administrator)
    assert PublishedModel.load(blurfit.folder / "model.json").count == first
    assert "Its administrator ended it" in run("status", "plan.json", *asked).stdout


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            ["contribute", "plan.json", "one.csv", "--out", "one.parquet"],
            "a plan is sent to a service",
        ),
        (["contribute", "plan.json", "one.csv"], "Expected either --to SERVICE or --out FILE"),
        (["hold", "agreement.json"], "Expected a plan of waves"),
        (["close", "plan.json"], "`blurfit hold` stops it"),
        (["publish", "plan.json", "--moments", "moments.json"], "Expected no --moments"),
        (["open", "agreement.json"], "open the plan"),
    ],
)
def test_what_is_wrong_is_said(blurfit, plan, run, as_administrator, typed, message) -> None:
    table(blurfit, "one.csv", 0, 5)
    words = [*typed, *(as_administrator if typed[0] != "contribute" else [])]
    assert message in " ".join(run(*words, code=2).stderr.split())


def test_the_documentation_can_be_pasted(blurfit, service, run) -> None:
    """Waves wait for everyone in the table that `blurfit init` writes."""
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    block = page.split("## Plans of waves")[1].split("```console")[1].split("```")[0]
    run("init", "survey")
    for name in ("schema.toml", "people.csv"):
        shutil.copy(blurfit.folder / "survey" / name, blurfit.folder)
    said = {}
    for line in block.strip().splitlines():
        typed = line.replace("http://127.0.0.1:8000", service.url)
        typed = typed.replace("token.txt", str(service.folder / "token.txt"))
        words = shlex.split(typed.removeprefix("$ blurfit "))
        said[words[0]] = run(*words).stdout
    assert "Ended. Wave 1 released" in said["status"]
    assert PublishedModel.load(blurfit.folder / "model.json").count == 20_000


def test_a_collection_closes_at_its_date(
    blurfit, service, propose, asked, as_administrator
) -> None:
    agreed = propose(epsilon=1.5)
    agreed.save(blurfit.folder / "agreement.json")
    opened = blurfit("open", "agreement.json", *as_administrator, "--until", "2096-01-31")
    assert "20 more are needed. It closes at 2096-02-01 00:00 UTC." in opened.stdout
    again = blurfit("open", "agreement.json", *as_administrator, "--until", "2096-02-28")
    assert again.returncode == 4
    assert "move the date with `blurfit until`" in again.stderr
    vague = blurfit("until", "agreement.json", "2096-01-31T18:00", *as_administrator)
    assert vague.returncode == 2
    assert "a time with its zone" in vague.stderr
    never = blurfit("until", "agreement.json", "never", *as_administrator)
    assert never.stdout.endswith("20 more are needed.\n")
    moved = blurfit(
        "until", "agreement.json", "2096-02-28T18:00+01:00", *as_administrator, "--json"
    )
    assert json.loads(moved.stdout)["closes"] == instant("2096-02-28T17:00Z")
    with Store(service.folder / "blurfit.db") as store:
        let_pass(store, agreed.fingerprint)
    words = blurfit("status", "agreement.json", *asked).stdout
    assert words == (
        "Closed since 2001-09-09 01:46:40 UTC with 0 contributions; nothing is published.\n"
    )
    late = blurfit("until", "agreement.json", "never", *as_administrator)
    assert late.returncode == 4
    assert "closed for good" in late.stderr
