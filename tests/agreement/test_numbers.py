"""Parts, objectives and public weights: what fixes the numbers that are sent."""

import math
from dataclasses import replace

import numpy as np
import pytest

from blurfit import Agreement, Binary, Categorical, Numeric, Schema, Terms
from blurfit.agreement.mechanisms import form_of, largest_scale
from blurfit.agreement.numbers import PublicWeights
from blurfit.errors import InvalidValueError
from blurfit.theory.forms import JointForm

SCHEMA = Schema(
    [Numeric("age", 0, 100), Categorical("region", ["n", "s", "w"]), Binary("married")],
    Numeric("income", 0, 100_000),
)
LABEL = Schema([Numeric("age", 0, 100)], Binary("ill"))
TERMS = Terms(epsilon=1.0, delta=1e-6, quorum=1000)
OURS = {"age": 1.0, "region": 2.0, "married": 1.0, "income": 4.0}


def propose(**changes) -> Agreement:
    promise = {"epsilon": 10.0, "delta": 1e-6, "quorum": 2000}
    return Agreement.propose(SCHEMA, **promise | changes)


def test_parts_cover_every_number_once_and_no_record_is_beyond_their_bound() -> None:
    agreement = propose()
    covered = [i for part in agreement.parts for i in range(agreement.width)[part.numbers]]
    assert covered == list(range(agreement.width))
    generator = np.random.default_rng(0)
    records = {
        "age": np.append(generator.uniform(0, 100, 198), [0, 100]),
        "region": generator.choice(["n", "s", "w"], 200),
        "married": generator.integers(0, 2, 200),
        "income": np.append(generator.uniform(0, 100_000, 198), [0, 100_000]),
    }
    exact = agreement.exact(records)
    for part in agreement.parts:
        assert part.deviations.shape == part.counts.shape == exact[0, part.numbers].shape
        norms = np.sqrt((part.counts * exact[:, part.numbers] ** 2).sum(axis=1))
        assert norms.max() <= part.bound
        assert norms.max() > 0.7 * part.bound  # the corners are not far from it
        assert math.frexp(part.step)[0] == 0.5  # a power of two


def test_noise_is_alike_in_all_directions_of_the_norm() -> None:
    """Off the diagonal an entry stands for two of the matrix, so that its variance is half."""
    agreement = propose()
    (part,) = agreement.parts
    for name, count, deviation in zip(
        agreement.form.names, part.counts, part.deviations, strict=True
    ):
        one, other = name.split("·")
        assert count == (1 if one == other else 2)
        assert deviation**2 * count == pytest.approx(agreement.calibration.noise**2, rel=1e-12)


def test_weights_are_those_of_the_terms_or_of_kinds_quorum_and_promise_alone() -> None:
    found = PublicWeights.chosen(SCHEMA, replaced(weights=OURS), (1.0, 1e-6))
    assert found.columns == (1.0, 2.0, 1.0, 4.0)
    assert found.constant == pytest.approx(math.sqrt(1 + 4 + 1 + 16) / 2)
    stated = PublicWeights.chosen(SCHEMA, replaced(weights=OURS, constant=3.0), (1.0, 1e-6))
    assert stated == PublicWeights(3.0, (1.0, 2.0, 1.0, 4.0))
    found = PublicWeights.chosen(SCHEMA, TERMS, (1.0, 1e-6))
    renamed = Schema(
        [Numeric("a", -7, 3), Categorical("b", ["x", "y", "z"]), Binary("c")], Numeric("d", 1, 2)
    )
    assert PublicWeights.chosen(renamed, TERMS, (1.0, 1e-6)) == found
    assert PublicWeights.chosen(SCHEMA, replaced(quorum=10**6), (1.0, 1e-6)) != found
    assert PublicWeights.chosen(SCHEMA, TERMS, (0.1, 1e-6)) != found
    assert PublicWeights.chosen(SCHEMA, replaced(constant=2.0), (1.0, 1e-6)) == replace(
        found, constant=2.0
    )


@pytest.mark.parametrize("wrong", [{"age": 1.0}, OURS | {"height": 1.0}])
def test_weights_of_other_questions_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidValueError, match="each of"):
        PublicWeights.chosen(SCHEMA, replaced(weights=wrong), (1.0, 1e-6))


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf, 1e-4, 1e4])
def test_weights_that_arithmetic_would_choke_on_are_refused(weight: float) -> None:
    for weights in (PublicWeights(weight, (1.0,)), PublicWeights(1.0, (1.0, weight))):
        with pytest.raises(InvalidValueError, match="weight="):
            weights.verify()


def test_weights_survive_their_document_by_name() -> None:
    found = PublicWeights(0.5, (1.0, 2.0, 1.0, 4.0))
    entry = found.to_dict(SCHEMA.questions)
    assert entry == {"(intercept)": 0.5} | OURS
    shuffled = dict(reversed(entry.items()))
    assert PublicWeights.from_dict(shuffled, SCHEMA.questions) == found
    for wrong in (OURS, entry | {"height": 1.0}, {}):
        with pytest.raises(InvalidValueError, match="a weight for each"):
            PublicWeights.from_dict(wrong, SCHEMA.questions)


def replaced(**changes) -> Terms:
    """The terms, but for some."""
    return Terms(**{"epsilon": 1.0, "delta": 1e-6, "quorum": 1000} | changes)


# ---- the parts of a contract follow from schema and terms, and from nothing else
THREE = Schema([Numeric("x", 0, 1), Binary("b")], Numeric("y", 0, 1))
CHOSEN = {"epsilon": 1.0, "delta": 1e-6, "quorum": 1000}


def test_a_form_needs_weights_or_a_map() -> None:
    weights = Agreement.propose(THREE, **CHOSEN).weights
    form = form_of(THREE, weights, None, Terms.of(**CHOSEN))
    assert isinstance(form, JointForm)
    assert largest_scale(form) == 1.0
    with pytest.raises(InvalidValueError, match="a wave with a map"):
        form_of(THREE, None, None, Terms.of(**CHOSEN))
