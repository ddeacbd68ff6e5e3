"""What is asked and told: skip logic, scales, a preview that agrees with its numbers, refusals."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from blurfit import About, Agreement, Binary, Categorical, Numeric, Schema, Wording, perturb_table
from blurfit.errors import BlurfitError
from support.contracts import on_grid, steps

PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 300, "admission": "anyone"}
OTHER = "https://university.example"


def asked(title: str) -> Schema:
    """Children are asked about of parents alone, and school of those with several."""
    features = [
        Binary("parent"),
        Numeric("children", 1, 9, optional=True, wording=Wording(only_if="parent = yes")),
        Binary("school", optional=True, wording=Wording(only_if="children >= 2")),
        Numeric("age", 18, 99, outside="refuse"),
    ]
    return Schema(features, Numeric("content", 0, 10), about=About(title=title))


def answered(page: Page, *, parent: bool) -> None:
    page.get_by_role("group", name="parent").get_by_label("yes" if parent else "no").check()
    page.get_by_label("age", exact=True).fill("40")
    page.get_by_role("group", name="content").get_by_label("10", exact=True).check()


def test_what_is_asked_of_some_is_hidden_from_the_others(visit, service, run) -> None:
    """Who is not asked does not say; and a scale is a row of buttons."""
    agreement = Agreement.propose(asked("Families"), **PROMISE)
    service.open(agreement)
    page = visit().go(f"/c/{agreement.fingerprint}")
    children = page.get_by_role("group", name="children")
    school = page.get_by_role("group", name="school")
    expect(page.get_by_role("group", name="content").get_by_role("radio")).to_have_count(11)
    expect(children).to_be_hidden()
    answered(page, parent=True)
    children.get_by_label("1", exact=True).check()
    expect(school).to_be_hidden()
    children.get_by_label("3", exact=True).check()
    school.get_by_label("yes").check()
    page.get_by_role("group", name="parent").get_by_label("no").check()
    for one in (children, school):
        expect(one).to_be_hidden()
    page.get_by_role("button", name="Blur my answers").click()
    expect(page.locator(".belief", has_text="children")).to_contain_text("Prefer not to say")
    record = {"parent": False, "children": None, "school": None, "age": 40.0, "content": 10.0}
    body = """
        const agreement = JSON.parse(given.agreement);
        await verify.verify(agreement, agreement.fingerprint);
        return perturb.onGrid(agreement, given.record);"""
    found = run("verify perturb", body, {"agreement": agreement.to_json(), "record": record})
    assert found == (on_grid(agreement, record) / steps(agreement)).tolist()


def test_rules_that_python_refuses_the_page_refuses(verdicts) -> None:
    honest = Agreement.propose(asked("Rules"), **PROMISE).to_dict()
    rules = ["nobody = yes", "parent < yes", "parent = maybe", "school = yes", "children", 3, ""]
    given = []
    for rule in rules:
        document = Agreement.propose(asked("Rules"), **PROMISE).to_dict()
        document["schema"]["features"][1]["only_if"] = rule
        given.append(document)
        with pytest.raises(BlurfitError):
            Agreement.from_dict(document)
    assert verdicts([honest, *given]) == ["accepted", *["refused"] * len(rules)]


def test_who_is_not_meant_is_told_so(visit, service) -> None:
    """Outside of bounds that refuse, nobody is led to a false answer."""
    agreement = Agreement.propose(asked("Grown-ups"), **PROMISE)
    service.open(agreement)
    page = visit().go(f"/c/{agreement.fingerprint}")
    answered(page, parent=False)
    page.get_by_label("age", exact=True).fill("17")
    page.get_by_role("button", name="Blur my answers").click()
    expect(page.get_by_text("This survey is for 18 to 99. If your answer is right")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Count it"))).to_have_count(0)


@pytest.mark.parametrize("databases", [1, 2])
@pytest.mark.parametrize("quorum", [20, 3000])
def test_the_preview_says_what_its_numbers_say(visit, service, survey, quorum, databases) -> None:
    """What can be read back is named, and nothing else is; two databases are told apart."""
    two = [("Office", service.address), ("University", OTHER)]
    options = {"databases": two, "proofs": False} if databases == 2 else {}
    name = f"previewed {quorum} {databases}"
    agreement = Agreement.propose(survey(name), **PROMISE | {"quorum": quorum}, **options)
    service.store.open(agreement, role="first" if databases == 2 else "whole")
    page = visit().go(f"/c/{agreement.fingerprint}")
    page.get_by_label("age", exact=True).fill("42")
    page.get_by_role("group", name="married").get_by_label("yes").check()
    page.get_by_label("south").check()
    page.get_by_label(name, exact=True).fill("61234")
    page.get_by_role("button", name="Blur my answers").click()
    told = page.locator("#preview .note").inner_text()
    read = []
    for one in page.locator(".belief").all():
        words = one.inner_text()
        shares = [float(share) for share in re.findall(r"(\d+)\s%", words)]
        is_read = "> 99" in words or max(shares, default=0) >= 90
        if found := re.search(r"most likely ([\d,]+) to ([\d,]+)", words):
            low, high = (float(end.replace(",", "")) for end in found.groups())
            column = next(c for c in agreement.schema.asked if words.startswith(c.name))
            is_read = high - low <= 0.1 * (column.upper - column.lower)
        read += [words.split("\n")[0]] if is_read else []
    if databases == 2:
        assert told.startswith("Your blurred numbers are split between Office and University.")
        assert ("could not be sure of any answer" in told) == (not read)
        return
    named = re.search(r"could work out: (.*?)\. Send your numbers", told)
    assert re.findall("“(.*?)”", named[1] if named else "") == read
    assert "a collector you trust" in told


def test_a_final_refusal_is_not_offered_again(visit, service, survey) -> None:
    agreement = Agreement.propose(survey("closing"), **PROMISE)
    service.open(agreement)
    page = visit().go(f"/c/{agreement.fingerprint}")
    page.get_by_label("age", exact=True).fill("42")
    page.get_by_role("group", name="married").get_by_label("yes").check()
    page.get_by_label("south").check()
    page.get_by_label("closing", exact=True).fill("61234")
    page.get_by_role("button", name="Blur my answers").click()
    service.store.close_collection(agreement.fingerprint)
    page.get_by_role("button", name="Send the blurred numbers").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The survey has closed")
    expect(alert).to_contain_text("nothing of this was stored")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_two_surveys_of_one_title_can_be_told_apart(visit, service) -> None:
    for quorum in (300, 301):
        service.open(Agreement.propose(asked("One title"), **PROMISE | {"quorum": quorum}))
    page = visit().go("/")
    cards = page.get_by_role("article").filter(has_text="One title")
    expect(cards).to_have_count(2)
    told = {re.search(r"opened .* · ([0-9a-f]{8})", one.inner_text())[1] for one in cards.all()}
    assert len(told) == 2


def test_averages_and_tables_are_pythons(visit, service, survey, people) -> None:
    """The service computes them from the release, and the page draws them."""
    schema = replace(survey("tabled"), about=About(title="Tables"))
    agreement = Agreement.propose(schema, **PROMISE | {"epsilon": 4})
    service.open(agreement)
    service.store.add(agreement, perturb_table(agreement, people(5000, "tabled")))
    service.store.publish(agreement)
    moments = service.store.moments(agreement.fingerprint)
    visitor = visit()
    page = visitor.go(f"/m/{agreement.fingerprint}")
    rows = page.locator("#table li")
    expect(rows).to_have_count(1)
    page.get_by_label("By", exact=True).select_option("region")
    expect(rows).to_have_count(3)
    expected = moments.mean("tabled", by="region").to_dict()
    for place, level in enumerate(("north", "south", "east")):
        expect(rows.nth(place)).to_contain_text(level)
        shown = float(rows.nth(place).locator(".much b").inner_text().replace(",", ""))
        assert shown == pytest.approx(expected["estimate"][place], rel=0.005)
    page.get_by_label("Question", exact=True).select_option("region")
    page.get_by_label("By", exact=True).select_option("married")
    expect(rows).to_have_count(6)
    page.get_by_label("Question", exact=True).select_option("")
    expect(page.locator("#table")).to_contain_text("age, average")


def test_a_choice_of_several_classes_is_predicted(visit, service) -> None:
    """Its averages are shares of levels."""
    schema = Schema([Binary("member")], Categorical("party", ["red", "green", "none"]))
    agreement = Agreement.propose(schema, **PROMISE)
    service.open(agreement)
    table = {"member": [True, False] * 300, "party": ["red", "green", "none"] * 200}
    service.store.add(agreement, perturb_table(agreement, table))
    service.store.publish(agreement)
    page = visit().go(f"/m/{agreement.fingerprint}")
    expect(page.locator("#table li")).to_have_count(3)
    expect(page.locator("#table li").first).to_contain_text(re.compile(r"red.*%", re.S))


def test_the_top_says_no_more_than_the_numbers(run, survey) -> None:
    """Most answers could be read where few send few numbers, and not where many columns share."""
    body = """
        return Promise.all(given.map(async (agreement) => {
          const mu = await verify.verify(agreement, agreement.fingerprint);
          return [words.strengthOf(mu), preview.mostCouldBeRead(agreement)];
        }));"""
    many = Schema([Numeric(f"x{i}", 0, 1) for i in range(30)], Numeric("y", 0, 1))
    cases = [(survey(), 20_000), (many, 200)]
    made = [Agreement.propose(one, **PROMISE | {"quorum": n}).to_document() for one, n in cases]
    assert run("verify words preview", body, made) == [["weak", True], ["weak", False]]
