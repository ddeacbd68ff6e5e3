"""Killed at random moments, services lose nothing that they acknowledged and double nothing."""

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import httpx2 as httpx
import numpy as np
import pytest

from blurfit import ClosedError, PublishedModel, learn, private_files
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Agreed
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.messages.submissions import Submissions
from blurfit.model.course import Course
from blurfit.model.release import PublishedMoments
from blurfit.protocol import BINARY
from blurfit_server.store import blocks, release
from blurfit_server.store.store import Store
from server_support import sender
from server_support.joint_plans import joint_plan
from server_support.serving import Serving
from support import processes, sharing
from support.plans import plan
from support.proposals import PEOPLE, propose, totals_of

KILLS, SENDERS = 4, 2
PLAN = plan("label", waves=3, quorum=60, admission="anyone")


def until(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + 300
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def by_identifier(*parts: Submissions) -> dict[bytes, bytes]:
    return {
        identifier.tobytes(): numbers.tobytes()
        for part in parts
        for identifier, numbers in zip(part.identifiers, part.numbers, strict=True)
    }


def identifiers(store: Store, wave: str) -> set[bytes]:
    found = store.read(blocks.held_identifiers, store.collection(wave).key)
    return {one.tobytes() for one in found}


@dataclass
class World:
    """The services of one database or of two, which are killed at random while people send."""

    agreed: Agreed
    services: list[Serving]  # those of the first database, and then that of the second
    folder: Path
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    models: set[bytes] = field(default_factory=set)  # that anyone was shown
    seen: list[tuple[list[str], list[str]]] = field(default_factory=list)  # states, and releases

    @property
    def path(self) -> str:
        return f"/collections/{self.agreed.fingerprint}"

    def open(self) -> None:
        roles = ("first", "second") if self.agreed.databases else ("whole",) * len(self.services)
        for service, role in zip(self.services, roles, strict=True):
            service.start()
            opened = service.post(f"/collections?role={role}", content=self.agreed.to_json())
            assert opened.status_code in (200, 201), opened.text
        self.agreed.save(self.folder / "document.json")

    def kill_one(self, most: float) -> None:
        """After a moment; what had been published when it was killed is kept in mind."""
        time.sleep(float(self.generator.uniform(0.0, most)))
        service = self.services[int(self.generator.integers(len(self.services)))]
        service.kill()
        with Store(self.services[0].place) as store:
            states = [one.state for one in store.status(self.agreed.fingerprint).waves]
            self.seen.append((states, store.releases(self.agreed.fingerprint)))
        service.start()

    def collect(self) -> None:
        """People send until the plan has ended, or until all kills are over."""
        log, document = self.folder / "senders.log", str(self.folder / "document.json")
        urls = [""] * SENDERS if self.agreed.databases else [one.url for one in self.services]
        senders = [
            processes.start(
                *(sender.main, document, urls[n % len(urls)], str(self.folder), str(n)), out=log
            )
            for n in range(SENDERS)
        ]

        def acknowledged() -> int:
            return sum(path.read_bytes().count(b"\n") for path in self.folder.glob("*.done"))

        try:
            for _ in range(KILLS):
                before = acknowledged()
                until(
                    lambda before=before: (
                        acknowledged() > before or all(one.poll() is not None for one in senders)
                    )
                )
                self.kill_one(0.1)
            if isinstance(self.agreed, Agreement):
                until(lambda: acknowledged() > self.agreed.quorum)
                (self.folder / "stop").touch()
            for one in senders:
                assert one.wait(600) == 0, log.read_text()
        finally:
            for one in senders:
                one.kill()
                one.wait()

    def publish(self, service: Serving) -> None:
        try:
            answer = service.post(f"{self.path}/publish")
        except httpx.TransportError:  # killed: no answer
            return
        if answer.status_code == 200:
            self.models.add(answer.content)

    def publish_all(self) -> None:
        """By whoever may, several at once, while they are killed; and then in peace."""
        if self.agreed.databases:
            assert self.services[1].post(f"{self.path}/close").status_code == 200
        for _ in range(3):
            several = [*self.services, self.services[0]]
            asking = [threading.Thread(target=self.publish, args=(one,)) for one in several]
            for thread in asking:
                thread.start()
            self.kill_one(0.05)
            for thread in asking:
                thread.join()
        for one in self.services:
            self.publish(one)

    def check(self) -> None:
        """Whoever was acknowledged is in the sums of her wave, once; nobody else is, but whom two
        databases hold without having said so to her; what was published stays what it is.
        """
        name = self.agreed.fingerprint
        places = dict.fromkeys(one.place for one in self.services)
        sent, done, late = (sender.read(self.folder, kind) for kind in ("sent", "done", "late"))
        assert done.keys().isdisjoint(late)
        assert done.keys() | late.keys() == sent.keys(), "everyone was told what became of it"
        assert len(done) > KILLS, "between any two kills"
        with ExitStack() as stack:
            stores = [stack.enter_context(Store(place)) for place in places]
            texts = stores[0].releases(name)
            assert all(store.releases(name) == texts for store in stores)
            assert all(texts[: len(before)] == before for _, before in self.seen), "for ever"
            order = ["planned", "collecting", "fixed", "released"]
            for earlier, later in itertools.pairwise(states for states, _ in self.seen):
                pairs = zip(map(order.index, earlier), map(order.index, later), strict=True)
                assert all(one <= other for one, other in pairs), "and never back"
            releases = [PublishedMoments.from_json(text) for text in texts]
            assert len(releases) == (1 if isinstance(self.agreed, Agreement) else len(self.agreed))
            for shown in releases:
                wave = shown.fingerprint
                held = [identifiers(store, wave) for store in stores]
                common = set.intersection(*held)
                told = {one for under, one in done if under == wave}
                assert told == common if len(stores) == 1 else told <= common
                assert shown.count == len(common) >= shown.agreement.quorum
                numbers = np.sum([sent[wave, one] for one in common], axis=0)
                assert shown.sums.tolist() == numbers.tolist(), "sums on the grid are exact"
                if len(stores) == 1:
                    rows = by_identifier(*stores[0].submissions(wave))
                    assert rows == {one: sent[wave, one].tobytes() for one in common}
            model = Course.of(self.agreed, releases).model().to_json()
            assert {store.model(name) for store in stores} == {model}
            shown = {model.encode()} if isinstance(self.agreed, Agreement) else set()
            assert self.models == shown, "one model, whoever was asked and whenever"


@pytest.mark.parametrize(
    ("place", "databases", "waves", "proofs"),
    [
        *(("sqlite", 1, 1, False), ("postgresql", 1, 1, False)),
        *(("sqlite", 1, 3, False), ("postgresql", 1, 3, False)),
        *(("sqlite", 2, 1, False), ("postgresql", 2, 1, False)),
        *(("sqlite", 2, 1, True), ("sqlite", 2, 2, False)),
    ],
    indirect=["place"],
)
def test_killed_while_collecting_and_publishing(
    place, request, in_memory, tmp_path, databases, waves, proofs
) -> None:
    """An agreement or a plan, at one database or two; a plan at one has two services there, where
    a store takes two.
    """
    private_files.write(tmp_path / "peer.txt", "a-secret-that-two-databases-share-in-tests")
    more = ("--peer-token-file", str(tmp_path / "peer.txt"))
    is_file = place.startswith("sqlite")
    places = [place] * (2 if waves > 1 and not is_file else 1)
    if databases == 2:
        second = f"sqlite:///{in_memory / 'second.db'}"
        places = [place, second if is_file else request.getfixturevalue("places").fresh()]
    services = []
    for number, where in enumerate(places):
        folder = tmp_path / str(number if databases == 2 else 0)
        folder.mkdir(exist_ok=True)
        services.append(Serving(where, folder, more))
    two = tuple(zip(("Office", "University"), (one.url for one in services), strict=False))
    if databases == 1:
        agreed = propose(quorum=50) if waves == 1 else PLAN
    elif waves == 1:
        agreed = sharing.propose(two, epsilon=190, quorum=20, proofs=proofs)
    else:
        agreed = joint_plan(databases=two)
    world = World(agreed, services, tmp_path)
    try:
        world.open()
        world.collect()
        if waves == 1:
            world.publish_all()
        else:
            for one in services:
                shown = f"{one.url}{world.path}/model"
                until(lambda one=one, shown=shown: one.client.get(shown).is_success)
    finally:
        for one in services:
            one.stop()
    world.check()


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
    private_files.write(continuing.token_file, learning.token_file.read_bytes())

    def send(service: Serving, under) -> int:
        with Client(service.url) as client:
            return client.submit(next(iter(perturb_table(under, PEOPLE))))

    path = f"/collections/{agreement.fingerprint}/publish"
    asking = threading.Thread(target=asked, args=(learning, path))
    try:
        with Store(place) as store:
            store.add(agreement, batch)
        asking.start()
        until((learning.folder / "learning").exists)
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


@pytest.mark.parametrize("file", ["-wal", "-shm"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_killed_after_the_log_was_lost(in_memory, file, how) -> None:
    """Seen before: 10 were acknowledged, `rm c.db-wal`, 20 more were acknowledged, none stored."""
    agreement, path = propose(quorum=50), in_memory / "c.db"
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
