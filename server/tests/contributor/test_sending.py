"""One way for all destinations: each row blurred once, also from a copy or with another journal."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import Agreement, ConflictError, InvalidValueError, Numeric, Schema, Submissions
from blurfit.contributor import sending
from blurfit.contributor.blur import messages_of
from blurfit.contributor.journal import Receipt
from blurfit.contributor.sending import Destination, default_journal, invitations_for, send_table

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2)
ROWS = 10
BLURRED: list[int] = []  # rows, by all of the tests


@pytest.fixture(autouse=True)
def counted(monkeypatch) -> None:
    def counting(agreement, exact, identifiers):
        BLURRED.append(len(exact))
        return messages_of(agreement, exact, identifiers)

    monkeypatch.setattr(sending, "messages_of", counting)


class Place(Destination):
    """A destination in this process that loses what it is told to lose."""

    kind = "service"
    where = "a place"
    rows_at_once = 4
    services = ("http://a.place",)

    def __init__(self, agreement: Agreement = AGREEMENT) -> None:
        self.agreed, self.got, self.down, self._before = agreement, [], False, sum(BLURRED)

    @property
    def blurs(self) -> int:
        return sum(BLURRED) - self._before

    def agreement(self) -> Agreement:
        return self.agreed

    def send(self, part):
        if self.down and part.start >= 4:
            raise InvalidValueError("down")
        self.got.append(part)
        return (f"signature of {part.start}",)

    def finish(self, journal, rows) -> None:
        assert journal.finished()
        assert journal.blurred() == rows

    @property
    def identifiers(self) -> list[bytes]:
        batches = [Submissions.from_bytes(*part.messages) for part in self.got]
        return [bytes(one) for batch in batches for one in batch.identifiers]


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,income\n" + "".join(f"{n},{2 * n}\n" for n in range(ROWS)))
    return path


def copied(people, tmp_path):
    shutil.copy(people, tmp_path / "copy.csv")
    return tmp_path / "copy.csv"


def in_another_order(people, tmp_path):
    heading, *lines = people.read_text().splitlines()
    (tmp_path / "sorted.csv").write_text("\n".join([heading, *lines[::-1]]))
    return tmp_path / "sorted.csv"


def as_parquet(people, tmp_path):
    ages = np.arange(ROWS)
    table = pa.table({"income": 2.0 * ages, "id": ages, "age": ages})
    pq.write_table(table, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


@pytest.mark.parametrize("make", [copied, in_another_order, as_parquet])
def test_a_copy_is_not_blurred_again(people, tmp_path, make) -> None:
    send_table(AGREEMENT, people, Place())
    copy, place = make(people, tmp_path), Place()
    with pytest.raises(ConflictError, match=r"blurred before .* --other-people"):
        send_table(AGREEMENT, copy, place)
    assert (place.blurs, default_journal(copy, AGREEMENT).exists()) == (0, False)
    assert send_table(AGREEMENT, copy, place, other_people=True) == ROWS
    assert place.blurs == ROWS


def test_another_journal_does_not_help_nor_does_losing_the_first(people, tmp_path) -> None:
    send_table(AGREEMENT, people, Place())
    with pytest.raises(ConflictError, match="blurred before"):
        send_table(AGREEMENT, people, Place(), journal=tmp_path / "other.journal")
    first = default_journal(people, AGREEMENT)
    kept = first.rename(tmp_path / "moved.journal")
    with pytest.raises(ConflictError, match="blurred before"):
        send_table(AGREEMENT, people, Place())
    assert send_table(AGREEMENT, people, Place(), journal=kept) == ROWS


def test_invitations_are_counted_once_each() -> None:
    assert invitations_for(2, ["a", "b", "a"]) == ["a", "b"]
    assert invitations_for(5, []) == []
    with pytest.raises(InvalidValueError, match="of Office for each of 3 rows, and got 2"):
        invitations_for(3, ["a", "b", "a"], "of Office ")


def test_a_receipt_is_for_every_row_and_then_the_journal_forgets(people, tmp_path) -> None:
    place, path = Place(), tmp_path / "receipt.json"
    place.down = True
    with pytest.raises(InvalidValueError, match="down"):
        send_table(AGREEMENT, people, place, receipt=path)
    assert not path.exists()
    place.down = False
    assert send_table(AGREEMENT, people, place, receipt=path) == ROWS
    found = Receipt.load(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert found.services == place.services
    assert [part.signatures for part in found.parts] == [
        (f"signature of {start}",) for start in (0, 4, 8)
    ]
    assert b"".join(map(found.identifiers, found.parts)) == b"".join(place.identifiers)
    held = default_journal(people, AGREEMENT).read_bytes()
    assert found.secret.encode() not in held
    with pytest.raises(InvalidValueError, match="was written before"):
        send_table(AGREEMENT, people, place, receipt=tmp_path / "another.json")
    assert place.blurs == ROWS
