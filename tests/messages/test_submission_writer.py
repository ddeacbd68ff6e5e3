"""A file has its name when it is complete, and nothing remains of one that is not."""

import numpy as np
import pytest

from blurfit import Agreement, InvalidValueError, Numeric, Schema, perturb_table
from blurfit.messages.files import Writer

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20)
TABLE = perturb_table(AGREEMENT, {c: np.linspace(0, 100, 50) for c in ("age", "income")})


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_an_error_leaves_nothing(tmp_path, suffix) -> None:
    with (
        pytest.raises(KeyError),
        Writer(tmp_path / f"blurred{suffix}", AGREEMENT.layout) as writer,
    ):
        writer.add(TABLE)
        (unfinished,) = tmp_path.iterdir()
        assert unfinished.suffix == ".part"
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_other_kinds_of_file_are_refused(tmp_path) -> None:
    with (
        pytest.raises(InvalidValueError, match=r"end in one of \.parquet, \.arrow"),
        Writer(tmp_path / "blurred.csv", AGREEMENT.layout),
    ):
        pass
