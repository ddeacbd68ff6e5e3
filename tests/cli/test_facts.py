"""What scripts get is what the library has."""

import json
from dataclasses import replace

import numpy as np

from blurfit import Agreement, Plan, PublishedMoments
from blurfit.cli._reports import (
    agreement_facts,
    model_facts,
    moments_facts,
    moments_report,
)
from blurfit.schema.schema import Numeric, Schema
from blurfit.theory.maps import ResidualMap, Whitening
from support.joint_release import SCHEMA, release

MOMENTS = release()


def test_an_agreement() -> None:
    agreement = MOMENTS.agreement
    facts = agreement_facts(agreement)
    assert facts["numbers"] == agreement.width
    assert facts["bytes"] == agreement.layout.size
    assert (facts["epsilon"], facts["delta"], facts["quorum"]) == (1.0, 1e-6, 20_000)
    assert facts["trust"] == "one"
    assert facts["signing_keys"] == []


def test_moments() -> None:
    facts = moments_facts(MOMENTS)
    found = MOMENTS.correlations()
    assert np.array_equal(facts["correlations"], found.values)
    assert np.array_equal(facts["standard_errors"], found.standard_errors)
    assert facts["columns"] == list(found.names)


def test_what_the_noise_drowns_is_null() -> None:
    schema = Schema([Numeric("age", -1e9, 1e9)], Numeric("income", 0, 100_000))  # all near 0
    facts = moments_facts(release(count=500, epsilon=0.1, schema=schema))
    assert facts["correlations"][0] == [None, None]
    assert "NaN" not in json.dumps(facts)


def test_a_model_with_errors_and_one_with_classes() -> None:
    model = MOMENTS.fit()
    facts = model_facts(model)["outputs"]["income"]
    assert facts["predicting"]["age"] == model.coefficients.effects["age"]
    assert [one["name"] for one in facts["estimates"]][:2] == ["(intercept)", "age"]
    assert facts["r_squared"] == model.inference[0].r_squared
    classes = model_facts(MOMENTS.fit(target="region"))
    assert list(classes["outputs"]) == ["north", "south", "west"]
    assert json.loads(json.dumps(classes)) == classes


def test_a_model_without_errors_says_why() -> None:
    model = replace(MOMENTS.fit(), inference=(), liars=(), refusal="too much noise")
    facts = model_facts(model)
    assert list(facts["outputs"]["income"]) == ["predicting"]
    assert facts["refusal"] == "too much noise"


def test_sums_without_correlations_are_shown_too() -> None:
    """Of a later wave, and of products with the target alone: in words, as HTML and for scripts."""
    first = Plan.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=1000, waves=2)
    size = len(first.first().form.columns) - 2  # without the target and a level
    flat = Whitening([0.0] * size, np.eye(size), [0.0] * size, 0.0)
    later = first.following(("ab" * 32,), ResidualMap(flat, 1.0, 1.0, 1.0))
    alone = Agreement.propose(
        SCHEMA, epsilon=1, delta=1e-6, quorum=700, sends="targets", public_rows="ab" * 32
    )
    for agreement, words in ((later, "Sums of wave 2 of a plan"), (alone, "with the target")):
        moments = PublishedMoments(agreement, 700, np.zeros(agreement.width))
        assert moments_facts(moments)["epsilon"] == 1
        assert words in " ".join(moments_report(moments).split())
        assert "700 people, ε = 1" in moments._repr_html_()
