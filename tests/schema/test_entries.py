"""Columns as a file describes them, and what is refused."""

import pytest

from blurfit import Numeric, Wording
from blurfit.errors import InvalidValueError
from blurfit.schema.columns import column_from_dict


def refusal(call, *arguments) -> str:
    with pytest.raises(InvalidValueError) as refused:
        call(*arguments)
    return str(refused.value)


NUMERIC = {"name": "age", "kind": "numeric", "lower": 0, "upper": 100}


class TestFromDict:
    def test_words_and_whether_it_need_be_said(self):
        words = {"question": {"en": "How old?", "de": "Wie alt?"}, "unit": "years"}
        found = column_from_dict("", NUMERIC | {"optional": True} | words)
        assert found == Numeric("age", 0, 100, optional=True, wording=Wording(**words))
        assert found.to_dict() == {**NUMERIC, "outside": "clip", "optional": True, **words}

    def test_outside_by_default_and_by_name(self):
        assert column_from_dict("", NUMERIC).outside == "clip"
        assert column_from_dict("", NUMERIC, "refuse").outside == "refuse"
        assert column_from_dict("", NUMERIC | {"outside": "clip"}, "refuse").outside == "clip"
        assert column_from_dict("", NUMERIC | {"above": 30}, "refuse").outside == "refuse"

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            (NUMERIC | {"uper": 3}, "features[1] ('age'): Unknown key 'uper'; the keys here are"),
            (NUMERIC | {"levels": ["a"]}, "features[1] ('age'): Unknown key 'levels'"),
            (NUMERIC | {"kind": "real"}, "features[1] ('age'): Expected kind='real' to be one of"),
            (NUMERIC | {"kind": ["x"]}, "features[1] ('age'): Expected kind=['x'] to be one of"),
            (NUMERIC | {"lower": "0"}, "features[1] ('age'): Expected lower='0' to be a real"),
            (NUMERIC | {"above": 300}, "features[1] ('age'): Expected threshold=300.0 for 'age'"),
            (
                {"name": "a", "kind": "numeric", "lower": 0},
                "features[1] ('a'): Expected the key 'upper'",
            ),
            ({"name": "a", "kind": "binary", "lower": 0}, "features[1] ('a'): Unknown key 'lower'"),
            ({"name": "a", "kind": "categorical"}, "features[1] ('a'): Expected the key 'levels'"),
            ({"name": "a"}, "features[1]: Expected the key 'kind' besides 'name'"),
            ({"kind": "binary"}, "features[1]: Expected the key 'name' besides 'kind'"),
            ({"name": 3, "kind": "binary"}, "features[1] (3): Expected name=3 to be a word"),
            (NUMERIC | {"optional": 1}, "features[1] ('age'): Expected optional=1 to be True or"),
            (
                NUMERIC | {"optional": True, "above": 3},
                "features[1] ('age'): Expected 'age' not to be optional: a target is answered",
            ),
            (
                NUMERIC | {"labels": {"yes": "Yes"}},
                "features[1] ('age'): Expected labels of 'age' for its answers (none, because",
            ),
            (
                {"name": "a", "kind": "binary", "unit": "years"},
                "features[1] ('a'): Expected no unit for 'a'",
            ),
            ({"name": "a", "kind": "binary", "labels": "x"}, "features[1] ('a'): Expected labels="),
            ("age", "features[1]: Expected a table of keys and values, and got 'age'"),
        ],
    )
    def test_errors_say_which_entry(self, entry, message):
        assert refusal(column_from_dict, "features[1]", entry).startswith(message)
