"""Models and moments that somebody has edited are read, or refused: nothing else happens."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from blurfit import Categorical, Numeric, PublishedModel, PublishedMoments, Schema
from blurfit.agreement.agreement import Agreement
from blurfit.cli._reports import model_facts, moments_facts, moments_report
from blurfit.cli.use import _lines
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.model.model import PublishedFile
from blurfit.model.statement import as_markdown

COUNT, MUTATIONS = 4000, 300
PEOPLE = {"age": [50.0, 60.0], "sex": ["f", "m"], "income": [10.0, 20.0]}
ODD = [None, 0, -1, 2**52, 1e308, -1e308, "", "x", "\ud800", [], [[1.0]], {}, {"a": 1}, True]


@pytest.fixture(scope="module")
def moments() -> PublishedMoments:
    schema = Schema(
        [Numeric("age", 0, 100), Categorical("sex", ["f", "m"])], Numeric("income", 0, 100)
    )
    agreement = Agreement.propose(schema, epsilon=20, delta=1e-5, quorum=COUNT)
    draw = np.random.default_rng(1)
    age = draw.uniform(0, 100, COUNT)
    sex = np.where(draw.uniform(size=COUNT) < 0.4, "f", "m")
    people = {"age": age, "sex": sex, "income": age / 2 + draw.uniform(0, 40, COUNT)}
    return PublishedMoments(agreement, COUNT, agreement.exact(people).sum(axis=0))


@pytest.fixture(scope="module")
def model(moments) -> PublishedModel:
    return moments.fit()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def edited(document: dict[str, Any], draw: random.Random) -> str:
    """Change a value outside of the agreement, whose fingerprint would not fit."""
    document = copy.deepcopy(document)
    name = draw.choice([key for key in document if key not in ("agreement", "format", "version")])
    *way, last = draw.choice([(name, *path) for path in places(document[name])])
    within = document
    for key in way:
        within = within[key]
    how = draw.randrange(4)
    if how == 0:
        del within[last]
    elif how == 1 and isinstance(within[last], list):
        within[last] = [*within[last], *within[last][:1]]
    elif how == 2 and isinstance(within[last], float):
        within[last] *= draw.choice([-1.0, 0.0, 1e30, 1e300])
    else:
        within[last] = draw.choice(ODD)
    return json.dumps(document)


def show(file: PublishedFile) -> None:
    """Say everything that the command line says of a file."""
    as_markdown(file)
    if isinstance(file, PublishedModel):
        str(file.summary()), file.summary().to_html(), json.dumps(model_facts(file))
        for confidence in (None, 0.95):
            list(_lines(file, PEOPLE, confidence))
        str(file.effect("age"))
    elif isinstance(file, PublishedMoments):
        json.dumps(moments_facts(file)), moments_report(file), str(file.describe())
        str(file.table("sex")), str(file.mean("income", by="sex")), str(file.fit().summary())


@pytest.mark.parametrize("kind", ["model", "moments"])
def test_an_edited_file_is_shown_or_refused(kind, request) -> None:
    file: PublishedFile = request.getfixturevalue(kind)
    show(file)
    document, draw = json.loads(file.to_json()), random.Random(20)
    outcomes = dict.fromkeys(("shown", "refused"), 0)
    for _ in range(MUTATIONS):
        try:
            show(type(file).from_json(edited(document, draw)))
            outcomes["shown"] += 1
        except BlurfitError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 10, outcomes


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("names", ["intercept", ["age"], "sex=m"], "str"),
        ("names", ["intercept", "sex=m", "age"], "in this order"),
        ("count", "many", "int"),
        ("r_squared", "all", "float"),
        ("residual_variance", -1.0, ">= 0"),
        ("privacy", [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "negative variances"),
        ("privacy", [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "negative variances"),
        ("sampling", [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "symmetric"),
        ("coefficients", [1.0, 2.0], "3 coefficients and their covariances"),
        ("new", 1, "unknown field"),
    ],
)
def test_standard_errors_have_their_types_and_are_possible(model, field, value, says) -> None:
    document = json.loads(model.to_json())
    document["inference"][0][field] = value
    with pytest.raises(InvalidValueError, match=says):
        PublishedModel.from_dict(document)


@pytest.mark.parametrize("field", ["software", "method", "refusal", "condition"])
def test_texts_hold_nothing_that_a_terminal_obeys(model, field) -> None:
    document = json.loads(model.to_json()) | {field: "by\x1b]0;owned\x07 hand"}
    with pytest.raises(InvalidValueError, match=field):
        PublishedModel.from_dict(document)


def test_sums_are_what_so_many_people_can_send(moments) -> None:
    document = json.loads(moments.to_json())
    document["sums"][0] = 1e300
    with pytest.raises(InvalidValueError, match=r"more than 4,000 people can send"):
        PublishedMoments.from_dict(document)
