"""From wave to wave in a store: each step happens as a whole or not at all, and once."""

import threading

import numpy as np
import pytest
from blurfit.store.advance import advance, due, learn_model
from sqlalchemy import event

from blurfit.errors import BelowQuorumError, InfeasibleError, WaveClosedError
from blurfit.model.course import follows, learn_plan
from blurfit.model.model import PublishedModel
from blurfit.store import advance as module
from blurfit.store import collections, plans
from blurfit.store.store import Store
from support.plans import fill, plan

PLAN = plan("label", waves=2, quorum=60)
NAME = PLAN.fingerprint
FIRST, SECOND = PLAN.quorums


@pytest.fixture
def store(place):
    with Store(place) as opened:
        yield opened


def test_a_plan_goes_to_its_end(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)
    assert store.read(due) == [NAME]
    second = store.write(advance, NAME)
    follows(PLAN, store.read(plans.releases, NAME), second)
    assert store.read(plans.current, NAME) == second
    with pytest.raises(WaveClosedError, match="Wave 1 has closed"):
        fill(store, first, 0, 1)
    assert store.read(due) == []
    fill(store, second, FIRST, 60)
    for _ in range(2):
        assert store.write(advance, NAME) is None
    assert store.read(due) == [NAME]  # the model is still to be learned
    text = learn_model(store, NAME)
    assert learn_model(store, NAME) == text == store.read(plans.model_text, NAME)
    assert text == learn_plan(PLAN, store.read(plans.releases, NAME)).to_json()
    assert text == store.model(second.fingerprint)  # its last wave shows it as well
    status = store.read(plans.status, NAME)
    assert (status.state, status.reason, status.model) == ("ended", None, second.fingerprint)
    assert [one.state for one in status.waves] == ["released", "released"]
    assert store.read(due) == []
    with pytest.raises(WaveClosedError):
        fill(store, second, 0, 1)


def test_below_its_quorum_a_wave_goes_on(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST - 1)
    for options in ({}, {"end": True}):
        with pytest.raises(BelowQuorumError):
            store.write(advance, NAME, **options)
    assert store.status(first.fingerprint).state == "collecting"
    assert store.read(plans.releases, NAME) == []
    assert store.read(due) == []


def test_stopped_in_the_middle_nothing_was_published(store, monkeypatch) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)

    def stop(*_given, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(collections, "begin", stop)
        with pytest.raises(KeyboardInterrupt):
            store.write(advance, NAME)
    assert store.status(first.fingerprint).state == "collecting"
    assert store.read(plans.releases, NAME) == []
    assert store.write(advance, NAME).wave.number == 2


def test_two_who_advance_at_once_open_one_wave(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)
    found: list[object] = []

    def step() -> None:
        try:
            found.append(store.write(advance, NAME).fingerprint)
        except BelowQuorumError as error:
            found.append(type(error))

    both = [threading.Thread(target=step) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    second = store.read(plans.current, NAME)
    assert sorted(map(str, found)) == sorted([second.fingerprint, str(BelowQuorumError)])


def test_ended_early_with_the_best_model_so_far(store) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)
    second = store.write(advance, NAME)
    fill(store, second, FIRST, 59)  # one too few
    assert store.write(advance, NAME, end=True) is None
    model = PublishedModel.from_json(learn_model(store, NAME))
    assert model.to_json() == learn_plan(PLAN, store.read(plans.releases, NAME)).to_json()
    assert model.count == FIRST
    status = store.read(plans.status, NAME)
    assert status.reason == "Its administrator ended it after wave 1 of 2."
    assert status.model == first.fingerprint
    assert [one.state for one in status.waves] == ["released", "dropped"]
    with pytest.raises(InfeasibleError):  # and nothing of it is ever shown
        store.moments_text(second.fingerprint)


def test_ended_early_with_an_open_wave_that_is_full(store) -> None:
    first = store.write(plans.begin, PLAN)
    store.write(plans.hold, NAME)
    fill(store, first, 0, FIRST)
    store.write(advance, NAME, end=True)
    status = store.read(plans.status, NAME)
    assert [one.state for one in status.waves] == ["released", "planned"]
    assert PublishedModel.from_json(learn_model(store, NAME)).count == FIRST


@pytest.mark.parametrize("error", [InfeasibleError("no map"), np.linalg.LinAlgError("no map")])
def test_sums_that_teach_nothing_end_the_plan_with_words(store, monkeypatch, error) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)

    def refuse(*_given):
        raise error

    monkeypatch.setattr(module.Course, "next_agreement", refuse)
    assert store.write(advance, NAME) is None
    assert learn_model(store, NAME) is not None
    status = store.read(plans.status, NAME)
    assert (status.state, status.model) == ("ended", first.fingerprint)
    assert status.reason == "No wave follows wave 1 of 2: no map"
    assert store.read(due) == []


def test_no_model_at_all_is_said_and_not_tried_for_ever(store, monkeypatch) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)

    def refuse(*_given):
        raise InfeasibleError("nothing to learn from.")

    monkeypatch.setattr(module, "learn_plan", refuse)
    store.write(advance, NAME, end=True)
    assert learn_model(store, NAME) is None
    assert store.read(due) == []
    with pytest.raises(InfeasibleError, match=r"wave 1 of 2. There is no model: nothing to learn"):
        store.read(plans.shown_at, NAME)


def test_a_model_of_fewer_waves_where_the_last_says_nothing(store, monkeypatch) -> None:
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)
    fill(store, store.write(advance, NAME), FIRST, 60)
    store.write(advance, NAME)

    def only_one(plan_, releases):
        if len(releases) > 1:
            raise InfeasibleError("too long a step.")
        return learn_plan(plan_, releases)

    monkeypatch.setattr(module, "learn_plan", only_one)
    assert PublishedModel.from_json(learn_model(store, NAME)).count == FIRST
    assert store.read(plans.status, NAME).model == first.fingerprint


def test_killed_at_any_statement_the_step_never_happened(store) -> None:
    """The wave still collects, nothing is published, and the same step succeeds afterwards."""
    first = store.write(plans.begin, PLAN)
    fill(store, first, 0, FIRST)
    before, at = store.read(plans.status, NAME), 0

    def killed(*_given) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    while True:
        left, engine = at, store._engine
        event.listen(engine, "before_cursor_execute", killed)
        try:
            second = store.write(advance, NAME)
        except KeyboardInterrupt:
            second = None
        finally:
            event.remove(engine, "before_cursor_execute", killed)
        if second is not None:
            break
        assert store.read(plans.status, NAME) == before
        at += 1
    assert at > 5, "there were hardly any moments to be killed at"
    assert second.wave.number == 2
    follows(PLAN, store.read(plans.releases, NAME), second)
