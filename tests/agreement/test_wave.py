"""An agreement's place in a plan survives its document, and fits the schema or is refused."""

import numpy as np
import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.waves import Wave, kept_columns, task_of
from blurfit.errors import InvalidValueError
from blurfit.theory.maps import ResidualMap, Whitening
from support.plans import plan

MARK = "ab" * 32
WHITE = Whitening([0.0] * 5, np.eye(5), [0.0] * 5)
CHART = ResidualMap(WHITE, 1, 1, 1)
PEOPLE = (30, 70)


def test_a_place_survives_its_document() -> None:
    for wave in (Wave(MARK, 1, PEOPLE), Wave(MARK, 2, PEOPLE, (MARK,), CHART)):
        read = Wave.read(wave.document())
        assert read == wave
        assert hash(read) == hash(wave)
        read.verify()
    assert Wave(MARK, 1, PEOPLE) != Wave(MARK, 2, PEOPLE, (MARK,), CHART)


@pytest.mark.parametrize("entry", [[], {}, {"plan": MARK}, {"follows": MARK}, {"more": 1}])
def test_another_document_is_refused(entry: object) -> None:
    document = plan().first().to_dict()
    if isinstance(entry, dict) and len(entry) == 1 and "plan" not in entry:
        entry = document["wave"] | entry
    with pytest.raises(InvalidValueError, match=r"field|follows|at `\$\.wave"):
        Agreement.from_dict(document | {"wave": entry})


def test_the_first_wave_has_no_map_and_so_no_form_of_its_own() -> None:
    with pytest.raises(InvalidValueError, match="first wave"):
        Wave(MARK, 1, PEOPLE).form(plan().schema)
    assert Wave(MARK, 2, PEOPLE, (MARK,), CHART).form(plan().schema).kept == (0, 1, 2, 3, 5)


def test_what_is_learnt_follows_from_the_target() -> None:
    assert task_of(plan("number").schema) == "number"
    assert task_of(plan("label").schema) == "label"
    assert task_of(plan("count").schema, counts=True) == "count"
    with pytest.raises(InvalidValueError, match="counts"):
        task_of(plan("label").schema, counts=True)
    assert kept_columns(plan().schema) == (0, 1, 2, 3, 5)
