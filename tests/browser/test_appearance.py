"""How pages look and load: pictures for people, accessibility, size, policy, keyboard."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from blurfit import Agreement, perturb_table
from support.looks import look_at, problems

SMALL = {"width": 320, "height": 800}
READY = {  # what each page shows last
    "/c/": "#answers form",
    "/m/": "#statement table",
    "/collections/": "#agreement dl",
    "/admin": "#enter-button:enabled",
    "/": "article",
}


def settle(page: Page) -> None:
    """Until the page is complete."""
    path = urlsplit(page.url).path
    last = next(last for start, last in READY.items() if path.startswith(start))
    expect(page.locator(last).first).to_be_visible()


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
    return made


def test_contribute(visit, collections, fill_in) -> None:
    for name, label in (("monthly income", "contribute"), ("yearly income", "contribute-local")):
        page = visit(viewport=SMALL).go(f"/c/{collections[name].fingerprint}")
        fill_in(page, name)
        if label == "contribute":
            look_at(page, f"{label}-1-answers")
        page.get_by_role("button", name="Blur my answers").click()
        page.get_by_text("The numbers themselves").click()
        look_at(page, f"{label}-2-preview")
        page.get_by_role("button", name="Send the blurred numbers").click()
        expect(page.get_by_text("have arrived")).to_be_visible()
        if label == "contribute":
            look_at(page, f"{label}-3-receipt")


def test_the_pages_of_a_collection_and_a_model(visit, collections) -> None:
    visitor = visit(viewport=SMALL)
    page = visitor.go(f"/collections/{collections['daily income'].fingerprint}")
    expect(page.locator("#agreement dl")).to_be_visible()
    look_at(page, "collection")
    page = visitor.go(f"/m/{collections['hourly income'].fingerprint}")
    expect(page.locator("#statement table")).to_be_visible()
    look_at(page, "model")
    page = visitor.go("/")
    expect(page.get_by_role("article").first).to_be_visible()
    look_at(page, "home")


def test_administration(visit, service, collections) -> None:
    page = visit(viewport=SMALL).go("/admin")
    expect(page.locator("#enter-button")).to_be_enabled()
    look_at(page, "administration-1-token")
    page.get_by_label("Administrator’s token").fill(service.token)
    page.get_by_role("button", name="Enter").click()
    expect(page.locator("#promise dl")).to_be_visible()
    expect(page.locator("#collections article").first).to_be_visible()
    page.get_by_text("More choices").click()
    look_at(page, "administration-2-open")
    weekly = page.locator("article", has_text="weekly income")
    weekly.get_by_role("button", name="Publish…").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    look_at(page, "administration-4-publish")


def test_refusals_are_readable(visit) -> None:
    visitor = visit(viewport=SMALL)
    page = visitor.go(f"/c/{'0' * 64}")
    expect(page.get_by_role("alert")).to_be_visible()
    look_at(page, "refusal")
    page = visitor.go("/nothing")
    expect(page.get_by_role("heading", name="There is nothing at this address")).to_be_visible()
    look_at(page, "missing")
    page.evaluate("document.querySelector('h1').style.color = '#999'")
    assert [rule for rule, _ in problems(page)] == ["color-contrast"], "which would be found"


@pytest.mark.parametrize(
    "path",
    ["/c/{monthly income}", "/m/{hourly income}", "/collections/{daily income}", "/admin", "/"],
)
def test_first_load_is_small(visit, collections, path) -> None:
    """All that a fresh browser gets for a page, compressed and with headers: under 100 kB."""
    visitor = visit()
    session = visitor.context.new_cdp_session(visitor.page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[int] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    fingerprints = {name: one.fingerprint for name, one in collections.items()}
    page = visitor.go(path.format(**fingerprints))
    settle(page)
    page.wait_for_load_state("networkidle")
    print(f"{path}: {sum(sizes):.0f} bytes in {len(sizes)} answers")
    assert len(sizes) >= 4
    assert sum(sizes) < 100_000


def test_the_policy_holds_in_the_browser(visit, collections) -> None:
    """No inline script or style, no text that becomes HTML, nobody else to ask."""
    visitor = visit()
    response = visitor.page.goto(
        f"{visitor.service.address}/c/{collections['monthly income'].fingerprint}"
    )
    policy = response.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    settle(visitor.page)
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


def test_contribute_by_keyboard_alone(visit, service, collections) -> None:
    agreement = collections["yearly income"]
    before = service.count(agreement)
    page = visit().go(f"/c/{agreement.fingerprint}")
    page.get_by_label("age", exact=True).wait_for()
    page.get_by_label("age", exact=True).focus()
    for keys in (
        "42",
        "Tab",
        "Space",  # yes
        "Tab",
        "Space",
        "ArrowRight",
        "Tab",
        "50000",
        "Tab",
        "Enter",
    ):
        if keys.isdigit():
            page.keyboard.type(keys)
        else:
            page.keyboard.press(keys)
    expect(page.get_by_role("heading", name="What will leave this device")).to_be_focused()
    for keys in ("Tab", "Tab", "Enter"):  # past the numbers, to the button
        page.keyboard.press(keys)
    expect(page.get_by_role("heading", name="Thank you")).to_be_focused()
    assert service.count(agreement) == before + 1
