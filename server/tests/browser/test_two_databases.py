"""The page shares a record between two databases: two requests, to two origins, and to no other."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from blurfit import Agreement
from blurfit import protocol as tokens
from blurfit.agreement.terms import largest_steps
from blurfit.messages.submissions import expand

from .conftest import opened_at_both, send, two_services

ROOT = Path(__file__).parents[3]
VECTORS = json.loads((ROOT / "tests" / "vectors" / "shares.json").read_text())
RECORD = {"age": 42.625, "married": True, "region": "south", "income": 61234.5}


@pytest.fixture(scope="module")
def two(tmp_path_factory, survey):
    """Two services, and an agreement that names both."""
    with two_services(tmp_path_factory.mktemp("two")) as (stores, urls):
        promise = {"epsilon": 1, "delta": 1e-6, "quorum": 1000, "admission": "anyone"}
        databases = list(zip(("Office", "University"), urls, strict=True))
        agreement = Agreement.propose(survey(), **promise, databases=databases, proofs=False)
        yield opened_at_both(stores, agreement), *zip(stores, urls, strict=True)


def test_two_requests_to_two_origins_and_neither_tells_the_record(new_tab, two, fill_in) -> None:
    agreement, (here, first), (there, second) = two
    page = new_tab()
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request))
    page.on("console", lambda one: complaints.append(one.text) if one.type == "error" else None)
    page.goto(f"{first}/c/{agreement.fingerprint}")
    fill_in(page, "income")
    page.get_by_role("button", name="Blur my answers").click()
    expect(page.get_by_text("Either part alone is random")).to_be_visible()
    send(page)
    expect(page.get_by_text("Share of Office")).to_be_visible()
    expect(page.get_by_text("Share of University")).to_be_visible()
    kept = page.evaluate("JSON.stringify({...localStorage})")

    assert complaints == []
    assert {url.url.split("/")[2] for url in requests} == {first[7:], second[7:]}
    sent = {one.url: one.post_data_buffer for one in requests if one.method == "POST"}
    path = f"/collections/{agreement.fingerprint}/submissions"
    assert list(sent) == [second + path, first + path], "each once, and nobody else"
    assert [one.url for one in requests if one.url.startswith(second)] == [second + path] * (
        sum(one.url.startswith(second) for one in requests)
    ), "the other database is asked for nothing else"

    words, names = [], []
    for body, part in zip(reversed(sent.values()), ("masked", "seed"), strict=True):
        layout = agreement.share_layout(part)
        rows = layout.rows(body)  # which refuses any byte too many
        names.append(layout.identifiers(rows).tobytes())
        words.append(layout.words(rows))
    assert names[0] == names[1]
    assert [store.count(agreement) for store in (here, there)] == [1, 1]
    assert '\\"body\\"' not in kept, "what was received is not kept"

    # Together they are the blurred record, on its grid and near the truth; neither is alone.
    steps = (words[0] - expand(words[1], words[0].shape[1])).view(np.int64)[0]
    (part,) = agreement.parts
    difference = steps * part.step - agreement.exact(RECORD)
    assert (np.abs(difference) < 8 * part.deviations).all()
    largest = largest_steps(agreement.calibration, agreement.step)
    for some in words:  # as random words are: hardly one of them as small as a blurred number
        assert (np.abs(some.view(np.int64)) < largest).mean() < 0.1


def test_one_database_away_for_a_while(new_tab, two, fill_in) -> None:
    """The seed comes first: without it no share is sent, and after a reload both are, once."""
    agreement, (here, first), (there, second) = two
    before = [store.count(agreement) for store in (here, there)]
    page = new_tab()
    away = f"{second}/**"
    page.route(away, lambda route: route.abort())
    page.goto(f"{first}/c/{agreement.fingerprint}")
    fill_in(page, "income")
    page.get_by_role("button", name="Blur my answers").click()
    page.get_by_role("button", name="Send the blurred numbers").click()
    expect(page.get_by_text("could not be reached")).to_be_visible()
    assert [store.count(agreement) for store in (here, there)] == before
    page.unroute(away)
    posts = []
    page.on("request", lambda one: posts.append(one.url) if one.method == "POST" else None)
    page.reload()
    expect(page.get_by_text("Your blurred numbers have arrived")).to_be_visible()
    assert [url.split("/collections")[0] for url in posts] == [second, first]
    assert [store.count(agreement) for store in (here, there)] == [one + 1 for one in before]


def test_every_page_names_both_and_states_the_condition(new_tab, two, fill_in) -> None:
    """Not that "the database" sees a submission: no database does."""
    agreement, (_, first), (_, second) = two
    page = new_tab()
    condition = "if the two do not put their parts together, both follow the protocol, and neither"
    for path in (f"/collections/{agreement.fingerprint}", f"/c/{agreement.fingerprint}"):
        page.goto(first + path)
        told = page.locator("#agreement")
        expect(told).to_contain_text(
            f"Office ({first}) and University ({second})", use_inner_text=False
        )
        expect(told).to_contain_text("Promise against either of them")
        expect(told).to_contain_text(condition)
        expect(told).to_contain_text("Together they could learn")
        assert "seen by the database" not in told.inner_text()
    fill_in(page, "income")
    page.get_by_role("button", name="Blur my answers").click()
    expect(page.locator("#preview")).to_contain_text("split between Office and University")
    expect(page.locator("#preview")).to_contain_text(condition)


@pytest.fixture(scope="module")
def page_of_the_first(page_at, two) -> Iterator[Page]:
    with page_at(two[1][1] + "/") as page:
        yield page


@pytest.fixture
def run(chromium: Browser, page_of_the_first: Page):
    return page_of_the_first.evaluate


def test_vectors(run) -> None:
    """The same masks, shares and messages as Python's, from the file that both read."""
    found = run(
        """async (given) => {
            const { maskOf, shareWith } = await import("/pages/submission.js");
            const bytes = (text) => Uint8Array.from(text.match(/../g), (two) => parseInt(two, 16));
            const hex = (some) => Array.from(some, (b) => b.toString(16).padStart(2, "0")).join("");
            const masks = await Promise.all(given.masks.map(async ({ seed, mask }) =>
                (await maskOf(bytes(seed), mask.length)).map(String)));
            const { identifier, fingerprint } = given.messages[0];
            const steps = given.shared.steps.map(Number);
            const sent = { identifier: bytes(identifier), numbers: steps };
            const both = await shareWith(1, fingerprint, sent, bytes(given.shared.seed));
            return { masks, messages: both.map(hex) };
        }""",
        VECTORS,
    )
    assert found["masks"] == [one["mask"] for one in VECTORS["masks"]]
    assert found["messages"] == [one["message"] for one in VECTORS["messages"]]


@pytest.mark.parametrize(
    "change",
    [
        {
            "databases": [
                {"name": "A", "url": "http://a.example"},
                {"name": "B", "url": "https://b"},
            ]
        },
        {"databases": [{"name": "A", "url": "https://a.example"}] * 2},
        {"databases": [{"name": "A", "url": "https://a.example"}]},
        {"databases": [{"name": "A", "url": "https://a/x"}, {"name": "B", "url": "https://b"}]},
        {"databases": [{"name": " A", "url": "https://a"}, {"name": "B", "url": "https://b"}]},
        {"databases": [{"name": "A\u2028", "url": "https://a"}, {"name": "B", "url": "https://b"}]},
        {"databases": [{"name": "A", "url": "https://a_b"}, {"name": "B", "url": "https://b"}]},
        {"trust": "shared"},
        {"version": 2},
        {"step": 2.0**-8},
    ],
)
def test_other_agreements_are_refused(run, two, change) -> None:
    given = json.loads(two[0].to_json())
    script = """async (given) => {
        const { verify } = await import("/pages/verify.js");
        const { fingerprintOf } = await import("/pages/checks.js");
        given.fingerprint = await fingerprintOf(given);
        try { await verify(given, given.fingerprint); return null; } catch (e) { return e.message; }
    }"""
    assert run(script, given) is None
    assert "nothing has left this device" in (run(script, given | change) or "").lower()


def test_a_link_carries_an_invitation_of_each(new_tab, tmp_path, survey) -> None:
    """Both databases are asked about their own, before anybody answers."""
    with two_services(tmp_path) as (stores, (first, second)):
        promise = {"epsilon": 1, "delta": 1e-6, "quorum": 1000}
        databases = [("Office", first), ("University", second)]
        agreement = Agreement.propose(survey("invited"), **promise, databases=databases)
        opened_at_both(stores, agreement)
        given = [tokens.new_token() for _ in range(2)]
        for store, token in zip(stores, given, strict=True):
            store.invite(agreement.fingerprint, [tokens.hashed(token)])
        page = new_tab()
        link = f"{first}/c/{agreement.fingerprint}#invitation="
        for spoilt in (f"{given[0]},{tokens.new_token()}", given[0]):
            page.goto("about:blank")
            page.goto(link + spoilt)
            words = "only one of two" if spoilt == given[0] else "This link has been used."
            expect(page.get_by_text(words)).to_be_visible()
        page.goto("about:blank")
        page.goto(link + ",".join(given))
        expect(page.get_by_role("button", name="Blur my answers")).to_be_visible()
