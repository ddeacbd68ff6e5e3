"""A table blurred into a file: streamed, stopped and resumed, and never twice."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import Agreement, ConflictError, InvalidValueError, Numeric, Schema
from blurfit.contributor import sending
from blurfit.contributor.journal import Journal
from blurfit.contributor.sending import blur_table, default_journal
from blurfit.messages.files import open_submissions
from blurfit.schema.table_files import TableFile

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=200, admission="anyone")


@pytest.fixture(params=[".csv", ".parquet"])
def people(request, tmp_path):
    path = tmp_path / f"people{request.param}"
    ages = np.arange(1100) % 101
    if request.param == ".csv":
        path.write_text("age,income\n" + "".join(f"{a},{a}\n" for a in ages))
    else:
        pq.write_table(pa.table({"age": ages, "income": ages}), path)
    return path


def read(path):
    with open_submissions(path, AGREEMENT.layout) as file:
        parts = [part for group in range(file.groups) for part in file.parts(group)]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]


def test_rows_are_in_order_and_blurred_by_the_agreement(tmp_path) -> None:
    """The mean of many blurred copies of two records, beside the records themselves."""
    table = {"age": np.repeat([0.0, 100.0], 3000), "income": np.repeat([0.0, 100.0], 3000)}
    pq.write_table(pa.table(table), tmp_path / "people.parquet")
    blur_table(AGREEMENT, tmp_path / "people.parquet", tmp_path / "b.parquet")
    _, numbers = read(tmp_path / "b.parquet")
    (part,) = AGREEMENT.parts
    c, (age, income) = AGREEMENT.weights.constant, AGREEMENT.weights.columns
    for sign, rows in ((-1, slice(0, 3000)), (1, slice(3000, 6000))):
        z = [c, sign * age, sign * income]
        exact = [z[i] * z[j] for i, j in ((0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
        standard = (numbers[rows] - exact) / part.deviations
        assert np.abs(standard.mean(axis=0)).max() < 6 / np.sqrt(3000)
        assert np.abs(standard.std(axis=0) - 1).max() < 0.1


def test_again_it_is_left_alone(people, tmp_path) -> None:
    out = tmp_path / "blurred.parquet"
    blur_table(AGREEMENT, people, out)
    before = out.read_bytes()
    assert blur_table(AGREEMENT, people, out) == 1100
    assert out.read_bytes() == before
    with pytest.raises(ConflictError, match="blurred and written to a file already"):
        blur_table(AGREEMENT, people, tmp_path / "second.parquet")
    assert not (tmp_path / "second.parquet").exists()


def test_killed_and_resumed_no_row_is_blurred_twice(tmp_path, monkeypatch) -> None:
    """What the journal holds when the run is killed is what the file holds at the end."""
    people = tmp_path / "people.csv"
    people.write_text("age,income\n" + "".join(f"{n % 101},{n % 101}\n" for n in range(1100)))
    out, journal = tmp_path / "blurred.parquet", default_journal(people, AGREEMENT)
    AGREEMENT.save(tmp_path / "agreement.json")
    script = f"""
import os, signal
from blurfit import Agreement
from blurfit.contributor import sending
sending.rows_at_once = lambda layout: 50
def progress(done, of):
    print(done, flush=True)
    if done >= 600:
        signal.pause()  # it is not done before it is killed
if __name__ == "__main__":
    agreement = Agreement.load({str(tmp_path / "agreement.json")!r})
    sending.blur_table(agreement, {str(people)!r}, {str(out)!r}, progress=progress)
"""
    (tmp_path / "run.py").write_text(script)
    running = subprocess.Popen(
        [sys.executable, str(tmp_path / "run.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert running.stdout is not None
    while int(running.stdout.readline()) < 200:
        pass
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert not out.exists()
    digest = TableFile(people, SCHEMA).digest()
    deadline = time.monotonic() + 300
    while True:
        try:
            with Journal(journal, AGREEMENT.fingerprint, "file", digest, 1100) as kept:
                blurred = kept.blurred()
                first = b"".join(part.messages[0] for part in kept.pending())
            break
        except InvalidValueError:  # its lock is still held by a process that is being ended
            assert time.monotonic() < deadline
    assert 200 <= blurred < 1100
    monkeypatch.setattr(sending, "rows_at_once", lambda layout: 400)
    assert blur_table(AGREEMENT, people, out) == 1100
    identifiers, _ = read(out)
    assert len(identifiers) == 1100
    assert all(one.tobytes() in first for one in identifiers[:blurred])
    assert not any(one.tobytes() in first for one in identifiers[blurred:])


def test_what_cannot_be_written_is_refused_before_anything_is_blurred(people, tmp_path) -> None:
    for wrong in (tmp_path / "blurred.csv", people):
        with pytest.raises(InvalidValueError, match=r"--out"):
            blur_table(AGREEMENT, people, wrong)
    assert not default_journal(people, AGREEMENT).exists()
    bad = tmp_path / "bad.csv"
    bad.write_text("age,income\n1,2\nold,3\n")
    with pytest.raises(InvalidValueError, match=r"bad\.csv"):
        blur_table(AGREEMENT, bad, tmp_path / "b.parquet")
    assert not default_journal(bad, AGREEMENT).exists()
