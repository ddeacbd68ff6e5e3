"""Log-odds of an event by a plan of waves: everybody sends once, in Python and in files."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import expit

from blurfit import Agreement, PublishedMoments, perturb
from blurfit.agreement.plan import Plan, read_agreed
from blurfit.agreement.terms import require_together
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.learning.hazards import hazard_estimates, pooled
from blurfit.learning.inference import Inference
from blurfit.model.course import Course, follows, wave_sums
from blurfit.schema.columns import Binary, Numeric, TimeToEvent
from blurfit.schema.schema import Schema, values
from blurfit.simulation import course_in_waves
from blurfit.theory.hazards import HazardMap
from blurfit.theory.maps import Whitening
from blurfit_server.store.collections import require_together as of_the_store

BANDS = 4
SCHEMA = Schema(
    [Numeric("age", 20, 60), Binary("remote")],
    TimeToEvent("months", "left", horizon=12, bands=BANDS),
)
TRUTH = np.array([0.03, -0.5])


def staff(people: int, seed: int = 0):
    """Return a table of people who leave by log-odds, of whom some stop being observed."""
    generator = np.random.default_rng(seed)
    age, remote = generator.uniform(20, 60, people), generator.integers(0, 2, people)
    score = np.column_stack([age, remote]) @ TRUTH - 3.2
    happened = generator.random((people, BANDS)) < expit(score[:, None] + 0.1 * np.arange(BANDS))
    event, band = happened.any(axis=1), happened.argmax(axis=1)
    time = np.where(event, band + generator.random(people), BANDS) * 3
    until = np.where(generator.random(people) < 0.8, 12, 3 * generator.integers(0, 5, people))
    left = event & (time <= until)
    return {"age": age, "remote": remote, "months": np.minimum(time, until), "left": left}


def a_plan(people: int = 40_000, **choices) -> Plan:
    return Plan.propose(SCHEMA, waves=3, epsilon=1, delta=1e-6, quorum=people, **choices)


@cache
def followed() -> Course:
    """Return the course of 40,000 people through three waves."""
    rows = values(SCHEMA, staff(40_000))
    return course_in_waves(a_plan(), rows, np.random.default_rng(0))


def test_waves_of_people_find_the_log_odds_better_than_the_last_alone() -> None:
    course = followed()
    assert [one.agreement.wave.kind for one in course.releases] == ["joint", "newton", "newton"]
    model = course.survival()
    for one, true in zip(model.estimates(), TRUTH, strict=True):
        assert abs(one.value - true) < 4 * one.standard_error
        assert 0 < one.privacy_error < one.standard_error
    assert model.estimates()[1].standard_error < 0.05
    told = str(model.summary())
    assert "40,000" in told
    assert "ε = 1" in told
    p = 1 - np.exp(-model.predict_hazard({"age": [40], "remote": [1]}) * 3)
    np.testing.assert_allclose(p[0], expit(-3.2 + 1.2 - 0.5 + 0.1 * np.arange(4)), rtol=0.15)
    with pytest.raises(InfeasibleError, match="survival"):
        course.model()
    assert course.best_model()[0] is None
    with pytest.raises(InfeasibleError, match="first wave of exits"):
        Course.of(course.agreed, course.releases[:1]).survival()
    with pytest.raises(InfeasibleError, match="later wave of who left when"):
        course.releases[1].survival()
    with pytest.raises(InfeasibleError, match="later wave of who left when"):
        course.releases[1].fit()
    alone = Course.of(course.agreed, course.releases[:2]).survival().estimates()
    both = course.survival().estimates()
    for one, other in zip(both, alone, strict=True):
        assert one.standard_error < other.standard_error


def test_pooled_estimates_are_weighed_by_their_precision() -> None:
    def one(value, sampling, privacy):
        parts = np.array([value]), np.array([[sampling]]), np.array([[privacy]])
        return Inference(("a",), 10, *parts, None, None, condition=0.0, uneven=False)

    found = pooled([one(0.0, 2.0, 2.0), one(1.0, 0.5, 0.5)])
    assert found.coefficients == pytest.approx([0.8])
    assert found.sampling[0, 0] == pytest.approx(0.2**2 * 2 + 0.8**2 * 0.5)
    assert found.count == 20


def test_documents_are_read_as_they_are_written_and_checked() -> None:
    course = followed()
    plan = read_agreed(course.agreed.to_json())
    assert isinstance(plan, Plan)
    assert plan.fingerprint == course.agreed.fingerprint
    read = [PublishedMoments.from_json(one.to_json()) for one in course.releases]
    again = Agreement.from_json(read[2].agreement.to_json())
    follows(plan, read[:2], again)
    assert again.to_json() == Course.of(plan, read[:2]).next_agreement().to_json()
    with pytest.raises(NotCertifiedError):
        follows(plan, read[:1], again)


def test_maps_of_other_bands_or_targets_and_too_little_noise_are_refused() -> None:
    plan, first = a_plan(), followed().releases[0]
    white = Whitening([0.0, 0.0], np.eye(2), [0.0, 0.0])
    for chart, words in (
        (HazardMap(white, np.zeros(5)), "4 bands"),
        (HazardMap(Whitening([0.0], [[1.0]], [0.0]), np.zeros(4)), "columns"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            plan.following((first.mark,), chart)
    schema = Schema(SCHEMA.features[:2], Binary("left"))
    labels = Plan.propose(schema, waves=3, epsilon=1, delta=1e-6, quorum=40_000)
    with pytest.raises(InvalidValueError, match="hazard map"):
        labels.following(("0" * 64,), HazardMap(white, np.zeros(4)))
    # A wave's agreement that states a smaller L than its map has is not certified.
    agreement = followed().releases[2].agreement
    entry = agreement.to_dict()
    entry.pop("fingerprint", None)
    entry["wave"]["map"]["events"] = 1.5
    with pytest.raises(BlurfitError):
        Agreement.from_dict(entry).verify()


def test_a_service_refuses_waves_and_takes_one() -> None:
    plan = a_plan(4000)
    with pytest.raises(InfeasibleError, match="one wave for a time to an event at a service"):
        require_together(plan.first(), served=True)
    assert of_the_store is require_together
    alone = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=4000)
    require_together(alone, served=True)
    spells = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=4000, diaries=True)
    with pytest.raises(InfeasibleError, match="no diaries with a time to an event"):
        require_together(spells, served=True)
    rows = {"age": [33, 35], "remote": [1, 0], "months": [4.5, 2.0], "left": [True, False]}
    sent = np.asarray(perturb(spells, rows).numbers)
    mean = spells.exact(rows).mean(axis=0)
    deviation = spells.calibration.noise / np.sqrt(spells.form.counts)
    assert (np.abs(sent - mean) < 8 * deviation).all()


def test_too_few_people_are_told_how_many_events_are_needed() -> None:
    rows = values(SCHEMA, staff(400))
    with pytest.raises(InfeasibleError, match=r"about [\d,]+ events and more"):
        course_in_waves(a_plan(400), rows, np.random.default_rng(0))


def test_noisy_or_empty_bands_of_the_last_wave_tell_no_errors_of_their_own() -> None:
    course = followed()
    release = course.releases[2]
    sums = wave_sums(release)
    chart = release.agreement.wave.chart
    with pytest.raises(InfeasibleError, match="noise dominates"):
        hazard_estimates(chart, replace(sums, deviation=100 * sums.deviation))
    far = replace(sums, linear=sums.linear + 60 * sums.matrix.diagonal())
    with pytest.raises(InfeasibleError, match="one step is not enough"):
        hazard_estimates(chart, far)
    # Its curvature is taken for that of a little noise, so that its step is short.
    release = followed().releases[2]
    chart, sums = release.agreement.wave.chart, wave_sums(release)
    told = hazard_estimates(chart, sums)
    matrix, linear = np.array(sums.matrix), np.array(sums.linear)
    matrix[3], matrix[:, 3], linear[3] = 0.0, 0.0, 0.0
    matrix[3, 3] = -0.5 * sums.deviation
    without = hazard_estimates(chart, replace(sums, matrix=matrix, linear=linear))
    np.testing.assert_allclose(without.coefficients[4:], told.coefficients[4:], atol=0.05)
    assert without.coefficients[3] == pytest.approx(chart.bands[3], abs=0.05)


def test_a_wave_far_from_its_start_is_not_pooled() -> None:
    release = followed().releases[1]
    chart, sums = release.agreement.wave.chart, wave_sums(release)
    near = replace(sums, linear=0.01 * sums.linear)
    hazard_estimates(chart, near, alone=False)
    far = replace(sums, linear=sums.linear + 0.7 * sums.matrix.sum(axis=0))
    hazard_estimates(chart, far)
    with pytest.raises(InfeasibleError, match="beside those of later waves"):
        hazard_estimates(chart, far, alone=False)
