"""Only products with the target are sent: a release that is read beside public rows alone."""

import hashlib

import numpy as np
import pytest

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    InfeasibleError,
    InvalidValueError,
    Numeric,
    PublishedMoments,
    Schema,
    Store,
    perturb_table,
)
from blurfit.agreement.terms import Terms
from blurfit.model.release import Release

DIGEST = hashlib.sha256(b"rows").hexdigest()
TERMS = {"epsilon": 3.0, "delta": 1e-6, "quorum": 4000, "public_rows": DIGEST}
FEATURES = (Numeric("age", 0, 100), Binary("male"), Categorical("region", ["north", "south"]))


def people(count: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    age = generator.uniform(0, 100, count)
    male, region = generator.integers(0, 2, count), generator.integers(0, 2, count)
    score = (age - 50) / 15 + male
    return {
        "age": age,
        "male": male,
        "region": np.array(["north", "south"])[region],
        "income": np.clip(30 + 0.5 * age + 10 * region + generator.normal(0, 5, count), 0, 100),
        "rich": (generator.random(count) < 1 / (1 + np.exp(-score))).astype(int),
    }


def agreement(target=Numeric("income", 0, 100), **more) -> Agreement:  # noqa: B008
    return Agreement.propose(Schema(FEATURES, target), **TERMS, sends="targets", **more)


def collected(agreed: Agreement) -> PublishedMoments:
    with Store() as store:
        store.add(agreed, perturb_table(agreed, people(4000, 1)))
        with pytest.raises(InfeasibleError, match="public rows that the agreement names"):
            store.publish(agreed)  # sums, and no model of their own
        return store.moments(agreed)


def test_an_agreement_says_it_and_is_read_again() -> None:
    agreed = agreement()
    agreed.verify()
    everything = Agreement.propose(agreed.schema, **TERMS)
    assert (agreed.width, everything.width) == (6, 18)
    assert Agreement.from_json(agreed.to_json()) == agreed
    assert "sends" not in everything.to_dict()
    assert agreed.to_dict()["sends"] == "targets"
    assert agreed.calibration.sigma <= everything.calibration.sigma


def test_the_release_is_read_beside_public_rows_and_in_no_other_way() -> None:
    moments = collected(agreement())
    rows = people(3000, 9)
    model = moments.fit(public=rows)
    test = people(2000, 7)
    error = np.sqrt(np.mean((model.predict(test) - test["income"]) ** 2))
    assert error < 0.55 * np.std(test["income"])
    told = {one.name: one for one in model.estimates(0.9999)}
    assert told["age"].lower < 0.5 < told["age"].upper
    for refused in (moments.fit, moments.correlations, lambda: moments.joint):
        with pytest.raises(InfeasibleError, match="Only products with the target were sent"):
            refused()
    with pytest.raises(InfeasibleError, match="Expected 'income' as the target"):
        moments.fit("age ~ male", public=rows)
    assert "people" in moments._repr_html_()


def test_labels_and_some_of_the_features() -> None:
    moments = collected(agreement(Binary("rich")))
    model = moments.fit("rich ~ age + male", public=people(3000, 9))
    assert model.link == "logistic"
    assert model.coefficients.effects["age"] == pytest.approx(1 / 15, rel=0.5)


def test_what_does_not_go_with_it() -> None:
    with pytest.raises(InfeasibleError, match="Expected no public rows"):
        Terms.of(**TERMS, sends="targets", mechanism="input", weight_bound=1.0)
    with pytest.raises(InvalidValueError, match="sends='half'"):
        Terms.of(**TERMS, sends="half")


def test_the_release_of_sums_is_final() -> None:
    agreed = agreement()
    numbers = perturb_table(agreed, people(4000, 1)).numbers
    from blurfit.learning.sums import Totals

    release = Release.of(agreed, Totals(4000, numbers.sum(axis=0), agreed.fingerprint))
    assert release.model is None
    assert release.moments is not None
