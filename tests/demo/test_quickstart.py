"""A collection fills over HTTP, is published, and its pages answer meanwhile."""

import io
import re
import threading
import urllib.request

import numpy as np
from rich.console import Console

from blurfit import Numeric, Schema
from blurfit.demo.quickstart import main

SCHEMA = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 100))
PEOPLE = {"age": np.linspace(0, 100, 1000), "income": np.linspace(0, 90, 1000)}


def test_people_come_a_model_follows_and_each_page_answers_when_it_is_opened():
    ended, pages = threading.Event(), []
    console = Console(record=True, width=200, file=io.StringIO())

    def opened(address: str) -> None:
        with urllib.request.urlopen(address) as answer:
            pages.append((address, answer.status))
        if len(pages) == 2:
            ended.set()

    main(SCHEMA, PEOPLE, 0, console=console, ended=ended, opened=opened)
    told = console.export_text()
    assert [status for _, status in pages] == [200, 200]
    assert all(address in told for address, _ in pages)
    assert re.search(r"^submissions: +1,000 ", told, re.MULTILINE)


def test_whoever_ends_it_early_waits_for_nothing():
    ended = threading.Event()
    ended.set()
    pages = []
    main(SCHEMA, PEOPLE, 3600, console=Console(quiet=True), ended=ended, opened=pages.append)
    assert len(pages) == 1
