"""Killed at random moments, the service loses nothing that it acknowledged and doubles nothing."""

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import httpx2 as httpx
import numpy as np
import pytest

from blurfit import ClosedError, PublishedModel, learn
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.messages.submissions import Submissions
from blurfit.protocol import BINARY
from blurfit.store import release
from blurfit.store.store import Store
from support import processes, sender
from support.sender import read
from support.serving import Serving
from support.stores import PEOPLE, propose, totals_of

KILLS, SENDERS = 5, 3


def by_identifier(*parts: Submissions) -> dict[bytes, bytes]:
    return {
        identifier.tobytes(): numbers.tobytes()
        for part in parts
        for identifier, numbers in zip(part.identifiers, part.numbers, strict=True)
    }


def until_more_were_acknowledged(folder: Path) -> None:
    """By any of the senders, than there were when this was called."""
    written = [folder / f"{number}.done" for number in range(SENDERS)]

    def sizes() -> int:
        return sum(one.stat().st_size for one in written if one.exists())

    before, deadline = sizes(), time.monotonic() + 300
    while sizes() == before:
        assert time.monotonic() < deadline, (folder / "senders.log").read_text()
        time.sleep(0.005)


def test_killed_while_collecting(place, tmp_path) -> None:
    agreement = propose(mechanism="moment", quorum=50)
    agreement.save(tmp_path / "agreement.json")
    generator = np.random.default_rng(7)
    service = Serving(place, tmp_path)
    service.start()
    assert service.post("/collections", content=agreement.to_json()).status_code == 201
    arguments = [service.url, str(tmp_path / "agreement.json"), str(tmp_path)]
    senders = [
        processes.start(sender.main, *arguments, str(number), out=tmp_path / "senders.log")
        for number in range(SENDERS)
    ]
    try:
        for _ in range(KILLS):
            until_more_were_acknowledged(tmp_path)
            time.sleep(float(generator.uniform(0.0, 0.05)))
            service.kill()
            service.start()
        (tmp_path / "stop").touch()
        for one in senders:
            assert one.wait(600) == 0, (tmp_path / "senders.log").read_text()
    finally:
        for one in senders:
            one.kill()
            one.wait()
        service.stop()
    acknowledged = [read(tmp_path / f"{n}.done", agreement) for n in range(SENDERS)]
    sent = by_identifier(*(read(tmp_path / f"{n}.sent", agreement) for n in range(SENDERS)))
    with Store(place) as store:
        parts = list(store.submissions(agreement.fingerprint))
        stored = by_identifier(*parts)
        assert sum(len(part) for part in parts) == len(stored) == store.count(agreement)
        expected = by_identifier(*acknowledged)
        assert len(expected) > KILLS, "between any two kills"
        assert expected == stored, "every one that was acknowledged, and each once"
        assert expected.items() <= sent.items()
        model = store.publish(agreement)
        totals = totals_of(agreement, *acknowledged)
        np.testing.assert_array_equal(store.moments(agreement).sums, totals.sums)
        assert model.weights.tolist() == learn(agreement, totals).weights.tolist()


def test_killed_while_publishing(place, tmp_path) -> None:
    """Either it never happened, or it happened once: the first model that anyone saw stays."""
    agreement = propose()
    generator = np.random.default_rng(3)
    service = Serving(place, tmp_path)
    service.start()
    service.post("/collections", content=agreement.to_json())
    path = f"/collections/{agreement.fingerprint}"
    batch = perturb_table(agreement, {name: np.resize(v, 2000) for name, v in PEOPLE.items()})
    with Store(place) as store:
        store.add(agreement, batch)
    seen: set[bytes] = set()
    states: list[str] = []

    def publish() -> None:
        try:
            answer = service.post(f"{path}/publish")
        except Exception:  # killed: no answer
            return
        if answer.status_code == 200:
            seen.add(answer.content)

    for _ in range(3):
        asking = [threading.Thread(target=publish) for _ in range(2)]
        for thread in asking:
            thread.start()
        time.sleep(float(generator.uniform(0.0, 0.03)))
        service.kill()
        for thread in asking:
            thread.join()
        with Store(place) as store:
            states.append(store.status(agreement.fingerprint).state)
        service.start()
    publish()
    service.stop()
    assert len(seen) == 1
    known = ["collecting", "closed", "published"]
    assert sorted(states, key=known.index) == states, "and never back"
    with Store(place) as store:
        assert {store.model(agreement.fingerprint).encode()} == seen
        assert PublishedModel.from_json(seen.pop().decode()).count == 2000


@pytest.mark.parametrize("meanwhile", [False, True], ids=["then", "meanwhile"])
def test_killed_while_learning(place, tmp_path, meanwhile) -> None:
    """The set was fixed before: whoever publishes again, then or meanwhile, does so from that set.

    As long as one service learns it stores what comes to other collections.
    """
    agreement, other = propose(), propose(epsilon=99)
    learning, continuing = (Serving(place, tmp_path / name) for name in ("one", "other"))
    for one in (learning, continuing):
        one.folder.mkdir()
    learning.command = dawdling
    learning.start()
    for one in (agreement, other):
        assert learning.post("/collections", content=one.to_json()).status_code == 201
    batch = perturb_table(agreement, PEOPLE)
    continuing.token_file.write_bytes(learning.token_file.read_bytes())

    def send(service: Serving, under) -> int:
        with Client(service.url) as client:
            return client.submit(next(iter(perturb_table(under, PEOPLE))))

    path = f"/collections/{agreement.fingerprint}/publish"
    asking = threading.Thread(target=asked, args=(learning, path))
    try:
        with Store(place) as store:
            store.add(agreement, batch)
        asking.start()
        until_there(learning.folder / "learning")
        assert send(learning, other) == 1
        if not meanwhile:
            learning.kill()
        with Store(place) as store:
            assert store.status(agreement.fingerprint).state == "closed"
        continuing.start()
        with pytest.raises(ClosedError):
            send(continuing, agreement)
        models = {continuing.post(path).content for _ in range(2)}
    finally:
        learning.kill()
        asking.join()
        continuing.stop()
        learning.stop()
    with Store(place) as store:
        assert {store.model(agreement.fingerprint).encode()} == models
    expected = learn(agreement, totals_of(agreement, batch))
    (found,) = (PublishedModel.from_json(one) for one in models)
    assert (found.count, found.weights.tolist()) == (40, expected.weights.tolist())


def dawdling(*arguments: str) -> None:
    """`blurfit …` that never gets done with learning, and says that it has begun."""
    told = Path(arguments[arguments.index("--admin-token-file") + 1]).with_name("learning")

    def dawdle(*_arguments: object) -> NoReturn:
        told.touch()
        while True:
            time.sleep(60)

    assert release.with_database_noise
    release.with_database_noise = dawdle
    processes.blurfit(*arguments)


def asked(service: Serving, path: str) -> None:
    with suppress(httpx.TransportError):  # killed: no answer
        service.post(path)


def until_there(path: Path) -> None:
    deadline = time.monotonic() + 300
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("file", ["-wal", "-shm"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_killed_after_the_log_was_lost(in_memory, file, how) -> None:
    """Seen before: 10 were acknowledged, `rm c.db-wal`, 20 more were acknowledged, none stored."""
    agreement, path = propose(mechanism="moment", quorum=50), in_memory / "c.db"
    service = Serving(f"sqlite:///{path}", in_memory)
    service.start()
    people = list(perturb_table(agreement, PEOPLE))

    def send(*rows: int) -> list[int]:
        return [
            service.client.post(
                f"{service.url}/collections/{agreement.fingerprint}/submissions",
                content=people[row].to_bytes(),
                headers={"content-type": BINARY},
            ).status_code
            for row in rows
        ]

    try:
        assert service.post("/collections", content=agreement.to_json()).status_code == 201
        assert send(*range(10)) == [200] * 10
        lost = Path(f"{path}{file}")
        content = lost.read_bytes()
        lost.unlink()
        if how == "replaced":
            lost.write_bytes(content)
        assert send(*range(10, 20)) == [503] * 10
        assert service.client.get(f"{service.url}/healthz").status_code == 503
        state = service.client.get(f"{service.url}/collections/{agreement.fingerprint}")
        assert state.status_code == 503, "nothing is shown that may not be there tomorrow"
        service.kill()
        service.start()
        with Store(path) as store:
            found = by_identifier(*store.submissions(agreement.fingerprint))
        assert found == by_identifier(Submissions.gather(people[:10]))
        assert send(*range(20)) == [200] * 20, "and each counts once"
    finally:
        service.stop()
