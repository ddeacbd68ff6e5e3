"""What stands in the document is what the readers of each format write and take."""

import json

import msgspec

from blurfit.contributor.blur import perturb, perturb_table
from blurfit.service import intake as documents
from support.stores import PEOPLE, propose


def test_the_outlines_are_those_of_the_formats() -> None:
    agreement = propose()
    one = perturb(agreement, {"age": 1, "income": 2})
    for text, kind in (
        (one.to_json(), documents.SubmissionDocument),
        (perturb_table(agreement, PEOPLE).to_json(), list[documents.SubmissionDocument]),
    ):
        found = msgspec.json.decode(text, type=kind)
        fields = set((found[0] if isinstance(found, list) else found).__struct_fields__)
        written = json.loads(text)
        there = set(written[0] if isinstance(written, list) else written)
        assert there == fields
