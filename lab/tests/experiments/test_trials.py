"""A journal survives being cut off, and forgets other questions."""

import pytest

from blurfit_lab.experiments.runner import Row, TrialLog, read_csv, write_csv

ROWS = [Row("moment", "default", 0.1, 128, 0, 1 / 3), Row("moment", "default", 0.1, 128, 1, 2e-17)]


def test_csv_keeps_every_digit(tmp_path) -> None:
    write_csv(tmp_path / "a.csv", ROWS)
    assert read_csv(tmp_path / "a.csv") == ROWS


def test_what_was_added_is_read_again(tmp_path) -> None:
    journal = TrialLog(tmp_path / "a.journal", {"trials": 3})
    assert journal.read() == {}
    journal.start({})
    journal.add("128:0:2", ROWS)
    assert journal.read() == {"128:0:2": ROWS}


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_line_that_was_cut_off_is_left_out(tmp_path, cut) -> None:
    journal = TrialLog(tmp_path / "a.journal", {"trials": 3})
    journal.start({"one": ROWS})
    journal.add("two", ROWS)
    text = journal.path.read_text()
    journal.path.write_text(text[:-cut])
    assert journal.read() == ({"one": ROWS, "two": ROWS} if cut == 1 else {"one": ROWS})


def test_another_question_starts_anew(tmp_path) -> None:
    TrialLog(tmp_path / "a.journal", {"trials": 3}).start({"one": ROWS})
    assert TrialLog(tmp_path / "a.journal", {"trials": 4}).read() == {}
