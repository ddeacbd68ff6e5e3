"""The contributor's page in Firefox: one visit in German, one in English, by keys alone.

Where there is no Firefox these tests are skipped, loudly, and with CI=true they fail, as for
Chromium.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from blurfit import Agreement
from blurfit.contributor.blur import PROOF_BYTES, blur, proved_with
from server_support.firefox import Tab, firefox
from server_support.looks import AXE, PICTURES, SCREENSHOTS, SERIOUS
from support.fair import is_standard_normal
from support.surveys import survey_schema

PROMISE = {"delta": 1e-6, "quorum": 500, "admission": "anyone"}


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with firefox(tmp_path_factory.mktemp("firefox"), "de-DE,de,en") as found:
        yield found
        assert found.complaints == []


@pytest.fixture(scope="module")
def agreements(service) -> list[Agreement]:
    made = [
        Agreement.propose(survey_schema(f"Firefox {n}", f"Firefox {n}"), **PROMISE, epsilon=n)
        for n in (1, 2)
    ]
    for one in made:
        service.open(one)
    return made


def look_at(tab: Tab, name: str) -> None:
    """At three widths: nothing scrolls sideways, axe finds nothing serious; pictures, if wanted."""
    for width in (320, 375, 1280):
        tab.resize(width)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        if PICTURES:
            tab.picture(SCREENSHOTS / f"firefox-{name}-{width}.png")
    if not tab.evaluate("'axe' in window"):  # it stays until the page is left
        tab.evaluate(f"(() => {{ {AXE}; return true; }})()")
    assert tab.evaluate(SERIOUS) == []


def test_by_keys_in_german(tab: Tab, service, agreements) -> None:
    agreement = agreements[0]
    tab.go(f"{service.address}/c/{agreement.fingerprint}")
    tab.wait_for("Wie alt sind Sie?")
    assert tab.evaluate("document.documentElement.lang") == "de"
    look_at(tab, "1-answers-de")
    tab.focus("[data-field=age] input")
    tab.press("42,5", "Tab", "Tab", "Space", "Tab", "jen", "Tab")
    if tab.evaluate("document.activeElement.type") != "radio":  # the scroller takes focus too
        tab.press("Tab")
    tab.press("Space")
    assert tab.evaluate("document.querySelector('[data-field=town] :checked').value") == '"Jena"'
    tab.press("Enter")
    tab.wait_for("Teil 2 von 2")
    tab.reload()  # everything is still there
    tab.wait_for("Teil 2 von 2")
    assert tab.evaluate("document.querySelector('[data-field=age] input').value") == "42,5"
    tab.focus("[data-field=field] input")
    tab.press("Space", "Tab", "50.000,5", "Enter")
    tab.wait_for("Was dieses Gerät verlassen wird")
    before = tab.evaluate("document.querySelector('pre').textContent")
    look_at(tab, "2-preview-de")
    tab.back()
    tab.wait_for("Teil 2 von 2")
    tab.focus("[data-field=income] input")
    tab.press("Enter")
    tab.wait_for("Was dieses Gerät verlassen wird")
    assert tab.evaluate("document.querySelector('pre').textContent") == before
    tab.focus("#send")
    tab.press("Enter")
    tab.wait_for("sind angekommen")
    look_at(tab, "3-receipt-de")
    assert service.count(agreement) == 1
    record = {"age": 42.5, "married": True, "town": "Jena", "field": "a", "income": 50_000.5}
    sent = [float(one) for one in before.split()]
    (part,) = agreement.parts
    noise = (np.array(sent) - agreement.exact(record)) / part.deviations
    assert is_standard_normal(noise)


def test_by_mouse_in_english(tab: Tab, service, agreements) -> None:
    agreement = agreements[1]
    tab.go(f"{service.address}/c/{agreement.fingerprint}")
    tab.wait_for("Wie alt sind Sie?")
    tab.evaluate(
        "(() => { const list = document.querySelector('#language'); list.value = 'en';"
        " list.dispatchEvent(new Event('change')); })()"
    )
    tab.wait_for("How old are you?")
    tab.click("Next")
    tab.wait_for("Please enter a number for “How old are you?”")
    look_at(tab, "4-wrong-en")
    tab.click("Prefer not to say")
    tab.click("no")
    tab.click("Rheine")
    tab.click("Next")
    tab.click("At a desk")
    tab.focus("[data-field=income] input")
    tab.press("41,500.5")
    tab.click("Blur my answers")
    tab.wait_for("What will leave this device")
    look_at(tab, "5-preview-en")
    tab.click("Send the blurred numbers")
    tab.wait_for("have arrived")
    assert service.count(agreement) == 1


def test_a_proof_has_the_bytes_of_python_here_too(tab: Tab, service) -> None:
    two = [("First", "https://first.example"), ("Second", "https://second.example")]
    agreement = Agreement.propose(
        survey_schema("Proof", "Proof"), **PROMISE, epsilon=1, databases=two
    )
    record = {"age": 42.5, "married": True, "town": "Jena", "field": "a", "income": 50_000.5}
    table = blur(agreement, agreement.exact(record))
    random = np.random.default_rng(1).bytes(PROOF_BYTES)
    right = proved_with(agreement, table, [random])
    named, numbers = listed(table.identifiers[0]), listed(table.numbers[0])
    sent = f"{{ identifier: Uint8Array.of({named}), numbers: [{numbers}] }}"
    tab.go(f"{service.address}/")
    found = tab.evaluate(
        f"""import("/pages/submission.js").then(async ({{ proved }}) => {{
          const agreement = {agreement.to_json()};
          const random = Uint8Array.of({listed(np.frombuffer(random, np.uint8))});
          const both = await proved(agreement, agreement.fingerprint, {sent}, random);
          return both.map((one) => one.join(" "));
        }})"""
    )
    assert [bytes(map(int, one.split())) for one in found] == [
        right.first.to_bytes(),
        right.second.to_bytes(),
    ]


def listed(numbers: np.ndarray) -> str:
    return ", ".join(map(repr, numbers.tolist()))
