import pytest

from blurfit import InfeasibleError, InvalidValueError, ModelGuarantee, Setting


def test_derived_quantities() -> None:
    setting = Setting(3, 100, 0.5, 2.0, 4.0)
    assert setting.smoothness == 0.25
    assert setting.gradient_bound == 0.25 * 4 + 2


def test_is_checked_and_frozen() -> None:
    with pytest.raises(InvalidValueError, match="q_bound=-1 > 0"):
        Setting(3, 100, -1, 1)
    with pytest.raises(InfeasibleError, match="needs a weight_bound"):
        _ = Setting(3, 100, 1, 1).ball
    with pytest.raises(AttributeError):
        Setting(3, 100, 1, 1).quorum = 2


def test_true_is_no_number_of_releases() -> None:
    with pytest.raises(InvalidValueError, match="releases=True"):
        ModelGuarantee(1.0, 1e-6, "replace", True)
