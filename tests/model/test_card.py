"""A model card: front matter that a hub reads, and the statement without a word changed."""

import numpy as np
import pytest
import yaml

from blurfit import Agreement, Categorical, Numeric, PublishedModel, Schema
from blurfit.model.statement import as_card, as_markdown


@pytest.fixture(scope="module")
def model():
    schema = Schema(
        [Numeric("age ![x](y)", 18, 90), Categorical("region", ["a|b", "c"])],
        Numeric("income", 0, 90_000),
    )
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=4000)
    names = ("age ![x](y)", "region")
    return PublishedModel(agreement, "income", names, np.ones((1, 4)), 5000, "least squares")


def test_its_front_matter_is_yaml_with_the_promise(model):
    _, head, _ = as_card(model).split("---\n", 2)
    found = yaml.safe_load(head)
    assert found["pipeline_tag"] == "tabular-regression"
    assert found["privacy"] == {
        "epsilon": 1.0,
        "delta": 1e-6,
        "neighbours": "replace",
        "models": 1,
        "caveats": [],
        "seen_by": "collector",
        "agreement": model.fingerprint,
    }


def test_it_carries_every_line_of_the_statement(model):
    card = as_card(model)
    for line in as_markdown(model).splitlines():
        assert line.lstrip("# ") in card


def test_names_are_text(model):
    card = as_card(model)
    assert "![x]" not in card
    assert r"a\|b" in card
