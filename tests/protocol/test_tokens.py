"""Secrets: never guessable, never readable by others, compared as a whole."""

import os
import stat

import pytest

from blurfit import protocol as tokens
from blurfit.agreement.mechanisms import Lot
from blurfit.errors import InvalidValueError
from blurfit.protocol import hashed, new_token


def test_tokens_are_new_each_time_and_fit_into_a_link() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 43 for token in tokens)  # 256 bits, 6 in each character
    assert all(token.replace("-", "").replace("_", "").isalnum() for token in tokens)


def test_only_the_token_itself_matches_its_hash() -> None:
    token = new_token()
    kept = hashed(token)
    assert token.encode() not in kept
    assert tokens.matches(token, kept)
    assert not tokens.matches(token[:-1], kept)
    assert not tokens.matches(token + " ", kept)
    assert not tokens.matches("", kept)


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_written_token_is_read_back_and_nobody_else_can_read_it(tmp_path, umask: int) -> None:
    path, token = tmp_path / "token.txt", new_token()
    before = os.umask(umask)
    try:
        tokens.write_token(path, token)
    finally:
        os.umask(before)
    assert tokens.read_token(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_there_is_not_written_over(tmp_path) -> None:
    path = tmp_path / "token.txt"
    path.write_text("something else")
    with pytest.raises(FileExistsError):
        tokens.write_token(path, new_token())
    assert path.read_text() == "something else"


@pytest.mark.parametrize(
    "content",
    [b"", b"admin", b"x" * 31, "pässwörd".encode() * 8, b"\xff" * 40, b"two words\n" * 5],
    ids=["empty", "a word", "short", "not ASCII", "not UTF-8", "lines"],
)
def test_what_could_be_guessed_or_is_no_token_is_refused(tmp_path, content: bytes) -> None:
    path = tmp_path / "token.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidValueError, match=r"token\.txt") as refusal:
        tokens.read_token(path)
    assert "x" * 31 not in str(refusal.value)  # what may be a secret is not repeated


def test_no_file_and_a_folder_are_refused_by_name(tmp_path) -> None:
    for path in (tmp_path / "nowhere.txt", tmp_path):
        with pytest.raises(InvalidValueError, match="administrator's token") as refusal:
            tokens.read_token(path)
        assert str(path) in str(refusal.value)


def test_invitations_to_a_plan_are_in_proportion_and_in_no_order() -> None:
    lot = Lot("ab" * 32, (20, 30, 50))
    shares = tokens.new_shares(lot, 400)
    assert shares == [80, 120, 200]
    made = tokens.new_in_groups(lot, shares)
    groups = [lot.group_of(tokens.hashed(one)) for one in made]
    assert [groups.count(one) for one in (1, 2, 3)] == shares
    assert len(set(made)) == 400
    assert made == sorted(made)
    assert tokens.new_shares(lot, 7, first=3) == [0, 0, 7]


def test_two_databases_find_the_same_group() -> None:
    lot = Lot("ab" * 32, (20, 30))
    made = [tokens.new_in_groups(lot, [4, 6]) for _ in range(2)]
    pairs = tokens.joined(made, lot)
    assert [set(some) for some in zip(*pairs, strict=True)] == [set(some) for some in made]
    for one, other in pairs:
        assert lot.group_of(tokens.hashed(one)) == lot.group_of(tokens.hashed(other))
    assert tokens.joined([["a", "b"], ["c", "d"]]) == [("a", "c"), ("b", "d")]
