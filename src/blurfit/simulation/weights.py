"""The weights that a collection would publish, for simulating thousands of collections.

`learn` verifies its agreement and tells standard errors; here are its weights alone, in a
millisecond. One reading takes longer: where noise dominates, a `moment` collection publishes a
posterior mean, which is sampled for a tenth of a second (`blurfit.learning.shrinkage`). Without
`sampled`, linear Bayes stands for it, the reading of all other collections.
"""

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.learning.public_features import Family, fit_with_public_rows
from blurfit.learning.shrinkage import linear_bayes, shrink
from blurfit.learning.sums import Totals
from blurfit.model.learner import moments_of, published, released_weights, statistics_of
from blurfit.schema.columns import Numeric


def weights_of(
    agreement: Agreement, totals: Totals, *, sampled: bool = True, public: FloatArray | None = None
) -> FloatArray:
    """The weights of `learn`'s model, on (1, v): (outputs, 1 + features).

    With `public`, encoded rows of the features, those of `fit_public`: of log-odds for labels.
    Raises InfeasibleError where nothing could be published.
    """
    if agreement.mechanism == "input":
        weights = released_weights(agreement, statistics_of(agreement, totals))
        return published(agreement, weights, totals.count).weights
    read = shrink if sampled else linear_bayes
    moments, target = moments_of(agreement, totals), agreement.schema.target
    if public is not None:
        family: Family = "linear" if isinstance(target, Numeric) else "logistic"
        features = [name for one in agreement.schema.features for name in one.columns]
        joint, match = moments.beside(features, public), agreement.sends == "everything"
        parts = [joint.submodel(name, features) for name in target.columns]
        found = [fit_with_public_rows(one, public, family, match=match) for one in parts]
        return np.array([one.coefficients for one in found])
    joint = moments.joint
    return np.array([read(joint.submodel(name)).coefficients for name in target.columns])
