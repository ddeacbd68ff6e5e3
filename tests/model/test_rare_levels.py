"""Answers that hardly anybody gave: nothing is known of them, and no page says anything."""

import numpy as np
import pytest

from blurfit import Agreement, Binary, Categorical, Numeric, PublishedMoments, Schema
from blurfit.model.release import moments_of
from blurfit.simulation import exact_totals, sampler_for, weights_of

COUNT = 20_000
HALF = 75_000.0  # of the range of the target


def survey(silent: float, target: object = None) -> tuple[Agreement, dict[str, np.ndarray]]:
    """People of whom nobody is widowed or owns a boat, and few leave unsaid where they live."""
    generator = np.random.default_rng(1)
    age, education = generator.uniform(20, 80, COUNT), generator.uniform(6, 18, COUNT)
    marital = generator.choice(["single", "married", "formerly"], COUNT, p=[0.5, 0.35, 0.15])
    owns = generator.integers(0, 2, COUNT)
    pay = 4000 * education + 15_000 * (marital == "married") - 100 * age + 5000 * owns
    pay = np.clip(pay + generator.normal(0, 25_000, COUNT), 0, 150_000)
    said = marital.astype(object)
    said[generator.random(COUNT) < silent] = None
    schema = Schema(
        [
            Numeric("age", 15, 95),
            Numeric("education", 0, 24),
            Categorical("marital", ["single", "married", "formerly", "widowed"], optional=True),
            Binary("owns"),
            Binary("boat"),
        ],
        target or Numeric("pay", 0, 150_000),
    )
    table = {"age": age, "education": education, "marital": said, "owns": owns, "pay": pay}
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=COUNT)
    return agreement, table | {"boat": np.zeros(COUNT, dtype=np.int64)}


def releases(silent: float, times: int, target: object = None) -> list[PublishedMoments]:
    agreement, table = survey(silent, target)
    sampler = sampler_for(agreement, exact_totals(agreement, table))
    draws = (sampler.draw(np.random.default_rng(seed)) for seed in range(times))
    return [moments_of(agreement, one) for one in draws]


def person(marital: str | None, boat: int = 0) -> dict[str, object]:
    return {"age": 40, "education": 12, "marital": marital, "owns": 1, "boat": boat}


@pytest.mark.parametrize("silent", [0.0, 0.001, 0.003])
def test_what_the_release_says_nothing_of_moves_nothing_far(silent: float) -> None:
    """A unit of such a column has a prior deviation of half the range, and mostly is hidden; so is
    the answer of nobody.
    """
    for moments in releases(silent, 30):
        model = moments.fit()
        effects = model.coefficients.effects
        for name in ("marital=(not said)", "marital=widowed", "boat"):
            assert abs(effects[name]) <= HALF
            assert name not in model.hidden or effects[name] == pytest.approx(0, abs=1e-6)
        assert 12_000 < effects["marital=married"] < 18_000
        assert 3000 < effects["education"] < 5000
        usual = float(model.predict(person("single")))
        for odd in (person(None), person("widowed"), person("single", boat=1)):
            assert abs(float(model.predict(odd)) - usual) <= HALF


def test_nobody_is_hidden_nearly_always_and_many_never() -> None:
    models = [moments.fit() for moments in releases(0.0, 30)]
    for name in ("marital=(not said)", "marital=widowed", "boat"):
        assert sum(name in model.hidden for model in models) >= 25
    assert all(set(model.hidden).isdisjoint({"marital=formerly", "owns"}) for model in models)
    assert not any("marital=(not said)" in one.fit().hidden for one in releases(0.03, 5))


def test_what_three_in_a_hundred_leave_unsaid_is_learned() -> None:
    """As least squares of the rows themselves, but for the noise and a tenth for shrinkage."""
    table = survey(0.03)[1]
    said = table["marital"]
    columns = [table["age"], table["education"], table["owns"], said == "married"]
    columns += [said == "formerly", said == None]  # noqa: E711
    design = np.column_stack([np.ones(COUNT), *columns]).astype(float)
    truth = np.linalg.lstsq(design, table["pay"], rcond=None)[0][-1]
    found = [one.fit().coefficients.effects["marital=(not said)"] for one in releases(0.03, 30)]
    assert np.mean(found) == pytest.approx(truth, abs=3 * np.std(found) / np.sqrt(30) + truth / 10)
    assert np.std(found) < HALF / 10


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
def test_penalties_say_nothing_of_them_either(penalty: str) -> None:
    for moments in releases(0.0, 5):
        model = moments.fit(**{penalty: 0.0})
        path = getattr(moments, f"{penalty}_path")(penalties=[0.0])
        for name in model.hidden:
            assert model.coefficients.effects[name] == pytest.approx(0, abs=1e-6)
            assert path.coefficients[0, path.names.index(name)] == pytest.approx(0, abs=1e-6)


def test_labels_and_classes_are_predicted_as_for_the_reference() -> None:
    for moments in releases(0.0, 5, Numeric("pay", 0, 150_000).above(60_000)):
        model = moments.fit()
        likely = [model.predict_proba(person(one))[1] for one in ("single", None, "widowed")]
        assert np.ptp(likely) < 0.3
        if {"marital=(not said)", "marital=widowed"} <= set(model.hidden):
            assert np.ptp(likely) < 1e-9


def test_weights_without_a_release_are_those_of_the_model() -> None:
    agreement, table = survey(0.0)
    sampler = sampler_for(agreement, exact_totals(agreement, table))
    totals = sampler.draw(np.random.default_rng(4))
    assert (weights_of(agreement, totals) == moments_of(agreement, totals).fit().weights).all()


def test_summaries_and_effects_leave_them_out_and_say_so_once() -> None:
    (moments,) = releases(0.0, 1)
    model = moments.fit()
    assert set(model.hidden) == {"marital=(not said)", "marital=widowed", "boat"}
    text = str(model.summary())
    shown = (
        "Not shown: marital=widowed, marital=(not said), boat (too few people to tell from none)"
    )
    assert " ".join(text.split()).count(shown) == 1
    assert not any("widowed" in row[0] for part in model.summary().sections for row in part.rows)
    assert "widowed" not in str(model.effect("marital"))
    assert "widowed" not in str(model.marginal_effects())
    assert "boat" not in str(model.marginal_effects())
    with pytest.raises(Exception, match="The noise hides how many people answered 'boat'"):
        model.effect("boat")
    again = type(model).from_json(model.to_json())
    assert again.hidden == model.hidden
