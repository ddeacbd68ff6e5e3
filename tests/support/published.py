"""Models that nobody learned: for tests of what is said about them."""

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.model.published import PublishedModel


def published(agreement: Agreement, count: int) -> PublishedModel:
    """A model whose weights are all 1."""
    schema = agreement.schema
    names = tuple(feature.name for feature in schema.features)
    return PublishedModel(
        agreement, schema.target.name, names, np.ones((1, 1 + len(names))), count, "by hand"
    )
