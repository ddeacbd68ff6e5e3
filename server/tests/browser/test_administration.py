"""/admin without a shell: what is wrong is said beside its field, and buttons do what they say."""

import csv
import io
import re
from contextlib import ExitStack
from functools import partial

import openpyxl
import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from blurfit import Agreement, Numeric, Schema, perturb_table
from blurfit import protocol as tokens
from blurfit.agreement.plan import Plan
from blurfit.learning.outlook import outlook
from blurfit_server import Store
from blurfit_server.cli.administer import written
from blurfit_server.service.app import Service, in_a_thread

from .conftest import Visitor, be_sure, enter, invitations


def entered(visitor: Visitor) -> Page:
    page = visitor.go("/admin")
    enter(page, visitor.service.token)
    expect(page.locator("#promise dl")).to_be_visible()
    expect(page.locator("#collections h2")).to_be_visible()
    return page


@pytest.fixture
def admin(visit):
    return entered(visit())


def test_nobody_enters_before_the_script_is_there(visit, service) -> None:
    """The token would go nowhere: the form's own submission is forbidden by the page's policy."""
    visitor = visit()
    held = []
    script = "**/administration.js*"
    visitor.context.route(script, lambda route: held.append(route))
    with visitor.page.expect_request(script):
        visitor.page.goto(service.address + "/admin", wait_until="commit")
    button = visitor.page.get_by_role("button", name="Enter")
    expect(button).to_be_disabled()
    token = visitor.page.get_by_label("Administrator’s token")
    token.fill(service.token)
    token.press("Enter")  # a form whose button is disabled does not send itself
    held[0].continue_()
    expect(button).to_be_enabled()
    button.click()
    expect(visitor.page.locator("#promise dl")).to_be_visible()


def test_what_is_wrong_stands_beside_its_field(admin) -> None:
    target = admin.get_by_role("group", name="What is to be predicted")
    open_it = admin.get_by_role("button", name="Open this survey")
    target.get_by_label("Highest").fill("-5")
    expect(target.get_by_text("The highest must be above the lowest.")).to_be_visible()
    expect(target.get_by_label("Highest")).to_have_attribute("aria-invalid", "true")
    expect(open_it).to_be_disabled()
    target.get_by_label("Highest").fill("200000")
    expect(target.get_by_text("The highest must be above the lowest.")).to_be_hidden()
    admin.get_by_label("People needed").fill("many")
    expect(admin.get_by_text("Enter a whole number of people")).to_be_visible()
    admin.get_by_label("People needed").fill("2000")
    target.get_by_label("Name").fill("age")
    expect(target.get_by_text("Another question has this name.")).to_be_visible()
    target.get_by_label("Name").fill("income")
    expect(open_it).to_be_enabled()
    admin.get_by_label("ε of what is published").fill("")
    expect(admin.get_by_text("Enter a number above 0, such as 1.")).to_be_visible()
    admin.get_by_role("button", name="Go to the first").click()
    expect(admin.get_by_label("ε of what is published")).to_be_focused()
    expect(admin.locator("body")).not_to_contain_text("Expected `float`")


def test_what_to_expect_and_warnings(admin) -> None:
    expected = admin.locator("#expected")
    schema = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 200_000))
    found = outlook(Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=2000))
    shown = f"{found.off:,.0f}"[:2]
    expect(expected).to_contain_text(
        f"With 2,000 people expect predictions of income to be off by about ± {shown[0]}"
    )
    expect(expected).to_contain_text("An estimate for typical people")
    admin.get_by_label("Accuracy wanted").fill(str(0.7 * found.off))
    expect(expected).to_contain_text("you need about")
    expect(expected).to_contain_text("Or ε =")
    admin.get_by_label("Accuracy wanted").fill("")
    admin.get_by_label("ε of what is published").fill("12")
    expect(expected).to_contain_text("ε = 12 promises very little")
    admin.get_by_label("ε of what is published").fill("1")
    admin.get_by_label("People needed").fill("8")
    expect(expected).to_contain_text("With 8 people each one’s part")
    expect(expected).to_contain_text("next to nothing beyond the average")
    admin.get_by_label("δ of what is published").fill("0.1")
    expect(expected).to_contain_text("δ = 0.1 is large for 8 people")


def test_a_choice_can_be_predicted_and_the_form_is_shown_before(admin, service) -> None:
    target = admin.get_by_role("group", name="What is to be predicted")
    target.get_by_label("Name").fill("party chosen")
    target.get_by_label("Answer is").select_option("categorical")
    target.get_by_label("Choices").fill("red, green, none")
    expect(target.get_by_label("Unit")).to_be_hidden()
    asked = admin.get_by_role("group", name="Question", exact=True)
    asked.get_by_label("Hint").fill("At your last birthday")
    asked.get_by_label("Unit").fill("years")
    asked.get_by_label("People may prefer not to say").check()
    admin.get_by_role("button", name="See the form").click()
    form = admin.get_by_role("dialog")
    expect(form.get_by_label("green")).to_be_visible()
    expect(form.get_by_label("age", exact=True)).to_be_visible()
    expect(form.get_by_text("At your last birthday")).to_be_visible()
    expect(form.get_by_text("18 to 80 years")).to_be_visible()
    expect(form.get_by_label("Prefer not to say")).to_be_visible()
    form.get_by_role("button", name="Back").click()
    admin.get_by_role("button", name="Open this survey").click()
    expect(admin.get_by_text("The survey is open.")).to_be_visible()
    fingerprint = admin.locator("#message a").get_attribute("href").removeprefix("/c/")
    schema = service.store.collection(fingerprint).agreement.schema
    assert schema.target.levels == ("red", "green", "none")
    assert schema.features[0].optional


def test_questions_from_an_xlsform_in_two_languages(admin, service, tmp_path) -> None:
    """The service reads the file; what is to be predicted is chosen, and texts are typed twice."""
    book = openpyxl.Workbook()
    sheets = {
        "survey": [
            [
                "type",
                "name",
                "label::English (en)",
                "label::Deutsch (de)",
                "constraint",
                "required",
            ],
            ["integer", "age", "Your age", "Ihr Alter", ". >= 18 and . <= 90", "yes"],
            ["select_one yn", "owner", "Do you own your home?", "Eigenheim?", "", "yes"],
            ["integer", "rooms", "Rooms", "Zimmer", ". >= 1 and . <= 30", "yes"],
        ],
        "choices": [
            ["list_name", "name", "label::English (en)", "label::Deutsch (de)"],
            ["yn", "yes", "yes", "ja"],
            ["yn", "no", "no", "nein"],
        ],
    }
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(tmp_path / "form.xlsx")
    admin.get_by_label("Or take the questions from an XLSForm").set_input_files(
        tmp_path / "form.xlsx"
    )
    expect(admin.get_by_text("3 questions were read from the file.")).to_be_visible()
    admin.locator("#form-target").select_option("age")
    admin.get_by_label("Languages").fill("en, de")
    admin.get_by_label("Title (English)").fill("Homes")
    admin.get_by_label("Title (Deutsch)").fill("Wohnen")
    admin.get_by_role("button", name="See the form").click()
    expect(admin.get_by_role("dialog").get_by_label("Rooms")).to_be_visible()
    admin.get_by_role("dialog").get_by_role("button", name="Back").click()
    admin.get_by_role("button", name="Open this survey").click()
    expect(admin.get_by_text("The survey is open.")).to_be_visible()
    name = admin.locator("#message a").get_attribute("href").removeprefix("/c/")
    schema = service.store.collection(name).agreement.schema
    assert schema.target.name == "age"
    assert schema.about.title.in_language("de") == "Wohnen"
    assert schema.features[-1].wording.question.in_language("de") == "Zimmer"
    admin.get_by_role("button", name="Type the questions instead").click()
    expect(admin.get_by_role("group", name="What is to be predicted")).to_be_visible()


def test_counts_are_live_and_a_collection_can_be_paused_and_closed(
    visit, service, survey, people
) -> None:
    visitor = visit(own=True)
    visitor.context.clock.install()
    admin = entered(visitor)
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 40, "admission": "anyone"}
    agreement = Agreement.propose(survey("live income"), **promise)
    service.open(agreement)
    admin.clock.fast_forward(4_000)  # after which it asks again
    entry = admin.locator(f'[data-fingerprint="{agreement.fingerprint}"]')
    expect(entry).to_contain_text(
        "0 of at least 40 submissions"
    )  # opened after the page was loaded
    expect(entry).to_contain_text(re.compile(r"opened \w+ \d+, \d{4}"))
    service.store.add(agreement, perturb_table(agreement, people(40, "live income")))
    admin.clock.fast_forward(4_000)
    expect(entry).to_contain_text("40 submissions")
    expect(entry.get_by_role("button", name="Publish…")).to_be_enabled()
    entry.get_by_role("button", name="Pause").click()
    expect(entry).to_contain_text("Paused")
    assert service.store.status(agreement.fingerprint).state == "paused"
    entry.get_by_role("button", name="Go on").click()
    expect(entry.get_by_role("button", name="Pause")).to_be_visible()
    entry.get_by_role("button", name="Close…").click()
    be_sure(admin, "Close this survey", "Close it")
    expect(entry.get_by_text("Closed", exact=True)).to_be_visible()
    entry.get_by_text("Files").click()
    expect(entry.get_by_text("blurfit export")).to_be_visible()


def test_a_plan_is_opened_held_and_ended(admin, service, survey) -> None:
    target = admin.get_by_role("group", name="What is to be predicted")
    target.get_by_label("Name").fill("planned income")
    admin.get_by_text("More choices").click()
    admin.get_by_label("People are asked in").select_option("2")
    expect(admin.locator("#promise")).to_contain_text("Group 2: 1,400 people send")
    admin.get_by_role("button", name="Open this survey").click()
    expect(admin.get_by_text("The survey is open.")).to_be_visible()
    name = admin.locator("#message a").get_attribute("href").removeprefix("/c/")
    entry = admin.locator(f'[data-fingerprint="{name}"]')
    expect(entry).to_contain_text("Group 1, asked now: 0 of 600 people.")
    entry.get_by_role("button", name="Hold").click()
    expect(entry.get_by_text("Held", exact=True)).to_be_visible()
    assert service.store.status(name).state == "held"
    entry.get_by_role("button", name="Go on").click()
    expect(entry.get_by_role("button", name="Hold")).to_be_visible()
    entry.get_by_role("button", name="End early…").click()
    be_sure(admin, "End the survey now", "End with the best model so far")
    expect(admin.get_by_role("alert")).to_contain_text("600 more")  # nobody has come


def test_invitations_as_a_table_as_codes_and_in_any_number(visit, service, survey) -> None:
    agreement = Agreement.propose(survey("many income"), epsilon=1, delta=1e-6, quorum=2000)
    service.open(agreement)
    admin = entered(visit())
    entry = admin.locator(f'[data-fingerprint="{agreement.fingerprint}"]')

    made = partial(invitations, admin, agreement.fingerprint)
    rows = list(csv.DictReader(io.StringIO(made(3, "csv"))))
    assert [row["number"] for row in rows] == ["1", "2", "3"]
    assert service.store.unused_invitations(agreement.fingerprint) == 3
    sheet = made(2, "qr")
    assert sheet.count("<svg") == 2
    start = f"{service.address}/c/{agreement.fingerprint}#invitation="
    links = decoded(admin.context.browser, sheet)
    assert [len(one.removeprefix(start)) for one in links] == [43, 43]
    assert f"It opens {service.address}." in sheet
    entry.get_by_role("button", name="Close…").click()
    sure = admin.get_by_role("dialog", name="Close this survey")
    few = "Only 0 of the 2,000 people needed have taken part: once this survey is closed, nothing"
    expect(sure).to_contain_text(f"{few} can ever be published here.")
    sure.get_by_role("button", name="Not now").click()
    assert len(made(12_000, "links").split()) == 12_000
    assert service.store.unused_invitations(agreement.fingerprint) == 12_005
    entry.get_by_role("button", name="Invite…").click()
    dialog = admin.get_by_role("dialog", name="Invite people")
    dialog.get_by_label("How many").fill("none")
    dialog.get_by_role("button", name="Make them").click()
    expect(dialog.get_by_text("Enter a whole number from 1 to 1,000,000.")).to_be_visible()


def decoded(browser: Browser, sheet: str) -> set[str]:
    """What a camera reads from a sheet of codes that is drawn at 96 dots an inch."""
    with browser.new_page(viewport={"width": 800, "height": 1100}) as page:
        page.set_content(sheet)
        boxes = [one.bounding_box() for one in page.locator("svg").all()]
        picture = Image.open(io.BytesIO(page.screenshot(full_page=True)))
    assert {(round(box["width"]), round(box["height"])) for box in boxes} == {(189, 189)}  # 5 cm
    codes = zxingcpp.read_barcodes(picture, formats=zxingcpp.BarcodeFormat.QRCode)
    return {one.text for one in codes}


@pytest.mark.parametrize("databases", [1, 2])
def test_codes_that_the_command_writes_can_be_scanned(chromium, databases) -> None:
    """Seen before: 1.5 cm in the corner of a box of 5 cm, of which none of 12 could be read."""
    page = "https://survey.university.example/c/" + "a1" * 32
    given = [",".join(tokens.new_token() for _ in range(databases)) for _ in range(12)]
    sheet = written("qr", given, page)
    assert decoded(chromium, sheet) == {f"{page}#invitation={one}" for one in given}


def test_invitations_to_a_plan_are_in_groups_by_lot(visit, service, survey) -> None:
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 2000}
    plan = Plan.propose(survey("planned by lot"), waves=2, **terms)
    service.store.open(plan)
    admin = entered(visit())
    made = invitations(admin, plan.fingerprint, 200, "csv")
    rows = list(csv.DictReader(io.StringIO(made)))
    expect(admin.get_by_text("A lot has put each into a group.")).to_be_visible()
    given = [row["link"].partition("#invitation=")[2] for row in rows]
    assert [plan.lot.group_of(tokens.hashed(one)) for one in given] == [
        int(row["group"]) for row in rows
    ]
    assert [sum(row["group"] == one for row in rows) for one in "12"] == [60, 140]
    assert given == sorted(given)
    assert service.store.unused_invitations(plan.first().fingerprint) == 200


@pytest.mark.parametrize(
    ("right", "allowed"),
    [("invite", {"Invite…"}), ("publish", {"Publish…", "End early…"}), ("read", set())],
)
def test_a_token_for_one_task_is_shown_what_it_allows(
    visit, service, survey, right, allowed
) -> None:
    """Seen before: /admin refused every token that may not open collections."""
    token, name = tokens.new_token(), f"the {right} office"
    service.store.grant(name, right, tokens.hashed(token))
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 30}
    agreement = Agreement.propose(survey(f"income of {right}"), **promise)
    service.open(agreement)
    plan = Plan.propose(survey(f"{right} in waves"), waves=2, **promise | {"quorum": 100})
    service.store.open(plan)
    page = visit().go("/admin")
    enter(page, token)
    expect(page.locator("#bearer")).to_contain_text(name)
    entries = [page.locator(f'[data-fingerprint="{one.fingerprint}"]') for one in (agreement, plan)]
    for entry in entries:
        expect(entry).to_be_visible()
    shown = {one for entry in entries for one in entry.locator("button").all_text_contents()}
    assert shown == allowed
    expect(page.locator("#opening")).to_be_hidden()
    expect(page.get_by_role("alert")).to_have_count(0)
    if right == "invite":
        assert len(invitations(page, agreement.fingerprint, 4).split()) == 4
        assert service.store.unused_invitations(agreement.fingerprint) == 4


def test_two_databases_from_the_form_to_consent(new_tab, tmp_path) -> None:
    """The first opens and hands out the file; the second opens it, and only lets the first publish.

    Invitations of both are joined into one link.
    """
    with ExitStack() as running:
        sides = []
        for name in ("first", "second"):
            store = running.enter_context(Store(tmp_path / f"{name}.db"))
            token = tokens.new_token()
            store.appoint(tokens.hashed(token))
            url = running.enter_context(in_a_thread(Service(store)))
            page = new_tab()
            page.goto(f"{url}/admin")
            enter(page, token)
            sides.append((store, url, page))
        (first, first_url, here), (second, second_url, there) = sides
        here.get_by_label("People needed").fill("30")
        here.get_by_label("Two databases, of which neither").check()
        here.get_by_label("First database").fill("Office")
        here.get_by_label("Second database").fill("University")
        here.get_by_label("The second’s address").fill("nowhere")
        expect(here.get_by_text("Enter its whole address, such as")).to_be_visible()
        here.get_by_label("The second’s address").fill(second_url)
        expect(here.locator("#promise")).to_contain_text("Promise against either of them")
        expect(here.locator("#promise")).to_contain_text("Contributors prove to both databases")
        here.get_by_label("Contributors prove").select_option("false")
        expect(here.locator("#promise")).not_to_contain_text("Contributors prove to both")
        here.get_by_role("button", name="Open this survey").click()
        expect(here.get_by_text("Now University opens the same agreement")).to_be_visible()
        with here.expect_download() as download:
            here.get_by_role("button", name="Download the agreement").click()
        agreement = Agreement.from_json(download.value.path().read_text())
        assert [one.url for one in agreement.databases] == [first_url, second_url]
        there.get_by_label("Or open an agreement from a file").set_input_files(
            download.value.path()
        )
        there.get_by_role("dialog").get_by_role("button", name="Open this survey").click()
        expect(there.get_by_text("The survey is open.")).to_be_visible()
        assert first.collection(agreement.fingerprint).role == "first"
        assert second.collection(agreement.fingerprint).role == "second"
        # invitations of the second, joined by the first
        entry, own = (
            page.locator(f'[data-fingerprint="{agreement.fingerprint}"]') for page in (there, here)
        )
        theirs = tmp_path / "theirs.txt"
        theirs.write_text(invitations(there, agreement.fingerprint, 5, "tokens"))
        links = invitations(here, agreement.fingerprint, 5, file=theirs).split()
        pairs = [link.partition("#invitation=")[2].split(",") for link in links]
        heading, *tokens_of_second = theirs.read_text().split()
        assert heading == f"blurfit-invitations:{agreement.fingerprint}:second"
        assert [pair[1] for pair in pairs] == tokens_of_second
        for name, says in (
            ("theirs.txt", "5 of these were joined before"),
            ("own.txt", "not the file"),
        ):
            (tmp_path / "own.txt").write_text(f"{heading.replace('second', 'first')}\n{'a' * 43}\n")
            own.get_by_role("button", name="Invite…").click()
            dialog = here.get_by_role("dialog", name="Invite people")
            dialog.get_by_label("How many").fill("1" if name == "own.txt" else "5")
            file = dialog.get_by_label("The other database’s invitations")
            file.set_input_files(tmp_path / name)
            dialog.get_by_role("button", name="Make them").click()
            expect(here.get_by_text(says)).to_be_visible()
        assert first.unused_invitations(agreement.fingerprint) == 5
        # the second has no button that publishes
        expect(entry.get_by_role("button", name="Let Office publish…")).to_be_disabled()
        expect(entry.get_by_role("button", name="Publish…", exact=True)).to_have_count(0)
        expect(own.get_by_role("button", name="Publish…", exact=True)).to_be_disabled()
        # who closes is told how many each of them has
        entry.get_by_role("button", name="Close…").click()
        sure = there.get_by_role("dialog", name="Close this survey")
        expect(sure).to_contain_text("Office has 0. University has 0. Nobody can")
        expect(entry).to_contain_text("Office has as many.")
        # and from then on for whom it waits
        be_sure(there, "Close this survey", "Close it")
        expect(entry.get_by_text("Office publishes for both databases")).to_be_visible()
        expect(entry.get_by_role("button", name="Let Office publish…")).to_have_count(0)
        there.goto(f"{second_url}/collections/{agreement.fingerprint}")
        expect(there.get_by_text("It waits for Office")).to_be_visible()
