"""What somebody answered, blurred rows and secrets are for their owner alone from the start."""

import os
import re
import sqlite3
from pathlib import Path

import pytest

import blurfit
import blurfit_server
from blurfit import private_files

# Whoever writes in another way, and why others may read it.
WRITERS = {
    "agreement/agreement.py": "agreements and plans are public",
    "cli/__init__.py": "words of --help, which are no file",
    "cli/_common.py": "pictures of what is published",
    "cli/agree.py": "an example's table, which is made up, and a schema",
    "cli/use.py": "published moments",
    "demo.py": "made-up people",
    "files/scan.py": "in a temporary folder, which has mode 0700",
    "model/tables.py": "tables of what is published",
    "model/model.py": "published models and moments",
    "service/administration.py": "a survey, in a temporary folder, which has mode 0700",
}
# Those who write to a file that `private_files` has made before.
BY_THE_HELPER = {
    "cli/use.py",
    "contributor/journal.py",
    "contributor/sending.py",
    "messages/files.py",
    "private_files.py",
    "release_record.py",
    "store/store.py",
    "store/database.py",
}
WRITES = re.compile(
    r"\.(write_text|write_bytes|touch|chmod|savefig)\(|open\([^)]*\"[wxa][+b]*\"|OSFile\(.*\"wb\"|"
    r"sqlite3\.connect|mkstemp|os\.(open|umask|link)\(|create_engine\(\s*url"
)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(autouse=True)
def _umask():
    before = os.umask(0)  # nothing but the helper takes rights away
    yield
    os.umask(before)


def test_nobody_else_writes() -> None:
    """Whoever adds a file that is written says here for whom it is."""
    sources = [Path(one.__file__).parent for one in (blurfit, blurfit_server)]
    found = {
        path.relative_to(source).as_posix(): path.read_text()
        for source in sources
        for path in source.rglob("*.py")
        if WRITES.search(path.read_text())
    }
    assert found.keys() == WRITERS.keys() | BY_THE_HELPER
    assert all("private_files" in found[name] for name in BY_THE_HELPER - {"private_files.py"})


def test_a_file_is_created_once_and_sqlite_keeps_its_mode_for_its_logs(tmp_path) -> None:
    path = tmp_path / "c.db"
    private_files.create(path)
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("PRAGMA journal_mode = WAL")
    file.execute("CREATE TABLE notes (text)")
    private_files.create(path)  # changes nothing
    assert {one.name: mode(one) for one in tmp_path.iterdir()} == {
        f"c.db{end}": 0o600 for end in ("", "-wal", "-shm")
    }
    file.execute("PRAGMA journal_mode = TRUNCATE")
    file.execute("BEGIN")
    file.execute("INSERT INTO notes VALUES ('x')")
    assert mode(tmp_path / "c.db-journal") == 0o600
    file.close()


def test_what_is_replaced_keeps_no_wider_mode(tmp_path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o666)
    with private_files.replacing(path) as part:
        assert mode(part) == 0o600
        assert path.read_text() == "old"
        part.write_text("new")
    assert (path.read_text(), mode(path)) == ("new", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_what_was_there(tmp_path) -> None:
    private_files.write(tmp_path / "secret", "old")
    with pytest.raises(KeyError), private_files.replacing(tmp_path / "secret"):
        raise KeyError
    with pytest.raises(FileExistsError):
        private_files.write(tmp_path / "secret", "new", only_new=True)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["old"]


def test_what_somebody_was_told_of_is_not_removed(tmp_path, monkeypatch) -> None:
    told: list[str] = []
    with pytest.raises(OSError, match="Is a directory"):
        (tmp_path / "out").mkdir()
        with private_files.replacing(tmp_path / "out", before=told.append) as part:
            part.write_text("all of it")
    assert (tmp_path / told[0]).read_text() == "all of it"
    with pytest.raises(KeyError), private_files.replacing(tmp_path / "x", before=lambda _: {}[1]):
        pass
    assert {one.name for one in tmp_path.iterdir()} == {"out", told[0]}
