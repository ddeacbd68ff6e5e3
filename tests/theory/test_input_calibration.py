"""A calibration that was tampered with does not pass, whichever number was changed."""

import json
from collections.abc import Iterator
from copy import deepcopy

import pytest

from blurfit import InvalidValueError, calibrate
from blurfit.errors import BlurfitError
from blurfit.theory.input_calibration import InputCalibration

PUBLIC = {"dimension": 4, "quorum": 5000, "q_bound": 1.0, "p_bound": 1.0, "weight_bound": 1.0}
LOCAL = {"local_epsilon": 4.0, "local_delta": 1e-6}
CALIBRATIONS = {
    "certified": calibrate(1, 1e-6, **PUBLIC),
    "zero-out": calibrate(1, 1e-6, neighbours="zero-out", **PUBLIC),
    "debiased": calibrate(1, 1e-6, **PUBLIC, **LOCAL),
    "published": calibrate(1, 1e-6, rule="published", **PUBLIC),
}


def leaves(document: dict, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def changed(document: dict, path: tuple[str, ...], value: object) -> dict:
    copy = deepcopy(document)
    inner = copy
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return copy


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_what_is_read_verifies_and_no_number_or_word_can_be_changed(name: str) -> None:
    found = CALIBRATIONS[name]
    again = InputCalibration.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    again.verify()
    document = CALIBRATIONS[name].to_dict()
    for path in leaves(document):
        value = document
        for step in path:
            value = value[step]
        if isinstance(value, bool) or not isinstance(value, int | float) or value == 0:
            continue
        if path == ("split",):  # how the numbers were found, not what they promise
            continue
        lowered = value - 1 if isinstance(value, int) else value - abs(value) / 3
        with pytest.raises(BlurfitError):
            InputCalibration.from_dict(changed(document, path, lowered)).verify()
    for path, word in [
        (("mechanism",), "moment"),
        (("rule",), "certified" if name == "published" else "published"),
        (("setting", "neighbours"), "replace" if "zero-out" in name else "zero-out"),
        (("model", "neighbours"), "replace" if "zero-out" in name else "zero-out"),
        (("model", "releases"), 2),
        (("model", "proved"), name == "published"),
    ]:
        with pytest.raises(BlurfitError):
            InputCalibration.from_dict(changed(document, path, word)).verify()


def test_missing_and_unknown_fields_are_refused() -> None:
    document = CALIBRATIONS["certified"].to_dict()
    with pytest.raises(InvalidValueError, match="another version of blurfit"):
        InputCalibration.from_dict({**document, "sigma_x": 1.0})
    del document["sigma_b"]
    with pytest.raises(InvalidValueError, match="sigma_b"):
        InputCalibration.from_dict(document)
