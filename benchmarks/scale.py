"""From a laptop to a cluster: files, a cluster, publishing, a trial, importing; and their growth.

`python benchmarks/scale.py --json results.json`: each beside a limit or a rival in the same run.
`--large` measures memory at 2²⁵ rows too, which needs 8 GB of disk, and `--only crowd --rows
100000000` reads 10⁸ people from one file, of 6 GB. Files are made first, from generated people
(synthetic), and removed at the end.
"""

import importlib
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from measure import Row, best_times, show
from rich.console import Console

from blurfit import Agreement, Numeric, Schema, Submissions, perturb_table
from blurfit.contributor.sending import blur_table
from blurfit.files.engines import Cluster, Engine, Threads
from blurfit.files.learn import Work, scanned
from blurfit.learning.sums import Totals
from blurfit.messages.files import Writer
from blurfit_server import Store

FloatArray = npt.NDArray[np.float64]

ROWS, DIMENSION, FEW = 2**21, 14, 3
AT_ONCE = 2**18


def agreement(quorum: int, d: int = DIMENSION) -> Agreement:
    """Under which everything here is collected: in files by d numbers in q, and d in p."""
    features = [Numeric(f"x{i}", 0, 1) for i in range(d - 1)]
    return Agreement.propose(
        Schema(features=features, target=Numeric("y", 0, 1)),
        epsilon=1,
        delta=1e-6,
        quorum=quorum,
    )


def people(rows: int, d: int = DIMENSION) -> dict[str, FloatArray]:
    """Anyone."""
    generator = np.random.default_rng(0)
    return {name: generator.random(rows) for name in (*(f"x{i}" for i in range(d - 1)), "y")}


def blurred(agreed: Agreement, rows: int) -> FloatArray:
    """What so many people send, some hundred thousand at most."""
    table = people(min(rows, AT_ONCE), agreed.schema.dimension)
    return perturb_table(agreed, table).numbers


def write(path: Path, agreed: Agreement, rows: int) -> Path:
    """A file of submissions: numbers repeat after some hundred thousand rows, names do not."""
    numbers = blurred(agreed, rows)
    generator = np.random.default_rng(rows)
    with Writer(path, agreed.layout) as writer:
        for start in range(0, rows, AT_ONCE):
            part = numbers[: min(AT_ONCE, rows - start)]
            names = generator.integers(0, 256, (len(part), 16), dtype=np.uint8)
            writer.append(names, part)
    return path


def learn(agreed: Agreement, path: Path, engine: Engine) -> Totals:
    """Check, add and tell apart everything in a file."""
    with scanned(agreed, Work.of(agreed, [str(path)]), engine) as (found, _):
        return found


def plain(path: Path, d: int) -> FloatArray:
    """Reading the file with pyarrow and one BLAS product, nothing else."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    chunks = pq.read_table(path)["numbers"].chunks
    numbers = [chunk.flatten().to_numpy().reshape(-1, 2 * d)[:, :d] for chunk in chunks]
    return np.asarray(sum(q.T @ q for q in numbers))


def files(folder: Path, rounds: int, rows: int) -> Iterator[Row]:
    """Threads beside pyarrow and BLAS; a cluster beside one thread."""
    agreed = agreement(rows)
    path = write(folder / "submissions.parquet", agreed, rows)
    arrow = write(folder / "submissions.arrow", agreed, rows)
    ours, alone, arrows, limit = best_times(
        partial(learn, agreed, path, Threads()),
        partial(learn, agreed, path, Threads(1)),
        partial(learn, agreed, arrow, Threads()),
        partial(plain, path, DIMENSION),
        rounds=rounds,
    )
    what = f"statistics of {rows:,} × 2·{DIMENSION}"
    yield Row(f"{what} from Parquet", ours, "pyarrow and one product", ours / limit)
    yield Row(f"{what} from Parquet, one thread", alone, "pyarrow and one product", alone / limit)
    yield Row(f"{what} from Arrow", arrows, "the same from Parquet", arrows / ours)
    with Cluster(workers=2) as cluster:
        learn(agreed, path, cluster)  # so that the workers have imported what they need
        spread, single = best_times(
            partial(learn, agreed, path, cluster),
            partial(learn, agreed, path, Threads(1)),
            rounds=rounds,
        )
        there, here = seconds_of(cluster), process_time()
        learn(agreed, path, cluster)
        there = seconds_of(cluster) - there
        here, before = process_time(), here
        learn(agreed, path, Threads(1))
        alone = process_time() - here
    yield Row("the same, Dask, 2 workers", spread, "local, one thread: faster by", single / spread)
    # What other people's work on this machine does not change.
    yield Row("processor time of both workers", there, "that of one thread", there / alone)
    yield Row(
        "processor time of whoever asks",
        here - before,
        "that of one thread",
        (here - before) / alone,
    )


def seconds_of(cluster: Cluster) -> float:
    """Return the processor time of all workers so far."""
    return float(sum(cluster.client.run(process_time).values()))


def crowd(folder: Path, rows: int) -> Iterator[Row]:
    """Very many people of few columns in one file: seconds of this machine, and of a cluster."""
    agreed = agreement(rows, FEW)
    start = perf_counter()
    path = write(folder / "crowd.parquet", agreed, rows)
    writing, size = perf_counter() - start, path.stat().st_size / 2**30
    what = f"statistics of {rows:,} × 2·{FEW}"
    for name, engine in (("threads", Threads()), ("Dask, 2 workers", Cluster(workers=2))):
        with engine if isinstance(engine, Cluster) else nullcontext():
            start = perf_counter()
            found = learn(agreed, path, engine)
            seconds = perf_counter() - start
        assert found.count == rows
        yield Row(f"{what}, {name}", seconds, f"writing {size:.1f} GiB", seconds / writing)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    Console().print(f"highest memory of this process: {peak:.0f} MB")


MEMORY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from scale import Threads, agreement, learn, write
agreed = agreement(2**21)
small = write(Path(sys.argv[3]), agreed, 1000)
learn(agreed, small, Threads())  # everything is imported, and threads have run
def kilobytes(line):
    words = Path("/proc/self/status").read_text().split(line + ":")[1].split()
    return int(words[0])
Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
before = kilobytes("VmRSS")
learn(agreed, Path(sys.argv[2]), Threads())
print(kilobytes("VmHWM") - before)
"""


def memory(folder: Path, exponents: list[int]) -> Iterator[str]:
    """Peak memory over that of a process which has learned from a thousand rows."""
    agreed = agreement(ROWS)
    for exponent in exponents:
        path = write(folder / f"{exponent}.parquet", agreed, 2**exponent)
        arguments = [str(Path(__file__).parent), str(path), str(folder / "small.parquet")]
        said = subprocess.run(
            [sys.executable, "-c", MEMORY, *arguments], check=True, capture_output=True, text=True
        ).stdout
        yield f"peak memory at 2^{exponent} rows: {int(said) / 1024:.0f} MB over the interpreter's"
        path.unlink()


def publishing(folder: Path, rounds: int, rows: int) -> Iterator[Row]:
    """Publishing reads sums; beside reading the numbers of every submission from SQLite."""
    agreed = agreement(rows)
    place = store_full(folder / "collection.db", agreed, rows)
    with Store(place) as store:
        reading, _, once = best_times(
            partial(read_everything, place),
            partial(forget, place),
            partial(store.publish_text, agreed.fingerprint),
            rounds=rounds,
        )
    yield Row(f"publish {rows:,} stored", once, "reading them all: faster by", reading / once)
    place.unlink()


def store_full(place: Path, agreed: Agreement, rows: int) -> Path:
    """A store with so many submissions, which came some thousands at a time."""
    numbers = blurred(agreed, rows)
    generator = np.random.default_rng(1)
    with Store(place) as store:
        for start in range(0, rows, 2**13):
            part = numbers[start % len(numbers) :][: min(2**13, rows - start)]
            names = generator.integers(0, 256, (len(part), 16), dtype=np.uint8)
            store.add(agreed, Submissions(names, agreed.fingerprint, part))
    return place


def read_everything(place: Path) -> int:
    """Every row, and nothing done with it."""
    with closing(sqlite3.connect(place)) as file:
        return sum(len(rows) for (rows,) in file.execute("SELECT rows FROM blocks"))


def forget(place: Path) -> None:
    """As if nothing had been published, for another round."""
    with closing(sqlite3.connect(place, isolation_level=None)) as file:
        file.execute("UPDATE waves SET state = 'collecting', model = NULL, moments = NULL")
        file.execute("UPDATE courses SET state = 'collecting'")


def bulk(folder: Path, rows: int) -> Iterator[Row]:
    """A table blurred into a file, beside drawing its normals."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from randomgen import ChaCha  # type: ignore[import-untyped]

    agreed = agreement(rows)
    source = folder / "people.parquet"
    pq.write_table(pa.table(people(rows)), source)
    start = perf_counter()
    blur_table(agreed, source, folder / "blurred.parquet")
    ours = perf_counter() - start
    generator = np.random.Generator(ChaCha(key=1, rounds=20))
    room = np.empty((rows, agreed.width))
    (alone,) = best_times(partial(generator.standard_normal, out=room), rounds=3)
    what = f"contribute --out, {rows:,} × {agreed.width} numbers, file to file, resumable"
    yield Row(what, ours, "ChaCha20 normals, one core", ours / alone)


def trial(rounds: int, rows: int) -> Iterator[Row]:
    """One experiment: a draw and a model; beside noise for each record and CVXPY."""
    cp: Any = importlib.import_module("cvxpy")

    from blurfit.input_perturbation.algorithms import Sampler, Sums, solve
    from blurfit.input_perturbation.calibration import PublicInput
    from blurfit.input_perturbation.losses import SquaredLoss
    from blurfit.learning.solver import minimise

    facts: Any = {"dimension": DIMENSION, "quorum": rows, "epsilon": 1, "delta": 1e-6}
    public = PublicInput.agree(SquaredLoss(), weight_bound=3.0, **facts)
    calibration, generator = public.calibration, np.random.default_rng(0)
    q = generator.uniform(-1, 1, (rows, DIMENSION)) / np.sqrt(DIMENSION)
    p = q * generator.uniform(-1, 1, (rows, 1))
    clean = Sums(rows, q.T @ q, p.sum(axis=0))
    draws = Sampler.of(clean, q_noise=calibration.q_noise, p_noise=calibration.p_noise)

    def ours() -> object:
        sums = draws.draw(generator)
        return minimise(sums.gram, sums.moment, ridge=calibration.ridge, weight_bound=3.0)

    def published() -> object:
        return solve(public, draws.draw(generator))

    def theirs() -> object:
        blurred = q + generator.standard_normal(q.shape) * calibration.q_noise
        linear = (p + generator.standard_normal(p.shape) * calibration.p_noise).sum(axis=0)
        w = cp.Variable(DIMENSION)
        gram = blurred.T @ blurred + calibration.ridge * np.eye(DIMENSION)
        objective = cp.Minimize(cp.quad_form(w, cp.psd_wrap(gram)) / 2 - linear @ w)
        return cp.Problem(objective, [cp.norm(w) <= 3.0]).solve()

    (mine,) = best_times(ours, number=20, rounds=rounds)
    (whole,) = best_times(published, number=20, rounds=rounds)
    (rival,) = best_times(theirs, rounds=2)
    rivals = "noise for each record and CVXPY: faster by"
    yield Row(f"one trial at {rows:,}: draw and solve", mine, rivals, rival / mine)
    yield Row("the same with `solve`, which proves how exact it is", whole, rivals, rival / whole)


def importing(rounds: int) -> Iterator[Row]:
    """`import blurfit` in a new process, beside what any such package needs."""

    def run(code: str) -> object:
        return subprocess.run([sys.executable, "-c", code], check=True)

    nothing, ours, theirs, used = best_times(
        partial(run, "pass"),
        partial(run, "import blurfit"),
        partial(run, "import numpy, scipy.linalg"),
        partial(run, "from blurfit import Agreement, learn, perturb"),
        rounds=max(rounds, 7),
    )
    against = "import numpy, scipy.linalg"
    ratio = (ours - nothing) / (theirs - nothing)
    yield Row("import blurfit, over an empty process", ours - nothing, against, ratio)
    ratio = (used - nothing) / (theirs - nothing)
    yield Row("the same with Agreement, learn, perturb", used - nothing, against, ratio)


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--rows", default=ROWS, show_default=True, help="Of files and stores.")
@click.option("--only", help="One of importing, files, publishing, bulk, trial, memory, crowd.")
@click.option("--large", is_flag=True, help="Measure memory at 2²⁵ rows too.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the rows here too.")
def main(rounds: int, rows: int, only: str | None, large: bool, path: Path | None) -> None:
    """Measure, and print tables."""
    measured: list[Row] = []
    lines: list[str] = []
    with TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        parts: dict[str, Callable[[], Iterator[Row]]] = {
            "importing": partial(importing, rounds),
            "files": partial(files, folder, rounds, rows),
            "publishing": partial(publishing, folder, rounds, rows),
            "bulk": partial(bulk, folder, rows // 2),
            "trial": partial(trial, rounds, rows),
            "crowd": partial(crowd, folder, rows),
        }
        usual = [run for name, run in parts.items() if name != "crowd"]  # which takes long
        for part in [parts[only]] if only in parts else [] if only else usual:
            for row in part():
                measured.append(row)
                Console().print(f"{row.what}: {row.seconds:.3g} s, {row.against} {row.ratio:.3g}")
        if only in (None, "memory"):
            lines.extend(memory(folder, [21, 23, 25] if large else [20, 21, 22]))
    show(measured, title="scale", path=path)
    for line in lines:
        Console().print(line)


if __name__ == "__main__":
    main()
