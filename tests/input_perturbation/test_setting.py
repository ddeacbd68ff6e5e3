import pytest

from blurfit import InfeasibleError, InvalidValueError, ModelGuarantee
from blurfit.input_perturbation.theorem import Setting


def test_settings_and_promises_are_checked_and_frozen() -> None:
    with pytest.raises(InvalidValueError, match="q_bound=-1 > 0"):
        Setting(3, 100, -1, 1)
    with pytest.raises(InfeasibleError, match="`weight_bound` must be given"):
        _ = Setting(3, 100, 1, 1).ball
    with pytest.raises(AttributeError):
        Setting(3, 100, 1, 1).quorum = 2
    with pytest.raises(InvalidValueError, match="releases=True"):
        ModelGuarantee(1.0, 1e-6, "replace", True)
