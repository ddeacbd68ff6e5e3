"""Ordinary commands in any order: whatever was released is of one set, or of people apart.

A walk takes random steps: somebody contributes or withdraws, a store is closed, published,
exported, backed up, lost and restored, files are written, moved and renamed, and models are learned
from folders. What each step may do, the product decides; what it released is recognised by the sums
that it shows, as those of some of the people.
"""

import itertools
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blurfit import BlurfitError, Submissions, perturb_table
from blurfit.files.engines import Threads
from blurfit.files.learn import release_files
from blurfit.model.release import PublishedMoments
from blurfit_server import Store
from blurfit_server.store.export import export
from blurfit_server.store.store import backup, move_here, restore
from support.proposals import PEOPLE, propose, totals_of, write_file

AGREEMENT = propose(quorum=2)  # so that a file alone is enough
PRINT = AGREEMENT.fingerprint
MOST = 7  # groups of people
STEPS, WALKS = 24, 10


class NothingThereError(Exception):
    """There is no such file, store or backup for this step."""


@dataclass
class World:
    """Folders, stores and backups, who is in them, and everything that was released."""

    folder: Path
    place: str  # of the first store: SQLite or PostgreSQL
    random: np.random.Generator
    groups: list[Submissions] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    backups: list[Path] = field(default_factory=list)
    unsafe: set[Path] = field(default_factory=set)  # the original has released something since
    released: dict[str, frozenset[int]] = field(default_factory=dict)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            (self.folder / name).mkdir()
        self.stores = [self.place]
        with Store(self.place) as store:
            for _ in range(2):
                store.add(AGREEMENT, self.someone())

    def someone(self) -> Submissions:
        answers = {name: self.random.uniform(0, 100, 2) for name in PEOPLE}
        self.groups.append(perturb_table(AGREEMENT, answers))
        return self.groups[-1]

    def chosen(self, some: list[Any]) -> Any:
        if not some:
            raise NothingThereError
        return some[int(self.random.integers(len(some)))]

    def store(self) -> str:
        return str(self.chosen(self.stores))

    def lake(self) -> Path:
        return self.folder / str(self.chosen(["a", "b"]))

    def file(self) -> Path:
        return Path(self.chosen(sorted(self.folder.glob("?/*.parquet"))))

    def note(self, moments: str | None) -> None:
        """Find out of whom these sums are, and that nobody is in another set as well."""
        assert moments is not None
        shown = PublishedMoments.from_json(moments)
        for size in range(1, len(self.groups) + 1):
            for some in itertools.combinations(range(len(self.groups)), size):
                found = totals_of(AGREEMENT, *(self.groups[one] for one in some))
                if found.count == shown.count and (found.sums == shown.sums).all():
                    for other in self.released.values():
                        assert other == frozenset(some) or not other & set(some), "two sets"
                    self.released[moments] = frozenset(some)
                    return
        raise AssertionError("sums of nobody")

    # ---- steps

    def contribute(self) -> None:
        if len(self.groups) < MOST:
            with Store(self.store()) as store:
                store.add(AGREEMENT, self.someone())

    def write_a_file(self) -> None:
        if len(self.groups) < MOST:
            number = next(self.numbers)
            write_file(self.lake() / f"{number}.parquet", AGREEMENT, self.someone())

    def withdraw(self) -> None:
        with Store(self.store()) as store:
            one = self.chosen(self.groups)
            store.withdraw(store.collection(PRINT), one.identifiers)

    def close(self) -> None:
        with Store(self.store()) as store:
            store.close_collection(PRINT)

    def publish(self) -> None:
        with Store(self.store()) as store:
            self.unsafe.update(self.backups)  # also if it was killed before it answered
            store.publish(AGREEMENT)
            self.note(store.moments_text(PRINT))

    def export(self) -> None:
        with Store(self.store()) as store:
            self.unsafe.update(self.backups)
            export(store, PRINT, self.lake() / f"{self.chosen(['x', 'y'])}.parquet")

    def learn(self) -> None:
        words = self.chosen([["a"], ["b"], ["a", "b"]])
        found = release_files(AGREEMENT, [str(self.folder / one) for one in words], Threads(1))
        self.note(found.moments)

    def learn_from_one(self) -> None:
        self.note(release_files(AGREEMENT, [str(self.file())], Threads(1)).moments)

    def move(self) -> None:
        self.file().rename(self.lake() / f"moved{next(self.numbers)}.parquet")

    def change_folders(self) -> None:
        """A whole folder gets another name, with what is in it."""
        (self.folder / "a").rename(self.folder / "t")
        (self.folder / "b").rename(self.folder / "a")
        (self.folder / "t").rename(self.folder / "b")

    def back_up(self) -> None:
        out = self.folder / f"{next(self.numbers)}.backup"
        backup(self.store(), out)
        self.backups.append(out)

    def restore(self) -> None:
        """Closed; or to go on, if whoever declares the originals lost tells the truth."""
        source = Path(self.chosen(self.backups))
        lost = source not in self.unsafe and bool(self.random.integers(2))
        if lost and self.random.integers(4):
            self.lose()
        out = self.folder / f"{next(self.numbers)}.db"
        restore(source, out, original_lost=lost)
        self.stores.append(str(out))

    def copy(self) -> None:
        """Of a store and its copy, which is declared to be all of it, both go on."""
        name = f"{next(self.numbers)}.db"
        place = Path(self.chosen([one for one in self.stores if "://" not in one]))
        for path in place.parent.glob(f"{place.name}*"):
            end = path.name.removeprefix(place.name)
            shutil.copy(path, self.folder / f"copy{name}{end}")
            path.rename(self.folder / f"{name}{end}")
        self.stores.remove(str(place))
        self.stores.append(str(self.folder / name))
        move_here(copy := str(self.folder / f"copy{name}"))
        self.stores.append(copy)

    def lose(self) -> None:
        for place in [one for one in self.stores if "postgresql" not in one]:
            for path in Path(place.removeprefix("sqlite:///")).parent.glob(f"{Path(place).name}*"):
                path.unlink()
            self.stores.remove(place)


def walked(world: World, steps: int) -> dict[str, frozenset[int]]:
    collecting = [
        world.contribute,
        world.withdraw,
        world.back_up,
        world.restore,
        world.write_a_file,
        world.copy,
    ]
    releasing = [
        world.publish,
        world.export,
        world.export,
        *[world.learn, world.learn_from_one] * 2,
    ]
    anywhere = [world.move, world.change_folders, world.write_a_file, world.restore, world.close]
    # Habits: who publishes at once never comes to learn from files.
    habits = [one for one in [*releasing, *anywhere] if world.random.integers(2)]
    for step in range(steps):
        with suppress(BlurfitError, NothingThereError):
            world.chosen(collecting if 4 * step < steps else habits)()
        if 4 * step // steps == 1 and world.random.integers(2):
            world.close()
    return world.released


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_there_is_one_set_in_any_order(kind, request, tmp_path, monkeypatch) -> None:
    released = 0
    for seed in range(WALKS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        monkeypatch.setenv("BLURFIT_HOME", str(folder / "home"))
        place = str(folder / "store.db")
        if kind == "postgresql":
            place = request.getfixturevalue("places").fresh()
        world = World(folder, place, np.random.default_rng(seed))
        released += len(walked(world, STEPS))
    assert released > WALKS / 2, "most of them came to something"
