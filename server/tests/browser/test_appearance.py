"""How pages look and load: every page in both languages, pictures, accessibility, size.

`make pictures` keeps a picture of each at 320 and 1280 px, light and dark, in build/screenshots.
"""

import re

import pytest
from playwright.sync_api import expect

from blurfit import (
    Agreement,
    Binary,
    Curve,
    Numeric,
    Schema,
    TimeToEvent,
    perturb_table,
)
from blurfit.agreement.plan import Plan
from server_support.looks import PICTURES, look_at, problems
from support.surveys import survey_schema

from .conftest import new_context

NARROW, WIDE = 320, 1280
ALL = [(width, scheme) for width in (NARROW, WIDE) for scheme in ("light", "dark")]
# each width in each colour, in one of the languages
LOOKS = {"en-US": ALL[1:3], "de-DE": [ALL[0], ALL[3]]}
WORDS = {
    "en-US": ("Next", "Blur my answers", "More choices", "Publish…"),
    "de-DE": ("Weiter", "Antworten verwischen", "Weitere Einstellungen", "Veröffentlichen …"),
}


@pytest.fixture(scope="module")
def collections(service, survey, people) -> dict[str, Agreement]:
    """One in each state, with people who came."""
    made = {}
    for name, count, options in (
        ("monthly income", 0, {}),
        ("yearly income", 0, {"local_epsilon": 1, "local_delta": 1e-6}),
        ("daily income", 1400, {}),
        ("hourly income", 6000, {}),
        ("weekly income", 2000, {}),
    ):
        promise = {"epsilon": 1, "delta": 1e-6, "quorum": 2000, "admission": "anyone"}
        made[name] = Agreement.propose(survey(name), **promise | options)
        service.open(made[name])
        if count:
            service.store.add(made[name], perturb_table(made[name], people(count, name)))
    service.store.publish(made["hourly income"])
    service.store.open(
        Plan.propose(survey("income in groups"), waves=2, epsilon=1, delta=1e-6, quorum=100)
    )
    return made


@pytest.mark.parametrize("locale", list(LOOKS))
def test_every_page_looks_right(visit, service, collections, locale) -> None:
    """Nothing serious for axe, nothing scrolls sideways: what anyone reads, then what is asked."""
    visitor = visit(locale=locale)
    page = visitor.page
    looks, tag = ALL if PICTURES else LOOKS[locale], locale[:2]
    following, blur, more, publish = WORDS[locale]

    def shown(path: str, last: str, name: str) -> None:
        visitor.go(path)
        expect(page.locator(last).first).to_be_visible()
        look_at(page, f"{name}-{tag}", *looks)

    daily, hourly = (collections[one].fingerprint for one in ("daily income", "hourly income"))
    shown("/", "article", "home")
    shown("/glossary#epsilon", "dt", "glossary")
    shown("/nothing", "h1", "missing")
    shown(f"/c/{'0' * 64}", "[role=alert]", "refusal")
    shown(f"/collections/{daily}", "#agreement dl", "collection")
    shown(f"/m/{hourly}", "#table li", "model")
    agreement = Agreement.propose(
        survey_schema(f"Seen {tag}", f"to be seen in {tag}"),
        **{"epsilon": 1, "delta": 1e-6, "quorum": 500, "admission": "anyone"},
    )
    service.open(agreement)
    shown(f"/c/{agreement.fingerprint}", "#answers form", "contribute-1-answers")
    page.locator("[data-field=age] input").first.fill("42")
    page.locator("[data-field=married] input").first.check()
    page.get_by_label("Jena").check()
    page.get_by_role("button", name=following).click()
    page.locator("[data-field=field] input").first.check()
    page.locator("[data-field=income] input").fill("41500")
    page.get_by_role("button", name=blur).click()
    page.locator("#preview summary").click()
    look_at(page, f"contribute-2-preview-{tag}", *looks)
    page.locator("#send").click()
    expect(page.locator(".receipt")).to_be_visible()
    look_at(page, f"contribute-3-receipt-{tag}", *looks)
    shown("/admin", "#enter-button:enabled", "administration-1-token")
    page.locator("#token").fill(service.token)
    page.locator("#enter-button").click()
    expect(page.locator("#expected p").first).to_be_visible()
    expect(page.locator("#collections article").first).to_be_visible()
    page.get_by_text(more).click()
    page.locator("[value=two]").check()
    page.locator("[name=epsilon]").fill("0")
    expect(page.locator(".problem:visible").first).to_be_visible()
    look_at(page, f"administration-2-open-{tag}", *looks)
    page.locator("article", has_text="weekly income").get_by_role("button", name=publish).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    look_at(page, f"administration-3-publish-{tag}", *looks)


@pytest.fixture(scope="module")
def states(service, survey, people) -> dict[str, str]:
    """Where there is a page that `collections` has none of, by what is special about it."""
    promise = {"epsilon": 20, "delta": 1e-6, "quorum": 100, "admission": "anyone"}
    age, married = Numeric("age", 18, 80), Binary("married")
    bent = Schema(
        [Curve("age", knots=[18, 40, 80]), married], Numeric("bent", 0, 200_000), sources=[age]
    )
    exit_ = Schema([married], TimeToEvent("months", "left", horizon=24, bands=8))
    two = [("Office", service.address), ("University", "https://university.example")]
    made = {
        "diary": Agreement.propose(survey("diary"), diaries=True, **promise),
        "event": Agreement.propose(exit_, **promise),
        "curve": Agreement.propose(bent, **promise),
        "paused": Agreement.propose(survey("paused"), **promise),
        "closed": Agreement.propose(survey("closed"), **promise),
        "invited": Agreement.propose(survey("invited"), **promise | {"admission": "invited"}),
    }
    for one in made.values():
        service.open(one)
    shared = Agreement.propose(survey("shared"), databases=two, proofs=False, **promise)
    service.store.open(shared, role="first")
    plan = Plan.propose(survey("planned"), waves=3, **promise | {"quorum": 300})
    service.store.open(plan)
    rows = people(400, "bent")
    given = {name: rows[name] for name in ("age", "married", "bent")}
    service.store.add(made["curve"], perturb_table(made["curve"], given))
    service.store.publish(made["curve"])
    service.store.pause(made["paused"].fingerprint)
    service.store.close_collection(made["closed"].fingerprint)
    found = {f"c-{name}": f"/c/{one.fingerprint}" for name, one in made.items()}
    found["c-shared"], found["c-planned"] = f"/c/{shared.fingerprint}", f"/c/{plan.fingerprint}"
    for name, one in (("shared", shared), ("planned", plan), *made.items()):
        found[f"s-{name}"] = f"/collections/{one.fingerprint}"
    return found | {"m-curve": f"/m/{made['curve'].fingerprint}"}


@pytest.mark.parametrize("locale", list(LOOKS))
def test_every_state_looks_right(chromium, service, states, locale) -> None:
    """Diaries, events, groups, two databases, curves; paused, closed, by invitation alone. None of
    it is English for Germans.
    """
    context = new_context(chromium, locale=locale)  # which may ask the other database
    context.route("https://university.example/**", lambda route: route.abort())
    page = context.new_page()
    turn = list(LOOKS).index(locale)
    for place, (name, path) in enumerate(states.items()):
        if place % 2 != turn and not PICTURES:  # each of them in one language
            continue
        page.goto(service.address + path)
        last = {"c": "#checks .towards", "s": "#agreement dl", "m": "figure.curve"}[name[0]]
        expect(page.locator(last).first).to_be_visible()
        looks = ALL if PICTURES else [LOOKS[locale][place // 2 % 2]]
        look_at(page, f"state-{name}-{locale[:2]}", *looks)
        english = re.search(r"\b(the|of|which|that|with|are)\b", page.locator("main").inner_text())
        assert (english is None) == (locale == "de-DE"), english
    context.close()


def test_what_would_look_wrong_is_found(visit) -> None:
    page = visit(viewport={"width": NARROW, "height": 800}).go("/nothing")
    page.evaluate("document.querySelector('h1').style.color = '#999'")
    assert [rule for rule, _ in problems(page)] == ["color-contrast"]


@pytest.mark.parametrize("locale", list(LOOKS))
@pytest.mark.parametrize("databases", [1, 2])
def test_the_first_question_is_seen_on_a_small_phone(visit, service, locale, databases) -> None:
    """Without scrolling, at 320 × 568: three lines on top, and “more” opens the rest."""
    schema = survey_schema(f"Small {databases}{locale}", f"small {databases} {locale}")
    two = [("Office", service.address), ("University", "https://university.example")]
    options = {"databases": two, "proofs": False} if databases == 2 else {}
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 500, "admission": "anyone"}
    agreement = Agreement.propose(schema, **promise, **options)
    service.store.open(agreement, role="first" if databases == 2 else "whole")
    size = {"width": NARROW, "height": 568}
    page = visit(locale=locale, viewport=size).go(f"/c/{agreement.fingerprint}")
    field = page.locator("[data-field=age] input").first
    expect(field).to_be_visible()
    box = field.bounding_box()
    assert box["y"] + box["height"] <= size["height"]
    expect(page.locator(".short li")).to_have_count(3)
    if databases == 1:
        trust = "a collector you trust" if locale == "en-US" else "eine Stelle, der Sie vertrauen"
        expect(page.locator(".short")).to_contain_text(trust)
    expect(page.locator("#truth dl")).to_be_hidden()
    page.locator("#truth summary").click()
    expect(page.locator("#truth dl")).to_contain_text("office@example.org")


def test_right_to_left(visit, service) -> None:
    """The survey's words as Arabic readers get them; and the whole page turned, as it would be."""
    schema = survey_schema("من اليمين", "right to left")
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 500, "admission": "anyone"}
    agreement = Agreement.propose(schema, **promise)
    service.open(agreement)
    page = visit(locale="ar-EG", viewport={"width": NARROW, "height": 800}).go(
        f"/c/{agreement.fingerprint}"
    )
    expect(page.locator("h1")).to_have_css("direction", "rtl")
    page.evaluate("document.documentElement.dir = 'rtl'")
    brand = page.locator(".brand").bounding_box()
    assert brand["x"] > NARROW / 2, "the page begins at its right"
    look_at(page, "right-to-left", (NARROW, "light"), (WIDE, "dark"))
    page.get_by_label("How old are you?").fill("42")
    page.locator("[data-field=married] input").first.check()
    page.get_by_label("Jena").check()
    page.get_by_role("button", name="Next").click()
    page.locator("[data-field=field] input").first.check()
    page.locator("[data-field=income] input").fill("41500")
    page.get_by_role("button", name="Blur my answers").click()
    low, high = (
        one.bounding_box()["x"] for one in page.locator(".ends").first.locator("span").all()
    )
    assert low < high, "an axis goes on from its left, as the curve above it does"


@pytest.mark.parametrize(
    "path",
    ["/c/{monthly income}", "/m/{hourly income}", "/collections/{daily income}", "/admin", "/"],
)
def test_first_load_is_small(visit, collections, path) -> None:
    """All that a fresh browser gets for a page, compressed and with headers: under 120 kB."""
    visitor = visit()
    session = visitor.context.new_cdp_session(visitor.page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[int] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    fingerprints = {name: one.fingerprint for name, one in collections.items()}
    page = visitor.go(path.format(**fingerprints))
    expect(page.locator("form, article, #table li, #agreement dl").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    print(f"{path}: {sum(sizes):.0f} bytes in {len(sizes)} answers")
    assert len(sizes) >= 4
    assert sum(sizes) < 120_000


def test_the_policy_holds_in_the_browser(visit, collections) -> None:
    """No inline script or style, no text that becomes HTML, nobody else to ask."""
    visitor = visit()
    response = visitor.page.goto(
        f"{visitor.service.address}/c/{collections['monthly income'].fingerprint}"
    )
    policy = response.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    expect(visitor.page.locator("#answers form")).to_be_visible()
    refused = visitor.page.evaluate(
        """async () => {
            const tries = {
              script: () => {
                const one = document.createElement("script");
                one.text = "window.broken = true";
                document.head.append(one);
                if (!window.broken) throw new Error("refused");
              },
              html: () => { document.body.innerHTML = "<b>hello</b>"; },
              elsewhere: () => fetch("https://example.org/"),
            };
            const found = [];
            for (const [name, attempt] of Object.entries(tries)) {
              try { await attempt(); } catch { found.push(name); }
            }
            return found;
        }"""
    )
    assert refused == ["script", "html", "elsewhere"]
    visitor.watch.complaints.clear()  # the three attempts
    visitor.watch.requests[:] = [url for url in visitor.watch.requests if "example.org" not in url]
