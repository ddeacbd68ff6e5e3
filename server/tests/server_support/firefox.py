"""Debian's own Firefox, driven by WebDriver BiDi over a web socket: no driver beside it.

Firefox speaks BiDi by itself (`--remote-debugging-port`). What is needed of it is little, and
stands here: one session, one tab, scripts in the page, keys as a person presses them, pictures.
"""

import asyncio
import base64
import json
import os
import re
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from tornado.websocket import websocket_connect

from support.programs import program

PATIENCE = 300.0  # seconds: the machine may be busy
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Space": " "}
PREFERENCES = {
    "remote.prefs.recommended": True,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "datareporting.healthreport.uploadEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "toolkit.telemetry.unified": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,#nowhere/v1",
    "browser.aboutwelcome.enabled": False,
    # no page of its own to begin with, and no process that waits for one to show or to play
    "browser.startup.page": 0,
    "browser.newtabpage.enabled": False,
    "browser.newtab.preload": False,
    "browser.tabs.remote.separatePrivilegedContentProcess": False,
    "dom.ipc.processPrelaunch.enabled": False,
    "extensions.webextensions.remote": False,
    "extensions.enabledScopes": 0,
    "media.rdd-process.enabled": False,
    "media.utility-process.enabled": False,
    "network.process.enabled": False,
    "browser.cache.disk.enable": False,
}


class Socket:
    """A web socket's client: whole text messages, one at a time, in a loop of its own."""

    def __init__(self, port: int, path: str) -> None:
        self._loop = asyncio.new_event_loop()
        address = f"ws://127.0.0.1:{port}{path}"
        try:
            self._line = self._wait(lambda: websocket_connect(address, max_message_size=2**28))
        except BaseException:  # Firefox does not listen yet
            self._loop.close()
            raise

    def _wait(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def done() -> Any:
            return await asyncio.wait_for(work(), PATIENCE)

        return self._loop.run_until_complete(done())

    def send(self, text: str) -> None:
        self._wait(lambda: self._line.write_message(text))

    def receive(self) -> str:
        found = self._wait(self._line.read_message)
        if not isinstance(found, str):
            raise ConnectionError("Firefox hung up.")
        return found

    def close(self) -> None:
        self._line.close()
        self._loop.run_until_complete(asyncio.sleep(0.1))  # it says goodbye
        self._loop.close()


class Tab:
    """One tab: what a person would do in it."""

    def __init__(self, connection: Socket) -> None:
        self._connection, self._numbers = connection, count(1)
        self.complaints: list[str] = []
        self.command("session.new", capabilities={})
        self.command("session.subscribe", events=["log.entryAdded"])
        self._context = self.command("browsingContext.create", type="tab")["context"]
        self.command("browsingContext.activate", context=self._context)

    def command(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._connection.receive())
            if answer.get("type") == "event":
                entry = answer["params"]
                if entry.get("level") == "error":
                    self.complaints.append(str(entry.get("text")))
            elif answer.get("id") == number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
                return answer["result"]

    def go(self, url: str) -> None:
        self.command("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def reload(self) -> None:
        self.command("browsingContext.reload", context=self._context, wait="complete")

    def back(self) -> None:
        self.command("browsingContext.traverseHistory", context=self._context, delta=-1)

    def resize(self, width: int, height: int = 800) -> None:
        size = {"width": width, "height": height}
        self.command("browsingContext.setViewport", context=self._context, viewport=size)

    def evaluate(self, expression: str) -> Any:
        """What a script in the page gives, by way of JSON."""
        found = self.command(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression})))()",
            target={"context": self._context},
            awaitPromise=True,
        )
        if found["type"] == "exception":
            raise AssertionError(found["exceptionDetails"]["text"])
        return json.loads(found["result"].get("value", "null"))

    def wait(self, expression: str) -> Any:
        """Until the expression holds; what it was."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            # while one page gives way to the next there is none, or one without a body
            with suppress(AssertionError, RuntimeError):
                if found := self.evaluate(expression):
                    return found
            time.sleep(0.05)
        text = self.evaluate("document.body?.innerText ?? 'nothing'")
        raise AssertionError(f"{expression} did not come true in {PATIENCE:g} s: {text[-2000:]}")

    def wait_for(self, words: str) -> None:
        self.wait(f"document.body.innerText.includes({json.dumps(words)})")

    def press(self, *keys: str) -> None:
        actions = []
        for key in keys:
            for letter in [KEYS[key]] if key in KEYS else key:
                actions += [
                    {"type": "keyDown", "value": letter},
                    {"type": "keyUp", "value": letter},
                ]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self.command("input.performActions", context=self._context, actions=[source])

    def focus(self, selector: str) -> None:
        self.wait(f"Boolean(document.querySelector({json.dumps(selector)}))")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")

    def click(self, words: str) -> None:
        """The visible button, link or label with these words."""
        find = (
            "[...document.querySelectorAll('button, a, label, summary')].find((one) =>"
            f" one.checkVisibility() && one.textContent.trim() === {json.dumps(words)})"
        )
        self.wait(f"Boolean({find})")
        self.evaluate(f"{find}.click()")

    def picture(self, path: Path) -> None:
        found = self.command(
            "browsingContext.captureScreenshot", context=self._context, origin="document"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def firefox(profile: Path, language: str = "en-US") -> Iterator[Tab]:
    """A Firefox of its own, with a fresh profile, whose reader wants that language."""
    path = program("firefox-esr", "firefox")
    wanted = PREFERENCES | {"intl.accept_languages": language}
    lines = [
        f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in wanted.items()
    ]
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    command = [path, "--headless", "--no-remote", "--profile", str(profile)]
    process = subprocess.Popen(
        [*command, "--remote-debugging-port", "0"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "HOME": str(profile), "MOZ_CRASHREPORTER_DISABLE": "1"},
    )
    try:
        assert process.stderr is not None
        port = None
        for line in process.stderr:
            if found := re.search(r"WebDriver BiDi listening on ws://127\.0\.0\.1:(\d+)", line):
                port = int(found[1])
                break
        assert port is not None, "Firefox did not say where it listens."
        connection = Socket(port, "/session")
        try:
            yield Tab(connection)
        finally:
            connection.close()
    finally:
        process.terminate()
        process.wait(PATIENCE)
        if process.stderr is not None:
            process.stderr.close()
