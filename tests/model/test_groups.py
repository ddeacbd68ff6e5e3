"""Groups of a release: models in each, differences, decompositions, and what is refused."""

import numpy as np
import pytest

from blurfit import Agreement, Bands, Binary, Categorical, Numeric, PublishedMoments, Schema
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning.groups import decomposed, fit_groups
from blurfit.learning.inference import infer
from blurfit.model.groups import ByGroup
from blurfit.model.release import moments_of
from blurfit.simulation import exact_totals, sampler_for
from support.joint_release import drawn

SCHEMA = Schema(
    [
        Numeric("age", 20, 60),
        Numeric("hours", 0, 60),
        Binary("degree"),
        Categorical("sector", ["public", "private", "other"]),
        Categorical("sex", ["female", "male", "diverse"]),
        Bands("pay", edges=[15, 20, 25, 30, 35, 45]),
    ],
    Numeric("pay", 0, 80),
)
SEXES = ["female", "male", "diverse"]
FORMULA = "pay ~ age + hours + degree"
PROMISE = {"delta": 1e-6, "quorum": 8192, "groups": "sex"}


def people(count: int, seed: int, diverse: float = 0.1) -> dict[str, np.ndarray]:
    """Slopes, spreads and answers differ between the groups."""
    generator = np.random.default_rng(seed)
    shares = [0.4, 0.6 - diverse, diverse]
    sex = generator.choice(3, count, p=shares)
    age = generator.uniform(20, 60, count)
    hours = np.clip(generator.normal(np.array([30, 38, 34])[sex], 8), 0, 60)
    degree = generator.random(count) < np.array([0.5, 0.4, 0.45])[sex]
    sector = generator.choice(["public", "private", "other"], count)
    slope = np.array([0.3, 0.4, 0.35])[sex]
    pay = 6 + 0.1 * age + slope * hours + 4 * degree + 2 * (sector == "private")
    pay = pay + generator.uniform(-1, 1, count) * np.array([6, 9, 7])[sex]
    told = {"age": age, "hours": hours, "degree": degree, "sector": sector}
    return told | {"sex": np.array(SEXES)[sex], "pay": np.clip(pay, 0, 80)}


def released(seed: int, epsilon: float = 1.0, count: int = 8192, **terms: object):
    records = people(count, seed)
    return drawn(SCHEMA, records, seed, epsilon=epsilon, **PROMISE, **terms), records


def least_squares(records: dict[str, np.ndarray], chosen: np.ndarray) -> np.ndarray:
    columns = [records[name][chosen].astype(float) for name in ("age", "hours", "degree")]
    design = np.column_stack([np.ones(chosen.sum()), *columns])
    return np.linalg.lstsq(design, records["pay"][chosen], rcond=None)[0]


@pytest.mark.parametrize("overlap", [0.0, 0.5])
def test_without_much_noise_each_model_is_least_squares(overlap: float) -> None:
    moments, records = released(1, epsilon=1e5, overlap=overlap)
    moments = PublishedMoments.from_json(moments.to_json())
    groups = moments.by_group()
    sexes = {name: records["sex"] == name for name in groups.names}
    models = groups.fit(FORMULA)
    assert not models.hidden
    for name, chosen in sexes.items():
        expected = least_squares(records, chosen)
        assert models.models[name].coefficients == pytest.approx(expected, rel=0.02, abs=0.02)
    apart = least_squares(records, sexes["female"]) - least_squares(records, sexes["male"])
    found = models.differences("male", "female")
    assert found.answer.values == pytest.approx(apart, rel=0.05, abs=0.1)
    assert models.coefficients.test().p_value < 1e-6
    assert groups.counts().answer.values == pytest.approx(
        [one.sum() for one in sexes.values()], abs=3
    )
    means = [records["pay"][one].mean() for one in sexes.values()]
    assert groups.mean("pay").answer.values == pytest.approx(means, rel=1e-3)
    shares = [records["degree"][one].mean() for one in sexes.values()]
    assert groups.mean("degree").answer.values == pytest.approx(shares, abs=3e-3)
    everybody = least_squares(records, np.ones(len(records["pay"]), dtype=bool))
    assert [one.value for one in models.pooled.estimates()] == pytest.approx(everybody, rel=0.02)
    own = groups["female"]
    assert own.mean("pay").answer.values == pytest.approx(means[:1], rel=1e-3)
    sectors = [
        (records["sector"][sexes["female"]] == one).mean() for one in SCHEMA.features[3].levels
    ]
    assert own.table("sector").answer.values == pytest.approx(sectors, abs=5e-3)


def test_a_gap_is_split_as_oaxaca_and_blinder_did() -> None:
    moments, records = released(2, epsilon=1e5)
    women, men = (records["sex"] == name for name in ("female", "male"))
    answers = np.column_stack([records[name].astype(float) for name in ("age", "hours", "degree")])
    beta = least_squares(records, men)[1:]
    apart = answers[women].mean(axis=0) - answers[men].mean(axis=0)
    gap = records["pay"][women].mean() - records["pay"][men].mean()
    expected = [gap, apart @ beta, *(apart * beta), gap - apart @ beta]
    found = moments.by_group().decompose(FORMULA, "female", "male")
    assert found.answer.values == pytest.approx(expected, abs=0.03)
    rows = [row for (row,) in found.rows]
    assert rows == ["gap", "explained", "by age", "by hours", "by degree", "unexplained"]
    assert "Unexplained" in str(found)
    assert found.plot().get_title().startswith("pay: female less male")
    own = moments.by_group()["female"].quantile("pay").to_frame()
    assert own["lower"][0] <= np.median(records["pay"][women]) <= own["upper"][0]


def test_one_group_s_model_is_that_of_its_sums_alone() -> None:
    """By a route of its own: `infer` on one block, and the noise drawn many times."""
    groups = released(3, epsilon=8.0, overlap=0.5)[0].by_group()
    parts, hidden = groups.sums.parts("pay", ["age", "hours", "degree"])
    assert hidden == {}
    fitted = fit_groups([parts[place] for place in range(3)], groups.sums.spread)
    answer = fitted.answer
    for place in range(3):
        own, scale = fitted.maps[place], parts[place].scale / parts[place].target.weight
        alone = infer(parts[place])
        assert (own @ answer.values) * scale == pytest.approx(alone.coefficients)
        for part, expected in ((answer.privacy, alone.privacy), (answer.sampling, alone.sampling)):
            assert own @ part @ own.T * np.outer(scale, scale) == pytest.approx(expected)


@pytest.mark.statistical
@pytest.mark.parametrize("common", [False, True])
def test_noise_of_coefficients_and_gaps_is_as_large_as_is_told(common: bool) -> None:
    """Drawn 300 times on the same people; between groups as well, where codes overlap."""
    records = people(8192, 4)
    agreement = Agreement.propose(SCHEMA, epsilon=8.0, overlap=0.5, **PROMISE)
    sampler, generator = (
        sampler_for(agreement, exact_totals(agreement, records)),
        np.random.default_rng(5),
    )
    found, told = [], []
    for _ in range(300):
        groups = ByGroup.of(moments_of(agreement, sampler.draw(generator)))
        parts, _ = groups.sums.parts("pay", ["age", "hours"], models=False)
        fitted = fit_groups([parts[place] for place in range(3)], groups.sums.spread, common=common)
        answer = fitted.answer
        if not common:
            answer = decomposed(fitted, 0, 1, [[1], [2]])
        found.append(answer.values)
        told.append(answer.privacy)
    seen, stated = np.cov(np.array(found).T), np.mean(told, axis=0)
    ratio = np.sqrt(np.diag(seen) / np.diag(stated))
    assert (ratio > 0.8).all()
    assert (ratio < 1.2).all()
    scale = np.sqrt(np.outer(np.diag(stated), np.diag(stated)))
    assert seen / scale == pytest.approx(stated / scale, abs=0.3)


def test_a_group_that_the_noise_hides_is_left_out_and_dummies_are_offered() -> None:
    moments, _ = released(6, epsilon=2.0)
    models = moments.by_group().fit(FORMULA)
    assert "diverse" in models.hidden
    assert "No model of diverse" in str(models)
    assert "intercept for each group" in models.hidden["diverse"]
    with pytest.raises(InfeasibleError, match="diverse"):
        models.differences("male", "diverse")
    common = moments.fit("pay ~ age + hours + sex")
    names = ["(intercept)", "age", "hours", "sex=male"]
    assert [one.name for one in common.estimates()][:4] == names
    restored = type(common).from_json(common.to_json())
    assert restored.predict({"age": [40], "hours": [30], "sex": ["female"]}) == pytest.approx(
        common.predict({"age": [40], "hours": [30], "sex": ["female"]})
    )


@pytest.mark.parametrize("overlap", [0.0, 0.5])
def test_common_slopes_have_an_intercept_for_each_group(overlap: float) -> None:
    moments, records = released(7, epsilon=1e5, overlap=overlap)
    found = {
        one.name: one.value for one in moments.fit("pay ~ age + hours + C(sex, 'male')").estimates()
    }
    dummies = [records["sex"] == name for name in ("female", "diverse")]
    columns = [records["age"], records["hours"], *dummies]
    design = np.column_stack([np.ones(8192), *(one.astype(float) for one in columns)])
    expected = np.linalg.lstsq(design, records["pay"], rcond=None)[0]
    names = ["(intercept)", "age", "hours", "sex=female", "sex=diverse"]
    assert [found[name] for name in names] == pytest.approx(expected, rel=0.03, abs=0.05)


def test_what_cannot_be_asked_is_refused_with_a_remedy() -> None:
    moments, _ = released(8)
    groups = moments.by_group()
    for ask, words in (
        (lambda: groups["nobody"], "one of the groups"),
        (lambda: groups.decompose(FORMULA, "male", "male"), "two different groups"),
        (lambda: groups.fit("pay ~ age + sex"), "the same for everybody"),
        (lambda: groups.mean("sector"), "Condition"),
        (lambda: groups["female"].quantile("hours"), "bands"),
        (lambda: moments.fit(target="sex"), "target='sex'"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            ask()
    with pytest.raises(InfeasibleError, match="groups='region'"):
        drawn(SCHEMA, people(300, 9), 0).by_group()


def test_a_number_by_groups_needs_no_other_question() -> None:
    generator = np.random.default_rng(1)
    schema = Schema([Categorical("k", ["a", "b"])], Numeric("y", 0, 1))
    k, y = generator.integers(0, 2, 2000), generator.random(2000)
    table = {"k": np.array(["a", "b"])[k], "y": (y + k) / 2}
    moments = drawn(schema, table, generator, groups="k")
    found = moments.by_group().mean("y").to_frame()
    assert (abs(found["estimate"] - [0.25, 0.75]) < 4 * found["standard_error"]).all()
    assert found["standard_error"].max() < 0.02
    assert moments.fit().features == ()


# ---- tables and means of a release with weights are those of the weighted people
FACTORS = {"a": 1.0, "b": 0.5, "c": 0.2}
SURVEY = Schema(
    [Categorical("r", list(FACTORS)), Binary("e"), Numeric("x", 0, 1)], Numeric("y", 0, 1)
)


def weighted(epsilon: float) -> tuple[PublishedMoments, dict[str, np.ndarray], np.ndarray]:
    generator = np.random.default_rng(1)
    r, x = generator.integers(0, 3, 6000), generator.random(6000)
    e = generator.random(6000) < 0.3 + 0.3 * (r == 0)
    people = {"r": np.array(list(FACTORS))[r], "e": e, "x": x, "y": 0.1 + 0.2 * r + 0.3 * x}
    found = drawn(SURVEY, people, 2, epsilon=epsilon, weighting="r", factors=FACTORS)
    return PublishedMoments.from_json(found.to_json()), people, np.array([*FACTORS.values()])[r]


def test_every_answer_is_weighted() -> None:
    moments, people, weight = weighted(1e5)
    share = {one: weight[people["r"] == one].sum() / weight.sum() for one in FACTORS}
    assert moments.table("r").answer.values == pytest.approx(list(share.values()), abs=2e-3)
    yes = np.average(people["e"], weights=weight)
    assert moments.mean("e").answer.values == pytest.approx([yes], abs=2e-3)
    assert moments.mean("y").answer.values == pytest.approx(
        [np.average(people["y"], weights=weight)], abs=2e-3
    )
    cells = [
        weight[(people["r"] == one) & (people["e"] == answer)].sum() / weight.sum()
        for one in FACTORS
        for answer in (True, False)
    ]
    assert moments.table("r", "e").answer.values == pytest.approx(cells, abs=3e-3)
    effective = weight.sum() ** 2 / np.sum(weight**2)
    assert moments.joint.count == pytest.approx(effective, rel=1e-2)
    assert moments.fit("y ~ x").inference[0].count == moments.joint.count
    assert "weighted (0.57 on average)" in str(moments.describe())


def test_all_of_it_is_told_with_noise_too() -> None:
    """Seen before: rounding made a variance of 0 negative, and shares of a yes were refused."""
    moments, people, weight = weighted(2.0)
    for found, true in (
        (moments.mean("e"), np.average(people["e"], weights=weight)),
        (moments.mean("y"), np.average(people["y"], weights=weight)),
    ):
        row = found.to_frame().iloc[0]
        assert abs(row["estimate"] - true) < 5 * row["standard_error"]
    assert moments.table("r", "e").test().p_value < 1e-4
