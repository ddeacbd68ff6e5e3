"""Count the modules, rooms and functions that a walk through the house crosses.

    .venv/bin/python release/walks.py

Everything is imported first; then each walk runs once under `sys.setprofile`, in all threads, so
that a service that answers in a thread of its own is counted with its caller. A module counts if
one of its functions ran.
"""

import importlib
import pkgutil
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import blurfit as bf
import blurfit_server

LIMITS = {
    "a record, blurred and stored over HTTP": 25,
    "a table, fitted and summarised": 32,
    "a plan at two databases": 46,
}
PEOPLE = 400
Walk = Callable[[ExitStack], Callable[[], object]]


def read_everything() -> None:
    """Import every module of the product that can be imported."""
    for package in (bf, blurfit_server):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)


class Counter:
    """Note the module and the name of each function of ours that is called while `on`."""

    def __init__(self) -> None:
        self.on, self.crossed = False, set[tuple[str, str]]()

    def __call__(self, frame: Any, event: str, _argument: object) -> None:
        """Take note of an event."""
        if self.on and event == "call":
            module = frame.f_globals.get("__name__", "")
            if module.startswith(("blurfit.", "blurfit_server.")):
                self.crossed.add((module, frame.f_code.co_qualname))


def crossed_by(prepare: Walk) -> set[tuple[str, str]]:
    """Walk once, and return what was crossed, in this thread and in those that serve it."""
    counter = Counter()
    threading.setprofile(counter)  # for threads that are started from now on
    sys.setprofile(counter)
    try:
        with ExitStack() as stack:
            run = prepare(stack)
            counter.on = True
            run()
            counter.on = False
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return counter.crossed


def schema() -> bf.Schema:
    """Return a schema of two features and a target."""
    return bf.Schema(
        [bf.Numeric("age", 0, 100), bf.Binary("urban")], target=bf.Numeric("income", 0, 100)
    )


def label_schema() -> bf.Schema:
    """Return the same with a label."""
    return bf.Schema([bf.Numeric("age", 0, 100), bf.Binary("urban")], target=bf.Binary("rich"))


def people(target: str = "income", count: int = PEOPLE) -> dict[str, Any]:
    """Return a table of generated people."""
    source = np.random.default_rng(1)
    age = source.uniform(0, 100, count)
    rich = (source.uniform(0, 100, count) < age).astype(int)
    return {
        "age": age,
        "urban": source.integers(0, 2, count),
        target: rich if target == "rich" else age * 0.5,
    }


PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "quorum": PEOPLE, "admission": "anyone"}
RECORD = {"age": 40.0, "urban": 1, "income": 20.0}


def blurred(_stack: ExitStack) -> Callable[[], object]:
    """Prepare: a record, blurred."""
    agreement = bf.Agreement.propose(schema(), **PROMISE)
    return lambda: bf.perturb(agreement, RECORD)


def over_http(stack: ExitStack) -> Callable[[], object]:
    """Prepare: a record, blurred and sent to a service that stores it."""
    from blurfit_server import demo

    agreement = bf.Agreement.propose(schema(), **PROMISE)
    (service,) = stack.enter_context(demo.running("this machine"))
    demo.open_at(agreement, [service])
    client = stack.enter_context(bf.Client(service.url))
    return lambda: client.contribute(agreement, RECORD)


def to_model(stack: ExitStack) -> Callable[[], object]:
    """Prepare: submissions, stored, and the model of them."""
    agreement = bf.Agreement.propose(schema(), **PROMISE)
    submissions = bf.perturb_table(agreement, people())
    store = stack.enter_context(blurfit_server.Store())

    def run() -> object:
        store.add(agreement, submissions)
        return store.publish(agreement)

    return run


def from_file(stack: ExitStack) -> Callable[[], object]:
    """Prepare: a file of submissions, and the model of it."""
    from blurfit.files.engines import Threads
    from blurfit.files.learn import release_files
    from blurfit.messages.files import Writer

    agreement = bf.Agreement.propose(schema(), **PROMISE)
    path = Path(stack.enter_context(TemporaryDirectory())) / "submissions.parquet"
    with Writer(path, agreement.layout) as writer:
        writer.add(bf.perturb_table(agreement, people()))
    return lambda: bf.PublishedModel.from_json(
        release_files(agreement, [str(path)], Threads(1)).text()
    )


def fitted(waves: int) -> Walk:
    """Return the walk of a table through an estimator."""

    def prepare(_stack: ExitStack) -> Callable[[], object]:
        table = people("rich" if waves > 1 else "income", 20 * PEOPLE)
        *features, target = (np.asarray(one, dtype=float) for one in table.values())
        kind: Any = bf.MomentPerturbationClassifier if waves > 1 else bf.MomentPerturbationRegressor
        bounds: dict[str, Any] = {"bounds": ([0, 0], [100, 1])}
        bounds |= {"classes": [0, 1]} if waves > 1 else {"target_bounds": (0, 100)}
        model = kind(epsilon=1.0, delta=1e-6, waves=waves, **bounds)
        return lambda: model.fit(np.column_stack(features), target)

    return prepare


def summarised(_stack: ExitStack) -> Callable[[], object]:
    """Prepare: a table, fitted with every default, and the summary of its model."""
    table = people(count=20 * PEOPLE)
    X = np.column_stack([table["age"], table["urban"]])
    model = bf.MomentPerturbationRegressor(bounds=([0, 0], [100, 1]), target_bounds=(0, 100))
    return lambda: str(model.fit(X, table["income"]).summary())


def at_two(*, waves: bool) -> Walk:
    """Return the walk of a collection at two databases, from the terms to the model of both."""

    def prepare(stack: ExitStack) -> Callable[[], object]:
        from blurfit.contributor.blur import share
        from blurfit_server import demo

        services = stack.enter_context(demo.running(*demo.NAMES))
        databases = [stack.enter_context(one.administer()) for one in services]
        promise = PROMISE | {"databases": [(one.name, one.url) for one in services]}

        def open_at_both(agreed: Any) -> None:
            databases[0].open(agreed, role="first")
            databases[1].open(agreed, role="second")

        def run() -> object:
            if not waves:
                agreement = bf.Agreement.propose(schema(), **promise)
                open_at_both(agreement)
                with bf.Client.of(agreement) as client:
                    client.submit(share(agreement, people()))
                databases[1].close_collection(agreement)
                return databases[0].publish(agreement)
            plan = bf.Plan.propose(label_schema(), waves=2, **promise)
            open_at_both(plan)
            with bf.Client.of(plan) as client:
                for number in range(1, len(plan) + 1):
                    wave = client.current(plan)
                    while wave.wave is None or wave.wave.number < number:
                        client.pause(0.05)
                        wave = client.current(plan)
                    client.submit(share(wave, people("rich", wave.quorum)))
            return databases[0].publish(plan)

        return run

    return prepare


WALKS: dict[str, Walk] = {
    "a record, blurred": blurred,
    "a record, blurred and stored over HTTP": over_http,
    "submissions, stored, to a model": to_model,
    "a file of submissions, to a model": from_file,
    "a table, fitted": fitted(1),
    "a table, fitted and summarised": summarised,
    "a table, fitted in two waves": fitted(2),
    "two databases, with proofs": at_two(waves=False),
    "a plan at two databases": at_two(waves=True),
}


def main() -> None:
    """Walk each way, and print what it crosses; exit with an error above a limit."""
    read_everything()
    too_long = False
    print(f"{'':42}{'modules':>8}{'rooms':>7}{'functions':>11}{'at most':>9}")
    for name, prepare in WALKS.items():
        crossed = crossed_by(prepare)
        modules = {module for module, _ in crossed}
        rooms = {module.split(".")[1] for module in modules}
        print(f"{name:42}{len(modules):8}{len(rooms):7}{len(crossed):11}{LIMITS.get(name, ''):>9}")
        if "--list" in sys.argv:
            print("   ", *sorted(modules))
        too_long |= len(modules) > LIMITS.get(name, len(modules))
    if too_long:
        sys.exit("A walk must cross at most as many modules as its limit.")


if __name__ == "__main__":
    main()
