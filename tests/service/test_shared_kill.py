"""Both databases killed at random, while they collect and while they publish together."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from blurfit import PublishedModel
from blurfit.store import blocks
from blurfit.store.store import Store
from support import processes, share_sender
from support.serving import Serving
from support.share_sender import WIDTH, read
from support.sharing import propose

KILLS, SENDERS, PUBLISHING_KILLS = 3, 2, 3


def two_places(place: str, request, in_memory) -> tuple[str, str]:
    """A store of the same kind for each of the two."""
    if place.startswith("sqlite"):
        return place, f"sqlite:///{in_memory / 'second.db'}"
    return place, request.getfixturevalue("places").fresh()


def until_acknowledged(count: int, folder: Path) -> None:
    """So many records, by both databases."""
    written = [folder / f"{number}.done" for number in range(SENDERS)]
    deadline = time.monotonic() + 300
    while sum(one.stat().st_size for one in written if one.exists()) < count * WIDTH:
        assert time.monotonic() < deadline, (folder / "senders.log").read_text()
        time.sleep(0.005)


@pytest.mark.parametrize("proofs", [False, True], ids=["without proofs", "with proofs"])
def test_killed_while_collecting_and_publishing(
    place, request, in_memory, tmp_path, proofs
) -> None:
    if proofs and not place.startswith("sqlite"):
        pytest.skip("verdicts are transactions like all others, which both kinds keep")
    (tmp_path / "peer.txt").write_text("a-secret-that-two-databases-share-in-tests")
    databases = []
    for name, where in zip(("first", "second"), two_places(place, request, in_memory), strict=True):
        folder = tmp_path / name
        folder.mkdir()
        more = ("--peer-token-file", str(tmp_path / "peer.txt"))
        databases.append(Serving(where, folder, more))
    first, second = databases
    databases_named = [("Office", first.url), ("University", second.url)]
    agreement = propose(databases_named, quorum=20, proofs=proofs)
    agreement.save(tmp_path / "agreement.json")
    generator = np.random.default_rng(11)
    for service, role in ((first, "first"), (second, "second")):
        service.start()
        opened = service.post(f"/collections?role={role}", content=agreement.to_json())
        assert opened.status_code == 201, opened.text
    arguments = [str(tmp_path / "agreement.json"), str(tmp_path)]
    senders = [
        processes.start(share_sender.main, *arguments, str(number), out=tmp_path / "senders.log")
        for number in range(SENDERS)
    ]
    path, models = f"/collections/{agreement.fingerprint}", set()
    try:
        for turn in range(KILLS):
            until_acknowledged(1 + 5 * turn, tmp_path)
            time.sleep(float(generator.uniform(0.0, 0.1)))
            service = databases[int(generator.integers(2))]
            service.kill()
            service.start()
        until_acknowledged(21, tmp_path)
        (tmp_path / "stop").touch()
        for sender in senders:
            assert sender.wait(600) == 0, (tmp_path / "senders.log").read_text()
        assert second.post(f"{path}/close").status_code == 200

        def publish(service: Serving) -> None:
            try:
                answer = service.post(f"{path}/publish")
            except Exception:  # killed: no answer
                return
            if answer.status_code == 200:
                models.add(answer.content)

        for _ in range(PUBLISHING_KILLS):
            asking = [threading.Thread(target=publish, args=(one,)) for one in (first, second)]
            for thread in asking:
                thread.start()
            time.sleep(float(generator.uniform(0.0, 0.06)))
            service = databases[int(generator.integers(2))]
            service.kill()
            service.start()
            for thread in asking:
                thread.join()
        publish(first)
        publish(second)
    finally:
        for sender in senders:
            sender.kill()
            sender.wait()
        for service in databases:
            service.stop()
    assert len(models) == 1, "one model, whoever was asked and whenever"
    done = {k: v for n in range(SENDERS) for k, v in read(tmp_path / f"{n}.done").items()}
    sent = {k: v for n in range(SENDERS) for k, v in read(tmp_path / f"{n}.sent").items()}
    assert len(done) > 20
    with Store(first.place) as here, Store(second.place) as there:
        mark = agreement.fingerprint
        assert {here.model(mark).encode(), there.model(mark).encode()} == models
        assert here.moments_text(mark) == there.moments_text(mark)
        held = [
            {
                one.tobytes()
                for one in store.read(blocks.held_identifiers, store.collection(mark).key)
            }
            for store in (here, there)
        ]
        common = held[0] & held[1]
        assert done.keys() <= common <= sent.keys(), "whoever was told so is counted"
        assert PublishedModel.from_json(models.pop()).count == len(common)
        total = sum(sent[name] for name in common)
        shown = here.moments(mark)
        assert shown.sums.tolist() == (total * agreement.grid.quadratic).tolist()
