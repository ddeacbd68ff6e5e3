"""Models that nobody learned, to test what is said about them; and sums that were published."""

from functools import lru_cache

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments


def published(agreement: Agreement, count: int) -> PublishedModel:
    """A model whose weights are all 1."""
    schema = agreement.schema
    names = tuple(feature.name for feature in schema.features)
    return PublishedModel(
        agreement, schema.target.name, names, np.ones((1, 1 + len(names))), count, "by hand"
    )


@lru_cache(maxsize=8)
def moments_in(text: str) -> PublishedMoments:
    """What a text says that a walk looks at after each of its steps: read once."""
    return PublishedMoments.from_json(text)
