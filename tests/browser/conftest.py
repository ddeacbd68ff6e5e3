"""A real service on a free port, and the system's own Chromium.

Where there is no Chromium these tests are skipped, loudly, and with CI=true they fail: `make test`
installs it from the system's packages where it can.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from blurfit import Agreement, Binary, Categorical, Numeric, Schema, Store
from blurfit.protocol import tokens
from blurfit.service.app import Service
from blurfit.service.serving import in_a_thread
from blurfit.service.website import all_files

PATIENCE = 30_000  # milliseconds: the machine may be busy
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


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture(scope="module")  # no longer: it holds an event loop, which other tests may need
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        words = "NO CHROMIUM: the browser tests did not run. Install the system's `chromium`."
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(words)
        pytest.skip(words)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class Watch:
    """What a browser asked for, and what it complained about."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.requests: list[str] = []
        self.bodies: list[bytes] = []
        self.complaints: list[str] = []
        self._address = address
        context.on("request", self._note)
        context.on("console", lambda message: self._complain(message.type, message.text))
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))

    def _note(self, request: object) -> None:
        self.requests.append(request.url)  # type: ignore[attr-defined]
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


Visit = Callable[..., Visitor]


@pytest.fixture
def visit(chromium: Browser, service: Running) -> Iterator[Visit]:
    """Opens browsers; afterwards none has asked anyone else, or broken its policy."""
    visitors: list[Visitor] = []

    def enter(**options: object) -> Visitor:
        context = chromium.new_context(**options)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE)
        watch = Watch(context, service.address)
        visitors.append(Visitor(context.new_page(), watch, context, service))
        return visitors[-1]

    yield enter
    for visitor in visitors:
        visitor.context.close()
        assert visitor.watch.elsewhere == []
        assert visitor.watch.complaints == []


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


@pytest.fixture
def run(chromium: Browser) -> Iterator[Callable[..., Any]]:
    """Evaluate JavaScript in an empty page, with the named modules at hand."""
    context = chromium.new_context()
    context.route("**/*", hand_out)
    page = context.new_page()
    page.goto("http://localhost/")  # which browsers take for a protected address

    def evaluate(modules: str, body: str, argument: object = None) -> Any:
        names = modules.split()
        imports = ", ".join(f"import('/pages/{name}.js')" for name in names)
        ready = f"const [{', '.join(names)}] = await Promise.all([{imports}]);"
        return page.evaluate(f"async (given) => {{ {ready} {body} }}", argument)

    yield evaluate
    context.close()
