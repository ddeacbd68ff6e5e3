"""What the service says to people has German: every claim of a statement, and every refusal."""

import ast
import asyncio
import builtins
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any
from urllib.parse import quote

import httpx2 as httpx
import numpy as np
import pytest

import blurfit
import blurfit_server
from blurfit import Agreement, perturb_table
from blurfit.agreement.plan import Plan
from blurfit.errors import BlurfitError
from blurfit.learning.inference import Refusal
from blurfit.model.statement import as_markdown
from blurfit.schema.columns import About, Categorical, Numeric
from blurfit.schema.schema import Schema
from blurfit.wording import Language, Message
from blurfit_server import Store
from blurfit_server.service.administration import agreed_from
from blurfit_server.service.answers import (
    LONGEST_VALUE,
    best_of,
    catalogue,
    language_of,
)
from blurfit_server.service.app import Service
from support.published import published

SOURCE = Path(blurfit.__file__).parent
SERVER = Path(blurfit_server.__file__).parent
TWO = [("Office", "https://first.example"), ("University", "https://second.example")]
ABOUT = About(title="Pay", purpose="to learn", organiser="Office", contact="office@example.org")
NUMBER = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 100), about=ABOUT)
ENGLISH = re.compile(r"\b(the|of|and|is|are|were|that|with|from|not|which|they|has|have)\b")
# What pages can be refused with, by where it is written; the rest is for programs and commands.
SPOKEN = (
    "protocol.py",
    "errors.py",
    "service/administration.py",
    "service/endpoints.py",
    "service/intake.py",
    "service/limits.py",
    "store/arrivals.py",
    "agreement/mechanisms.py",
    "schema/xlsforms.py",
)
SPOKEN_KINDS = {"agreement/mechanisms.py": ("OtherGroupError",), "protocol.py": ("Kind",)}
# Of these modules only what is named here: databases, and the words of a survey.
SPOKEN_IN_PART = {
    "schema/imports.py": ("SurveyReader",),
    "agreement/terms.py": ("Database", "require_two", "refuse_unless_shareable"),
    "schema/columns.py": (
        *("Text", "_Texts", "About", "OnlyIf", "Wording", "_line", "refuse_harmful"),
    ),
}
UNSPOKEN = {  # for what no page sends, or when a service is started
    "{distribution} {version} needs blurfit",
    "Expected the package",
    "Expected trusted proxy",
    "Expected a Submission or Submissions",
    *("Expected name=", "There is a token for", "Expected one of {known}, not"),  # `blurfit token`
}
# Rooms whose refusals a service can answer with: none is put together before it is raised.
REACHED = (
    *(
        "agreement",
        "learning",
        "messages",
        "model",
        "proofs",
        "schema",
        "theory",
    ),
    *("data.py", "errors.py", "protocol.py", "service", "store"),
)
RAISED = ("Error", "Kind", "Message", "_refuse_unless")  # whose arguments are templates
Field = tuple[str | None, str | None, str | None]


def fields(template: str) -> set[Field]:
    """The values of a template, with how they are formatted."""
    return {tuple(one) for _, *one in Formatter().parse(template) if one[0] is not None}


def trees(name: str) -> Iterator[ast.Module]:
    path = (SERVER if name.startswith(("service", "store")) else SOURCE) / name
    for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
        yield ast.parse(file.read_text(encoding="utf-8"))


def calls(tree: ast.AST, ends: tuple[str, ...] = RAISED) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if name.endswith(ends) and not hasattr(builtins, name):
            yield node


def refusals() -> Iterator[tuple[str, bool]]:
    """Templates, and whether values are put into them."""
    for name in (*SPOKEN, *SPOKEN_IN_PART):
        (tree,) = trees(name)
        if name in SPOKEN_IN_PART:
            chosen = SPOKEN_IN_PART[name]
            tree.body = [one for one in tree.body if getattr(one, "name", None) in chosen]
            assert len(tree.body) == len(chosen)
        for node in calls(tree, SPOKEN_KINDS.get(name, RAISED)):
            for one in node.args:
                if isinstance(one, ast.Constant) and " " in str(one.value):
                    has_values = bool(node.keywords) or "_refuse_unless" in ast.unparse(node.func)
                    yield str(one.value), has_values


def german_of(english: str, has_values: bool) -> str:
    german = catalogue("de").get(english)
    assert german is not None, f"add to sentences.de.po: {english!r}"
    if has_values:
        assert fields(german) == fields(english)
    return german


@pytest.mark.parametrize(("english", "has_values"), sorted(set(refusals())))
def test_every_refusal_has_german(english, has_values) -> None:
    if not english.startswith(tuple(UNSPOKEN)) and re.search("[a-z]{2}", _text_of(english)):
        german_of(english, has_values)


def _text_of(template: str) -> str:
    """The text between the values, without what is quoted from a command."""
    return re.sub(r"\{.*?\}|`.*?`", "", template)


@pytest.mark.parametrize("room", REACHED)
def test_no_refusal_is_put_together_before_it_is_raised(room) -> None:
    """Its template and its values would be lost, and no other language could render it."""
    for tree in trees(room):
        for node in calls(tree):
            for one in node.args:
                assert not isinstance(one, ast.JoinedStr | ast.BinOp), ast.unparse(node)


def test_a_translation_says_the_same() -> None:
    """Each value is in it, nothing else is, and none of it is English still."""
    for english, german in catalogue("de").items():
        assert set(re.findall(r"\{.*?\}", german)) == set(re.findall(r"\{.*?\}", english)), german
        assert not ENGLISH.search(_text_of(german)), german
        assert english.endswith(".") <= german.endswith(".")


def test_what_cannot_be_had_together_has_german() -> None:
    (tree,) = trees("agreement/terms.py")
    rules = next(one for one in ast.walk(tree) if getattr(one, "name", "") == "require_together")
    last = [one.elts[-1] for one in ast.walk(rules) if isinstance(one, ast.Tuple)]
    reasons = [one.value for one in last if isinstance(one, ast.Constant)]
    assert len(reasons) > 5
    for reason in reasons:
        german_of(reason, has_values=False)


ANSWERED = "{method} {path}: see /openapi.json for what there is."
LONG = "Nothing is promised. " * 190


def test_the_cost_of_a_refusal_does_not_grow_with_what_a_stranger_sent() -> None:
    """One look into the catalogue for each template, whatever the values look like."""

    class Counted(dict[str, str]):
        looks = 0

        def get(self, *given: Any) -> Any:
            self.looks += 1
            return super().get(*given)

    templates = Counted(catalogue("de"))
    language = Language(templates, comma=True, longest=LONGEST_VALUE)
    found = language.render(Message(ANSWERED, method="GET", path=LONG))
    assert templates.looks == 1
    assert LONG[:LONGEST_VALUE] + "…" in found
    assert len(found) < 2 * LONGEST_VALUE


def test_no_refusal_repeats_more_than_a_hundred_characters() -> None:
    """In any language, and nothing that a terminal or a log would obey."""

    async def ask(path: str, language: str) -> str:
        with Store() as store:
            transport = httpx.ASGITransport(app=Service(store))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                answer = await client.get(path, headers={"accept-language": language})
                assert 400 <= answer.status_code < 500
                return answer.json()["detail"]

    paths = ["/" + quote(LONG), "/%1B]0;owned%07", f"/collections/{quote('ä' * 3000)}"]
    paths.append(f"/collections/{'0' * 64}/statement?format={quote(LONG)}")
    for path in paths:
        for language in ("de", "en"):
            detail = asyncio.run(ask(path, language))
            assert len(detail) < 500
            assert detail.isprintable()


def test_every_word_of_the_pages_has_german() -> None:
    """And there is no German of words that no page has; each place for a value is in it."""
    folder = SERVER / "service" / "pages"
    text = "".join(one.read_text(encoding="utf-8") for one in folder.glob("*.en.js"))
    words = {json.loads(one) for one in re.findall(r': ("(?:[^"\\]|\\.)*"),\n', text)}
    german = catalogue("de", "pages")
    assert words - set(german) == set()
    assert set(german) - words == set()
    for english, other in german.items():
        assert set(re.findall(r"\{\w+\}", other)) == set(re.findall(r"\{\w+\}", english))


def test_why_there_are_no_errors_has_german() -> None:
    for reason in Refusal:
        german_of(str(reason), has_values=False)


TERMS = (
    {},
    {"admission": "anyone"},
    {"database_noise": True},
    {"database_noise": True, "admission": "anyone"},
    {"databases": TWO},
    {"databases": TWO, "admission": "anyone", "proofs": False},
    {"databases": TWO, "database_noise": True},
    {"neighbours": "zero-out", "local_epsilon": 1, "local_delta": 1e-6},
    {"local_epsilon": 5, "local_delta": 1e-6},
    {"epsilon": 30},
    {"diaries": True},
)


def missing(model) -> list[str]:
    """What of a statement is still English, but names and code."""
    left = re.sub(r"`.*?`|Office|University|office@example.org", "", german(model))
    return [found.group() for found in ENGLISH.finditer(left)]


def german(model) -> str:
    return as_markdown(model, tell=language_of("de").render)


@pytest.mark.parametrize("terms", TERMS, ids=str)
def test_every_claim_has_german(terms) -> None:
    agreement = Agreement.propose(NUMBER, **{"epsilon": 1, "delta": 1e-6, "quorum": 20_000} | terms)
    assert missing(published(agreement, 25_000)) == []


@pytest.mark.parametrize("coded", [{}, {"groups": "region", "overlap": 0.2}, {"weighting": "w"}])
def test_every_claim_of_a_model_with_errors_has_german(coded) -> None:
    rng = np.random.default_rng(1)
    region = Categorical("region", ("north", "south"))
    schema = Schema([Numeric("w", 0, 10), region], Numeric("income", 0, 100))
    agreement = Agreement.propose(schema, epsilon=20, delta=1e-6, quorum=2000, **coded)
    people = {
        "w": rng.uniform(0, 10, 4000),
        "region": rng.choice(["north", "south"], 4000),
        "income": rng.uniform(0, 100, 4000),
    }
    with Store() as store:
        store.open(agreement)
        store.add(agreement, perturb_table(agreement, people))
        assert missing(store.publish(agreement)) == []


@pytest.mark.parametrize("terms", [{}, {"admission": "anyone"}, {"databases": TWO}], ids=str)
def test_every_claim_of_a_wave_has_german(terms) -> None:
    plan = Plan.propose(NUMBER, waves=2, epsilon=1, delta=1e-6, quorum=20_000, **terms)
    assert missing(published(plan.first(), 25_000)) == []


def test_names_stay_as_they_are() -> None:
    """Even those that look like a sentence of ours."""
    names = [("A gets a masked share of each submission and B", "https://first.example"), TWO[1]]
    agreement = Agreement.propose(NUMBER, epsilon=1, delta=1e-6, quorum=20_000, databases=names)
    text = german(published(agreement, 25_000))
    assert (
        f"{names[0][0]} erhält einen maskierten Anteil jeder Einsendung und University den" in text
    )


def test_a_text_that_is_not_known_stays_english() -> None:
    language = language_of("de", LONGEST_VALUE)
    assert language.render("Nobody has written this.") == "Nobody has written this."
    text = Message("{number:,}, age {age}, name {name}", number=1234.5, age=0.25, name="1,234.5")
    assert language.render(text) == "1.234,5, age 0,25, name 1,234.5"
    assert len(language.render(Message("x" * 10**6))) < 2000


def test_nothing_in_the_catalogue_is_of_no_use() -> None:
    trees_here = [
        ast.parse(one.read_text()) for root in (SOURCE, SERVER) for one in root.rglob("*.py")
    ]
    constants = {
        node.value
        for tree in trees_here
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
    }
    assert set(catalogue("de")) - constants == set()


@pytest.mark.parametrize(
    ("accepted", "best"), [("de", "de"), ("fr, de;q=0.5", "de"), ("en-GB,de", "en"), ("fr", "en")]
)
def test_the_language_that_a_browser_asks_for(accepted, best) -> None:
    assert best_of(accepted) == best


def test_the_service_refuses_in_the_language_that_it_is_asked_in() -> None:
    async def ask() -> dict[str, str]:
        with Store() as store:
            transport = httpx.ASGITransport(app=Service(store))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                found = {}
                for language in ("de-DE,de;q=0.9", "en", ""):
                    path, headers = f"/collections/{'0' * 64}", {"accept-language": language}
                    found[language] = (await client.get(path, headers=headers)).json()["title"]
                return found

    told_in = asyncio.run(ask())
    assert told_in["de-DE,de;q=0.9"] == "Diese Umfrage gibt es hier nicht"
    assert told_in["en"] == told_in[""] == "There is no such survey here"


AGE = {"name": "age", "kind": "numeric", "lower": 18, "upper": 80}
PROPOSAL = {
    "schema": {"features": [AGE], "target": AGE | {"name": "income", "lower": 0}},
    "epsilon": 1,
    "delta": 1e-6,
    "quorum": 2000,
}
FIRST, SECOND = ({"name": one, "url": f"https://{one}.example"} for one in ("a", "b"))
REFUSED = (
    *({"delta": 1e-300}, {"quorum": 2**60}, {"epsilon": -1}, {"epsilon": "x"}, {"extra": 1}),
    *({"local_epsilon": 1}, {"databases": [FIRST]}, {"databases": [FIRST, FIRST]}),
    {"databases": [FIRST | {"name": " a"}, SECOND]},
    {"databases": [FIRST | {"url": "http://a.example"}, SECOND]},
    {"databases": [FIRST, SECOND], "proofs": True, "waves": 2},
    *({"proofs": True}, {"waves": 40}, {"waves": 2, "colluders": 0.9}, {"neighbours": "x"}),
    {"database_noise": True, "epsilon": 1e6},
    *({"features": []}, {"features": [AGE | {"name": "income"}]}, {"features": [AGE, AGE]}),
    *({"features": [AGE | {"lower": 80}]}, {"features": [AGE | {"kind": "fish"}]}, {"title": ""}),
    {"features": [{"name": "a", "kind": "categorical", "levels": ["b"]}]},
    {"features": [{"name": "a", "kind": "binary", "unit": "years"}]},
    *({"title": "x" * 3000}, {"target": AGE | {"above": 90}}),
)


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_an_administrator_is_refused_in_german(change) -> None:
    """What the form can come to, and more: nothing of it is English."""
    about = {name: change[name] for name in ("features", "target", "title") if name in change}
    given = PROPOSAL | ({"schema": PROPOSAL["schema"] | about} if about else change)
    with pytest.raises(BlurfitError) as refused:
        agreed_from(json.dumps(given).encode())
    german = language_of("de", LONGEST_VALUE).render(refused.value.message)
    assert not ENGLISH.search(re.sub("`.*?`", "", german)), refused.value
