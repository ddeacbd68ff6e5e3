"""Two services on one store, killed at random while a plan goes from wave to wave by itself.

Everyone who was acknowledged is in the sums of her wave, once; nobody else is; and what was
published once stays what it is.
"""

import time

import numpy as np

from blurfit.model.course import Course, learn_plan
from blurfit.model.release import PublishedMoments
from blurfit.store.store import Store
from support import processes, wave_sender
from support.plans import plan
from support.serving import Serving
from support.wave_sender import read

PLAN = plan("label", waves=3, quorum=60, admission="anyone")
KILLS, SENDERS = 3, 2


def test_killed_while_a_plan_goes_on(place, tmp_path) -> None:
    PLAN.save(tmp_path / "plan.json")
    generator, seen = np.random.default_rng(5), []
    services = [Serving(place, tmp_path) for _ in range(2 if "postgres" in place else 1)]
    for one in services:
        one.start()
    assert services[0].post("/collections", content=PLAN.to_json()).status_code == 201
    senders = [
        processes.start(
            wave_sender.main,
            *(services[number % len(services)].url, str(tmp_path / "plan.json")),
            *(str(tmp_path), str(number)),
            out=tmp_path / "senders.log",
        )
        for number in range(SENDERS)
    ]
    try:
        for _ in range(KILLS):
            time.sleep(float(generator.uniform(0.02, 0.3)))
            service = services[int(generator.integers(len(services)))]
            service.kill()
            with Store(place) as store:
                seen.append(store.releases(PLAN.fingerprint))
            service.start()
        for one in senders:
            assert one.wait(600) == 0, (tmp_path / "senders.log").read_text()
        until_learned(services[0])
    finally:
        for one in senders:
            one.kill()
            one.wait()
        for one in services:
            one.stop()
    with Store(place) as store:
        check(store, tmp_path, seen)


def until_learned(service: Serving) -> None:
    deadline = time.monotonic() + 300
    while (
        service.client.get(f"{service.url}/collections/{PLAN.fingerprint}/model").status_code != 200
    ):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def check(store: Store, folder, seen: list[list[str]]) -> None:
    texts = store.releases(PLAN.fingerprint)
    assert all(texts[: len(before)] == before for before in seen), "published once, and for ever"
    sent, done, late = (read(folder, kind) for kind in ("sent", "done", "late"))
    assert not done & late
    assert done | late == sent, "everyone was told what became of it"
    status = store.status(PLAN.fingerprint)
    assert (status.state, [one.state for one in status.waves]) == ("ended", ["released"] * 3)
    releases = [PublishedMoments.from_json(text) for text in texts]
    for wave, shown in zip(status.waves, releases, strict=True):
        parts = list(store.submissions(wave.fingerprint))
        names = {(wave.fingerprint, one.identifier) for part in parts for one in part}
        assert names == {one for one in done if one[0] == wave.fingerprint}
        assert shown.count == wave.count == len(names) >= wave.quorum
        numbers = np.concatenate([part.numbers for part in parts])
        assert shown.sums.tolist() == numbers.sum(axis=0).tolist(), "sums on the grid are exact"
    Course.of(PLAN, releases)  # each wave follows from those before
    assert store.model(PLAN.fingerprint) == learn_plan(PLAN, releases).to_json()
