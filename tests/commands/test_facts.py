"""What scripts get is what the library has."""

import json
from dataclasses import replace

import numpy as np

from blurfit.commands.facts import agreement_facts, model_facts, moments_facts
from blurfit.schema.schema import Numeric, Schema
from support.joint_release import release

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
