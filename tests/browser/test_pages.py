"""Collection, model and administration: watch, read, open, publish."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from blurfit import Agreement, PublishedModel, Schema, perturb_table
from blurfit.model.statement import as_yaml


@pytest.fixture
def collect(service, survey, people):
    """A collection of so many people, in the service's store."""

    def make(name: str, count: int, *, quorum: int = 300, publish: bool = False, **options):
        schema = survey(name, above=options.pop("above", None))
        agreement = Agreement.propose(schema, epsilon=2, delta=1e-6, quorum=quorum, **options)
        service.open(agreement)
        if count:
            service.store.add(agreement, perturb_table(agreement, people(count, name)))
        return (agreement, service.store.publish(agreement)) if publish else agreement

    return make


def enter(page: Page, token: str) -> None:
    page.get_by_label("Administrator’s token").fill(token)
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_role("heading", name="Open a collection")).to_be_visible()


def test_a_collection_shows_how_far_it_is(visit, service, collect, people) -> None:
    agreement = collect("watched income", 120, weight_bound=2.0)
    page = visit().go(f"/collections/{agreement.fingerprint}")
    expect(page.get_by_text("120 of at least 300 people; 180 more are needed")).to_be_visible()
    expect(page.get_by_text("Collecting", exact=True)).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("120 contributors"))).to_be_visible()
    expect(page.get_by_text("below 300 contributors")).to_be_visible()
    expect(page.get_by_text("ε = 2, δ = 10⁻⁶")).to_be_visible()
    expect(
        page.get_by_text(re.compile("certified bound says nothing|exceeds that"))
    ).to_be_visible()
    expect(page.get_by_role("link", name="Contribute")).to_be_visible()
    service.store.add(
        agreement, perturb_table(agreement, people(200, agreement.schema.target.name))
    )
    expect(page.get_by_text("320 people: the quorum of 300 is reached.")).to_be_visible()


def test_a_collection_is_json_for_programs(visit, service, collect) -> None:
    """The same address: a page for a browser, the state for a program."""
    agreement = collect("negotiated income", 0)
    path = f"{service.address}/collections/{agreement.fingerprint}"
    visitor = visit()
    expect(
        visitor.go(f"/collections/{agreement.fingerprint}").get_by_text("Nobody")
    ).to_be_visible()
    answer = visitor.context.request.get(path, headers={"accept": "*/*"})
    assert answer.json()["quorum"] == 300
    assert answer.headers["vary"] == "accept"


@pytest.mark.parametrize("above", [None, 47_000], ids=["number", "label"])
def test_try_it_predicts_what_python_predicts(visit, collect, above) -> None:
    agreement, model = collect(f"predicted income {above}", 5000, publish=True, above=above)
    page = visit().go(f"/m/{agreement.fingerprint}")
    prediction = page.locator("#prediction")
    for age, married, region in ((42, True, "south"), (18.5, False, "east"), (79, True, "north")):
        page.get_by_label("age", exact=True).fill(str(age))
        page.get_by_label("married").set_checked(married)
        page.get_by_label(region).check()
        record = {"age": age, "married": married, "region": region}
        expected = model.predict(record) if above is None else model.predict_proba(record)[1]
        expect(prediction.locator("b")).to_be_visible()
        assert float(prediction.get_attribute("data-value")) == pytest.approx(
            float(expected), rel=1e-12
        )
    for name, effect in {
        "(intercept)": model.coefficients.intercept,
        **model.coefficients.effects,
    }.items():
        shown = page.locator(f'[data-effect="{name}"]').get_attribute("data-value")
        assert float(shown) == pytest.approx(effect, rel=1e-9)
    page.get_by_label("age", exact=True).fill("")
    expect(prediction).to_have_text("Please fill in all fields.")


def test_intervals_are_pythons(visit, collect) -> None:
    agreement, model = collect("uncertain income", 5000, publish=True)
    page = visit().go(f"/m/{agreement.fingerprint}")
    expect(page.get_by_text("95 % confidence")).to_be_visible()
    got = page.evaluate(
        "async (model) => (await import('/pages/effects.js')).estimatesOf(model)",
        json.loads(model.to_json()),
    )
    for shown, expected in zip(got, model.estimates(), strict=True):
        assert shown["name"] == expected.name
        for name in ("value", "lower", "upper"):
            assert shown[name] == pytest.approx(getattr(expected, name), rel=1e-8)


def test_a_model_carries_its_statement_and_downloads(visit, collect) -> None:
    agreement, model = collect("stated income", 400, publish=True)
    page = visit().go(f"/m/{agreement.fingerprint}")
    statement = page.locator("#statement")
    expect(statement.get_by_role("heading", name="Privacy statement")).to_be_visible()
    expect(statement).to_contain_text("(2, 1e-06)-differentially private")
    expect(statement).to_contain_text("The database could learn a great deal")
    expect(statement.get_by_role("row", name=re.compile("quorum, count"))).to_be_visible()
    expect(statement).not_to_contain_text("**")
    with page.expect_download() as download:
        page.get_by_role("link", name="Model (JSON)").click()
    saved = PublishedModel.load(download.value.path())
    assert (saved.weights == model.weights).all()
    with page.expect_download() as download:
        page.get_by_role("link", name="Statement (YAML)").click()
    assert download.value.path().read_text() == as_yaml(model)


def test_no_model_before_it_is_published(visit, collect) -> None:
    agreement = collect("unpublished income", 10)
    page = visit().go(f"/m/{agreement.fingerprint}")
    expect(page.get_by_role("alert")).to_contain_text("has not been published")


def test_from_opening_to_prediction(visit, service, people) -> None:
    """An administrator opens, people contribute, one of them in a browser, she publishes once."""
    administrator = visit()
    page = administrator.go("/admin")
    enter(page, service.token)
    target = page.get_by_role("group", name="What is to be predicted")
    target.get_by_label("Name").fill("pension")
    page.get_by_label("Quorum").fill("301")
    page.get_by_role("button", name="Add a question").click()
    added = page.get_by_role("group", name="Question").nth(1)
    added.get_by_label("Name").fill("region")
    added.get_by_label("Answer is").select_option("categorical")
    added.get_by_label("Choices").fill("north, south, east")
    promise = page.locator("#promise")
    expect(promise).to_contain_text("20 numbers, 224 bytes")  # age, three regions, intercept
    expect(promise).to_contain_text("ε = 1, δ = 10⁻⁶.")
    expect(promise).to_contain_text("The database could learn a great deal")
    page.get_by_role("button", name="Open this collection").click()
    expect(page.get_by_text("The collection is open.")).to_be_visible()
    fingerprint = page.locator("#message a").get_attribute("href").removeprefix("/c/")
    agreement = service.store.collection(fingerprint).agreement
    assert agreement.schema == Schema.from_dict(agreement.schema.to_dict())
    assert [one.name for one in agreement.schema.features] == ["age", "region"]

    entry = page.locator(f'[data-fingerprint="{fingerprint}"]')
    expect(entry.get_by_role("button", name="Publish…")).to_be_disabled()
    service.store.add(agreement, perturb_table(agreement, people(300, "pension")))
    person = visit().go(f"/c/{fingerprint}")
    person.get_by_label("age", exact=True).fill("42")
    person.get_by_label("south").check()
    person.get_by_label("pension", exact=True).fill("61000")
    person.get_by_role("button", name="Blur my answers").click()
    person.get_by_role("button", name="Send the blurred numbers").click()
    expect(person.get_by_text("have arrived")).to_be_visible()

    page.reload()  # the token is gone with the page's memory
    enter(page, service.token)
    entry.get_by_role("button", name="Publish…").click()
    dialog = page.get_by_role("dialog", name="This can be done once")
    expect(dialog).to_contain_text("301 submissions")
    expect(dialog.get_by_role("button", name="Publish for good")).to_be_disabled()
    dialog.get_by_label("I know that this cannot be undone").check()
    dialog.get_by_role("button", name="Publish for good").click()
    page.get_by_role("link", name="See the model").click()
    expect(page.get_by_text("Learned from 301 people")).to_be_visible()
    model = service.store.publish(fingerprint)
    page.get_by_label("age", exact=True).fill("30")
    page.get_by_label("east").check()
    expected = float(model.predict({"age": 30, "region": "east"}))
    shown = float(page.locator("#prediction").get_attribute("data-value"))
    assert shown == pytest.approx(expected, rel=1e-12)
    assert not any(service.token in url for url in administrator.watch.requests)
    kept = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert service.token not in kept


def test_the_promise_follows_what_is_edited(visit, service) -> None:
    page = visit().go("/admin")
    enter(page, service.token)
    promise = page.locator("#promise")
    expect(promise).to_contain_text("ε = 1, δ = 10⁻⁶.")
    page.get_by_text("More choices").click()
    page.get_by_label("ε of one submission").fill("1")
    expect(promise).to_contain_text("Expected local_delta with local_epsilon=1.0")
    expect(page.get_by_role("button", name="Open this collection")).to_be_disabled()
    page.get_by_label("δ of one submission").fill("0.000001")
    expect(promise).to_contain_text("could learn very little from a single submission")
    page.get_by_label("Bound on the weights").fill("1")
    page.get_by_label("Quorum").fill("100000000")
    expect(promise).to_contain_text("exceeds that of the best one by at most")
    page.get_by_label("Blurred is").select_option("input")
    expect(promise).to_contain_text("ridge")
    expect(page.get_by_role("button", name="Open this collection")).to_be_enabled()


def test_a_wrong_token_is_refused(visit) -> None:
    page = visit().go("/admin")
    page.get_by_label("Administrator’s token").fill("not the token")
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_role("alert")).to_contain_text("The administrator's token is needed")


def test_invitations_are_made_in_the_page(visit, service, survey) -> None:
    """The service gets their hashes alone; each link works."""
    agreement = Agreement.propose(survey("invited income"), epsilon=1, delta=1e-6, quorum=2000)
    service.open(agreement, invited=True)
    visitor = visit()
    page = visitor.go("/admin")
    enter(page, service.token)
    entry = page.locator(f'[data-fingerprint="{agreement.fingerprint}"]')
    with page.expect_download() as download:
        entry.get_by_role("button", name="Make 100 invitations").click()
    links = download.value.path().read_text().split()
    assert len(set(links)) == 100
    assert service.store.invitations(agreement.fingerprint) == 100
    secret = links[0].partition("#invitation=")[2]
    assert len(secret) == 43
    assert not any(secret.encode() in body for body in visitor.watch.bodies)
    person = visit()
    person.page.goto(links[0])
    expect(person.page.get_by_role("button", name="Blur my answers")).to_be_visible()
    expect(person.page.get_by_text("An invitation is needed")).to_have_count(0)


def test_home_lists_all_collections(visit, collect) -> None:
    agreement = collect("listed income", 3)
    for number in range(10):
        collect(f"other income {number}", 0)
    page = visit().go("/")
    expect(page.get_by_role("article")).to_have_count(10)
    page.get_by_role("button", name="Show all").click()
    page.get_by_role("link", name="listed income", exact=True).click()
    expect(page).to_have_url(re.compile(agreement.fingerprint))
