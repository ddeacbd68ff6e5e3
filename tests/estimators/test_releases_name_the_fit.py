"""Each release of a fit says which fit it is of, and how many releases share its (ε, δ)."""

from typing import Any

import numpy as np
import pytest
import yaml

from blurfit.estimators import (
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
    MomentPerturbationSurvival,
)
from blurfit.estimators.base import FitGuarantee
from blurfit.model.release import PublishedMoments
from blurfit.model.statement import as_markdown, as_yaml

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 1, (6000, 3))
Y = X @ [1.0, 2.0, 0.0] + GENERATOR.normal(0, 0.3, 6000)
PEOPLE = np.repeat(np.arange(1500), 4)


def regressor(groups: Any = None, **terms: Any) -> MomentPerturbationRegressor:
    return MomentPerturbationRegressor(bounds=(0, 1), target_bounds=(-1, 4), **terms).fit(
        X, Y, groups
    )


def classifier(labels: Any, classes: list[int], waves: Any) -> MomentPerturbationClassifier:
    return MomentPerturbationClassifier(bounds=(0, 1), classes=classes, waves=waves).fit(X, labels)


def survival() -> MomentPerturbationSurvival:
    time = GENERATOR.exponential(4, 6000)
    exits = np.rec.fromarrays([time <= 4, np.minimum(time, 4)], names="event,time")
    return MomentPerturbationSurvival(bounds=(0, 1), horizon=4, bands=4).fit(X, exits)


FITS = {
    "waves": lambda: regressor(waves=4),
    "one wave": lambda: regressor(waves=1),
    "groups": lambda: regressor(PEOPLE, waves=4),
    "within": lambda: regressor(PEOPLE, effects="within", waves=3),
    "two classes": lambda: classifier(Y > 1.5, [False, True], 3),
    "several classes": lambda: classifier(np.digitize(Y, [1, 2]), [0, 1, 2], 1),
    "survival": survival,
}


@pytest.mark.parametrize("name", FITS)
def test_every_release_and_the_model_name_the_fit_and_count_its_releases(name: str) -> None:
    fit = FITS[name]()
    count, fingerprint = len(fit.releases_), fit.agreement_.fingerprint
    assert (count > 1) == (name in ("waves", "groups", "within", "two classes"))
    published = [*fit.releases_, *([] if name == "survival" else [fit.model_])]
    for one in published:
        again = type(one).from_json(one.to_json())  # what its file says, by itself
        assert again.origin == (fingerprint, count)
        entry = yaml.safe_load(as_yaml(again))["deployment"]
        composition = entry["accounting"]["composition"]
        words, told = as_markdown(again), FitGuarantee.of(again).statement
        assert fingerprint in str(entry)
        assert fingerprint in words
        if count == 1:
            assert composition == "none"
            continue
        assert f"{count} releases of" in composition or f"of {count} of the fit" in composition
        assert f"read for {count} releases" in words
        assert fingerprint in told
        assert f"the {count} releases of this fit" in told or f"of {count} of the fit" in told
        assert isinstance(again, PublishedMoments) == ("not counted here" in composition)
    assert fingerprint in fit.guarantee_.statement or count == 1
