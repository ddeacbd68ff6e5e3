"""What the service says, in the reader's language: statements and refusals.

A sentence is written in English where it is made. `sentences.de.po` has its German, as pairs of
templates in gettext's format, in which {1}, {2} … stand for what is put in. A text is taken apart
into instances of these templates, and put together again in the other language: numbers as they are
written there, parts that are templates themselves translated too, and all else as it is.

A text becomes German only as a whole; one that has no German stays English. The words of the pages
are English in `pages/*.en.js`; those of other languages are made of these and of `pages.de.po`.
"""

import json
import re
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "de")
LONGEST = 4000  # characters, and
MOST_PARTS = 100  # of a list, or sentences: what strangers put in may cost no more than that,
MOST_NESTED = 20  # and texts within texts go no deeper
_PAIR = re.compile(r'^msgid (".+")\nmsgstr (".+")$', re.M)
_WORDS = re.compile(r'^(  (?:"[\w.-]+"|\w+): )("(?:[^"\\]|\\.)*"),$', re.M)  # name: "text",
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")
_SWAPPED = str.maketrans(",.", ".,")
_Pieces = list[str]  # of a template: text, number of a value, text, …, text

wanted: ContextVar[str] = ContextVar("wanted", default="en")  # by whoever asks


def best_of(accepted: str) -> str:
    """Return the first of the languages that a browser names which there is.

    >>> best_of("fr-CH, de-AT;q=0.9, en;q=0.8"), best_of("")
    ('de', 'en')
    """
    tags = (re.split("[-;]", one.strip().lower())[0] for one in accepted.split(",")[:20])
    return next((tag for tag in tags if tag in LANGUAGES), "en")


def told(text: str, language: str | None = None) -> str:
    """Return a text in a language, by default whoever asks', or as it is where it has no other."""
    language = language or wanted.get()
    return text if language == "en" else _value(text, language)


def translated(text: str, language: str, depth: int = 0) -> str | None:
    """Return a text in a language, or None where the catalogue does not have all of it; `depth`
    counts the texts that it is put into.

    >>> translated("The database could learn very little from a single submission.", "de")
    'Die Datenbank könnte aus einer einzelnen Einsendung sehr wenig erfahren.'
    """
    if language == "en":
        return text
    if len(text) > LONGEST or depth > MOST_NESTED:
        return None
    return _covered(text, 0, language, set(), depth)


@cache
def catalogue(language: str, name: str = "sentences") -> Mapping[str, str]:
    """Return the templates of a language by the English ones: of sentences, or of pages' words."""
    path = files("blurfit.service").joinpath(f"{name}.{language}.po")
    pairs = _PAIR.findall(path.read_text(encoding="utf-8"))
    return {json.loads(english): json.loads(other) for english, other in pairs}


def words_in(language: str, english: str) -> str:
    """Return a script of words in another language, from the English one."""
    known = catalogue(language, "pages")

    def told_there(found: re.Match[str]) -> str:
        text = json.loads(found[2])
        return f"{found[1]}{json.dumps(known.get(text, text), ensure_ascii=False)},"

    return _WORDS.sub(told_there, english)


@cache
def _templates(language: str) -> list[tuple[_Pieces, _Pieces]]:
    """Return the templates in pieces: those that say most come first."""
    pairs = [
        (re.split(r"\{(\d)\}", english), re.split(r"\{(\d)\}", other))
        for english, other in catalogue(language).items()
    ]
    return sorted(pairs, key=lambda pair: -sum(map(len, pair[0][::2])))


def _covered(
    text: str, start: int, language: str, in_vain: set[int], depth: int, before: int = 0
) -> str | None:
    """Return the translation of a text from a place on: of its first sentence, and of the rest.

    `in_vain` are places from which there is none: each is tried once. `before` counts sentences.
    """
    if start in in_vain or before == MOST_PARTS:
        return None
    for english, other in _templates(language):
        found = _match(english, text, start)
        if found is None:
            continue
        end, values = found
        after = len(text) - len(text[end:].lstrip())
        rest = (
            "" if end == len(text) else _covered(text, after, language, in_vain, depth, before + 1)
        )
        if rest is None:
            continue
        whole = [
            _value(values[piece], language, depth + 1) if place % 2 else piece
            for place, piece in enumerate(other)
        ]
        return "".join(whole) + text[end:after] + rest
    in_vain.add(start)
    return None


def _match(template: _Pieces, text: str, start: int) -> tuple[int, dict[str, str]] | None:
    """Return where an instance of a template ends that starts here, and its values; in linear time.

    Each value is as short as can be, and none is empty. What is no sentence must be all there is.
    """
    first, last = template[0], template[-1]
    if not text.startswith(first, start):
        return None
    end, values = start + len(first), {}
    for place in range(1, len(template), 2):
        literal = template[place + 1]
        is_last = place + 2 == len(template)
        found = text.find(literal, end + 1) if literal else len(text)
        while is_last and found >= 0 and not _ends(text, found + len(literal)):
            found = text.find(literal, found + 1)
        if found < 0 or found <= end:
            return None
        values[template[place]] = text[end:found]
        end = found + len(literal)
    is_sentence = last.endswith((".", ":", "*", "…", "`"))
    if not _ends(text, end) or not (is_sentence or (start == 0 and end == len(text))):
        return None
    return end, values


def _ends(text: str, place: int) -> bool:
    return place >= len(text) or text[place].isspace()


def _value(text: str, language: str, depth: int = 0) -> str:
    """Return what was put into a sentence: a number, a text, or a list of them and their names."""
    if len(text) > LONGEST:
        return text
    if _NUMBER.fullmatch(text):
        return text.translate(_SWAPPED)
    if (found := translated(text, language, depth)) is not None:
        return found
    for between in ("; ", ", "):
        if 0 < text.count(between) < MOST_PARTS:
            return between.join(_value(one, language, depth) for one in text.split(between))
    name, _, number = text.rpartition(" ")
    return f"{name} {_value(number, language)}" if _NUMBER.fullmatch(number) else text
