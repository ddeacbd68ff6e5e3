"""What an administrator types, against a real service: collections, invitations and plans."""

import csv
import io
import json
import re
import shlex
import shutil
import stat
import time
from pathlib import Path

import numpy as np
import pytest

from blurfit import protocol as tokens
from blurfit.agreement.plan import Plan
from blurfit.cli.contribute import read_invitations
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.errors import instant
from blurfit.model.course import learn_plan
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.protocol import RemoteDatabase
from blurfit_server.cli.administer import written
from blurfit_server.store.store import Store
from server_support.closings import let_pass
from support.plans import people, rows
from support.plans import written as written_steer
from support.proposals import leavers
from support.surveys import schema_text

PEOPLE = {"age": np.linspace(0, 100, 30), "income": np.linspace(0, 1000, 30)}


def send(service, agreement, rows: int) -> None:
    with Client(service.url) as client:
        client.submit(perturb_table(agreement, {k: v[:rows] for k, v in PEOPLE.items()}))


def test_a_closed_collection_is_closed_for_good(
    blurfit, agreed, asked, as_administrator, database
) -> None:
    database.open(agreed)
    for _ in range(2):  # nothing happened the first time
        said = (
            "20 more are needed. Once closed it stays closed, and nothing could ever be published"
        )
        blurfit.refused("close agreement.json", *as_administrator, says=said, code=4)
    closed = blurfit.done("close agreement.json --anyway", *as_administrator)
    assert closed.stdout == (
        "Closed with 0 contributions, 20 too few: nothing can ever be published here.\n"
    )
    assert "Next:" not in closed.stderr
    opened = blurfit.done("open agreement.json", *as_administrator)
    assert (opened.stdout, "Next:" in opened.stderr) == (closed.stdout, False)
    (blurfit.folder / "people.csv").write_text("age,income\n1,2\n")
    blurfit.refused(
        "contribute agreement.json people.csv", *asked, says="No more answers are taken", code=4
    )
    again = blurfit("close agreement.json", *as_administrator, "--json")
    assert json.loads(again.stdout) == database.status(agreed)
    assert database.status(agreed)["state"] == "closed"


def test_invitations_are_for_their_file_alone(blurfit, agreed, as_administrator, service) -> None:
    opened = blurfit("open agreement.json", *as_administrator)
    assert "Collecting from those who are invited" in opened.stdout
    step = f"Next: `blurfit invite agreement.json --to {service.url} --admin-token-file "
    assert step in opened.stderr
    asking = ["invite", "agreement.json", *as_administrator, "--count", "7"]
    result = blurfit.done(*asking, "--out", "invitations.txt")
    assert result.stdout == ("Wrote 7 invitations to invitations.txt. Give each to one person.\n")
    file = blurfit.folder / "invitations.txt"
    tokens = file.read_text().split()
    assert len(set(tokens)) == 7
    assert all(len(token) == 43 for token in tokens)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    stored = b"".join(path.read_bytes() for path in service.folder.glob("blurfit.db*"))
    assert not any(token.encode() in stored for token in tokens)
    blurfit.refused(
        *asking, "--out", "invitations.txt", says="the existing one may hold invitations"
    )
    assert file.read_text().split() == tokens
    links = blurfit(*asking, "--out", "links.txt", "--links", "--json")
    assert json.loads(links.stdout) == {"count": 7, "out": "links.txt"}
    assert "which only this machine can open" in links.stderr
    for line in (blurfit.folder / "links.txt").read_text().split():
        page, _, token = line.partition("#invitation=")
        assert page == f"{service.url}/c/{agreed.fingerprint}"
        assert len(token) == 43
        assert token not in tokens
    with Client(service.url) as client:  # either kind lets one in
        record = {"age": 1, "income": 2}
        client.contribute(agreed, record, invitations=[tokens[0]])
        client.contribute(agreed, record, invitations=[line.partition("=")[2]])
    stranger = blurfit("status agreement.json", *as_administrator[:4])
    assert "Collecting from those who are invited: 2 have contributed" in stranger.stdout


@pytest.mark.usefixtures("agreed")
def test_who_is_not_the_administrator_does_nothing(blurfit, asked, as_administrator) -> None:
    tokens.write_token(blurfit.folder / "stranger.txt", tokens.new_token())
    result = blurfit.refused(
        "open agreement.json",
        *asked,
        "--admin-token-file",
        "stranger.txt",
        says="Send the token",
        code=4,
    )
    nobody = blurfit.refused(
        "open agreement.json", *asked, "--admin-token-file", "nowhere.txt", says="nowhere.txt"
    )
    unknown = blurfit.refused("status agreement.json", *asked, says="Nothing is collected")
    for refused in (result, nobody, unknown):
        assert "Traceback" not in refused.stderr
        assert not refused.stdout


@pytest.mark.parametrize("command", ["invite --count 3", "publish"])
def test_what_cannot_be_written_is_said_before_anything_is_asked_for(
    blurfit, agreed, service, as_administrator, database, command: str
) -> None:
    database.open(agreed)
    if command == "publish":
        send(service, agreed, 20)
    name, *options = command.split()
    out = ["--out", "nowhere/out.txt"]
    blurfit.refused(name, "agreement.json", *options, *as_administrator, *out, says="nowhere")
    assert database.status(agreed)["state"] == "collecting"


def test_the_sums_are_published_and_written(blurfit, service, as_administrator) -> None:
    agreement, people = leavers()
    agreement.save(blurfit.folder / "agreement.json")
    blurfit.done("open agreement.json", *as_administrator)
    with Client(service.url) as client:
        client.submit(perturb_table(agreement, people))
    done = blurfit.done("publish agreement.json", *as_administrator)
    assert "Published the sums of 40 contributions, and wrote moments.json." in done.stdout
    assert "`blurfit fit moments.json`" in done.stdout
    moments = PublishedMoments.load(blurfit.folder / "moments.json")
    again = blurfit("publish agreement.json", *as_administrator, "--moments", "b.json", "--json")
    assert json.loads(again.stdout) == {"count": 40, "moments": "b.json"}
    assert PublishedMoments.load(blurfit.folder / "b.json").to_json() == moments.to_json()


# ---- invite


PAGE = "https://first.example/c/" + "ab" * 32
TOKENS = ["one-token", "another,of-both"]


def test_a_table_for_mail_merge() -> None:
    rows = list(csv.DictReader(io.StringIO(written("csv", TOKENS, PAGE))))
    assert [row["number"] for row in rows] == ["1", "2"]
    assert [row["link"] for row in rows] == [f"{PAGE}#invitation={one}" for one in TOKENS]


@pytest.mark.parametrize("form", ["tokens", "links", "csv"])
def test_what_is_written_can_be_read(form) -> None:
    assert read_invitations(written(form, TOKENS, PAGE)) == [["one-token"], ["another", "of-both"]]


def test_codes_to_print() -> None:
    page = written("qr", TOKENS, PAGE, title="Pay & <hours>")
    assert page.count("<svg") == 2
    assert re.findall("<figcaption>(.*?)</figcaption>", page) == ["1", "2"]
    assert "one-token" not in page  # the code alone carries it
    assert "<h1>Pay &amp; &lt;hours&gt;</h1>" in page
    assert "https://first.example." in page


# ---- steer


NAMES = ("age", "education", "region", "married", "income")
TERMS = ["--epsilon", "1", "--delta", "1e-6"]
SCHEMA_STEER = schema_text(18, 90, 100_000) + "above = 45000\n"


@pytest.fixture
def plan(blurfit, request):
    """A plan that no other test has: each has its own quorum."""
    (blurfit.folder / "schema.toml").write_text(SCHEMA_STEER)
    quorum = 60 + tokens.hashed(request.node.name)[0]
    who = [] if "early" in request.node.name else ["--anyone"]
    terms = [*TERMS, "--quorum", str(quorum), *who]
    agreed = blurfit.done("agree schema.toml", *terms, "--waves", "2")
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
    written_steer(blurfit.folder / name, rows(people(400, 4), start, stop), NAMES)
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
    page = (Path(__file__).parents[3] / "docs" / "service.md").read_text()
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
    opened = blurfit("open agreement.json", *as_administrator, "--until", "2096-01-31")
    assert "20 more are needed. It closes at 2096-02-01 00:00 UTC." in opened.stdout
    blurfit.refused(
        "open agreement.json",
        *as_administrator,
        "--until",
        "2096-02-28",
        says="move the date with `blurfit until`",
        code=4,
    )
    blurfit.refused(
        "until agreement.json 2096-01-31T18:00", *as_administrator, says="a time with its zone"
    )
    never = blurfit("until agreement.json never", *as_administrator)
    assert never.stdout.endswith("20 more are needed.\n")
    moved = blurfit("until agreement.json", "2096-02-28T18:00+01:00", *as_administrator, "--json")
    assert json.loads(moved.stdout)["closes"] == instant("2096-02-28T17:00Z")
    with Store(service.folder / "blurfit.db") as store:
        let_pass(store, agreed.fingerprint)
    words = blurfit("status agreement.json", *asked).stdout
    assert words == (
        "Closed since 2001-09-09 01:46:40 UTC with 0 contributions, 20 too few: nothing can ever "
        "be published here.\n"
    )
    blurfit.refused("until agreement.json never", *as_administrator, says="closed for good", code=4)
