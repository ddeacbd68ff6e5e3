"""Every error has a kind, and the kind of a particular error is its own."""

import msgspec
import pytest

from blurfit import errors
from blurfit import protocol as problems
from blurfit.wording import Language


def test_the_storages_own_words_stay_inside() -> None:
    kind, detail = problems.of_error(errors.StorageError("connection to secret-host failed"))
    assert kind is problems.UNAVAILABLE
    assert kind.retry_after
    assert "secret-host" not in detail


@pytest.mark.parametrize(
    ("cause", "kind"), problems.KINDS, ids=[cause.__name__ for cause, _ in problems.KINDS]
)
def test_an_error_survives_the_wire(cause, kind) -> None:
    """There and back by one table: the same class, or the kind's; the status if it has no class."""
    said, detail = problems.of_error(cause("Expected less."))
    assert said is kind
    document = kind.problem(detail, Language({}))
    found = problems.as_error(msgspec.json.encode(document), kind.status)
    assert str(found) == document.detail
    assert problems.of_error(found)[0] is kind
    assert type(found) is cause or (cause, kind) == (errors.BlurfitError, problems.INVALID)
    if cause is errors.ServiceError:
        assert found.status == kind.status


def test_no_two_kinds_share_a_name() -> None:
    kinds = [kind for kind in vars(problems).values() if isinstance(kind, problems.Kind)]
    assert len({kind.name for kind in kinds}) == len(kinds)
    assert {kind for _, kind in problems.KINDS} <= set(kinds)
