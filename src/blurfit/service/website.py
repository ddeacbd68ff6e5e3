"""The pages: static files, read once, served with headers under which they can ask nobody else.

There is no build step. A page is a title and what is within its frame, which all share, with the
scripts that it imports named at once, so that they come together. It reads its address (an
invitation is after #) and asks the service for the rest, as any other program would. Its policy
allows scripts, styles and requests of this service alone, none of them inline, and no text may
become HTML.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from blurfit import protocol
from blurfit.service.answers import ASKED_AFTER, Kept, Origins
from blurfit.service.operations import SAME, TEXT, Operation, content, operation
from blurfit.service.translation import LANGUAGES, words_in

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
PAGE_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
PAGES = {
    "/": ("home.html", "All collections"),
    "/c/{fingerprint}": ("contribute.html", "Contribute"),
    "/m/{fingerprint}": ("model.html", "A model"),
    "/admin": ("administration.html", "Administration"),
    "/glossary": ("glossary.html", "What words mean"),
}
COLLECTION, MISSING, FRAME = "collection.html", "missing.html", "frame.html"
IMPORT = re.compile(r'^(?:import|export) [^;]*?from "\./(.*?)";', re.M)
MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def all_files() -> Mapping[str, Kept]:
    """Return every file of the pages; asked after, so that those of a page are of one age."""
    folder = files("blurfit.service").joinpath("pages")
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    for name in [name for name in texts if name.endswith(".en.js")]:
        for one in LANGUAGES:
            if one != "en":
                texts[name.replace(".en.", f".{one}.")] = words_in(one, texts[name])
    frame, found = Template(texts.pop(FRAME)), {}
    for name, text in texts.items():
        kind = MEDIA_TYPES[name.rpartition(".")[2]]
        headers = ASKED_AFTER
        if kind == MEDIA_TYPES["html"]:
            title, _, page = text.rstrip().partition("\n")
            scripts = _scripts(name.replace(".html", ".js"), texts)
            text = frame.substitute(title=title, scripts=scripts, page=page)
            headers = headers | PAGE_HEADERS
        found[name] = Kept.made(text.encode(), kind, headers)
    return found


def _scripts(own: str, texts: Mapping[str, str]) -> str:
    """Name a page's script, and before it all that it imports, and what those import."""
    if own not in texts:
        return ""
    needed: set[str] = set()
    waiting = [own]
    while waiting:
        new = set(IMPORT.findall(texts[waiting.pop()])) - needed
        needed |= new
        waiting += new
    links = [f'<link rel="modulepreload" href="/pages/{name}">' for name in sorted(needed)]
    return "\n".join((*links, f'<script type="module" src="/pages/{own}"></script>'))


def routes(origins: Origins) -> list[Route]:
    """Return the pages' addresses; `origins` tells to whom the page of a collection may send."""

    def page(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            sends = name == PAGES["/c/{fingerprint}"][0]
            others = await origins(request.path_params["fingerprint"]) if sends else ()
            return _page(request, name, others)

        return endpoint

    found = [Route(path, page(name), methods=["GET"]) for path, (name, _) in PAGES.items()]
    return [*found, Route("/pages/{name}", _file, methods=["GET"])]


def operations() -> Iterator[Operation]:
    """Describe the pages; what they show they ask for at the other addresses."""
    page = content("A page.", "text/html") | SAME
    lost = {"404": content("A page that says that this is not a fingerprint.", "text/html")["200"]}
    file = content("A file.", "text/css", "text/javascript", "image/svg+xml") | SAME
    name = {"name": "name", "in": "path", "required": True, "schema": TEXT}
    for path, (_, shown) in PAGES.items():
        yield operation(
            "get", path, f"{shown}, as a page", page | lost if "{fingerprint}" in path else page
        )
    yield operation(
        *("get", "/pages/{name}", "Parts of the pages", file, protocol.NOT_FOUND),
        parameters=[name],
    )


def wants_page(request: Request) -> bool:
    """Tell whether a browser asks on behalf of a person; programs ask for JSON, or for anything."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted and "application/json" not in accepted


def collection_page(request: Request, others: Sequence[str] = ()) -> Response:
    """Return the page of a collection, which asks its `others` how many they have."""
    response = _page(request, COLLECTION, others)
    response.headers["vary"] = "accept, accept-encoding"
    return response


def missing_page(request: Request) -> Response:
    """Return the page for a person at an address where there is nothing."""
    return all_files()[MISSING].answer(request, 404)


def _page(request: Request, name: str, others: Sequence[str] = ()) -> Response:
    """Return a page, which says itself what is wrong with its address; it may ask `others`."""
    fingerprint = request.path_params.get("fingerprint")
    is_address = fingerprint is None or re.fullmatch("[0-9a-f]{64}", fingerprint)
    response = all_files()[name].answer(request, 200 if is_address else 404)
    allowed = " ".join(("connect-src 'self'", *others))
    response.headers["content-security-policy"] = POLICY.replace("connect-src 'self'", allowed)
    return response


async def _file(request: Request) -> Response:
    found = all_files().get(request.path_params["name"])
    if found is None or found.media_type == MEDIA_TYPES["html"]:
        raise HTTPException(404)
    return found.answer(request)
