"""Both databases of a plan killed at random, while people come and while they publish together.

Whatever happens, both have published the same sums of each wave, which are those of whom both hold.
"""

import threading
import time

import numpy as np

from blurfit.contributor import sending
from blurfit.contributor.client import Client
from blurfit.errors import WaveClosedError
from blurfit.messages.submissions import expand
from blurfit.model.course import learn_plan
from blurfit.model.release import PublishedMoments
from blurfit.store import blocks
from blurfit.store.store import Store
from support.joint_plans import joint_plan
from support.plans import people, rows, written
from support.serving import Serving

KILLS, AT_ONCE, MORE = 4, 6, 30
COLUMNS = ("age", "education", "region", "married", "income")


def test_killed_while_a_plan_goes_on_between_two(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sending, "ROWS_AT_ONCE", AT_ONCE)
    (tmp_path / "peer.txt").write_text("a-secret-that-two-databases-share-in-tests")
    databases = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        more = ("--peer-token-file", str(tmp_path / "peer.txt"))
        databases.append(Serving(f"sqlite:///{folder / 'store.db'}", folder, more))
    places = zip(("Office", "University"), databases, strict=True)
    plan = joint_plan(databases=tuple((name, one.url) for name, one in places))
    generator, sent = np.random.default_rng(3), []
    try:
        for one, role in zip(databases, ("first", "second"), strict=True):
            one.start()
            answer = one.post(f"/collections?role={role}", content=plan.to_json())
            assert answer.status_code == 201, answer.text
        sender = threading.Thread(target=send_until_the_end, args=(plan, tmp_path, sent))
        sender.start()
        for _ in range(KILLS):
            time.sleep(float(generator.uniform(0.05, 0.5)))
            service = databases[int(generator.integers(2))]
            service.kill()
            service.start()
        sender.join(900)
        assert not sender.is_alive()
        until_both_have_a_model(plan, databases)
    finally:
        for one in databases:
            one.stop()
    with Store(databases[0].place) as first, Store(databases[1].place) as second:
        check(plan, first, second, sent)


def send_until_the_end(plan, folder, sent: list[int]) -> None:
    """Tables of people, one after the other, until the plan wants no more."""
    everyone = people(20 * MORE, 4)
    with Client.of(plan, patience=600.0) as client:
        for number in range(20):
            part = rows(everyone, number * MORE, (number + 1) * MORE)
            table = written(folder / f"people{number}.csv", part, COLUMNS)
            try:
                client.contribute_table(plan, table)
            except WaveClosedError:  # some were between the two closings: left out
                pass
            except Exception as error:
                if "come to its end" in str(error):
                    return
                raise
            finally:
                sent.append(MORE)


def until_both_have_a_model(plan, databases) -> None:
    deadline = time.monotonic() + 300
    path = f"/collections/{plan.fingerprint}/model"
    while {one.client.get(one.url + path).status_code for one in databases} != {200}:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def check(plan, first: Store, second: Store, sent: list[int]) -> None:
    texts, others = (one.releases(plan.fingerprint) for one in (first, second))
    assert texts == others
    releases = [PublishedMoments.from_json(text) for text in texts]
    assert len(releases) == len(plan)
    counted = 0
    for shown in releases:
        masked, seeds = (held(store, shown.fingerprint) for store in (first, second))
        common = sorted(masked.keys() & seeds.keys())
        counted += len(common)
        assert shown.count == len(common) >= shown.agreement.quorum
        masks = expand(np.array([seeds[one] for one in common]), shown.agreement.width)
        exact = (np.array([masked[one] for one in common]) - masks).view(np.int64).sum(axis=0)
        assert shown.sums.tolist() == (exact * shown.agreement.grid.quadratic).tolist()
    assert counted <= sum(sent)
    models = {one.model(plan.fingerprint) for one in (first, second)}
    assert models == {learn_plan(plan, releases).to_json()}


def held(store: Store, wave: str) -> dict[bytes, np.ndarray]:
    collection = store.collection(wave)
    parts = store.read(lambda connection: list(blocks.rows(connection, collection)))
    return {name.tobytes(): row for names, words in parts for name, row in zip(names, words)}  # noqa: B905
