"""Several rows of one person become one submission, of one row's length and noise."""

import numpy as np
import pytest

from blurfit import Agreement, InvalidValueError, Numeric, Schema, perturb, perturb_table
from blurfit.contributor.blur import codes_of_people, exact_of
from blurfit.contributor.sending import blur_table
from blurfit.messages.files import open_submissions
from blurfit.messages.submissions import Submission

SCHEMA = Schema([Numeric("hours", 0, 12), Numeric("stress", 0, 10)], Numeric("sleep", 0, 12))
ROWS = {
    "who": ["b", "a", "b", "c", "a", "b"],
    "hours": [8, 9, 7, 2, 10, 12],
    "stress": [3, 5, 2, 1, 7, 9],
    "sleep": [7, 6, 8, 9, 5, 4],
}


def agreement(*, diaries: bool = True, **terms) -> Agreement:
    chosen = {"epsilon": 1e6, "delta": 1e-6, "quorum": 3} | terms
    return Agreement.propose(SCHEMA, diaries=diaries, **chosen)


def answers(which=slice(None)) -> dict[str, np.ndarray]:
    return {name: np.array(ROWS[name])[which] for name in ("hours", "stress", "sleep")}


def test_a_diary_is_one_submission() -> None:
    agreed = agreement()
    mine = np.array(ROWS["who"]) == "b"
    sent = perturb(agreed, answers(mine))
    assert isinstance(sent, Submission)
    mean = agreed.exact(answers(mine)).mean(axis=0)
    np.testing.assert_allclose(exact_of(agreed, answers(mine)), mean)
    np.testing.assert_allclose(sent.numbers, mean, atol=0.01)
    one = {name: values[0] for name, values in answers().items()}
    assert len(perturb(agreed, one).to_bytes()) == len(sent.to_bytes())
    plain = agreement(diaries=False)
    assert agreed.calibration.sigma == plain.calibration.sigma
    assert agreed.fingerprint != plain.fingerprint


def test_people_of_a_table() -> None:
    agreed = agreement()
    sent = perturb_table(agreed, answers(), people=ROWS["who"])
    assert len(sent) == 3
    exact = agreed.exact(answers())
    for place, name in enumerate(["b", "a", "c"]):
        mean = exact[np.array(ROWS["who"]) == name].mean(axis=0)
        np.testing.assert_allclose(sent.numbers[place], mean, atol=0.01)
    assert len(perturb(agreed, answers(), people=ROWS["who"])) == 3


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_with_a_column_of_people(tmp_path, kind) -> None:
    import pandas as pd

    table = tmp_path / f"days.{kind}"
    frame = pd.DataFrame(ROWS)
    frame.to_csv(table, index=False) if kind == "csv" else frame.to_parquet(table)
    agreed, out = agreement(), tmp_path / "sent.parquet"
    assert blur_table(agreed, table, out, person="who") == 3
    with open_submissions(out, agreed.layout) as file:
        parts = [part for group in range(file.groups) for part in file.parts(group)]
        numbers = np.vstack([one[-1] for one in parts])
    exact = agreed.exact(answers(), codes_of_people(ROWS["who"]))
    np.testing.assert_allclose(numbers, exact, atol=0.01)
    again = tmp_path / "again.parquet"
    with pytest.raises(InvalidValueError, match="before"):  # the same rows, once more
        blur_table(agreed, table, again, person="who", journal=tmp_path / "other")


def test_rows_of_a_diary_are_not_sent_as_if_each_were_a_person(tmp_path) -> None:
    table, out = tmp_path / "days.csv", tmp_path / "sent.parquet"
    table.write_text("who,hours,stress,sleep\na,1,2,3\na,1,2,4\n", encoding="utf-8")
    with pytest.raises(InvalidValueError, match="--person COLUMN"):
        blur_table(agreement(), table, out)
    assert not out.exists()
    with pytest.raises(InvalidValueError, match="told whose row it is"):
        perturb_table(agreement(), answers())


def test_agreements_of_one_row_take_no_diary(tmp_path) -> None:
    plain = agreement(diaries=False)
    with pytest.raises(InvalidValueError, match="does not speak of several"):
        perturb(plain, answers(), people=ROWS["who"])
    table = tmp_path / "days.csv"
    table.write_text("who,hours,stress,sleep\na,1,2,3\na,1,2,4\n", encoding="utf-8")
    with pytest.raises(InvalidValueError, match="Agree with diaries"):
        blur_table(plain, table, tmp_path / "sent.parquet", person="who")
    with pytest.raises(InvalidValueError, match="none missing"):
        perturb_table(agreement(), answers(), people=["a", "", "b", "b", "b", "b"])
