"""What stands in the document is what the readers of each format write and take."""

import json

import msgspec
import numpy as np

from blurfit import PublishedMoments
from blurfit.agreement.terms import LATER_TERMS
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.service import endpoints as documents
from blurfit.service.intake import SubmissionDocument
from support.stores import PEOPLE, propose


def test_the_outlines_are_those_of_the_formats() -> None:
    agreement = propose()
    one = perturb(agreement, {"age": 1, "income": 2})
    moments = PublishedMoments(agreement, 20, np.ones(agreement.width))
    for text, kind in (
        (agreement.to_json(), documents.AgreementDocument),
        (propose(mechanism="input").to_json(), documents.AgreementDocument),
        (one.to_json(), SubmissionDocument),
        (perturb_table(agreement, PEOPLE).to_json(), list[SubmissionDocument]),
        (moments.to_json(), documents.Moments),
    ):
        found = msgspec.json.decode(text, type=kind)
        fields = set((found[0] if isinstance(found, list) else found).__struct_fields__)
        written = json.loads(text)
        there = set(written[0] if isinstance(written, list) else written)
        assert there <= fields <= there | LATER_TERMS.keys()  # left out where they are default
