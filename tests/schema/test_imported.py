"""What surveys from elsewhere have in common: a target, and all that is lacking at once."""

import pytest

from blurfit import About, Binary, Numeric
from blurfit.errors import InvalidValueError
from blurfit.schema.imports import SurveyReader


def test_the_target_is_answered_by_everybody() -> None:
    columns = [Binary("a", optional=True), Numeric("b", 0, 1, optional=True)]
    found = SurveyReader("It", columns).finish(About(), "b")
    assert found.schema.target == Numeric("b", 0, 1)
    assert found.schema.features == (Binary("a", optional=True),)
    assert found.notes == (
        "'b' is to be predicted, so everybody answers it.",
        "May be left unsaid: 'a'.",
    )


def test_all_that_is_lacking_is_told_at_once() -> None:
    reading = SurveyReader("It", [Binary("a")])
    with pytest.raises(InvalidValueError, match="target=None to be one of the questions 'a' of It"):
        reading.finish(About(), None)
    reading.lacks("b", "has no bounds")
    reading.lacks("c", "is text")
    with pytest.raises(
        InvalidValueError, match="imported as it is: 'b' has no bounds; 'c' is text"
    ):
        reading.finish(About(), "a")
