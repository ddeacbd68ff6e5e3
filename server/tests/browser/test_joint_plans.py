"""A plan between two databases in the browser: a wave that follows, and one share to each."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import share
from server_support.joint_plans import Both

from .conftest import send, two_services

BLUR, SEND = "Blur my answers", "Send the blurred numbers"
LATE = "Your group closed before your numbers arrived."


@pytest.fixture(scope="module")
def two(tmp_path_factory, survey, people) -> Iterator[Both]:
    """Two services whose plan has come to its second wave of three."""
    with two_services(tmp_path_factory.mktemp("joint")) as (stores, urls):
        promise = {"epsilon": 4, "delta": 1e-3, "quorum": 60, "admission": "anyone"}
        databases = list(zip(("Office", "University"), urls, strict=True))
        schema = survey("rich", above=70_000)
        plan = Plan.propose(schema, waves=3, **promise, databases=databases)
        both = Both(plan, *stores)
        fill(both, people)
        both.lead()
        yield both


def fill(two: Both, people) -> None:
    """As many as the open wave waits for have come to both."""
    wave = two.current()
    table = {key: one[: wave.quorum] for key, one in people(60, "rich").items()}
    assert two.deliver(share(wave, table)) == [wave.quorum] * 2


def tossed(page: Page, two: Both) -> Page:
    """A page whose coin has fallen for the wave that collects."""
    number = two.current().wave.number
    page.add_init_script(
        f"if (location.host) localStorage.setItem('blurfit:group:{two.name}', '{number}')"
    )
    return page


def blur(page: Page) -> None:
    page.get_by_label("age", exact=True).fill("42.625")
    page.get_by_role("group", name="married").get_by_label("yes").check()
    page.get_by_label("south").check()
    page.get_by_role("group", name="rich").get_by_label("yes").check()
    page.get_by_role("button", name=BLUR).click()


def test_one_share_to_each_for_the_wave_that_collects(new_tab, two) -> None:
    wave, address = two.current(), two.plan.databases[1].url
    before = [two.holders(side, wave.fingerprint) for side in (0, 1)]
    page = tossed(new_tab(), two)
    page.goto(f"{address}/c/{two.name}")  # the plan's own link, at the second database
    expect(page.get_by_text(f"Group {wave.wave.number} of 3.")).to_be_visible()
    blur(page)
    expect(page.get_by_text("Either part alone is random")).to_be_visible()
    send(page)
    page.goto(f"{address}/c/{two.name}")
    expect(page.get_by_text("Your blurred numbers have arrived")).to_be_visible()
    new = [two.holders(side, wave.fingerprint) - before[side] for side in (0, 1)]
    assert len(new[0]) == 1
    assert new[0] == new[1]


def test_when_the_seed_alone_has_left_nothing_of_the_answers_has(new_tab, two, people) -> None:
    """The second database closes a wave first, so that is where those who are late are refused."""
    wave, address = two.current(), two.plan.databases[0].url
    page = tossed(new_tab(), two)
    page.goto(f"{address}/c/{two.name}")
    blur(page)
    expect(page.get_by_role("button", name=SEND)).to_be_visible()
    fill(two, people)
    two.second.close_for_first(two.second.collection(wave.fingerprint))
    held = two.first.count(wave)
    posted = []
    page.on("request", lambda one: posted.append(one.url) if one.method == "POST" else None)
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_text("Your group is complete.")).to_be_visible()
    expect(page.get_by_text("Nothing of your answers has left this device")).to_be_visible()
    assert [one.startswith(two.plan.databases[1].url) for one in posted] == [True]
    assert two.first.count(wave) == held
    two.lead()
    page.reload()
    expect(page.get_by_text("Your group is complete.")).to_be_visible()
    assert two.first.count(two.current()) == two.second.count(two.current()) == 0
