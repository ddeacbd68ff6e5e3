"""What is done with rows, beside plain ways of doing it."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import ConflictError, InvalidValueError, Submissions, perturb_table
from blurfit.files.scan import Stretch, agreed, apart, identify, merge, records, repeated, scan
from blurfit.learning.sums import total
from blurfit.messages.files import Writer
from support.stores import PEOPLE, totals_of


def task_of(path) -> Stretch:
    return Stretch(0, str(path), 0, 1, 40, identify(str(path)))


@pytest.fixture
def written(agreement, tmp_path):
    table = perturb_table(agreement, PEOPLE)
    with Writer(tmp_path / "a.parquet", agreement.layout) as writer:
        writer.add(table)
    return table, task_of(tmp_path / "a.parquet")


def test_a_look_adds_and_keeps_prefixes(agreement, written) -> None:
    table, task = written
    text = agreement.to_json()
    found = scan(text, task)
    sums = total(agreement, merge(text, [found.parts, []]), agreed(text)[2])
    assert sums == totals_of(agreement, table)
    assert found.prefixes.tobytes() == table.identifiers[:, :8].tobytes()


def test_what_came_before_is_left_out(agreement, written) -> None:
    table, task = written
    text = agreement.to_json()
    bits = np.array([0b00000101, 0b10], dtype=np.uint8)  # rows 0, 2 and 9 of 40
    found = scan(text, Stretch(**vars(task) | {"repeated": {0: bits}}))
    rest = [row for row in range(40) if row not in (0, 2, 9)]
    sums = total(agreement, found.parts, agreed(text)[2])
    counted = Submissions(table.identifiers[rest], table.fingerprint, table.numbers[rest])
    assert sums == totals_of(agreement, counted)


def test_another_file_where_the_work_is_done_is_refused(agreement, written) -> None:
    """A worker on another machine may find other people under the same name."""
    _, task = written
    with Writer(Path(task.place), agreement.layout) as writer:
        writer.add(perturb_table(agreement, PEOPLE))
    for work in (scan, partial(records, suspects=None)):
        with pytest.raises(ConflictError, match=r"a\.parquet.*wherever the work is done"):
            work(agreement.to_json(), task)


def test_rows_that_nobody_honest_sends_are_refused_by_place(agreement, tmp_path) -> None:
    table = perturb_table(agreement, PEOPLE)
    numbers = table.numbers
    for wrong, why in ((np.nan, "blurring never makes"), (1e9, "norm"), (1e-30, "no multiple")):
        changed = numbers.copy()
        changed[17, 0] = wrong
        with Writer(tmp_path / "a.parquet", agreement.layout) as writer:
            writer.append(table.identifiers, changed)
        with pytest.raises(InvalidValueError, match=rf"row group 0 .*a\.parquet.*17.*{why}"):
            scan(agreement.to_json(), task_of(tmp_path / "a.parquet"))


@given(
    words=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=60),
    partitions=st.integers(1, 7),
)
def test_repeated_words_are_found_in_their_partitions(words, partitions) -> None:
    array = np.array(words, dtype="<u8")
    parts = apart(array, array, partitions)
    assert len(parts) == partitions
    assert sorted(np.concatenate(parts).tolist()) == sorted(words)
    found = [int(word) for part in parts for word in repeated([part])]
    assert sorted(found) == sorted({word for word in words if words.count(word) > 1})


def test_records_are_those_of_the_suspects(agreement, written) -> None:
    table, task = written
    text = agreement.to_json()
    everyone = records(text, task, None)
    assert everyone["identifier"].tobytes() == table.identifiers.tobytes()
    assert len({one.tobytes() for one in everyone["digest"]}) == 40
    assert everyone["place"].tolist() == [[0, 0, row] for row in range(40)]
    wanted = np.sort(np.ascontiguousarray(table.identifiers[[3, 30], :8]).view("<u8").ravel())
    assert records(text, task, wanted)["place"].tolist() == [[0, 0, 3], [0, 0, 30]]
    assert len(records(text, task, wanted[:0])) == 0
