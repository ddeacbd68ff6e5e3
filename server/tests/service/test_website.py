"""What the pages are made of, and the headers that they come with; `tests/browser` opens them."""

import asyncio
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx2 as httpx
import pytest

from blurfit_server import Store
from blurfit_server.service import endpoints as website
from blurfit_server.service.app import Service

SERVER = Path(__file__).parents[2]
FILES = website.all_files()
ADDRESSES = [
    "/",
    "/glossary",
    f"/c/{'0' * 64}",
    f"/m/{'0' * 64}",
    f"/collections/{'0' * 64}",
    "/admin",
]


def get(path: str, **headers: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        with Store() as store:
            transport = httpx.ASGITransport(app=Service(store))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.get(path, headers={"accept": "text/html"} | headers)

    return asyncio.run(ask())


@pytest.mark.parametrize("path", ADDRESSES)
def test_pages_come_with_a_strict_policy(path: str) -> None:
    answer = get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert re.findall(r"https?:|\*|data:|blob:", policy) == []
    assert answer.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("name", ["nothing.js", "home.html", "..%2Fservice.py", "%00"])
def test_nothing_else_is_served(name: str) -> None:
    answer = get(f"/pages/{name}", accept="*/*")
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:blurfit:problem:not-found"


@pytest.mark.parametrize("path", ["/nothing", "/c/", "/pages/home.html"])
def test_a_person_gets_a_page_where_there_is_nothing(path: str) -> None:
    answer = get(path)
    assert answer.status_code == 404
    assert "There is nothing at this address" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/c/x", "/m/x", "/collections/x"])
def test_what_is_no_fingerprint_is_not_found(path: str) -> None:
    """As a page for people, who are told by it what is wrong."""
    answer = get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/html"])
def test_a_program_gets_no_page(accept: str) -> None:
    answer = get(f"/collections/{'0' * 64}", accept=accept)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".html")])
def test_pages_have_nothing_inline_and_ask_nobody_else(name: str) -> None:
    text = FILES[name].plain.decode()
    assert re.findall(r"<style|style=|\son\w+=|javascript:", text) == []
    assert re.findall(r"<script(?![^>]*\ssrc=)", text) == []
    addresses = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert addresses
    for address in addresses:
        assert address.startswith("/")
        if address.startswith("/pages/"):
            assert address.removeprefix("/pages/") in FILES


def scripts() -> dict[str, str]:
    return {name: one.plain.decode() for name, one in FILES.items() if name.endswith(".js")}


def test_scripts_import_only_each_other() -> None:
    for name, text in scripts().items():
        for module in re.findall(r'^import .*?from "(.*?)";', text, re.M | re.S):
            assert module.removeprefix("./") in FILES, f"{name} imports {module}"
        # no address of anyone
        known = r'http://www\.w3\.org/2000/svg|https://( beginnt|\.|example\.org)|=== "https?:"'
        assert "http" not in re.sub(known, "", text), name


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".html")])
def test_a_page_names_all_its_scripts_at_once(name: str) -> None:
    """So that they come together, and not each after the one that needs it."""
    text = FILES[name].plain.decode()
    waiting = re.findall(r'<script type="module" src="/pages/(.*?)">', text)
    assert len(waiting) == 1
    needed = set()
    while waiting:
        found = re.findall(r'^import .*?from "\./(.*?)";', scripts()[waiting.pop()], re.M | re.S)
        waiting += set(found) - needed
        needed |= set(found)
    assert set(re.findall(r'<link rel="modulepreload" href="/pages/(.*?)">', text)) == needed


def test_only_some_scripts_draw_randomness_and_only_the_systems() -> None:
    """`noise` for noise; the others for pauses, invitations, lots, and a receipt's secret."""
    for name, text in scripts().items():
        assert "Math.random" not in text, name
        if "getRandomValues" in text:
            assert name in {"noise.js", "outbox.js", "inviting.js", "waves.js", "signing.js"}


def test_no_text_becomes_html() -> None:
    for name, text in scripts().items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text), name


def test_only_some_scripts_keep_anything_on_the_device() -> None:
    """What was sent, its ledger and a diary stay; answers and the language live with the tab."""
    for name, text in scripts().items():
        assert not re.search(r"indexedDB|\.cookie", text), name
        if "localStorage" in text:
            assert name in {"bytes.js", "outbox.js", "ledger.js", "waves.js", "diary.js"}
        if "sessionStorage" in text:
            assert name in {"bytes.js", "survey.js", "language.js"}


def test_the_wheel_carries_the_pages(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=SERVER, check=True, capture_output=True, timeout=600)
    (wheel,) = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    made = {name.replace(".en.", ".de.") for name in FILES if ".en." in name}
    assert {f"blurfit_server/service/pages/{name}" for name in FILES if name not in made} <= names
    assert {f"blurfit_server/service/{one}.de.po" for one in ("pages", "sentences")} <= names
