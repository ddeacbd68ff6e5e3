"""Signatures and withdrawal in the page: what it checks, what it saves, and that others read it."""

import json
import re

import pytest
from playwright.sync_api import expect

from blurfit import Agreement, Numeric, Schema, Wording, perturb_table
from blurfit import protocol as tokens
from blurfit.contributor.journal import Receipt, withdraw
from blurfit.messages.signing import Signer, about_submissions, new_key
from blurfit.messages.submissions import identifiers_of, secrets_of
from blurfit_server import Store
from blurfit_server.service.app import Service, in_a_thread

from .conftest import Running, opened_at_both, two_services

PRIVATE = new_key()
SIGNER = Signer(PRIVATE)
ARRIVED = "Your blurred numbers have arrived"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    token = tokens.new_token()
    with Store(tmp_path_factory.mktemp("signing") / "collection.db") as store:
        store.appoint(tokens.hashed(token))
        with in_a_thread(Service(store, signing_key=PRIVATE)) as url:
            yield Running(url, store, token)


@pytest.fixture(scope="module")
def agreement(survey, service):
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 20, "admission": "anyone"}
    found = Agreement.propose(survey(), signing_keys=[SIGNER.key], **promise)
    service.open(found)
    return found


def contribute(page, fill_in) -> None:
    fill_in(page, "income")
    page.get_by_role("button", name="Blur my answers").click()
    page.get_by_role("button", name="Send").click()


def test_the_page_signs_and_hashes_as_python_does(run) -> None:
    found = run(
        "signing",
        """
        const name = await signing.newName();
        const mark = "ab".repeat(32);
        const about = await signing.aboutSubmission("receipt", mark, 2, given.identifier);
        const checks = await Promise.all(
          given.signatures.map((one) => signing.isSigned(about, given.key, one)));
        return { secret: name.secret, identifier: [...name.identifier], about: [...about], checks,
                 own: await signing.ownSecret(name.secret) };
        """,
        {
            "identifier": "0f" * 16,
            "key": SIGNER.key,
            "signatures": [
                SIGNER.sign(
                    about_submissions("receipt", "ab" * 32, "second", b"\x0f" * 16)
                ).signature,
                "00" * 64,
                None,
            ],
        },
    )
    secrets = secrets_of(found["secret"], 0, 1)
    assert found["own"] == secrets[0].hex()
    assert bytes(found["identifier"]) == identifiers_of(secrets).tobytes()
    expected = about_submissions("receipt", "ab" * 32, "second", b"\x0f" * 16)
    assert bytes(found["about"]) == expected
    assert found["checks"] == [True, False, False]


def test_a_receipt_is_checked_saved_and_withdraws(visit, service, agreement, fill_in) -> None:
    receipts = []
    for _ in range(2):
        page = visit().go(f"/c/{agreement.fingerprint}")
        contribute(page, fill_in)
        expect(page.get_by_text(ARRIVED)).to_be_visible()
        expect(page.get_by_text("checked on this device")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("button", name="Save the receipt").click()
        receipts.append(Receipt.load(download.value.path()))
    assert all(one.wrong_with(agreement) == [] for one in receipts)
    assert service.count(agreement) == 2
    assert withdraw(receipts[0], patience=5.0).out == 1, "the file, by another program"
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Your blurred numbers are withdrawn")).to_be_visible()
    assert service.count(agreement) == 0
    page.reload()
    expect(page.get_by_text("Your blurred numbers are withdrawn")).to_be_visible()
    assert receipts[1].secret not in json.dumps(page.evaluate("({ ...localStorage })"))


def test_an_answer_that_is_not_signed_is_none(visit, agreement, fill_in) -> None:
    visitor = visit()

    def forge(route) -> None:
        route.fulfill(json={"accepted": 1, "new": 1, "signature": "00" * 64})

    visitor.context.route("**/submissions", forge)
    page = visitor.go(f"/c/{agreement.fingerprint}")
    contribute(page, fill_in)
    expect(page.get_by_text("not signed with the key of the agreement")).to_be_visible()
    visitor.context.unroute("**/submissions")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text(ARRIVED)).to_be_visible()
    visitor.context.route(
        "**/withdrawals",
        lambda route: route.fulfill(json={"withdrawn": 0, "new": 0, "unknown": ["00" * 16]}),
    )
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Nothing was withdrawn")).to_be_visible()
    visitor.context.unroute("**/withdrawals")
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Your blurred numbers are withdrawn")).to_be_visible()


def test_one_of_two_databases_that_withdraws_is_enough(run) -> None:
    """The other is away, or refuses, which a page of another origin cannot read."""
    identifier, mark = b"\x0f" * 16, "ab" * 32
    told = [about_submissions("withdrawal", mark, role, identifier) for role in ("first", "second")]
    given = {
        "record": {
            "fingerprint": mark,
            "identifier": identifier.hex(),
            "secret": "cd" * 32,
            "keys": [SIGNER.key, SIGNER.key],
            "shares": [{"origin": "https://a.example"}, {"origin": "https://b.example"}],
        },
        "signatures": [SIGNER.sign(one).signature for one in told],
    }
    found = run(
        "outbox",
        """
        const before = globalThis.fetch;
        const outcomes = [];
        for (const [a, b] of [[0, null], [null, 1], [1, 0], [null, null]]) {
          globalThis.fetch = async (url) => {
            const place = url.startsWith("https://a.example") ? a : b;
            if (place === null) throw new TypeError("Failed to fetch");
            const said = { withdrawn: 1, new: 1, signature: given.signatures[place] };
            return new Response(JSON.stringify(said));
          };
          outcomes.push((await outbox.withdraw(given.record)).ok ?? false);
        }
        globalThis.fetch = before;
        return outcomes;
        """,
        given,
    )
    assert found == [True, True, False, False], "and each signs in its own place"


def test_the_model_says_who_signed_it(visit, service, agreement, people) -> None:
    service.store.add(agreement, perturb_table(agreement, people(30)))
    service.store.publish(agreement)
    visitor = visit()
    page = visitor.go(f"/m/{agreement.fingerprint}")
    expect(page.locator("#signed")).to_have_text(
        f"Signed by the service (key {SIGNER.key[:16]}…), checked here."
    )

    def change(route) -> None:
        document = route.fetch().json()
        route.fulfill(json=document | {"count": document["count"] + 1})

    expect(page.locator("#table li")).to_have_count(1)
    expect(page.get_by_role("columnheader", name="std. error")).to_be_visible()
    visitor.context.route("**/model", change)
    page.reload()
    expect(page.locator("#signed")).to_contain_text("NOT signed by the service")
    visitor.context.unroute_all()

    def forge(route) -> None:
        text = route.fetch().text()
        route.fulfill(body=text.replace("0.", "0.1"), content_type="application/json")

    visitor.context.route("**/tables*", forge)  # nor are forged tables and errors shown
    visitor.context.route("**/estimates*", forge)
    page.reload()
    expect(page.locator("#downloads")).to_be_visible()
    expect(page.get_by_role("columnheader", name="for prediction")).to_be_visible()
    expect(page.get_by_role("columnheader", name="std. error")).to_have_count(0)
    expect(page.locator("#tables")).to_be_hidden()


def test_a_model_is_told_in_german_and_still_signed(visit, service, people) -> None:
    """Why there are no errors, the statement, the survey's titles; the file stays as it is."""
    title = Wording(title={"en": "Income", "de": "Einkommen"})
    schema = Schema([Numeric("age", 18, 80)], Numeric("pay", 0, 200_000, wording=title))
    agreement = Agreement.propose(
        schema, epsilon=0.05, delta=1e-6, quorum=50, admission="anyone", signing_keys=[SIGNER.key]
    )
    service.open(agreement)
    table = people(60, "pay")
    service.store.add(agreement, perturb_table(agreement, {x: table[x] for x in ("age", "pay")}))
    assert service.store.publish(agreement).refusal
    page = visit(locale="de-DE").go(f"/m/{agreement.fingerprint}")
    expect(page.locator("#signed")).to_contain_text("Unterschrieben: der Dienst")
    expect(page.locator("#effects .note")).to_contain_text("Das Rauschen ist")
    expect(page.locator("ul.effects").first).to_contain_text("nicht bekannt")
    expect(page.locator("#effects svg")).to_have_count(0)  # nothing is drawn without an interval
    page.locator("#promised summary").click()
    expect(page.locator("#statement")).to_contain_text(
        "Ein Modell für Einkommen aus 60 Einsendungen"
    )
    assert not re.search(r"\b(the|of|which|that)\b", page.locator("main").inner_text())


def test_two_databases_sign_and_both_are_asked(new_tab, survey, fill_in, tmp_path) -> None:
    privates = [new_key(), new_key()]
    with two_services(tmp_path, signing_key=privates) as (stores, urls):
        promise = {"epsilon": 1, "delta": 1e-6, "quorum": 1000, "admission": "anyone"}
        databases = list(zip(("Office", "University"), urls, strict=True))
        keys = [Signer(key).key for key in privates]
        agreement = Agreement.propose(survey(), **promise, databases=databases, signing_keys=keys)
        opened_at_both(stores, agreement)
        page = new_tab()
        page.goto(f"{urls[0]}/c/{agreement.fingerprint}")
        contribute(page, fill_in)
        expect(page.get_by_text("checked on this device")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("button", name="Save the receipt").click()
        receipt = Receipt.load(download.value.path())
        assert receipt.services == tuple(urls)
        assert receipt.wrong_with(agreement) == []
        assert [store.count(agreement) for store in stores] == [1, 1]
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Withdraw").click()
        expect(page.get_by_text("Your blurred numbers are withdrawn")).to_be_visible()
        assert [store.count(agreement) for store in stores] == [0, 0]
