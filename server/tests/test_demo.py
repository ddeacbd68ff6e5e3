"""The demonstrations: one play over databases and waves, and a collection that fills."""

import io
import re
import threading
import urllib.request

import numpy as np
import pytest
from rich.console import Console

from blurfit import Agreement, Numeric, Plan, PublishedModel, Schema
from blurfit_server import demo

SCHEMA = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 100))
PEOPLE = {"age": np.linspace(0, 100, 1000), "income": np.linspace(0, 90, 1000)}


@pytest.mark.parametrize("waves", [False, True])
@pytest.mark.parametrize("two_databases", [False, True])
def test_generated_people_get_a_model(two_databases, waves, capsys, tmp_path) -> None:
    people = 6000 if waves and not two_databases else 2000
    demo.main(tmp_path, people, two_databases=two_databases, waves=waves)
    told = " ".join(capsys.readouterr().out.split())
    rival = "in one wave" if waves and not two_databases else "one database"
    constant = "always the same" if waves else "always the mean"
    for words in ("synthetic", "no privacy", rival, constant, "Privacy statement"):
        assert words in told
    model = PublishedModel.load(tmp_path / "model.json")
    assert model.count == people
    assert np.isfinite(model.weights).all()
    names = [one.name for one in model.agreement.databases]
    assert names == (list(demo.NAMES) if two_databases else [])
    if waves:
        plan = Plan.load(tmp_path / "plan.json")
        assert len(plan) > 1
        assert model.link == "logistic"
        assert tuple(one.count for one in model.waves) == plan.quorums
    else:
        assert model.agreement == Agreement.load(tmp_path / "agreement.json")
        assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_people_come_and_a_model_follows_when_the_visitor_says_so() -> None:
    ended, publish, pages = threading.Event(), threading.Event(), []
    console = Console(record=True, width=200, file=io.StringIO())

    def opened(address: str) -> None:
        with urllib.request.urlopen(address) as answer:
            pages.append((address, answer.status))
        (ended if len(pages) == 2 else publish).set()

    events = {"publish": publish, "ended": ended}
    demo.quickstart(SCHEMA, PEOPLE, 0, console=console, opened=opened, **events)
    told = console.export_text()
    assert [status for _, status in pages] == [200, 200]
    assert all(address in told for address, _ in pages)
    assert re.search(r"^submissions: +1,000 ", told, re.MULTILINE)
    assert len(set(re.findall(r"http://127\.0\.0\.1:\d+", told))) == 2


def test_nothing_closes_by_itself_and_whoever_ends_it_waits_for_nothing() -> None:
    ended, pages = threading.Event(), []
    quiet = Console(quiet=True)
    timer = threading.Timer(3, ended.set)  # long after all have come
    timer.start()
    events = {"publish": threading.Event(), "ended": ended}
    demo.quickstart(SCHEMA, PEOPLE, 0, console=quiet, opened=pages.append, **events)
    assert len(pages) == 1
