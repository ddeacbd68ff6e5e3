"""Collection, model and administration: watch, read, open, publish."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    Curve,
    Numeric,
    PublishedModel,
    PublishedMoments,
    Schema,
    perturb_table,
)
from blurfit.model.statement import as_yaml
from support.proposals import leavers

from .conftest import be_sure, enter, invitations, send


@pytest.fixture
def collect(service, survey, people):
    """A collection of so many people, in the service's store."""

    def make(name: str, count: int, *, quorum: int = 300, publish: bool = False, **options):
        schema = survey(name, above=options.pop("above", None))
        agreement = Agreement.propose(
            schema, epsilon=2, delta=1e-6, quorum=quorum, **{"admission": "anyone", **options}
        )
        service.open(agreement)
        if count:
            service.store.add(agreement, perturb_table(agreement, people(count, name)))
        return (agreement, service.store.publish(agreement)) if publish else agreement

    return make


def test_a_collection_shows_how_far_it_is(visit, service, collect, people) -> None:
    agreement = collect("watched income", 120)
    visitor = visit(own=True)
    visitor.context.clock.install()
    page = visitor.go(f"/collections/{agreement.fingerprint}")
    expect(
        page.get_by_text("about 120 of at least 300 submissions; about 180 more")
    ).to_be_visible()
    expect(page.get_by_text("Open", exact=True)).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("120 have taken part"))).to_be_visible()
    expect(page.get_by_text("below 300 submissions")).to_be_visible()
    expect(page.get_by_text("ε = 2, δ = 10⁻⁶")).to_be_visible()
    expect(page.get_by_text("The model comes with standard errors, intervals")).to_be_visible()
    expect(page.get_by_text("noise on the average of watched income")).to_be_visible()
    expect(page.get_by_role("link", name="Take part")).to_be_visible()
    service.store.add(
        agreement, perturb_table(agreement, people(200, agreement.schema.target.name))
    )
    page.clock.fast_forward(5_000)  # after which it asks again
    expect(page.get_by_text("320 submissions: enough, as at least 300 are needed.")).to_be_visible()


def test_a_collection_is_json_for_programs(visit, service, collect) -> None:
    """The same address: a page for a browser, the state for a program."""
    agreement = collect("negotiated income", 0)
    path = f"{service.address}/collections/{agreement.fingerprint}"
    visitor = visit()
    page = visitor.go(f"/collections/{agreement.fingerprint}")
    expect(page.get_by_text("Nobody has taken part yet")).to_be_visible()
    answer = visitor.context.request.get(path, headers={"accept": "*/*"})
    assert answer.json()["quorum"] == 300
    assert answer.headers["vary"] == "accept"


def test_sums_without_a_model_are_called_published(visit, service) -> None:
    """And everybody gets them: of who left when there is no model here."""
    agreement, people = leavers()
    service.open(agreement)
    service.store.add(agreement, perturb_table(agreement, people))
    service.store.publish_text(agreement.fingerprint)
    page = visit().go(f"/collections/{agreement.fingerprint}")
    expect(
        page.get_by_text("The blurred sums are published; there is no model of them.")
    ).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the blurred sums").click()
    moments = PublishedMoments.load(download.value.path())
    assert (moments.count, moments.agreement) == (40, agreement)


ANSWERS = ((42, "yes", "south"), (18.5, "no", "east"), (79, "yes", "north"))


@pytest.mark.parametrize("above", [None, 47_000], ids=["number", "label"])
def test_try_it_predicts_what_python_predicts(visit, collect, above) -> None:
    agreement, model = collect(f"predicted income {above}", 5000, publish=True, above=above)
    page = visit().go(f"/m/{agreement.fingerprint}")
    prediction = page.locator("#prediction")
    for age, married, region in ANSWERS:
        page.get_by_label("age", exact=True).fill(str(age))
        page.get_by_role("group", name="married").get_by_label(married).check()
        page.get_by_label(region).check()
        record = {"age": age, "married": married == "yes", "region": region}
        expected = model.predict(record) if above is None else model.predict_proba(record)[1]
        expect(prediction.locator("b")).to_be_visible()
        assert float(prediction.get_attribute("data-value")) == pytest.approx(
            float(expected), rel=1e-12
        )
        if model.inference and above is None:
            shown = json.loads(prediction.get_attribute("data-interval"))
            assert shown == pytest.approx(model.prediction_intervals(record)[0].tolist(), rel=1e-9)
            expect(prediction).to_contain_text("95 of 100 people with these answers lie between")
    for column, effect in {
        "(intercept)": model.coefficients.intercept,
        **model.coefficients.effects,
    }.items():
        row = page.locator(f'tr[data-coefficient="{column}"]')
        shown = row.locator('[data-label="for prediction"]').get_attribute("data-value")
        assert float(shown) == pytest.approx(effect, rel=1e-12)
    if not model.inference:
        expect(page.get_by_text("How good this model is cannot be told.")).to_be_visible()
    page.get_by_label("age", exact=True).fill("")
    expect(prediction).to_have_text("Please fill in all fields.")


def test_classes_have_probabilities(visit, service, survey, people) -> None:
    """A target of several classes: a section for each, and what is likely adds up."""
    features = [*survey().features[:2], Numeric("income", 0, 200_000)]
    schema = Schema(features, Categorical("region", ["north", "south", "east"]))
    agreement = Agreement.propose(schema, epsilon=8, delta=1e-6, quorum=300)
    service.open(agreement)
    service.store.add(agreement, perturb_table(agreement, people(5000)))
    model = service.store.publish(agreement)
    page = visit().go(f"/m/{agreement.fingerprint}")
    page.get_by_label("age", exact=True).fill("30")
    page.get_by_role("group", name="married").get_by_label("yes").check()
    page.get_by_label("income", exact=True).fill("1,234.5")
    record = {"age": 30, "married": True, "income": 1234.5}
    shown = json.loads(page.locator("#prediction").get_attribute("data-value"))
    assert shown == pytest.approx(model.predict_proba(record).tolist(), rel=1e-12)
    for level in model.outputs:
        expect(page.get_by_role("heading", name=f"region: {level}")).to_be_visible()


def test_the_table_is_pythons(visit, collect) -> None:
    """Every number of the summary: coefficient, errors, interval, p, and how good it is."""
    agreement, model = collect("uncertain income", 5000, publish=True)
    page = visit().go(f"/m/{agreement.fingerprint}")
    expect(page.get_by_text("95 % confidence")).to_be_visible()
    (section,) = model.summary().sections
    for row in section.rows:
        cells = page.locator(f'tr[data-coefficient="{row[0]}"] td')
        assert [text.replace("−", "-") for text in cells.all_inner_texts()] == list(row[1:])
    (inference,) = model.inference
    expect(page.locator("#effects")).to_contain_text(f"R² = {inference.r_squared:.3g}")
    expect(page.locator("#effects")).to_contain_text("Share of the differences explained")
    expect(page.locator("#effects")).to_contain_text("south instead of north")


def test_a_bar_that_is_cut_says_so(visit, collect) -> None:
    """At so few people intervals are far wider than effects: arrows, and the numbers beside."""
    agreement, _ = collect("vague income", 300, publish=True)
    page = visit(viewport={"width": 320, "height": 800}).go(f"/m/{agreement.fingerprint}")
    cut = page.evaluate(
        """async () => {
          const plots = await import("/pages/plots.js");
          const effects = [{value: 1, lower: -9, upper: 11}, {value: 2, lower: 1, upper: 3}];
          const reach = plots.scaleOf(effects);
          return effects.map((one) => [
            one.lower < -reach, one.upper > reach,
            plots.effectPlot(one, reach).querySelectorAll(".beyond").length]);
        }"""
    )
    assert any(low and high for low, high, _ in cut)
    assert all(arrows == low + high for low, high, arrows in cut)
    expect(page.locator(".effects .much").first).to_be_visible()
    for much in page.locator(".effects .much").all():
        expect(much).to_be_visible()
        expect(much.locator("b")).to_be_visible()


def test_a_model_carries_its_statement_and_downloads(visit, collect) -> None:
    agreement, model = collect("stated income", 400, publish=True)
    page = visit().go(f"/m/{agreement.fingerprint}")
    statement = page.locator("#statement")
    page.get_by_text("The privacy statement").click()
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
    page.get_by_label("People needed").fill("301")
    page.get_by_label("Open to anyone, without invitations").check()
    page.get_by_role("button", name="Add a question").click()
    added = page.get_by_role("group", name="Question").nth(1)
    added.get_by_label("Name").fill("region")
    added.get_by_label("Answer is").select_option("categorical")
    added.get_by_label("Choices").fill("north, south, east")
    promise = page.locator("#promise")
    expect(promise).to_contain_text("17 numbers, 200 bytes")  # of age, three regions, pension
    expect(promise).to_contain_text("ε = 1, δ = 10⁻⁶.")
    expect(promise).to_contain_text("The database could learn a great deal")
    page.get_by_role("button", name="Open this survey").click()
    expect(page.get_by_text("The survey is open.")).to_be_visible()
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
    send(person)

    page.reload()  # the token is gone with the page's memory
    enter(page, service.token)
    entry.get_by_role("button", name="Publish…").click()
    dialog = page.get_by_role("dialog", name="This can be done once")
    expect(dialog).to_contain_text("301 submissions")
    expect(dialog.get_by_role("button", name="Publish for good")).to_be_disabled()
    be_sure(page, "This can be done once", "Publish for good")
    page.get_by_role("link", name="See the model").click()
    expect(page.get_by_text("Learned from 301 submissions")).to_be_visible()
    model = service.store.publish(fingerprint)
    page.get_by_label("age", exact=True).fill("30")
    page.get_by_label("east").check()
    expected = float(model.predict({"age": 30, "region": "east"}))
    shown = float(page.locator("#prediction").get_attribute("data-value"))
    assert shown == pytest.approx(expected, rel=1e-12, abs=1e-6)  # noise may bring it near zero
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
    expect(page.get_by_text("A promise about one submission needs its δ too")).to_be_visible()
    expect(page.get_by_label("δ of one submission")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Open this survey")).to_be_disabled()
    page.get_by_label("δ of one submission").fill("0.000001")
    expect(promise).to_contain_text("could learn very little from a single submission")
    page.get_by_label("People needed").fill("100000000")
    expect(promise).to_contain_text("; with twice as many people, ")
    expect(page.get_by_role("button", name="Open this survey")).to_be_enabled()


def test_a_wrong_token_is_refused(visit) -> None:
    page = visit().go("/admin")
    enter(page, "not the token")
    expect(page.get_by_role("alert")).to_contain_text("This is no administrator’s token.")
    german = visit(locale="de-DE").go("/admin")
    german.locator("#token").fill("not the token")
    german.locator("#enter-button").click()
    expect(german.get_by_role("alert")).to_contain_text("Das ist kein Token für die Verwaltung.")
    expect(german.get_by_role("alert")).not_to_contain_text("Bearer")


def test_counts_are_said_to_be_rounded_and_arrivals_are_drawn_as_they_are_seen(
    visit, service, survey, people
) -> None:
    """Seen before: "2,000", after four more as before, and a straight line for minutes."""
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 300, "admission": "anyone"}
    agreement = Agreement.propose(survey("counted income"), **promise)
    service.open(agreement)
    table = people(250, "counted income")
    service.store.add(agreement, perturb_table(agreement, table))
    page = visit().go(f"/collections/{agreement.fingerprint}")
    status = page.locator("#status")
    expect(status).to_contain_text("about 250 of at least 300 submissions; about 50 more")
    expect(status).to_contain_text("Counts are rounded, so that no single arrival shows.")
    heights = page.evaluate(
        """async () => {
          const plots = await import("/pages/plots.js");
          const hour = Math.floor(Date.now() / 3_600_000);
          const at = (minutes) => Date.now() - 60_000 * minutes;
          const seen = [{at: at(4), count: 10}, {at: at(3), count: 40}, {at: at(0), count: 41}];
          const hours = [{hour: hour - 1, count: 20}, {hour, count: 21}];
          const drawn = plots.arrivalsPlot(hours, 50, seen);
          const points = drawn.querySelector("polyline").getAttribute("points");
          return points.split(" ").map((point) => Number(point.split(",")[1]));
        }"""
    )
    assert len(set(heights)) > 3
    assert heights == sorted(heights, reverse=True)  # downwards in the picture is less


def test_invitations_are_made_in_the_page(visit, service, survey) -> None:
    """The service gets their hashes alone; each link works."""
    agreement = Agreement.propose(survey("invited income"), epsilon=1, delta=1e-6, quorum=2000)
    service.open(agreement)
    visitor = visit()
    page = visitor.go("/admin")
    enter(page, service.token)
    links = invitations(page, agreement.fingerprint, 100).split()
    assert len(set(links)) == 100
    assert service.store.unused_invitations(agreement.fingerprint) == 100
    secret = links[0].partition("#invitation=")[2]
    assert len(secret) == 43
    assert not any(secret.encode() in body for body in visitor.watch.bodies)
    person = visit()
    person.page.goto(links[0])
    expect(person.page.get_by_role("button", name="Blur my answers")).to_be_visible()
    expect(person.page.get_by_text("You need an invitation")).to_have_count(0)


def test_home_lists_all_collections(visit, collect) -> None:
    agreement = collect("listed income", 3)
    for number in range(10):
        collect(f"other income {number}", 0)
    page = visit().go("/")
    expect(page.get_by_role("article")).to_have_count(10)
    page.get_by_role("button", name="Show all").click()
    page.get_by_role("link", name="listed income", exact=True).click()
    expect(page).to_have_url(re.compile(agreement.fingerprint))


def test_a_curve_is_drawn_with_its_band(visit, service, people) -> None:
    """The points are Python's, signed or not; in the place of its hats' own effects."""
    features = [Numeric("age", 18, 80), Curve("age", knots=[18, 35, 60, 80]), Binary("married")]
    schema = Schema(features[1:], Numeric("bent", 0, 200_000), sources=features[:1])
    agreement = Agreement.propose(schema, epsilon=20, delta=1e-6, quorum=2000, admission="anyone")
    service.open(agreement)
    table = people(4000, "bent")
    given = {name: table[name] for name in ("age", "married", "bent")}
    service.store.add(agreement, perturb_table(agreement, given))
    model = service.store.publish(agreement)
    page = visit().go(f"/m/{agreement.fingerprint}")
    caption = page.locator("figure.curve figcaption")
    expect(caption).to_contain_text("How the prediction of bent follows it")
    line = page.locator("figure.curve polyline").get_attribute("points").split()
    heights = np.array([float(one.split(",")[1]) for one in line])
    expected = np.array([row["estimate"] for row in model.effect("age").to_facts()["rows"]])
    assert len(heights) == len(expected) == 4
    scaled = [(x - x.min()) / np.ptp(x) for x in (-heights, expected)]
    assert np.allclose(*scaled, atol=0.01)
    expect(page.locator("ul.effects").first.locator("li")).to_have_count(1)  # married


@pytest.mark.parametrize(
    ("language", "hidden", "crowded"),
    [
        ("en-GB", "Not shown: home: tent (too few people", "Caution: many people seem to be at 30"),
        (
            "de-DE",
            "Nicht gezeigt: home: tent (zu wenige",
            "Vorsicht: Viele Menschen scheinen bei 30",
        ),
    ],
)
def test_rare_answers_are_left_out_and_narrow_bounds_warned_of(
    visit, service, language, hidden, crowded
) -> None:
    schema = Schema(
        [Categorical("home", ["flat", "house", "tent"]), Numeric("age", 18, 90)],
        Numeric(f"rent {language}", 0, 30),
    )
    agreement = Agreement.propose(schema, epsilon=20, delta=1e-6, quorum=2000, admission="anyone")
    generator = np.random.default_rng(0)
    home = generator.choice(["flat", "house"], 2000)
    rent = 40 + 10 * (home == "house") + generator.normal(0, 8, 2000)
    table = {"home": home, "age": generator.uniform(18, 90, 2000), f"rent {language}": rent}
    service.open(agreement)
    service.store.add(agreement, perturb_table(agreement, table))
    model = service.store.publish(agreement)
    assert (model.hidden, model.crowded) == (("home=tent",), "upper")
    page = visit(locale=language).go(f"/m/{agreement.fingerprint}")
    expect(page.locator("#hidden")).to_contain_text(hidden)
    expect(page.locator("#crowded")).to_contain_text(crowded)
    expect(page.locator("[data-coefficient='home=house']")).to_have_count(1)
    expect(page.locator("[data-coefficient='home=tent']")).to_have_count(0)
