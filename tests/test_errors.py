import pytest

from blurfit import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InvalidValueError, ValueError),
        (errors.InfeasibleError, ValueError),
        (errors.NotCertifiedError, ArithmeticError),
    ],
)
def test_each_error_is_ours_and_pythons(error, builtin) -> None:
    assert issubclass(error, errors.BlurfitError)
    assert issubclass(error, builtin)
