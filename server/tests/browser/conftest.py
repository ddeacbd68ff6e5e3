"""A real service on a free port, and the system's own Chromium.

Where there is no Chromium these tests are left out, and with CI=true they fail: `make test`
installs it from the system's packages where it can.

BLURFIT_SLOWDOWN=20 makes every page's processor so many times slower: what passes then waits for
what it looks at, and not for luck.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Route,
    expect,
    sync_playwright,
)

from blurfit import Agreement, Binary, Categorical, Numeric, Schema
from blurfit import protocol as tokens
from blurfit_server import Store
from blurfit_server.service.app import Service, in_a_thread
from blurfit_server.service.endpoints import all_files
from support.programs import program

PATIENCE = 120_000  # milliseconds: the machine may be busy, and it is waited for if all else fails
# the first has no window to draw, and takes half the time of the others
EXECUTABLES = ("chromium-headless-shell", "chromium", "chromium-browser")
SLOWDOWN = float(os.environ.get("BLURFIT_SLOWDOWN", "1"))
expect.set_options(timeout=PATIENCE)


@dataclass(frozen=True)
class Running:
    """A service that answers at `address`."""

    address: str
    store: Store
    token: str

    def open(self, agreement: Agreement) -> str:
        self.store.open(agreement)
        return agreement.fingerprint

    def count(self, agreement: Agreement) -> int:
        return self.store.status(agreement.fingerprint).count


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    token = tokens.new_token()
    with Store(folder / "collection.db") as store:
        store.appoint(tokens.hashed(token))
        with in_a_thread(Service(store)) as url:
            yield Running(url, store, token)


@pytest.fixture(scope="module")  # for few collections: /admin asks for the agreement of each
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service")) as found:
        yield found


@dataclass(frozen=True)
class Chromium:
    """One browser for all tests of this process.

    Playwright leaves its event loop marked as running between two of its calls. Other tests run
    loops of their own, so it is marked only where a browser is at work.
    """

    browser: Browser
    loop: asyncio.AbstractEventLoop

    @contextmanager
    def at_work(self) -> Iterator[Browser]:
        asyncio._set_running_loop(self.loop)
        try:
            yield self.browser
        finally:
            asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def launched() -> Iterator[Chromium]:
    path = program(*EXECUTABLES)
    # one process for what a browser shows first, which is nothing, and for the page after it
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--renderer-process-limit=1"]
    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(executable_path=path, args=arguments)
    found = Chromium(browser, asyncio.get_running_loop())
    asyncio._set_running_loop(None)
    yield found
    with found.at_work():
        browser.close()
        playwright.stop()


@pytest.fixture
def chromium(launched: Chromium) -> Iterator[Browser]:
    with launched.at_work() as browser:
        yield browser


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """Somebody's browser, as slow as is wanted; she reads English, whatever this machine speaks."""
    context = browser.new_context(**{"locale": "en-US"} | options)
    context.set_default_timeout(PATIENCE)
    if SLOWDOWN != 1:
        context.on("page", _slow_down)
    return context


def _slow_down(page: Page) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})


class Watch:
    """What a browser asked for, and what it complained about, since somebody took it."""

    def __init__(self, context: BrowserContext) -> None:
        self.begin("")
        context.on("request", self._note)
        context.on("console", lambda message: self._complain(message.type, message.text))
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))

    def begin(self, address: str) -> None:
        """Nothing so far, and nothing elsewhere than at that address from now on."""
        self.requests: list[str] = []
        self.bodies: list[bytes] = []
        self.complaints: list[str] = []
        self.origins: set[str] = set()  # of the pages that were shown
        self._address = address

    def _note(self, request: object) -> None:
        self.requests.append(request.url)  # type: ignore[attr-defined]
        if request.is_navigation_request():  # type: ignore[attr-defined]
            self.origins.add("/".join(request.url.split("/")[:3]))  # type: ignore[attr-defined]
        if request.method == "POST":  # type: ignore[attr-defined]
            self.bodies.append(request.post_data_buffer or b"")  # type: ignore[attr-defined]

    def _complain(self, kind: str, text: str) -> None:
        # a refusal by the service, and a lost connection, are what some tests are about
        if kind == "error" and "Failed to load resource" not in text:
            self.complaints.append(text)

    @property
    def elsewhere(self) -> list[str]:
        mine = (self._address + "/", f"blob:{self._address}/")
        return [url for url in self.requests if not url.startswith(mine)]


@dataclass(frozen=True)
class Visitor:
    """A person with a browser of her own, and what that browser did."""

    page: Page
    watch: Watch
    context: BrowserContext
    service: Running

    def go(self, path: str) -> Page:
        self.page.goto(self.service.address + path)
        return self.page


@dataclass(frozen=True)
class Device:
    """A browser that one visitor after another uses, each as if nobody had been there before.

    It takes as long to start a process that shows pages as to show one. The process lives as long
    as there is a tab, so the next visitor's is opened before the last one's is closed.
    """

    context: BrowserContext
    watch: Watch

    @classmethod
    def new(cls, browser: Browser, **options: Any) -> Self:
        context = new_context(browser, **options)
        return cls(context, Watch(context))

    def tab(self) -> Page:
        (page,) = self.context.pages or [self.context.new_page()]
        return page

    def is_wiped(self) -> bool:
        """Leave nothing behind. False where more than the storage of the visitor's tab would have
        to be wiped, or where that shows what has none.
        """
        tab, *others = self.context.pages
        for other in others:
            other.close()
        if not tab.url.startswith("http") or len(self.watch.origins) > 1:
            return False
        self.context.new_page()
        try:
            tab.evaluate(WIPE)
        except Error:  # it has just gone elsewhere
            return False
        tab.close()
        self.context.unroute_all()
        self.context.set_offline(False)
        return True


WIPE = "Storage.prototype.setItem = () => {}; localStorage.clear()"  # and nothing is written again
Visit = Callable[..., Visitor]


@pytest.fixture(scope="session")
def devices() -> list[Device]:
    """Those that nobody uses at the moment."""
    return []


@pytest.fixture
def new_tab(chromium: Browser, devices: list[Device]) -> Iterator[Callable[[], Page]]:
    """Tabs of browsers that know nothing of each other, for tests of more services than one."""
    used: list[Device] = []

    def opened() -> Page:
        used.append(devices.pop() if devices else Device.new(chromium))
        used[-1].watch.begin("")
        return used[-1].tab()

    yield opened
    for device in used:
        give_back(device, devices)


def give_back(device: Device, devices: list[Device]) -> None:
    if device.is_wiped():
        devices.append(device)
    else:
        device.context.close()


@pytest.fixture
def visit(chromium: Browser, service: Running, devices: list[Device]) -> Iterator[Visit]:
    """Opens browsers; afterwards none has asked anyone else, or broken its policy.

    Whoever changes more of hers than tabs, routes and being offline (its clock, say, or what runs
    before each page) takes one of her `own`, as whoever wants it to have options.
    """
    shared: list[Device] = []
    owned: list[Device] = []

    def enter(*, own: bool = False, viewport: Any = None, **options: Any) -> Visitor:
        is_shared = not (own or options)
        device = devices.pop() if is_shared and devices else Device.new(chromium, **options)
        (shared if is_shared else owned).append(device)
        device.watch.begin(service.address)
        page = device.tab()
        if viewport is not None:
            page.set_viewport_size(viewport)
        return Visitor(page, device.watch, device.context, service)

    yield enter
    for device in shared:
        give_back(device, devices)
    for device in owned:
        device.context.close()
    for device in (*shared, *owned):
        assert device.watch.elsewhere == []
        assert device.watch.complaints == []


@pytest.fixture(scope="session")
def survey() -> Callable[..., Schema]:
    """Three kinds of columns; the target's name makes another agreement of it."""

    def make(name: str = "income", *, above: float | None = None) -> Schema:
        target = Numeric(name, 0, 200_000)
        features = [
            Numeric("age", 18, 80),
            Binary("married"),
            Categorical("region", ["north", "south", "east"]),
        ]
        return Schema(features, target if above is None else target.above(above))

    return make


@pytest.fixture(scope="session")
def people() -> Callable[..., dict[str, np.ndarray]]:
    """So many records of that survey."""

    def make(count: int, name: str = "income") -> dict[str, np.ndarray]:
        generator = np.random.default_rng(0)
        found = {
            "age": generator.uniform(18, 80, count),
            "married": generator.integers(0, 2, count),
            "region": generator.choice(["north", "south", "east"], count),
        }
        return found | {name: 20_000 + 900 * found["age"] + 10_000 * found["married"]}

    return make


@pytest.fixture(scope="session")
def fill_in() -> Callable[[Page, str], None]:
    """Answer the survey: 42.625, married, south, 61234.5."""

    def answer(page: Page, name: str) -> None:
        page.get_by_label("age", exact=True).fill("42.625")
        page.get_by_role("group", name="married").get_by_label("yes").check()
        page.get_by_label("south").check()
        page.get_by_label(name, exact=True).fill("61234.5")

    return answer


def hand_out(route: Route) -> None:
    """The files of the pages, with no service behind them."""
    name = route.request.url.rpartition("/")[2]
    if not name:
        route.fulfill(body="<!doctype html><title>nothing</title>", content_type="text/html")
        return
    found = all_files()[name]
    route.fulfill(body=found.plain, content_type=found.media_type)


@pytest.fixture(scope="session")
def page_at(launched: Chromium) -> Callable[..., AbstractContextManager[Page]]:
    """A page that several tests share, for what is only computed; each of them uses `chromium`."""

    @contextmanager
    def opened(url: str, answer: Callable[[Route], None] | None = None) -> Iterator[Page]:
        with launched.at_work() as browser:
            context = new_context(browser)
            if answer is not None:
                context.route("**/*", answer)
            page = context.new_page()
            page.goto(url)
        yield page
        with launched.at_work():
            context.close()

    return opened


@pytest.fixture(scope="session")
def empty_page(page_at: Callable[..., AbstractContextManager[Page]]) -> Iterator[Page]:
    """So that each module is read once."""
    with page_at("http://localhost/", hand_out) as page:  # which is taken for protected
        yield page


@pytest.fixture
def run(chromium: Browser, empty_page: Page) -> Callable[..., Any]:
    """Evaluate JavaScript in an empty page, with the named modules at hand.

    Values go there and come back as JSON, for Playwright's own way with them is slow where they are
    many. What JSON has no number for comes back as None, which equals none.
    """

    def evaluate(modules: str, body: str, argument: object = None) -> Any:
        names = modules.split()
        imports = ", ".join(f"import('/pages/{name}.js')" for name in names)
        ready = f"const [{', '.join(names)}] = await Promise.all([{imports}]);"
        script = f"async (given) => {{ {ready} {body} }}"
        wrapped = f"async (text) => JSON.stringify(await ({script})(JSON.parse(text)))"
        return json.loads(empty_page.evaluate(wrapped, json.dumps(argument)))

    return evaluate


VERDICTS = """
    return Promise.all(given.map(async (agreement) => {
      const fingerprint = await checks.fingerprintOf(agreement);
      try { await verify.verify({...agreement, fingerprint}, fingerprint); return "accepted"; }
      catch (error) { return error instanceof verify.NotCertified ? "refused" : error.stack; }
    }));"""


@pytest.fixture
def verdicts(run: Callable[..., Any]) -> Callable[[list[dict[str, Any]]], list[str]]:
    """What the page makes of documents under fingerprints that fit: accepted, or refused."""
    return lambda documents: run("verify checks", VERDICTS, documents)


def send(page: Page) -> None:
    """Send what is blurred, and wait until it has arrived."""
    page.get_by_role("button", name="Send the blurred numbers").click()
    expect(page.get_by_text("Your blurred numbers have arrived")).to_be_visible()


def enter(page: Page, token: str) -> None:
    """Show an administrator's token to /admin."""
    page.get_by_label("Administrator’s token").fill(token)
    page.get_by_role("button", name="Enter").click()


def be_sure(page: Page, title: str, button: str) -> None:
    """Do what cannot be undone."""
    dialog = page.get_by_role("dialog", name=title)
    dialog.get_by_label("I know that this cannot be undone").check()
    dialog.get_by_role("button", name=button).click()


def invitations(page: Page, name: str, count: int, kind: str | None = None, **others: Path) -> str:
    """Make invitations to what has this fingerprint, joined with those of a `file`."""
    entry = page.locator(f'[data-fingerprint="{name}"]')
    entry.get_by_role("button", name="Invite…").click()
    dialog = page.get_by_role("dialog", name="Invite people")
    dialog.get_by_label("How many").fill(str(count))
    if kind is not None:
        dialog.get_by_label("As", exact=True).select_option(kind)
    for file in others.values():
        dialog.get_by_label("The other database’s invitations").set_input_files(file)
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Make them").click()
    return download.value.path().read_text()


@contextmanager
def two_services(folder: Path, **keys: Any) -> Iterator[tuple[list[Store], list[str]]]:
    """Two databases that collect together; each option has a value for either."""
    with ExitStack() as both:
        stores = [both.enter_context(Store(folder / f"{name}.db")) for name in ("first", "second")]
        options = [{name: values[i] for name, values in keys.items()} for i in (0, 1)]
        urls = [
            both.enter_context(in_a_thread(Service(store, **own)))
            for store, own in zip(stores, options, strict=True)
        ]
        yield stores, urls


def opened_at_both(stores: list[Store], agreement: Agreement) -> Agreement:
    for store, role in zip(stores, ("first", "second"), strict=True):
        store.open(agreement, role=role)
    return agreement
