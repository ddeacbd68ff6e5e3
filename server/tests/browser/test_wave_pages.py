"""A plan in the browser: the wave that collects, what earlier ones taught, and nobody twice."""

import re

import pytest
from playwright.sync_api import Page, expect

from blurfit import Submission
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb_table
from blurfit.protocol import hashed
from server_support.looks import NARROW, WIDE, look_at
from support.fair import is_standard_normal
from support.lots import invitations

from .conftest import send

BLUR, SEND = "Blur my answers", "Send the blurred numbers"
ARRIVED = "Your blurred numbers have arrived"
QUORUM = 60


@pytest.fixture
def begin(service, survey, people, request):
    """A plan of three waves of its own, and a way to let a wave's people come."""
    name = re.sub(r"\W+", " ", request.node.name)
    promise = {"epsilon": 4, "delta": 1e-3, "quorum": QUORUM, "admission": "anyone"}
    plan = Plan.propose(survey(name, above=70_000), waves=3, **promise)
    service.store.open(plan)

    def come() -> None:
        agreement = service.store.current(plan.fingerprint)
        table = {key: one[: agreement.quorum] for key, one in people(QUORUM, name).items()}
        service.store.add(agreement, perturb_table(agreement, table))
        service.store.advance(plan.fingerprint)

    return plan, come


def tossed(visitor, plan: Plan, group: int):
    """A visitor whose coin has fallen so; what a page remembers is what it goes by."""
    words = f"localStorage.setItem('blurfit:group:{plan.fingerprint}', '{group}')"
    visitor.context.add_init_script(f"if (location.host) {words}")
    return visitor


def blur(page: Page, fill_in, plan: Plan) -> None:
    page.get_by_label("age", exact=True).fill("42.625")
    page.get_by_role("group", name="married").get_by_label("yes").check()
    page.get_by_label("south").check()
    page.get_by_role("group", name=plan.schema.target.name).get_by_label("yes").check()
    page.get_by_role("button", name=BLUR).click()


def test_each_wave_is_checked_shown_and_sent_once(visit, service, begin, fill_in) -> None:
    plan, come = begin
    come()
    come()
    visitor = visit(viewport={"width": 320, "height": 800})
    page = visitor.go(f"/c/{plan.fingerprint}")  # the plan's own link
    expect(page.get_by_text("Group 3 of 3.")).to_be_visible()
    expect(page.get_by_text("the noise keeps the promise whatever that is")).to_be_visible()
    expect(page.get_by_text(re.compile("Group 1, done: .* say yes"))).to_be_visible()
    expect(page.get_by_text("Group 3, asked now: 0 of")).to_be_visible()
    look_at(page, "wave-1-answers", NARROW)
    blur(page, fill_in, plan)
    page.get_by_text("The numbers themselves").click()
    look_at(page, "wave-2-preview", NARROW)
    send(page)
    (body,) = visitor.watch.bodies
    agreement = service.store.current(plan.fingerprint)
    sent = Submission.from_bytes(body)
    assert sent.fingerprint == agreement.fingerprint
    record = {"age": 42.625, "married": True, "region": "south", plan.schema.target.name: True}
    (part,) = agreement.parts
    noise = (sent.numbers - agreement.exact(record)) / part.deviations
    assert is_standard_normal(noise)
    page = visitor.go(f"/c/{plan.fingerprint}")  # again, by the same link
    expect(page.get_by_text(ARRIVED)).to_be_visible()
    assert len(visitor.watch.bodies) == 1


def test_who_took_part_in_a_wave_is_not_asked_again(visit, service, begin, fill_in) -> None:
    plan, come = begin
    visitor = tossed(visit(), plan, 1)
    first = plan.first().fingerprint
    page = visitor.go(f"/c/{first}")
    expect(page.get_by_text("Group 1 of 3. You answer once.")).to_be_visible()
    margin = "when at least 9 have taken part; the promise holds if at most 11 %"
    expect(page.get_by_text(margin)).to_be_visible()
    expect(page.get_by_text("Nobody can check a coin")).to_be_visible()
    blur(page, fill_in, plan)
    send(page)
    come()
    second = service.store.current(plan.fingerprint).fingerprint
    page = visitor.go(f"/c/{second}")
    expect(page.get_by_text("You have taken part already.")).to_be_visible()
    expect(page.get_by_role("button", name=BLUR)).to_have_count(0)
    page.get_by_role("link", name="See your receipt").click()
    expect(page.get_by_text(ARRIVED)).to_be_visible()
    # somebody else, at another device, is brought to the wave that collects
    other = visit()
    page = other.go(f"/c/{first}")
    expect(page.get_by_text("Group 2 of 3.")).to_be_visible()


def test_a_wave_that_closes_before_sending_is_complete(visit, begin, fill_in) -> None:
    plan, come = begin
    visitor = tossed(visit(), plan, 1)
    page = visitor.go(f"/c/{plan.first().fingerprint}")
    blur(page, fill_in, plan)
    come()
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_text("Your group is complete.")).to_be_visible()
    expect(page.get_by_role("button", name=SEND)).to_be_hidden()
    page.reload()
    expect(page.get_by_text("Your group is complete.")).to_be_visible()
    assert visitor.watch.bodies == []  # nothing has left


def test_a_coin_that_has_fallen_for_a_later_wave(visit, begin) -> None:
    plan, _come = begin
    page = tossed(visit(), plan, 3).go(f"/c/{plan.fingerprint}")
    expect(page.get_by_text("Your group is asked later.")).to_be_visible()
    expect(page.get_by_text("on this device, which remembers your group")).to_be_visible()
    expect(page.get_by_role("button", name=BLUR)).to_have_count(0)


def test_whoever_is_invited_comes_back_with_the_same_link(visit, service, survey, people) -> None:
    promise = {"epsilon": 4, "delta": 1e-3, "quorum": QUORUM}
    plan = Plan.propose(survey("invited in waves", above=70_000), waves=3, **promise)
    service.store.open(plan)
    given = {group: invitations(plan, group, 1)[0] for group in (1, 2)}
    service.store.invite(plan.first().fingerprint, map(hashed, given.values()))
    link = {group: f"/c/{plan.fingerprint}#invitation={one}" for group, one in given.items()}
    early = visit()
    page = early.go(link[2])
    expect(page.get_by_text("Your group is asked later.")).to_be_visible()
    expect(page.get_by_text("A lot has put you into group 2")).to_be_visible()
    expect(page.get_by_text("Come back later with the same link")).to_be_visible()
    expect(page.get_by_role("button", name=BLUR)).to_have_count(0)
    on_time = visit().go(link[1])
    expect(on_time.get_by_role("button", name=BLUR)).to_be_visible()
    agreement = service.store.current(plan.fingerprint)
    table = {
        key: one[: agreement.quorum] for key, one in people(QUORUM, "invited in waves").items()
    }
    service.store.add(agreement, perturb_table(agreement, table))
    service.store.advance(plan.fingerprint)
    late = visit().go(link[1])
    expect(late.get_by_text("Your group is complete.")).to_be_visible()
    page = early.go(link[2])
    page.reload()
    expect(page.get_by_role("button", name=BLUR)).to_be_visible()


def test_what_came_too_late_is_never_blurred_again(visit, service, begin, fill_in) -> None:
    """The answer to the first attempt is lost, and the wave closes before the second."""
    plan, come = begin
    first = plan.first().fingerprint
    visitor = tossed(visit(), plan, 1)
    page = visitor.go(f"/c/{first}")
    blur(page, fill_in, plan)
    visitor.context.route("**/submissions", lambda route: route.abort())
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_text("could not be reached")).to_be_visible()
    come()
    visitor.context.unroute("**/submissions")
    page.reload()
    expect(page.get_by_text("Your group closed before your numbers arrived.")).to_be_visible()
    assert len(set(visitor.watch.bodies)) == 1  # the same bytes, however often
    page = visitor.go(f"/c/{plan.fingerprint}")
    expect(page.get_by_text("Your group closed before your numbers arrived.")).to_be_visible()
    second = service.store.current(plan.fingerprint)
    assert service.count(second) == 0


def test_the_collection_and_the_model_tell_of_the_waves(visit, service, begin) -> None:
    plan, come = begin
    come()
    visitor = visit(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    visitor.context.clock.install()
    page = visitor.go(f"/collections/{plan.fingerprint}")
    expect(page.get_by_text("Group 2, asked now")).to_be_visible()
    expect(page.locator("#agreement dl")).to_be_visible()
    look_at(page, "wave-collection", WIDE)
    come()
    page = visitor.go(f"/collections/{plan.first().fingerprint}")
    page.get_by_role("link", name="The group that is asked now").click()
    expect(page.get_by_text("Group 3, asked now")).to_be_visible()
    come()
    page.clock.fast_forward(5_000)  # after which it asks again
    expect(page.get_by_role("link", name="See the model")).to_be_visible()
    page.get_by_role("link", name="See the model").click()
    first, second, third = plan.quorums
    words = f"They were asked in 3 groups, of {first}, {second} and {third} people."
    expect(page.get_by_text(words)).to_be_visible()
    expect(page.locator("#promised dl")).to_be_visible()
    look_at(page, "wave-model", WIDE)
    expect(page.get_by_role("link", name="Blurred sums of all groups")).to_be_visible()
    page = visitor.go("/")
    cards = page.get_by_role("article").filter(has_text=plan.schema.target.name)
    expect(cards).to_have_count(1)  # the newest wave, for the plan
    expect(cards).to_contain_text("Published, group 3 of 3")
