"""Every error has a kind, and the kind of a particular error is its own."""

import pytest

from blurfit import errors
from blurfit.service import problems


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.UnknownCollectionError("x"), problems.UNKNOWN),
        (errors.NotPublishedError("x"), problems.NOT_PUBLISHED),
        (errors.NotInvitedError("x"), problems.NOT_INVITED),
        (errors.ConflictError("x"), problems.CONFLICT),
        (errors.ClosedError("x"), problems.CLOSED),
        (errors.BelowQuorumError("x"), problems.BELOW_QUORUM),
        (errors.InvalidValueError("x"), problems.INVALID),
        (errors.InfeasibleError("x"), problems.INFEASIBLE),
        (errors.NotCertifiedError("x"), problems.INVALID),
        (errors.ServiceError("x"), problems.OTHER_DATABASE),
        (problems.RequestError(problems.TOO_LARGE, "x"), problems.TOO_LARGE),
    ],
)
def test_each_error_has_its_kind(error, kind) -> None:
    found, problem = problems.of_error(error)
    assert found is kind
    assert problem.status == kind.status
    assert problem.type == f"urn:blurfit:problem:{kind.name}"
    assert problem.detail == "x"


def test_the_storages_own_words_stay_inside() -> None:
    kind, problem = problems.of_error(errors.StorageError("connection to secret-host failed"))
    assert kind is problems.UNAVAILABLE
    assert kind.retry_after
    assert "secret-host" not in problem.detail
