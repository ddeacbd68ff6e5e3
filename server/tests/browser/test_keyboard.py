"""The keyboard alone suffices on every page: Tab, Enter, Space, arrows; the focus is seen."""

from dataclasses import dataclass

import pytest
from openpyxl import Workbook
from playwright.sync_api import Page, expect

from blurfit import Agreement, Binary, Categorical, Numeric, Schema, TimeToEvent, perturb_table

PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 300, "admission": "anyone"}
# Whether the focus is at such an element; and whether one sees it: an outline, within the window.
FOCUS = """(selector) => {
  const one = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  const { top, bottom, height } = one.getBoundingClientRect();
  const isWithin = height > innerHeight ? top < innerHeight : top > -1 && bottom < innerHeight + 1;
  const isSeen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && isWithin;
  return [one.matches(selector), one === document.body || isSeen, one.outerHTML.slice(0, 200)];
}"""


@dataclass(frozen=True)
class Keys:
    """Somebody who has no mouse."""

    page: Page

    def to(self, selector: str, most: int = 150) -> "Keys":
        """On with Tab, until the focus is there; wherever it comes by, it is seen."""
        expect(self.page.locator(selector).locator("visible=true").first).to_be_visible()
        for _ in range(most):
            self.page.keyboard.press("Tab")
            is_there, is_seen, where = self.page.evaluate(FOCUS, selector)
            assert is_seen, f"the focus cannot be seen at {where}"
            if is_there:
                return self
        raise AssertionError(f"Tab never comes to {selector}")

    def press(self, *keys: str) -> "Keys":
        for key in keys:
            self.page.keyboard.press(key)
        return self

    def type(self, text: str) -> "Keys":
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(text)
        return self


def opened(service, schema: Schema, **terms) -> Agreement:
    agreement = Agreement.propose(schema, **PROMISE | terms)
    service.open(agreement)
    return agreement


def shown(page: Page, heading: str) -> None:
    expect(page.get_by_role("heading", name=heading)).to_be_visible()


def test_from_all_surveys_to_a_receipt_and_back(visit, service, survey) -> None:
    """Home, the survey, every kind of answer, the preview, sending, withdrawing; the words."""
    features = [
        Numeric("age", 18, 80),
        Numeric("mood", 0, 10),
        Binary("bike"),
        Binary("bus"),  # several answers are a yes or no each
        Categorical("region", ["north", "south", "east"]),
        Categorical("trade", [f"trade {one}" for one in range(9)], optional=True),
        Categorical("town", [f"town {one}" for one in range(20)]),
    ]
    agreement = opened(service, Schema(features, Numeric("pay", 0, 100)))
    page = visit().go("/")
    keys = Keys(page)
    keys.to(f'a[href="/collections/{agreement.fingerprint}"]').press("Enter")
    keys.to('a[href="/c/' + agreement.fingerprint + '"]').press("Enter")
    keys.to("#truth summary").press("Enter")
    expect(page.locator("#truth dl")).to_be_visible()
    keys.to("[data-field=age] input").type("42")
    keys.to("[data-field=mood] input").press("Space", "ArrowRight", "ArrowRight")
    for name in ("bike", "bus"):
        keys.to(f"[data-field={name}] input").press("Space", "ArrowDown")
    keys.to("[data-field=region] input").press("Space", "ArrowDown", "ArrowDown")
    keys.to("[data-field=trade] select").press("ArrowDown", "ArrowDown")
    keys.to("[data-field=town] [type=search]").type("town 17")
    keys.to("[data-field=town] [type=radio]").press("Space")
    keys.to("[data-field=pay] input").type("50").press("Enter")
    shown(page, "What will leave this device")
    keys.to("#preview summary").press("Enter")
    keys.to("#send").press("Enter")
    shown(page, "Thank you. Your blurred numbers have arrived.")
    with page.expect_download():
        keys.to("#outcome button").press("Enter")  # saves the receipt
    page.on("dialog", lambda asked: asked.accept())
    keys.to("#outcome button.quiet").press("Enter")
    expect(page.get_by_text("Your blurred numbers are withdrawn.")).to_be_visible()
    keys.to("#terms summary").press("Enter")
    expect(page.locator("#agreement dl")).to_be_visible()
    keys.to('a[href="/glossary"]').press("Enter")
    shown(page, "What the words mean")
    keys.to("#language").press("ArrowDown")
    shown(page, "Was die Wörter bedeuten")


def test_a_diary(visit, service) -> None:
    agreement = opened(
        service, Schema([Numeric("age", 18, 80)], Numeric("hours", 0, 24)), diaries=True
    )
    page = visit().go(f"/c/{agreement.fingerprint}")
    keys = Keys(page)
    for day in ("7", "8"):
        keys.to("[data-field=age] input").type("30")
        keys.to("[data-field=hours] input").type(day)
        keys.to("#answers button.primary").press("Enter")
        expect(page.locator("ol.diary li")).to_have_count(int(day) - 6)
    keys.to("ol.diary button").press("Space")
    expect(page.locator("ol.diary li")).to_have_count(1)
    keys.to("#diary .buttons button").press("Enter")
    shown(page, "What will leave this device")
    keys.to("#send").press("Enter")
    shown(page, "Thank you. Your blurred numbers have arrived.")


def test_a_time_until_an_event_and_what_is_wrong(visit, service) -> None:
    """What is wrong gets the focus, beside its words."""
    target = TimeToEvent("months", "left", horizon=24, bands=8)
    agreement = opened(service, Schema([Binary("married")], target))
    page = visit().go(f"/c/{agreement.fingerprint}")
    keys = Keys(page)
    keys.to("[data-field=married] input").press("Space")
    keys.to("[data-field=months] input").type("25")
    keys.to("[data-field=left] input").press("Space", "ArrowDown")
    keys.to("#answers button.primary").press("Enter")
    expect(page.locator("[data-field=months] input")).to_be_focused()
    keys.type("6").press("Enter")
    shown(page, "What will leave this device")


def test_a_model(visit, service, survey, people) -> None:
    agreement = opened(service, survey("steered income"), quorum=2000)
    service.store.add(agreement, perturb_table(agreement, people(2500, "steered income")))
    service.store.publish(agreement)
    page = visit().go(f"/m/{agreement.fingerprint}")
    keys = Keys(page)
    expect(page.locator("#table li").first).to_be_visible()
    keys.to("#effects summary").press("Enter")
    expect(page.locator("table.coefficients")).to_be_hidden()
    keys.to("#try [data-field=age] input").type("30")
    before = page.locator("#prediction").inner_text()
    keys.type("70")
    expect(page.locator("#prediction")).not_to_have_text(before)
    keys.to("#tables select:nth-of-type(2)").press("ArrowDown")
    expect(page.locator("#table li")).to_have_count(2)
    keys.to("#promised summary").press("Enter")
    expect(page.locator("#statement")).to_be_visible()
    with page.expect_download():
        keys.to("#downloads a").press("Enter")


@pytest.fixture
def form(tmp_path):
    book = Workbook()
    book.active.title = "survey"
    rows = [
        ("type", "name", "label", "constraint"),
        ("integer", "age", "How old are you?", ". >= 18 and . <= 99"),
        ("decimal", "pay", "What do you earn?", ". >= 0 and . <= 100"),
    ]
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "form.xlsx")
    return tmp_path / "form.xlsx"


def test_an_administrator(visit, service, form) -> None:
    """A token, an XLSForm, two databases, a look at the form, opening, and invitations."""
    page = visit().go("/admin")
    keys = Keys(page)
    expect(page.locator("#enter-button")).to_be_enabled()
    keys.to("#token").type(service.token).press("Enter")
    keys.to("#questions input").type("years")  # the first is named otherwise
    with page.expect_file_chooser() as chooser:
        keys.to("#form-file").press("Enter")
    chooser.value.set_files(form)
    expect(page.locator("#imported")).to_contain_text("pay")
    keys.to("[name=trust]").press("ArrowUp")
    expect(page.locator("#databases")).to_be_visible()
    keys.to("[name=name0]").type("Office")
    keys.to("[name=name1]").type("University")
    keys.to("[name=url1]").type("https://university.example")
    keys.to("[name=quorum]").type("300")
    keys.to(".terms summary").press("Enter")
    keys.to("[name=neighbours]").press("ArrowDown", "ArrowUp")
    expect(page.locator("#look")).to_be_enabled()
    keys.to("#look").press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#look")).to_be_focused()
    keys.press("Shift+Tab", "Enter")  # opens it
    expect(page.get_by_text("The survey is open.")).to_be_visible()
    (found,) = [one for one in service.store.statuses() if one.awaits or one.invited]
    assert len(service.store.course(found.fingerprint).document.databases) == 2
    card = f'[data-fingerprint="{found.fingerprint}"]'
    keys.to(f"{card} button").press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.to("dialog [name=count]").type("3")
    keys.to("dialog select").press("ArrowDown")
    with page.expect_download() as download:
        keys.to("dialog button.primary").press("Enter")
    assert download.value.suggested_filename == "invitations.csv"
    expect(page.get_by_role("dialog")).to_have_count(0)
