"""An account knows files by their contents, each in one release under an agreement."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from blurfit import InvalidValueError
from blurfit.files.receipts import Remembered
from blurfit.files.scan import Identity

FILES = tuple(Identity(name, size, name * 32) for size, name in enumerate("abc"))


def of(*files: Identity, fingerprint: str = "f0" * 32) -> Remembered:
    return Remembered(fingerprint, files)


def test_any_of_the_files_tells_the_receipt() -> None:
    assert of(*FILES[:2]).receipts() == []
    assert of(*FILES[:2]).create(b"first")
    for some in (FILES[:1], FILES[1:], FILES):
        assert of(*some).receipts() == [b"first"]
        assert not of(*some).create(b"second")
    assert of(FILES[2]).receipts() == []
    assert of(*FILES, fingerprint="0f" * 32).receipts() == []
    renamed = Identity("other", FILES[0].size, FILES[0].digest)
    assert of(renamed).receipts() == [b"first"]


def test_files_of_two_releases_tell_both() -> None:
    of(*FILES[:2], FILES[0]).create(b"first")  # the same contents twice
    of(FILES[2]).create(b"second")
    assert of(*FILES).receipts() == [b"first", b"second"]


def test_a_claim_is_replaced_or_removed() -> None:
    of(*FILES).create(b"claim")
    of(*FILES).replace(b"complete")
    assert of(FILES[1]).receipts() == [b"complete"]
    of(*FILES).remove(b"claim")
    assert of(*FILES).receipts() == [b"complete"], "somebody else completed it: that stays"
    of(*FILES).remove(b"complete")
    assert of(*FILES).receipts() == []
    assert of(FILES[1]).create(b"another")


def test_of_many_at_once_one_creates() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: of(FILES[0], FILES[1 + n % 2]).create(b"%d" % n), range(8)))
    assert sum(made) == 1


def test_a_home_that_cannot_be_written_is_an_error(home, monkeypatch) -> None:
    home.write_text("a file")
    with pytest.raises(InvalidValueError, match="BLURFIT_HOME"):
        of(*FILES).receipts()
    (home.parent / "damaged").mkdir()
    (home.parent / "damaged" / "releases.db").write_text("no database" * 1000)
    monkeypatch.setenv("BLURFIT_HOME", str(home.parent / "damaged"))
    with pytest.raises(InvalidValueError, match=r"releases\.db"):
        of(*FILES).receipts()
