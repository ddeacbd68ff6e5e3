import pytest

from blurfit.errors import NotCertifiedError
from blurfit.theory.gaussian import root_of_increasing


@pytest.mark.parametrize("root", [1e-200, 1e-9, 1.0, 3e5, 1e200])
@pytest.mark.parametrize("guess", [1e-3, 1.0, 1e6])
def test_finds_the_root_from_any_guess(root: float, guess: float) -> None:
    assert root_of_increasing(lambda x: x / root - 1, guess) == pytest.approx(root, rel=1e-12)


def test_no_root_is_an_error() -> None:
    with pytest.raises(NotCertifiedError, match="below"):
        root_of_increasing(lambda _: 1.0, 1.0)
    with pytest.raises(NotCertifiedError, match="above"):
        root_of_increasing(lambda _: -1.0, 1.0)
