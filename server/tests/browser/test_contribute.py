"""The page on which a person contributes: what leaves, how often, and what it refuses."""

import json
import re
import struct
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from blurfit import (
    Agreement,
    Bands,
    Binary,
    Condition,
    Cross,
    Numeric,
    Product,
    Schema,
    Submission,
    TimeToEvent,
    perturb,
)
from blurfit import protocol as tokens
from blurfit.schema.schema import values
from blurfit_server.store.arrivals import Arrival
from support.fair import DEVIATIONS, is_standard_normal

from .conftest import send

RECORD = {"age": 42.625, "married": True, "region": "south"}
BLUR, SEND = "Blur my answers", "Send the blurred numbers"
ARRIVED = "Your blurred numbers have arrived"


@pytest.fixture
def propose(survey, request):
    """An agreement of this test's own."""

    def make(**options):
        name = re.sub(r"\W+", " ", request.node.name)
        schema = survey(name, above=options.pop("above", None))
        promise = {"epsilon": 1, "delta": 1e-6, "quorum": 2000, "admission": "anyone"}
        return Agreement.propose(schema, **promise | options)

    return make


def blur(page: Page, fill_in, agreement: Agreement) -> None:
    fill_in(page, agreement.schema.target.name)
    page.get_by_role("button", name=BLUR).click()


@pytest.fixture
def begun(visit, service, propose, fill_in):
    """An agreement of this test's own, or a given one, and a visitor who has blurred her answers to
    it, unless she has not `answered`.
    """

    def make(agreement=None, *, answered=True, **options):
        agreement = agreement or propose(**options)
        service.open(agreement)
        visitor = visit()
        page = visitor.go(f"/c/{agreement.fingerprint}")
        if answered:
            blur(page, fill_in, agreement)
        return agreement, visitor, page

    return make


def deviations(agreement: Agreement) -> np.ndarray:
    return np.concatenate([part.deviations for part in agreement.parts])


def spellings(value: float) -> list[bytes]:
    """A number as text, and as the bytes of a float in either order."""
    return [repr(value).encode(), struct.pack("<d", value), struct.pack(">d", value)]


@pytest.mark.parametrize(
    "options",
    [{}, {"groups": "region", "overlap": 0.5}],
    ids=["everything", "groups"],
)
def test_nothing_leaves_but_one_blurred_submission(service, options, begun) -> None:
    """The whole traffic is captured. One request has a body; it is a submission, each number of it
    is the record's plus noise, and nothing that was typed or computed from it is in any request.
    """
    agreement, visitor, page = begun(**options)
    expect(page.get_by_role("heading", name="What will leave this device")).to_be_visible()
    assert visitor.watch.bodies == []  # so far nothing has left
    send(page)

    (body,) = visitor.watch.bodies
    sent = Submission.from_bytes(body)  # which refuses any byte too many
    assert sent.fingerprint == agreement.fingerprint
    assert service.count(agreement) == 1

    record = RECORD | {agreement.schema.target.name: 61234.5}
    exact = agreement.exact(record)
    noise = (sent.numbers - exact) / deviations(agreement)
    assert (noise == 0).sum() <= 2  # each is zero with a probability below 1/2000
    assert is_standard_normal(noise)
    everything = body + "\n".join(visitor.watch.requests).encode()
    encoded = values(agreement.schema, record).tolist()
    finest = min(part.step for part in agreement.parts)
    for value in (42.625, 61234.5, *encoded, *exact.tolist()):
        # a blurred number comes to 1.0 by chance, as it may to any point of the grid near it
        if value in (42.625, 61234.5) or not (value / finest).is_integer():
            assert not any(text in everything for text in spellings(value)), value
    assert b"south" not in everything

    left = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert not re.search(r"42\.625|61234\.5|south", left)  # nor is it kept on the device


def test_what_is_computed_from_answers_is_said_but_not_asked(
    visit, service, survey, fill_in
) -> None:
    """Columns of all four kinds: the same four questions, and what is sent holds their products."""
    plain = survey("pay")
    derived = [
        Bands("pay", edges=[20_000, 40_000.5]),
        Cross("married", "region"),
        Product("age", "pay"),
        Condition("older", "age", above=42),
    ]
    schema = replace(plain, features=[*plain.features, *derived], targets=())
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=2000, admission="anyone")
    service.open(agreement)
    visitor = visit()
    page = visitor.go(f"/c/{agreement.fingerprint}")
    expect(page.locator("[data-field]")).to_have_count(4)
    for words in (
        "bands(pay) (computed from pay: in bands that meet at 20,000, 40,000.5)",
        "married:region (computed from married and region: each pair of answers)",
        "age:pay (computed from age and pay: one times the other",
        "older (computed from age: whether it is above 42)",
    ):
        expect(page.locator("#agreement")).to_contain_text(words)
    blur(page, fill_in, agreement)
    expect(page.locator(".belief")).to_have_count(4)
    send(page)
    (body,) = visitor.watch.bodies
    exact = agreement.exact(RECORD | {"pay": 61234.5})
    noise = (Submission.from_bytes(body).numbers - exact) / deviations(agreement)
    assert is_standard_normal(noise)


def test_the_submission_has_the_noise_that_was_agreed_on(fill_in, begun) -> None:
    """Three times each of two answers, by turns: 138 numbers, normal with the deviations agreed
    on, for noise is drawn again after another answer.
    """
    agreement, _visitor, page = begun(answered=False)
    name = agreement.schema.target.name
    fill_in(page, name)
    noise = []
    for age in (42.625, 20.0) * 3:
        page.get_by_label("age", exact=True).fill(str(age))
        page.get_by_role("button", name=BLUR).click()
        expect(page.get_by_role("heading", name="What will leave this device")).to_be_visible()
        numbers = [float(one) for one in page.locator("pre").text_content().split()]
        exact = agreement.exact(RECORD | {"age": age, name: 61234.5})
        noise += ((np.array(numbers) - exact) / deviations(agreement)).tolist()
        page.get_by_role("button", name="Change my answers").click()
    assert len(noise) == 6 * agreement.width == 138
    drawn = np.round(noise, 6).reshape(6, -1)
    assert len(np.unique(drawn, axis=0)) == 6, "what was drawn for other answers, or for these"
    assert abs(np.mean(noise)) < DEVIATIONS / np.sqrt(138)
    assert is_standard_normal(noise)


def test_the_same_answers_keep_their_noise(begun) -> None:
    """Drawing again until it pleases would make noise less random."""
    _agreement, _visitor, page = begun()
    before = page.locator("pre").text_content()
    page.get_by_role("button", name="Change my answers").click()
    page.get_by_role("button", name=BLUR).click()
    assert page.locator("pre").text_content() == before


def test_double_click_sends_once(service, begun) -> None:
    agreement, visitor, page = begun()
    page.get_by_role("button", name=SEND).dblclick()
    expect(page.get_by_text(ARRIVED)).to_be_visible()
    assert len(visitor.watch.bodies) == 1
    assert service.count(agreement) == 1


def test_offline_then_online_sends_exactly_once(service, begun) -> None:
    agreement, visitor, page = begun()
    visitor.context.set_offline(True)
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_text("You are offline")).to_be_visible()
    assert service.count(agreement) == 0
    visitor.context.set_offline(False)
    expect(page.get_by_text(ARRIVED)).to_be_visible()
    assert len(visitor.watch.bodies) == 1
    assert service.count(agreement) == 1


def test_a_lost_answer_a_reload_and_a_second_tab_repeat_the_same_bytes(
    visit, service, propose, fill_in
) -> None:
    """The service has the submission, but its answer is lost: whatever is done then, the same bytes
    are sent again, and it is counted once.
    """
    agreement = propose()
    service.open(agreement)
    visitor = visit()

    def lose_the_answer(route: Route) -> None:
        route.fetch()  # it arrives and is stored
        route.abort("connectionreset")

    visitor.context.route("**/submissions", lose_the_answer)
    page = visitor.go(f"/c/{agreement.fingerprint}")
    blur(page, fill_in, agreement)
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_text("could not be reached")).to_be_visible()
    assert service.count(agreement) == 1
    visitor.context.unroute_all(behavior="wait")
    other = visitor.context.new_page()
    other.goto(page.url)
    page.reload()
    expect(page.get_by_text(ARRIVED)).to_be_visible()
    expect(other.get_by_text(ARRIVED)).to_be_visible()
    assert len(visitor.watch.bodies) >= 2
    assert all(one == another for one, another in pairwise(visitor.watch.bodies))
    assert service.count(agreement) == 1
    page.reload()  # and much later
    expect(page.get_by_text(ARRIVED)).to_be_visible()
    assert service.count(agreement) == 1


def test_two_tabs_with_different_noise_send_one_submission(
    visit, service, propose, fill_in
) -> None:
    """Both have blurred already, each with its own noise; two copies would tell more than one."""
    agreement = propose()
    service.open(agreement)
    visitor = visit()
    tabs = [visitor.go(f"/c/{agreement.fingerprint}"), visitor.context.new_page()]
    tabs[1].goto(tabs[0].url)
    for tab in tabs:
        blur(tab, fill_in, agreement)
    seen = [tab.locator("pre").text_content() for tab in tabs]
    assert seen[0] != seen[1]
    for tab in tabs:
        tab.get_by_role("button", name=SEND).click()
        expect(tab.get_by_text(ARRIVED)).to_be_visible()
    assert len(set(visitor.watch.bodies)) == 1
    assert service.count(agreement) == 1


def test_a_busy_service_is_asked_again(visit, service, propose, fill_in) -> None:
    """503 with Retry-After; and what is blurred goes out even if nothing else can be had."""
    agreement = propose()
    service.open(agreement)
    visitor = visit()
    refusals = []

    def busy(route: Route) -> None:
        refusals.append(route)
        route.fulfill(
            status=503, headers={"retry-after": "1"}, json={"title": "Storage is not available"}
        )

    visitor.context.route("**/submissions", busy)
    page = visitor.go(f"/c/{agreement.fingerprint}")
    blur(page, fill_in, agreement)
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_text("could not be reached")).to_be_visible()
    visitor.context.unroute_all(behavior="wait")
    visitor.context.route("**/agreement", lambda route: route.abort())
    page.reload()
    expect(page.get_by_text(ARRIVED)).to_be_visible()
    assert refusals
    assert len(visitor.watch.bodies) > len(set(visitor.watch.bodies)) == 1
    assert service.count(agreement) == 1


def test_the_receipt_can_be_kept(begun) -> None:
    agreement, visitor, page = begun()
    page.get_by_role("button", name=SEND).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the receipt").click()
    receipt = json.loads(download.value.path().read_text())
    sent = Submission.from_bytes(visitor.watch.bodies[0])
    assert receipt["identifier"] == sent.identifier
    assert receipt["fingerprint"] == agreement.fingerprint
    assert receipt["sha256"] == tokens.hashlib.sha256(visitor.watch.bodies[0]).hexdigest()


def test_an_invitation_travels_in_the_fragment(visit, service, propose, fill_in) -> None:
    agreement, token = propose(admission="invited"), tokens.new_token()
    service.open(agreement)
    service.store.invite(agreement.fingerprint, [tokens.hashed(token)])
    visitor = visit()
    page = visitor.go(f"/c/{agreement.fingerprint}#invitation={token}")
    blur(page, fill_in, agreement)
    send(page)
    assert service.store.unused_invitations(agreement.fingerprint) == 0
    assert not any(token in url.partition("#")[0] for url in visitor.watch.requests)


def test_without_a_good_invitation_the_numbers_wait_for_one(
    visit, service, propose, fill_in
) -> None:
    """The link is used by somebody else while she answers."""
    agreement, token = propose(admission="invited"), tokens.new_token()
    service.open(agreement)
    lost = tokens.new_token()
    service.store.invite(agreement.fingerprint, [tokens.hashed(one) for one in (lost, token)])
    visitor = visit()
    page = visitor.go(f"/c/{agreement.fingerprint}#{lost}")
    blur(page, fill_in, agreement)
    collection = service.store.collection(agreement.fingerprint)
    other = perturb(agreement, RECORD | {agreement.schema.target.name: 1.0})
    service.store.receive(collection, [Arrival(other.to_bytes(), [tokens.hashed(lost)])])
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_role("alert")).to_contain_text("You need an invitation")
    page.goto("about:blank")
    visitor.go(f"/c/{agreement.fingerprint}#{token}")  # the right link, at last
    expect(page.get_by_text(ARRIVED)).to_be_visible()
    first, second = visitor.watch.bodies
    assert first == second
    assert service.count(agreement) == 2


def test_answers_stay_as_they_were_typed(fill_in, begun) -> None:
    """A comma is a decimal sign, and what lies outside is asked about, never changed silently."""
    agreement, _visitor, page = begun(answered=False)
    fill_in(page, agreement.schema.target.name)
    age = page.get_by_label("age", exact=True)
    age.fill("34,5")
    expect(page.get_by_text("Read as 34.5")).to_be_visible()
    age.press("ArrowUp")
    age.hover()
    page.mouse.wheel(0, 100)
    expect(age).to_have_value("34,5")
    page.get_by_role("button", name=BLUR).click()
    expect(page.locator(".belief", has_text="age")).to_contain_text("Your answer: 34.5")
    page.get_by_role("button", name="Change my answers").click()
    age.fill("345")
    page.get_by_role("button", name=BLUR).click()
    expect(
        page.get_by_text("Answers here go from 18 to 80. If your answer is right, it counts as 80.")
    ).to_be_visible()
    expect(age).to_have_value("345")
    expect(page.get_by_role("heading", name="What will leave")).to_have_count(0)
    page.get_by_role("button", name="Count it as 80").click()
    expect(age).to_have_value("80")
    page.get_by_role("button", name=BLUR).click()
    expect(page.locator(".belief", has_text="age")).to_contain_text("Your answer: 80")


def test_where_nothing_can_be_given_nothing_is_asked(visit, service, propose) -> None:
    invited, paused, closed = (
        propose(admission="invited"),
        propose(quorum=2001),
        propose(quorum=2002),
    )
    for one in (invited, paused, closed):
        service.open(one)
    service.store.pause(paused.fingerprint)
    service.store.close_collection(closed.fingerprint)
    visitor = visit()
    for address, words in (
        (f"{invited.fingerprint}#invitation={tokens.new_token()}", "This link has been used."),
        (paused.fingerprint, "This survey is paused."),
        (
            f"{invited.fingerprint}#invitation={tokens.new_token()[:30]}",
            "This link is not complete.",
        ),
        (closed.fingerprint, "This survey has closed"),
        (invited.fingerprint, "You need an invitation"),
        ("0" * 64, "Is this the service that you were invited to"),
    ):
        page = visitor.go(f"/c/{address}")
        expect(page.get_by_text(words)).to_be_visible()
        expect(page.get_by_role("button", name=BLUR)).to_have_count(0)
    assert visitor.watch.bodies == []


def test_answers_are_the_persons_own_and_what_is_missing_is_named(begun) -> None:
    _agreement, _visitor, page = begun(answered=False)
    choices = page.get_by_role("group", name="married").get_by_role("radio")
    expect(choices).to_have_count(2)
    for choice in choices.all():
        expect(choice).not_to_be_checked()
    page.get_by_role("button", name=BLUR).click()
    expect(page.get_by_text("Please enter a number for “age”, 18 to 80.")).to_be_visible()
    expect(page.get_by_text("Please choose an answer to “married”.")).to_be_visible()
    expect(page.get_by_text("Please choose an answer to “region”.")).to_be_visible()
    expect(page.get_by_label("age", exact=True)).to_be_focused()


def test_of_a_label_only_the_answer_is_asked(begun) -> None:
    """Whether income is above 37,000, and not how much it is: what is not typed cannot leak."""
    agreement, _visitor, page = begun(above=37_000, answered=False)
    page.get_by_label("age", exact=True).fill("42")
    page.get_by_role("group", name="married").get_by_label("no").check()
    page.get_by_label("east").check()
    asked = page.get_by_role("group", name=f"{agreement.schema.target.name} is above 37,000")
    asked.get_by_label("yes").check()
    page.get_by_role("button", name=BLUR).click()
    send(page)


def weaken(document: dict) -> None:
    """Half of the noise, and every number that follows from it consistent with that."""
    calibration = document["calibration"]
    calibration["sigma"] /= 2
    calibration["mu"] *= 2
    calibration["local"]["mu"] *= 2
    calibration["local"]["epsilon"] *= 4


def shift_bounds(document: dict) -> None:
    document["schema"]["features"][0]["upper"] = 50.0


@pytest.mark.parametrize(
    ("change", "consistent"),
    [(weaken, True), (shift_bounds, False)],
    ids=["new-fingerprint", "old-fingerprint"],
)
def test_a_tampered_agreement_is_refused(visit, service, propose, change, consistent) -> None:
    """Whether the fingerprint is made to fit the change or not, it is not that of the link."""
    agreement = propose()
    service.open(agreement)
    document = json.loads(agreement.to_json())
    change(document)
    if consistent:
        del document["fingerprint"]
        document["fingerprint"] = Agreement.from_dict(document).fingerprint
    visitor = visit()
    visitor.context.route("**/agreement", lambda route: route.fulfill(json=document))
    page = visitor.go(f"/c/{agreement.fingerprint}")
    expect(page.get_by_role("alert")).to_contain_text("was expected, but the service sent")
    expect(page.get_by_role("button", name=BLUR)).to_have_count(0)
    assert visitor.watch.bodies == []


def test_too_little_noise_is_refused_under_its_own_fingerprint(visit, service, propose) -> None:
    """A link to an agreement that promises more than its noise keeps: it is computed again."""
    agreement = propose()
    service.open(agreement)
    document = json.loads(agreement.to_json())
    weaken(document)
    del document["fingerprint"]
    own = document["fingerprint"] = Agreement.from_dict(document).fingerprint
    visitor = visit()
    visitor.context.route("**/agreement", lambda route: route.fulfill(json=document))
    status = {"state": "collecting", "count": 0, "quorum": 2000, "invited": False}
    visitor.context.route(
        f"**/collections/{own}", lambda route: route.fulfill(json=status | {"fingerprint": own})
    )
    page = visitor.go(f"/c/{own}")
    expect(page.get_by_role("alert")).to_contain_text("The noise is too small")
    expect(page.get_by_role("button", name=BLUR)).to_have_count(0)
    assert visitor.watch.bodies == []


def test_without_storage_nothing_is_asked_or_sent(visit, service, propose) -> None:
    """What cannot be kept could be blurred twice."""
    agreement = propose()
    service.open(agreement)
    visitor = visit(own=True)
    visitor.context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }})"
    )
    page = visitor.go(f"/c/{agreement.fingerprint}")
    expect(page.get_by_role("alert")).to_contain_text("Allow site data")
    expect(page.get_by_role("button", name=BLUR)).to_have_count(0)


def test_a_full_storage_keeps_the_numbers_here(visit, service, propose, fill_in) -> None:
    agreement = propose()
    service.open(agreement)
    visitor = visit(own=True)
    visitor.context.add_init_script(
        "Storage.prototype.setItem = () => { throw new DOMException('it is full'); }"
    )
    page = visitor.go(f"/c/{agreement.fingerprint}")
    blur(page, fill_in, agreement)
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was sent")
    assert visitor.watch.bodies == []
    assert service.count(agreement) == 0


def test_somebody_else_may_answer_on_the_same_device(service, fill_in, begun) -> None:
    agreement, visitor, page = begun(answered=False)
    for _ in range(2):
        blur(page, fill_in, agreement)
        send(page)
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Somebody else wants to answer here").click()
    one, other = (Submission.from_bytes(body) for body in visitor.watch.bodies)
    assert one.identifier != other.identifier
    assert service.count(agreement) == 2


# ---- diaries, and times until an event


def test_a_diary_stays_on_the_device_and_is_blurred_once(fill_in, begun) -> None:
    """Two days are kept over a reload, one is removed, and one submission leaves in the end."""
    agreement, visitor, page = begun(diaries=True, answered=False)
    target = agreement.schema.target.name
    for day in range(3):
        fill_in(page, target)
        page.get_by_label("age", exact=True).fill(str(30 + day))
        page.get_by_role("button", name="Keep this entry").click()
        expect(page.locator("ol.diary li")).to_have_count(day + 1)
    page.reload()
    expect(page.get_by_text("3 entries are kept")).to_be_visible()
    page.locator("ol.diary li").nth(1).get_by_role("button", name="Remove").click()
    expect(page.get_by_text("2 entries are kept")).to_be_visible()
    assert visitor.watch.bodies == []
    page.get_by_role("button", name="Blur all entries and finish").click()
    expect(page.get_by_text("All 2 entries of your diary were blurred together")).to_be_visible()
    send(page)
    (body,) = visitor.watch.bodies
    sent = Submission.from_bytes(body)
    days = [RECORD | {"age": 30.0 + day, target: 61234.5} for day in (0, 2)]
    table = {name: [day[name] for day in days] for name in days[0]}
    (exact,) = agreement.exact(table, np.zeros(2, dtype=int))
    assert is_standard_normal((sent.numbers - exact) / deviations(agreement))
    assert len(body) == len(perturb(agreement, days[0]).to_bytes())
    left = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert not re.search(r"blurfit:diary|61234\.5|south", left)


def test_when_did_you_leave(visit, service) -> None:
    """A time beyond the horizon is asked for again; who has not left says until now."""
    features = [Numeric("age", 18, 80), Binary("married")]
    schema = Schema(features, TimeToEvent("months", "left", horizon=24, bands=8))
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=2000, admission="anyone")
    service.open(agreement)
    visitor = visit()
    page = visitor.go(f"/c/{agreement.fingerprint}")
    page.get_by_label("age", exact=True).fill("40")
    page.get_by_role("group", name="married").get_by_label("no").check()
    expect(page.get_by_text("Until it happened; if it has not, until now")).to_be_visible()
    page.get_by_label("months", exact=True).fill("25")
    page.get_by_role("group", name="left").get_by_label("not yet").check()
    page.get_by_role("button", name=BLUR).click()
    assert page.get_by_role("heading", name="What will leave this device").count() == 0
    page.get_by_label("months", exact=True).fill("6")
    page.get_by_role("button", name=BLUR).click()
    send(page)
    sent = Submission.from_bytes(visitor.watch.bodies[-1])
    exact = agreement.exact({"age": 40, "married": False, "months": 6, "left": False})
    assert is_standard_normal((sent.numbers - exact) / deviations(agreement))
