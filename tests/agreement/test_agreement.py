"""The contract: canonical, fingerprinted, and never believed."""

import itertools
import json
import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from blurfit import (
    Agreement,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    Numeric,
    Schema,
    learn,
    perturb,
    perturb_table,
)
from blurfit.agreement.agreement import refuse_unless_blurrable, require_kept
from blurfit.agreement.numbers import promised_in_all
from blurfit.errors import BlurfitError
from blurfit.learning.sums import Screen, total
from blurfit.schema.schema import Binary, Categorical

FEATURES = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])]
REGRESSION = Schema(features=FEATURES, target=Numeric("income", 0, 200_000))
LABEL = Schema(features=FEATURES, target=Numeric("income", 0, 200_000).above(37_000))
CLASSES = Schema(features=FEATURES[:2], target=Categorical("sex", ["f", "m"]))
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 5000}
AGREEMENTS = {
    "moment": Agreement.propose(REGRESSION, **PROMISE),
    "moment, label": Agreement.propose(LABEL, **PROMISE, neighbours="zero-out"),
    "moment, classes": Agreement.propose(
        CLASSES, **PROMISE, constant=0.7, weights={"age": 1.0, "married": 0.8, "sex": 0.6}
    ),
    "moment, shared": Agreement.propose(
        REGRESSION,
        **PROMISE,
        databases=[("Office", "https://first.example"), ("Clinic", "https://second.example")],
        proofs=False,
    ),
}


@pytest.mark.parametrize("name", AGREEMENTS)
def test_round_trip(name: str) -> None:
    agreement = AGREEMENTS[name]
    again = Agreement.from_json(agreement.to_json())
    assert again == agreement
    assert again.fingerprint == agreement.fingerprint
    assert again.to_json() == agreement.to_json()
    again.verify(agreement.fingerprint)
    assert len({one.fingerprint for one in AGREEMENTS.values()}) == len(AGREEMENTS)


def leaves(document: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    for name, value in document.items() if isinstance(document, dict) else enumerate(document):
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def changed(document: Any, path: tuple, value: Any) -> Any:
    """A copy with another value at a place; what does not lead there is the original's."""
    if not path:
        return value
    first, *rest = path
    copy = document.copy()
    copy[first] = changed(document[first], tuple(rest), value)
    return copy


def mutations(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value / 2 if value else 0.25, value * 2 + 1, -value - 1]
    if value is None:
        return [1.0]
    return [value + "x", ""]


@pytest.mark.parametrize("name", AGREEMENTS)
def test_no_field_can_be_edited(name: str) -> None:
    """Every leaf of the text, changed in every way, is noticed: by the fingerprint, or before."""
    document = json.loads(AGREEMENTS[name].to_json())
    for path, value in leaves(document):
        for mutated in mutations(value):
            text = json.dumps(changed(document, path, mutated))
            with pytest.raises(BlurfitError):
                Agreement.from_json(text).verify()


@pytest.mark.parametrize("name", AGREEMENTS)
def test_a_forger_who_computes_the_fingerprint_anew_still_cannot_lower_the_noise(name: str) -> None:
    document = AGREEMENTS[name].to_dict()
    for path, value in leaves(document["calibration"], ("calibration",)):
        if isinstance(value, bool) or not isinstance(value, int | float) or value == 0:
            continue
        if path[1] in ("split",) or (path[1:2] == ("model",) and "local" in name):
            continue
        lowered = value - 1 if isinstance(value, int) and value > 1 else value - abs(value) / 3
        with pytest.raises(BlurfitError):
            Agreement.from_dict(changed(document, path, lowered)).verify()


def test_noise_for_fewer_columns_is_refused() -> None:
    height = AGREEMENTS["moment"].to_dict()["schema"]["features"][0] | {"name": "height"}
    more = deepcopy(AGREEMENTS["moment"].to_dict())
    more["schema"]["features"].append(height)
    more["schema"]["targets"] = [*more["schema"]["targets"], "height"]
    with pytest.raises(InvalidValueError, match="a weight for each of"):
        Agreement.from_dict(more)
    more["weights"]["height"] = 0.5
    with pytest.raises(NotCertifiedError, match="reach of the sums"):
        Agreement.from_dict(more).verify()


def farthest(agreement: Agreement) -> float:
    """How far one person moves the numbers that are sent, by trying all corners of the schema.

    In the norm in which the noise is alike in all directions, with what rounding may add.
    """
    asked = (*agreement.schema.features, agreement.schema.target)
    extremes = [
        np.eye(len(one.levels)) if isinstance(one, Categorical) else np.array([[-1.0], [1.0]])
        for one in asked
    ]
    corners = np.array([np.concatenate(corner) for corner in itertools.product(*extremes)])
    sent = agreement.form.products(corners) * np.sqrt(agreement.parts[0].counts)
    if agreement.calibration.model.neighbours == "replace":
        sent = (sent[:, None] - sent[None]).reshape(-1, sent.shape[1])
    rounding = agreement.step * np.sqrt(agreement.parts[0].counts.sum())
    return float(np.linalg.norm(sent, axis=1).max() + rounding)


def promise_is_kept(agreement: Agreement) -> bool:
    """The stated (ε, δ) by the exact formula of the Gaussian mechanism (Balle and Wang 2018)."""
    calibration = agreement.calibration
    mu, epsilon = farthest(agreement) / calibration.sigma, agreement.epsilon
    delta = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    noise = agreement.parts[0].deviations * np.sqrt(agreement.parts[0].counts)
    enough = np.allclose(noise * math.sqrt(agreement.quorum), calibration.sigma, rtol=1e-12)
    fine = agreement.step <= calibration.noise / 2**10
    return bool(delta <= agreement.delta and enough and fine)


MOMENTS = [name for name in AGREEMENTS if name.startswith("moment")]
FACTORS = (0.5, 0.9, 1 - 1e-6, 1 + 1e-6, 1.1, 2.0, 1e6, 0.0, -1.0)


@pytest.mark.parametrize("name", MOMENTS)
def test_the_independent_check_is_sharp(name: str) -> None:
    agreement = AGREEMENTS[name]
    assert promise_is_kept(agreement)
    assert farthest(agreement) > 0.85 * agreement.calibration.reach.sums
    calibration = replace(agreement.calibration, sigma=0.8 * agreement.calibration.sigma)
    assert not promise_is_kept(replace(agreement, calibration=calibration))


@pytest.mark.parametrize("name", MOMENTS)
def test_every_changed_number_of_moments_is_refused_or_the_promise_is_kept(name: str) -> None:
    """Whoever forges numbers and computes the fingerprint anew: weights, noise, grid, bounds."""
    document = AGREEMENTS[name].to_dict()
    accepted = 0
    for path, value in leaves(document):
        if isinstance(value, bool) or not isinstance(value, int | float) or path == ("version",):
            continue
        for factor in FACTORS:
            forged = value * factor if isinstance(value, float) else int(value * factor)
            if forged == value:
                continue
            try:
                found = Agreement.from_dict(changed(document, path, forged))
                found.verify()
            except BlurfitError:
                continue
            assert promise_is_kept(found), (path, forged)
            assert found.fingerprint != AGREEMENTS[name].fingerprint
            weaker = path[:2] == ("calibration", "model") or path[1:] == ("local", "delta")
            assert path[0] == "schema" or weaker, (path, forged)
            accepted += 1
    assert accepted > 0, "wider bounds, or a weaker promise, are other honest contracts"


def test_a_level_more_or_another_target_is_another_contract_that_keeps_its_promise() -> None:
    document = AGREEMENTS["moment"].to_dict()
    for path, value in (
        (("schema", "features", 2, "levels"), ["f", "m", "x"]),
        (("schema", "features", 2, "levels"), ["f"]),
        (("schema", "targets"), ["age"]),
        (("schema", "target", "upper"), 300_000),
        (("schema", "features", 0, "upper"), 50),  # the same noise for other bounds
        (("schema", "target", "name"), "debt"),
    ):
        try:
            other = Agreement.from_dict(changed(document, path, value))
            other.verify()
        except BlurfitError:
            continue
        assert promise_is_kept(other), path
        with pytest.raises(NotCertifiedError, match="not the one that you were invited to"):
            other.verify(AGREEMENTS["moment"].fingerprint)


@pytest.mark.parametrize("name", AGREEMENTS)
def test_hostile_values_end_in_our_own_errors(name: str) -> None:
    """Whatever stands in a field, reading and verifying either refuse it in one exception tree, or
    it is as before."""
    document = AGREEMENTS[name].to_dict()
    hostile = [None, True, "x", [], {}, -1, 0, 1e300, 10**400, float("nan"), float("inf")]
    for path, value in leaves(document):
        for nasty in hostile:
            if nasty == value and type(nasty) is type(value):
                continue
            try:
                forged = Agreement.from_dict(changed(document, path, nasty))
                forged.verify(AGREEMENTS[name].fingerprint)
            except BlurfitError:
                continue
            assert forged.fingerprint == AGREEMENTS[name].fingerprint, (path, nasty)


def test_promise_is_the_one_that_was_asked_for_in_any_kind_of_number() -> None:
    for agreement in AGREEMENTS.values():
        assert (agreement.epsilon, agreement.delta, agreement.quorum) == (1.0, 1e-6, 5000)
        assert agreement.calibration.model.delta < agreement.delta  # some is kept back
    assert AGREEMENTS["moment"].width == 18  # 21 products of (1, age, married, f, m, income), but
    # 1·1 and married·married, which everybody knows, and f·m, which is nothing
    same = Agreement.propose(REGRESSION, epsilon=np.float32(1), delta=1e-6, quorum=np.int64(5000))
    assert same.fingerprint == AGREEMENTS["moment"].fingerprint


@pytest.mark.parametrize("epsilon", [1e-3, 30.0, 1e3, 1e6])
def test_extreme_promises_can_be_used(epsilon: float) -> None:
    """From agreement to model: no noise is so small or grid so fine that a record does not fit."""
    agreement = Agreement.propose(REGRESSION, epsilon=epsilon, delta=1e-9, quorum=50)
    people = {"age": [30] * 60, "married": [1] * 60, "sex": ["f"] * 60, "income": [50_000] * 60}
    numbers = perturb_table(agreement, people).numbers
    one = perturb(agreement, {name: values[0] for name, values in people.items()}).numbers
    Screen.of(agreement).require(np.vstack([numbers, one]))
    sums = [(1, row) for row in (*numbers, one)]
    assert learn(agreement, total(agreement, sums, 1)).count == 61


RECORD = {"age": 30, "married": 1, "sex": "f", "income": 50_000}


@pytest.mark.parametrize("fingerprint", ["ü" * 64, "\ud800", "", "a" * 64])
def test_any_text_that_is_another_fingerprint_is_refused_clearly(fingerprint: str) -> None:
    with pytest.raises(NotCertifiedError, match="not the one that you were invited to"):
        AGREEMENTS["moment"].verify(fingerprint)
    text = json.dumps(AGREEMENTS["moment"].to_dict() | {"fingerprint": fingerprint})
    with pytest.raises(InvalidValueError, match=r"changed after it was written|surrogates"):
        Agreement.from_json(text)


SCHEMA = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 200_000))
MOMENT = Agreement.propose(SCHEMA, **PROMISE)


def test_parts_of_two_contracts_do_not_make_one() -> None:
    MOMENT.verify()
    finer = Agreement.propose(SCHEMA, **PROMISE | {"epsilon": 100.0})
    for other in (
        {"schema": Schema([Numeric("age", 18, 80), Numeric("height", 0, 3)], SCHEMA.target)},
        {"weights": None},
        {"step": finer.step},
        {"calibration": finer.calibration},
    ):
        with pytest.raises(BlurfitError):
            replace(MOMENT, **other).verify()


def test_what_was_found_to_keep_its_promise_is_not_looked_at_again() -> None:
    """By its text: another object with the same text is the same agreement."""
    found = Agreement.propose(SCHEMA, **PROMISE | {"quorum": 4321})
    found.verify()
    before = require_kept.cache_info()
    for _ in range(3):
        Agreement.from_dict(found.to_dict()).verify()
    assert require_kept.cache_info().misses == before.misses
    less = replace(found, calibration=replace(found.calibration, quorum=4322))
    for _ in range(2):
        with pytest.raises(NotCertifiedError):
            less.verify()


# ---- what an agreement refuses, one rule a test
SMALL = Schema([Numeric("x", 0, 1)], Numeric("y", 0, 1))


def test_what_is_promised_is_never_less_than_what_is_kept() -> None:
    generator = np.random.default_rng(1)
    for kept in 10 ** generator.uniform(-9, 3, 2000):
        for share in (0.0, 1e-3, 2.0**-10):
            found = promised_in_all(kept, share)
            assert found * (1 - share) >= kept * (1 - 1e-15)
            assert found == pytest.approx(kept / (1 - share), rel=1.1e-11)
    assert promised_in_all(1.0 * (1 - 1e-3), 1e-3) == 1.0


def test_numbers_and_noise_must_fit_their_steps() -> None:
    (part,) = Agreement.propose(SMALL, epsilon=1, delta=1e-6, quorum=500).parts
    refuse_unless_blurrable((part,))
    with pytest.raises(InfeasibleError, match="fewer than"):
        refuse_unless_blurrable((replace(part, bound=2.0**52 * part.step),))
    for factor in (2.0**60, 2.0**-60, math.nan):
        with pytest.raises(InfeasibleError, match="draw it exactly"):
            refuse_unless_blurrable((replace(part, deviations=part.deviations * factor),))
