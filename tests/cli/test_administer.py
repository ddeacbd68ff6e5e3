"""What an administrator types, against a real service."""

import json
import stat

import numpy as np
import pytest

from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.protocol import tokens

PEOPLE = {"age": np.linspace(0, 100, 30), "income": np.linspace(0, 1000, 30)}


def send(service, agreement, rows: int) -> None:
    with Client(service.url) as client:
        client.submit(perturb_table(agreement, {k: v[:rows] for k, v in PEOPLE.items()}))


def test_a_collection_from_open_to_publish(
    blurfit, service, agreed, asked, as_administrator
) -> None:
    opened = blurfit("open", "agreement.json", *as_administrator)
    assert opened.returncode == 0, opened.stderr
    assert "Collecting from anyone: 0 submissions have come, 20 more are needed." in opened.stdout
    page = f"{service.url}/c/{agreed.fingerprint}"
    assert f"The page for contributors: {page}\n" in opened.stdout
    assert "Nobody can check that" in opened.stdout
    assert "Next: share that link" in opened.stderr
    again = blurfit("open", "agreement.json", *as_administrator, "--json")
    told = json.loads(again.stdout)
    assert (told["fingerprint"], told["page"]) == (agreed.fingerprint, page)
    assert (told["state"], told["count"], told["quorum"]) == ("collecting", 0, 20)
    send(service, agreed, 19)
    early = blurfit("publish", "agreement.json", *as_administrator)
    assert early.returncode == 4
    assert "1 more" in early.stderr
    assert not (blurfit.folder / "model.json").exists()
    send(service, agreed, 1)
    words = blurfit("status", "agreement.json", *asked)
    assert (
        words.stdout == "Collecting from anyone: 20 submissions have come, the quorum is reached.\n"
    )
    assert f"Next: `blurfit publish agreement.json --to {service.url} --admin-" in words.stderr
    publish = ["publish", "agreement.json", *as_administrator]
    published = blurfit(*publish, "--moments", "moments.json")
    assert published.returncode == 0, published.stderr
    model = PublishedModel.load(blurfit.folder / "model.json")
    assert published.stdout == (
        f"{model.summary()}\n\nWrote model.json and moments.json.\n"
        f"Everyone can read it at {service.url}/m/{agreed.fingerprint}\n"
    )
    assert "`blurfit fit moments.json" in published.stderr
    moments = PublishedMoments.load(blurfit.folder / "moments.json")
    assert moments.fit().to_json() == model.to_json()
    assert (model.count, model.agreement) == (20, agreed)
    twice = json.loads(blurfit(*publish, "--out", "2.json", "--json").stdout)
    assert (twice["model"], twice["count"]) == ("2.json", 20)
    assert twice["page"] == f"{service.url}/m/{agreed.fingerprint}"
    first, second = (blurfit.folder / name for name in ("model.json", "2.json"))
    assert first.read_bytes() == second.read_bytes()
    end = blurfit("status", "agreement.json", *asked, "--json")
    told = json.loads(end.stdout)
    assert (told["state"], told["count"], told["sums"]) == ("published", 20, True)


def test_a_closed_collection_is_closed_for_good(
    blurfit, agreed, asked, as_administrator, database
) -> None:
    database.open(agreed)
    closed = blurfit("close", "agreement.json", *as_administrator)
    assert closed.returncode == 0, closed.stderr
    assert closed.stdout == "Closed with 0 contributions; nothing is published.\n"
    (blurfit.folder / "people.csv").write_text("age,income\n1,2\n")
    late = blurfit("contribute", "agreement.json", "people.csv", *asked)
    assert late.returncode == 4
    assert "No more answers are taken" in late.stderr
    again = blurfit("close", "agreement.json", *as_administrator, "--json")
    assert json.loads(again.stdout) == database.status(agreed)
    assert database.status(agreed)["state"] == "closed"


def test_invitations_are_for_their_file_alone(blurfit, agreed, as_administrator, service) -> None:
    opened = blurfit("open", "agreement.json", *as_administrator)
    assert "Collecting from those who are invited" in opened.stdout
    step = f"Next: `blurfit invite agreement.json --to {service.url} --admin-token-file "
    assert step in opened.stderr
    asking = ["invite", "agreement.json", *as_administrator, "--count", "7"]
    result = blurfit(*asking, "--out", "invitations.txt")
    assert result.returncode == 0, result.stderr
    assert result.stdout == ("Wrote 7 invitations to invitations.txt. Give each to one person.\n")
    file = blurfit.folder / "invitations.txt"
    tokens = file.read_text().split()
    assert len(set(tokens)) == 7
    assert all(len(token) == 43 for token in tokens)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    stored = b"".join(path.read_bytes() for path in service.folder.glob("blurfit.db*"))
    assert not any(token.encode() in stored for token in tokens)
    again = blurfit(*asking, "--out", "invitations.txt")
    assert again.returncode == 2
    assert "the existing one may hold invitations" in again.stderr
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
    stranger = blurfit("status", "agreement.json", *as_administrator[:4])
    assert "Collecting from those who are invited: 2 have contributed" in stranger.stdout


def test_the_administrator_is_told_when_early_and_late_people_differ(
    blurfit, service, agreed, asked, as_administrator, database
) -> None:
    database.open(agreed)
    for value in (0.0, 100.0):
        with Client(service.url) as client:
            table = {"age": [value] * 100, "income": [10 * value] * 100}
            client.submit(perturb_table(agreed, table))
    words = blurfit("status", "agreement.json", *as_administrator)
    assert words.returncode == 0, words.stderr
    assert "200 submissions have come" in words.stdout
    assert "contributors may be lying together" in words.stdout
    found = json.loads(blurfit("status", "agreement.json", *as_administrator, "--json").stdout)
    assert found["waves"][0]["halves"]["disagree"] is True
    stranger = blurfit("status", "agreement.json", *asked)
    assert "lying" not in stranger.stdout


@pytest.mark.usefixtures("agreed")
def test_who_is_not_the_administrator_does_nothing(blurfit, asked, as_administrator) -> None:
    tokens.write_token(blurfit.folder / "stranger.txt", tokens.new_token())
    result = blurfit("open", "agreement.json", *asked, "--admin-token-file", "stranger.txt")
    assert result.returncode == 4
    assert "Send the token" in result.stderr
    nobody = blurfit("open", "agreement.json", *asked, "--admin-token-file", "nowhere.txt")
    assert nobody.returncode == 2
    assert "nowhere.txt" in nobody.stderr
    unknown = blurfit("status", "agreement.json", *asked)
    assert unknown.returncode == 2
    assert "Nothing is collected" in unknown.stderr
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
    result = blurfit(name, "agreement.json", *options, *as_administrator, *out)
    assert "Traceback" not in result.stderr
    assert result.returncode == 2
    assert "nowhere" in result.stderr
    assert database.status(agreed)["state"] == "collecting"


def test_the_sums_are_published_and_written(blurfit, service, propose, as_administrator) -> None:
    agreement = propose(sends="targets", public_rows="00" * 32)
    agreement.save(blurfit.folder / "agreement.json")
    assert blurfit("open", "agreement.json", *as_administrator).returncode == 0
    with Client(service.url) as client:
        client.submit(perturb_table(agreement, PEOPLE))
    done = blurfit("publish", "agreement.json", *as_administrator)
    assert done.returncode == 0, done.stderr
    assert "Published the sums of 30 contributions, and wrote moments.json." in done.stdout
    assert "blurfit fit moments.json --public FILE" in done.stdout
    moments = PublishedMoments.load(blurfit.folder / "moments.json")
    again = blurfit("publish", "agreement.json", *as_administrator, "--moments", "b.json", "--json")
    assert json.loads(again.stdout) == {"count": 30, "moments": "b.json"}
    assert PublishedMoments.load(blurfit.folder / "b.json").to_json() == moments.to_json()
