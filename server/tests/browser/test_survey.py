"""The survey on the page: its words, both languages, silence, parts, memory, and the ledger."""

import json
import math
import re
from dataclasses import asdict

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from blurfit import About, Agreement, Binary, Budget, Numeric, Schema, Wording
from blurfit.agreement.plan import Plan
from blurfit.agreement.statement import guesses_from_submission, guesses_in_words
from blurfit.budget import Expense
from blurfit.model.course import next_agreement
from blurfit.model.release import moments_of
from blurfit.schema.schema import values
from blurfit.simulation import exact_totals
from blurfit.theory.moments import ModelGuarantee
from blurfit_server.service.endpoints import all_files
from server_support.looks import problems
from support.contracts import on_grid, records, steps
from support.fair import is_standard_normal
from support.surveys import survey_schema

from .conftest import send

PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 1000, "admission": "anyone"}


@pytest.fixture
def agreement(service, request) -> Agreement:
    """A collection of the test's own."""
    title = re.sub(r"\W+", " ", request.node.name)
    made = Agreement.propose(survey_schema(title, f"to test {title}"), **PROMISE)
    service.open(made)
    return made


# ---- the page computes what Python computes


def silent_records(schema: Schema, count: int) -> list[dict]:
    generator = np.random.default_rng(2)
    found = records(schema, count)
    for record in found:
        for column in schema.features:
            if column.optional and generator.random() < 0.4:
                record[column.name] = None
    return found


def test_silence_is_encoded_as_in_python_to_the_last_bit(run) -> None:
    agreement = Agreement.propose(survey_schema(), epsilon=1, delta=1e-6, quorum=3000)
    given = silent_records(agreement.schema, 60)
    body = """
        const agreement = JSON.parse(given.agreement);
        await verify.verify(agreement, agreement.fingerprint);
        return given.records.map((record) => [
          forms.valuesOf(agreement.schema, record),
          perturb.onGrid(agreement, record),
        ]);"""
    handed = {"agreement": agreement.to_json(), "records": given}
    found = run("forms perturb verify", body, handed)
    for record, (v, whole) in zip(given, found, strict=True):
        assert v == values(agreement.schema, record).tolist()
        assert whole == (on_grid(agreement, record) / steps(agreement)).tolist()


def test_silence_in_a_later_wave_is_pythons(run) -> None:
    """The map of a second wave speaks of the columns for not saying as of any others."""
    plan = Plan.propose(survey_schema(), waves=2, epsilon=8, delta=1e-3, quorum=600)
    first = plan.first()
    people = silent_records(plan.schema, first.quorum)
    table = {name: np.array([one[name] for one in people], dtype=object) for name in people[0]}
    table["income"] = np.linspace(0, 1e5, first.quorum)
    second = next_agreement(plan, [moments_of(first, exact_totals(first, table))])
    body = """
        const agreement = JSON.parse(given.agreement);
        await verify.verify(agreement, agreement.fingerprint);
        return given.records.map((record) => perturb.onGrid(agreement, record));"""
    some = people[:30]
    found = run("verify perturb", body, {"agreement": second.to_json(), "records": some})
    for record, whole in zip(some, found, strict=True):
        assert whole == (on_grid(second, record) / steps(second)).tolist()


def test_predictions_with_silence_are_pythons(run) -> None:
    generator = np.random.default_rng(3)
    people = silent_records(survey_schema(), 1200)
    table = {name: np.array([one[name] for one in people], dtype=object) for name in people[0]}
    table["income"] = generator.uniform(0, 1e5, 1200)
    agreement = Agreement.propose(survey_schema(), epsilon=100, delta=1e-3, quorum=1000)
    model = moments_of(agreement, exact_totals(agreement, table)).fit()
    body = """
        const model = JSON.parse(given.model);
        return given.records.map((record) => [
          published.predict(model, record).number,
          published.predictionInterval(model, record, given.estimates),
        ]);"""
    some = people[:20]
    estimates = {model.target: [asdict(one) for one in model.estimates()]}
    given = {"model": model.to_json(), "records": some, "estimates": estimates}
    found = run("published", body, given)
    for record, (shown, interval) in zip(some, found, strict=True):
        assert shown == pytest.approx(float(model.predict(record)), rel=1e-9)
        assert interval == pytest.approx(model.prediction_intervals(record)[0].tolist(), rel=1e-5)


def test_the_page_refuses_words_that_python_refuses(verdicts) -> None:
    """Tampered texts under fingerprints that fit; and the honest ones are accepted."""
    honest = Agreement.propose(survey_schema(), epsilon=1, delta=1e-6, quorum=3000).to_dict()
    given = [json.loads(json.dumps(honest)) for _ in range(9)]
    age = [one["schema"]["features"][0] for one in given]
    age[1]["question"]["en"] = "How\u202eold?"
    age[2]["unit"] = ""
    age[3]["hint"] = ["x"]
    age[4]["optional"] = False
    given[5]["schema"]["title"] = {"English": "x"}
    given[6]["schema"]["features"][3]["labels"]["d"] = "none of them"
    given[7]["schema"]["targets"].append("age")
    given[8]["schema"]["features"][1]["unit"] = "years"
    assert verdicts(given) == ["accepted", *["refused"] * 8]
    for document in given[1:]:
        with pytest.raises(ValueError, match="Expected"):
            Agreement.from_dict(document)


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("epsilon", [0.1, 1, 30])
def test_the_risk_is_pythons(run, epsilon, neighbours) -> None:
    promise = {"epsilon": epsilon, "delta": 1e-6, "quorum": 3000, "neighbours": neighbours}
    made = Agreement.propose(survey_schema(), **promise)
    body = """
        const agreement = JSON.parse(given);
        const mu = agreement.calibration.local.mu;
        return [words.guessInWords(agreement), words.guessOfDatabase(mu)];"""
    model, local = run("words", body, made.to_json())
    stated = ModelGuarantee(made.epsilon, made.delta, neighbours, 1, True)
    assert model == guesses_in_words(stated, made.calibration.mu, "what is published")
    numbers = re.findall(r"\d+ times in 100", local)
    expected = guesses_from_submission(made.calibration.local)
    assert numbers == re.findall(r"\d+ times in 100", expected)


def test_the_ledger_adds_as_a_budget_does(run) -> None:
    spent = [
        {"mu": 0.2, "epsilon": 1, "delta": 1e-6},
        {"mu": 0.5, "epsilon": 2, "delta": 1e-6},
    ]
    found = run("ledger", "return ledger.total(given);", spent)
    budget = Budget(epsilon=100, delta=1e-6)
    for one in spent:
        budget.spend(Expense("a survey", mu=one["mu"]), "replace")
    assert found == pytest.approx(budget.spent().epsilon, rel=1e-6)


# ---- the words


def test_no_word_is_missing_and_none_is_left_over(run) -> None:
    """Both languages have the same names and places for values; the scripts use each of them."""
    known: set[str] = set()
    for file in ("language", "administration"):
        names = (f"(await import('/pages/{file}.{one}.js')).default" for one in ("en", "de"))
        english, german = run("page", f"return [{', '.join(names)}];")
        assert set(english) == set(german)
        for name, words in english.items():
            places = [set(re.findall(r"\{\w+\}", one)) for one in (words, german[name])]
            assert places[0] == places[1], name
        known |= set(english)
    scripts = "\n".join(
        one.plain.decode()
        for name, one in all_files().items()
        if name.endswith((".js", ".html")) and not re.search(r"\.(en|de)\.js$", name)
    )
    # t("name"), t(condition ? "name" : "other"), data-words="name": quoted; t(`name.${of}`): parts
    parts = re.findall(r"\bt\(\s*`([^`]+)`", scripts)
    made = "|".join(".+".join(map(re.escape, re.split(r"\$\{.*?\}+", one))) for one in parts)
    left = {one for one in known if f'"{one}"' not in scripts and not re.fullmatch(made, one)}
    assert left == set()
    asked = set(re.findall(r'\bt\(\s*"([\w.-]+)"', scripts))
    asked |= set(re.findall(r'data-(?:words|label)="([\w.-]+)"', scripts))
    assert asked <= known


def both(page: Page) -> set[str]:
    """All lines that a person reads."""
    return {line.strip() for line in page.locator("body").inner_text().splitlines()}


def answer(page: Page, german: bool) -> None:
    """Silent about her age, unmarried, from Jena, at a desk, 41,500.5 €: part by part."""
    say = (lambda en, de: de) if german else (lambda en, de: en)
    page.get_by_label(say("Prefer not to say", "Möchte ich nicht sagen")).first.check()
    married = page.get_by_role("group", name=say("Are you married?", "Sind Sie verheiratet?"))
    married.get_by_label(say("no", "nein"), exact=True).check()
    town = page.get_by_role("group", name=say("Where do you live?", "Wo wohnen Sie?"))
    town.get_by_role("searchbox").fill("jen")
    expect(town.get_by_label("Aachen")).to_be_hidden()
    town.get_by_label("Jena").check()
    page.get_by_role("button", name=say("Next", "Weiter")).click()
    page.get_by_label(say("At a desk", "Am Schreibtisch")).check()
    income = page.get_by_label(say("What do you earn in a year?", "Was verdienen Sie im Jahr?"))
    income.fill(say("41,500.5", "41.500,5"))


RECORD = {"age": None, "married": False, "town": "Jena", "field": "c", "income": 41_500.5}


@pytest.mark.parametrize(("locale", "width"), [("de-AT", 320), ("en-GB", 375), ("de", 1280)])
def test_a_survey_in_the_readers_language(visit, service, agreement, locale, width) -> None:
    german = locale.startswith("de")
    visitor = visit(locale=locale, viewport={"width": width, "height": 800})
    page = visitor.go(f"/c/{agreement.fingerprint}")
    title = str(agreement.schema.about.title.in_language(locale))
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == ("de" if german else "en")
    truth = page.locator("#truth")
    expect(truth).to_contain_text("Das Amt fragt." if german else "The Office asks.")
    expect(truth).to_contain_text("office@example.org")
    expect(truth).to_contain_text("von 100 Mal" if german else "times in 100")
    expect(page.get_by_text("Teil 1 von 2" if german else "Part 1 of 2")).to_be_visible()
    answer(page, german)
    reading = "Gelesen als 41500,5" if german else "Read as 41500.5"
    expect(page.get_by_text(reading)).to_be_visible()
    read = both(page)
    page.get_by_role("button", name="Antworten verwischen" if german else "Blur my answers").click()
    age = page.locator(".belief", has_text="Alter" if german else "Age")
    expect(age).to_contain_text("Möchte ich nicht sagen" if german else "Prefer not to say")
    read |= both(page)
    page.get_by_role("button", name="Verwischte Zahlen senden" if german else "Send the bl").click()
    arrived = page.get_by_text("sind angekommen" if german else "have arrived")
    expect(arrived).to_be_visible()
    read |= both(page)
    (body,) = visitor.watch.bodies
    sent = np.frombuffer(body[64:], dtype="<f8")
    (part,) = agreement.parts
    noise = (sent - agreement.exact(RECORD)) / part.deviations
    assert is_standard_normal(noise)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert problems(page) == []
    left = page.evaluate("JSON.stringify({...sessionStorage})")
    assert not re.search("Jena|41.500|41500", left)
    if german:  # not a line of the page's own is in English
        english = all_files()["language.en.js"].plain.decode()
        own = set(re.findall(r'^  (?:"[\w.]+"|\w+):\s+"([^"{}]{4,})",$', english, flags=re.M))
        assert {"Your answers", "Next", "Thank you. Your blurred numbers have arrived."} <= own
        assert read & own == set()


def test_a_language_can_be_chosen_and_answers_stay(visit, agreement) -> None:
    page = visit().go(f"/c/{agreement.fingerprint}")
    page.get_by_label("How old are you?").fill("42.5")
    page.get_by_label("Language").select_option("de")
    age = page.get_by_label("Wie alt sind Sie?")
    expect(age).to_have_value("42,5")  # as German writes it: "1.234" would be another number
    page.reload()
    expect(age).to_have_value("42,5")
    page.get_by_label("Sprache").select_option("en")
    expect(page.get_by_label("How old are you?")).to_have_value("42.5")


def test_back_and_reload_keep_answers_and_noise(visit, agreement) -> None:
    """The browser's own Back from the preview, and a reload on it: the same noise as before."""
    page = visit().go(f"/c/{agreement.fingerprint}")
    answer(page, german=False)
    page.get_by_role("button", name="Blur my answers").click()
    heading = page.get_by_role("heading", name="What will leave this device")
    expect(heading).to_be_focused()
    before = page.locator("pre").text_content()
    page.reload()
    expect(heading).to_be_visible()
    assert page.locator("pre").text_content() == before
    page.go_back()
    expect(page.get_by_text("Part 2 of 2")).to_be_visible()
    expect(page.get_by_label("What do you earn in a year?")).to_have_value("41,500.5")
    page.go_back()
    expect(page.get_by_text("Part 1 of 2")).to_be_visible()
    expect(page.get_by_label("Jena")).to_be_checked()
    page.go_forward()
    expect(page.get_by_text("Part 2 of 2")).to_be_visible()
    page.go_forward()
    expect(heading).to_be_visible()
    assert page.locator("pre").text_content() == before
    page.get_by_role("button", name="Change my answers").click()
    page.get_by_role("button", name="Clear my answers").click()
    expect(page.get_by_label("How old are you?")).to_have_value("")
    expect(page.get_by_label("Jena")).not_to_be_checked()


def test_what_is_missing_is_shown_on_its_own_part(visit, agreement) -> None:
    page = visit().go(f"/c/{agreement.fingerprint}")
    page.get_by_role("button", name="Next").click()
    expect(
        page.get_by_text("Please enter a number for “How old are you?”, 18 to 90 years.")
    ).to_be_visible()
    expect(page.get_by_label("How old are you?")).to_be_focused()
    page.get_by_label("How old are you?").fill("17")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("button", name="Count it as 18 years")).to_be_visible()


def test_keyboard_alone(visit, service, agreement) -> None:
    page = visit().go(f"/c/{agreement.fingerprint}")
    expect(page.get_by_label("How old are you?")).to_be_visible()
    page.get_by_label("How old are you?").focus()
    press = page.keyboard.press
    page.keyboard.type("30")
    for _ in range(2):
        press("Tab")  # past “Prefer not to say”, to the first choice
    press("Space")
    press("Tab")
    page.keyboard.type("kiel")
    press("Tab")
    if page.evaluate("document.activeElement.type") != "radio":  # the scroller takes focus too
        press("Tab")
    press("Space")
    expect(page.get_by_label("Kiel")).to_be_checked()
    press("Enter")
    expect(page.get_by_role("heading", name="Work", exact=True)).to_be_focused()
    press("Tab")
    press("Space")
    press("Tab")
    page.keyboard.type("50000")
    press("Enter")
    expect(page.get_by_role("heading", name="What will leave this device")).to_be_focused()
    page.get_by_role("button", name="Send the blurred numbers").focus()
    press("Enter")
    expect(page.get_by_text("have arrived")).to_be_visible()
    assert service.count(agreement) == 1


def test_a_second_contribution_to_one_purpose_is_warned_about(visit, service, agreement) -> None:
    other = Agreement.propose(agreement.schema, **{**PROMISE, "epsilon": 2})
    service.open(other)
    visitor = visit()
    page = visitor.go(f"/c/{agreement.fingerprint}")
    expect(page.locator("#sent")).to_be_hidden()
    answer(page, german=False)
    page.get_by_role("button", name="Blur my answers").click()
    send(page)
    page = visitor.go(f"/c/{other.fingerprint}")
    note = page.locator("#again")
    expect(note).to_contain_text("You have taken part for this purpose before.")
    stated = float(re.search(r"ε = ([\d.]+)", note.inner_text())[1])
    budget = Budget(epsilon=100, delta=1e-6)
    for one in (agreement, other):
        budget.spend(Expense("one", mu=one.calibration.mu), "replace")
    exact = budget.spent().epsilon
    assert exact <= stated <= 1.01 * exact
    page.get_by_text("What this browser has sent").click()
    expect(page.locator("#ledger li")).to_have_count(1)
    expect(page.locator("#ledger")).to_contain_text("The Office")
    page.get_by_role("button", name="Erase the list").click()
    expect(page.locator("#sent")).to_be_hidden()
    page.reload()
    expect(page.get_by_label("How old are you?")).to_be_visible()
    expect(page.locator("#again")).to_have_count(0)
    assert math.isfinite(stated)


def test_nothing_in_a_text_becomes_html(visit, service) -> None:
    harmful = "<b onclick=x>**bold** [a](javascript:x) &lt;"
    made = Agreement.propose(
        Schema(
            [Binary("a", wording=Wording(question=harmful, hint=harmful, labels={"yes": harmful}))],
            Numeric("b", 0, 1, wording=Wording(title=harmful, unit=harmful)),
            about=About(title=harmful, purpose=harmful, organiser=harmful),
        ),
        **PROMISE,
    )
    service.open(made)
    page = visit().go(f"/c/{made.fingerprint}")
    expect(page.get_by_role("heading", name=harmful)).to_be_visible()
    expect(page.get_by_label(harmful).first).to_be_visible()
    assert page.locator("main b").count() == 0
