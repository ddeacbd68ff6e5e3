"""Tables of a release as people read them: names, units, bounds, refusals, a known population."""

import json

import numpy as np
import pytest

from blurfit import Bands, Binary, Categorical, Cross, Numeric, Schema
from blurfit.errors import InfeasibleError, InvalidValueError
from support.joint_release import drawn, people, release

MOMENTS = release()
PEOPLE = people(20_000, 0)  # those of the release


def within_errors(answers, truth) -> bool:
    """Whether every value is within four of its standard errors of the rows' own, by privacy."""
    found = answers.to_dict()
    distance = np.abs(np.array(found["estimate"]) - truth)
    return bool((distance < 4 * np.array(found["privacy_error"]) + 1e-9).all())


def test_means_shares_and_tables_are_those_of_the_rows_but_for_the_noise() -> None:
    region, married = PEOPLE["region"], PEOPLE["married"]
    names = ("north", "south", "west")
    by_region = MOMENTS.mean("income", by="region")
    assert by_region.rows == tuple((name,) for name in names)
    assert within_errors(by_region, [PEOPLE["income"][region == name].mean() for name in names])
    assert by_region.test().p_value < 1e-6
    assert within_errors(MOMENTS.mean("income"), [PEOPLE["income"].mean()])
    assert within_errors(MOMENTS.mean("married"), [married.mean()])
    assert within_errors(
        MOMENTS.mean("married", by="region"), [married[region == name].mean() for name in names]
    )
    cells = [np.mean((region == name) & (married == yes)) for name in names for yes in (1, 0)]
    table = MOMENTS.table("region", "married")
    assert table.rows[:2] == (("north", "yes"), ("north", "no"))
    assert within_errors(table, cells)
    assert sum(table.to_dict()["estimate"]) == pytest.approx(1)
    assert sum(MOMENTS.table("region", shares="counts").to_dict()["estimate"]) == pytest.approx(
        20_000
    )
    for shares, group in (("row", 2), ("column", 3)):
        found = np.array(MOMENTS.table("region", "married", shares=shares).to_dict()["estimate"])
        sums = found.reshape(3, 2).sum(axis=1 if shares == "row" else 0)
        assert sums == pytest.approx(1), (shares, group)
    assert MOMENTS.table("region", "married").test().p_value > 0.001  # they are independent


def test_everything_at_once_prints_draws_and_becomes_a_frame(tmp_path) -> None:
    found = MOMENTS.describe()
    frame = found.to_frame()
    assert list(frame.columns[:3]) == ["question", "level", "estimate"]
    assert list(frame.question.unique()) == ["age", "education", "region", "married", "income"]
    assert "of it privacy" in str(found)
    assert "ε = 1" in str(found)
    assert "<table>" in found._repr_html_()
    panels = found.plot()
    assert panels[0].get_title() == found.title
    labels = [panel.get_xlabel().partition("\n")[0] for panel in panels]
    assert labels == ["age", "education", "share", "income"]  # no axis has euros beside shares
    ticks = [one.get_text() for one in panels[3].get_xticklabels()]
    assert any("," in one for one in ticks)
    with pytest.raises(InvalidValueError, match="each unit has its own axes"):
        found.plot(panels[0])
    found.save(tmp_path / "all.csv")
    assert len((tmp_path / "all.csv").read_text().splitlines()) == len(frame) + 1


def test_a_question_that_the_noise_hides_is_named_and_the_others_are_told() -> None:
    """Seen before: nothing at all was told, for one question that hardly anybody answered."""
    generator = np.random.default_rng(4)
    schema = Schema([Numeric("age", 0, 100), Numeric("debts", 0, 9, optional=True)], Binary("ill"))
    debts = np.where(np.arange(3000) < 3, 5.0, np.nan)
    rows = {"age": generator.uniform(0, 100, 3000), "debts": debts, "ill": np.arange(3000) % 2}
    moments = drawn(schema, rows, 2)
    with pytest.raises(InfeasibleError, match="hides how many people"):
        moments.mean("debts")
    found = moments.describe()
    assert found.assumes == ("The noise hides how many people answered: debts.",)
    facts = {(one["question"], one["level"]): one["estimate"] for one in found.to_facts()["rows"]}
    assert facts["debts", "mean"] is None
    assert facts["age", "mean"] == pytest.approx(50, abs=10)
    assert facts["ill", "yes"] == pytest.approx(0.5, abs=0.2)
    assert found.assumes[0] in str(found)
    found.plot()


def test_an_odds_ratio_has_an_interval_of_its_logarithm() -> None:
    schema = Schema([Binary("smokes"), Categorical("kind", ["a", "b", "c"])], Binary("ill"))
    generator = np.random.default_rng(1)
    smokes = generator.random(20_000) < 0.4
    ill = generator.random(20_000) < np.where(smokes, 0.3, 0.1)
    rows = {"smokes": smokes, "ill": ill, "kind": generator.choice(list("abc"), 20_000)}
    moments = drawn(schema, rows, 2)
    found = moments.odds_ratio("smokes", "ill").to_dict()
    truth = (0.3 / 0.7) / (0.1 / 0.9)
    assert found["lower"][0] < truth < found["upper"][0]
    middle = np.sqrt(found["lower"][0] * found["upper"][0])
    assert found["estimate"][0] == pytest.approx(middle)
    with pytest.raises(InvalidValueError, match="two levels of 'kind'"):
        moments.odds_ratio("kind", "ill")
    moments.odds_ratio("kind", "ill", levels=("a", "c"))
    made_up = moments.synthesise(500, seed=1)
    assert set(made_up) == {"smokes", "kind", "ill"}
    assert set(made_up["smokes"]) == {"yes", "no"}
    assert made_up.equals(moments.synthesise(500, seed=1))
    assert "no standard errors" in made_up.attrs["warning"]


def test_those_who_do_not_say_are_a_level_and_count_in_no_mean() -> None:
    schema = Schema(
        [Numeric("age", 0, 100, optional=True), Binary("owns", optional=True), Binary("east")],
        Numeric("pay", 0, 10),
    )
    generator = np.random.default_rng(3)
    east = generator.random(30_000) < 0.5
    age = generator.uniform(20, 60, 30_000).astype(object)
    owns = (generator.random(30_000) < 0.2 + 0.3 * east).astype(object)
    pay = generator.uniform(0, 10, 30_000)
    age[::3], owns[::4] = None, None
    rows = {"age": age, "owns": owns, "east": east, "pay": pay}
    moments = drawn(schema, rows, 4, epsilon=4)
    said = np.array([one is not None for one in age])
    ages = np.array([float(one or 0) for one in age])
    truth = [ages[said & (east == where)].mean() for where in (True, False)]
    assert within_errors(moments.mean("age", by="east"), truth)
    assert within_errors(moments.mean("age"), [ages[said].mean()])
    assert moments.table("owns").rows[-1] == ("(not said)",)
    told = np.array([one is not None for one in owns])
    own = np.array([bool(one) for one in owns])
    truth = [own[told & (east == where)].mean() for where in (True, False)]
    assert within_errors(moments.mean("owns", by="east"), truth)


def test_a_known_population_takes_the_bias_of_who_took_part_away(tmp_path) -> None:
    """Those who are married answer twice as often; the population is half married."""
    everybody = people(60_000, 5)
    generator = np.random.default_rng(6)
    keep = generator.random(60_000) < np.where(everybody["married"] == 1, 0.8, 0.2)
    answered = {name: column[keep] for name, column in everybody.items()}
    moments = drawn(MOMENTS.agreement.schema, answered, generator)
    truth = everybody["income"].mean()
    plain = moments.mean("income").to_dict()
    assert plain["lower"][0] > truth  # the married earn more
    (tmp_path / "totals.json").write_text(json.dumps({"married": 0.5}))
    found = moments.calibrate(tmp_path / "totals.json").mean("income").to_dict()
    assert found["lower"][0] < truth < found["upper"][0]
    shares = {"region": {"north": 10, "south": 10, "west": 10}}
    level = moments.calibrate({"married": 0.5}).mean("region")
    assert sum(level.to_dict()["estimate"]) == pytest.approx(1)
    assert moments.calibrate(shares).mean("married").rows == (("married",),)


def test_linear_hypotheses_are_tested_together() -> None:
    model = MOMENTS.fit("income ~ age + education + region + married")
    one = next(each for each in model.estimates() if each.name == "age")
    alone = model.test("age = 0")
    assert alone.statistic == pytest.approx(one.statistic**2)
    assert alone.p_value == pytest.approx(one.p_value, abs=1e-12)
    assert model.test("age = 300, education = 5*age, region=south = 0").p_value > 0.001
    assert model.test("region=west = 0, region=south = 0").p_value < 1e-6
    difference = model.test("region=west - region=south = 1000 + 4e3")
    assert difference.p_value > 0.001
    for wrong in ("age", "age = ", "age == 0", "shoe = 0", "age = 0,", "age hours = 0"):
        with pytest.raises(InvalidValueError, match="Expected equations"):
            model.test(wrong)
    with pytest.raises(InvalidValueError, match="follow from each other"):
        model.test("age = 0, 2*age = 0")


def test_quantiles_come_from_bands_and_interactions_from_crossings() -> None:
    schema = Schema(
        [
            Binary("east"),
            Categorical("kind", ["a", "b"]),
            Bands("pay", edges=[2, 3, 4, 5, 6, 8]),
            Cross("east", "kind"),
        ],
        Numeric("pay", 0, 20),
    )
    generator = np.random.default_rng(8)
    east, kind = generator.random(30_000) < 0.5, generator.choice(["a", "b"], 30_000)
    pay = generator.gamma(4, 1 + 0.3 * east * (kind == "a"), 30_000)
    rows = {"east": east, "kind": kind, "pay": np.clip(pay, 0, 20)}
    moments = drawn(schema, rows, 9)
    found = moments.quantile("pay", 0.5, by="east").to_dict()
    for place, where in enumerate((True, False)):
        assert found["lower"][place] < np.median(pay[east == where]) < found["upper"][place]
    every = moments.quantile("pay", 0.9).to_dict()
    assert every["lower"][0] < np.quantile(pay, 0.9) < every["upper"][0]
    model = moments.fit("pay ~ kind:east")
    effect = next(one for one in model.estimates() if one.name == "east:kind=yes:b")
    truth = pay[east & (kind == "b")].mean() - pay[east & (kind == "a")].mean()
    assert effect.lower < truth < effect.upper
    assert moments.fit().features == ("east", "kind")  # nothing that is derived from the target
    with pytest.raises(InvalidValueError, match="Declare it in the schema"):
        moments.fit("pay ~ kind:pay")
    with pytest.raises(InvalidValueError, match="declare Bands"):
        MOMENTS.quantile("income")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m: m.mean("region"), "ask for moments.table"),
        (lambda m: m.mean("income", by="age"), "declare bands"),
        (lambda m: m.table("region", "region"), "two different questions"),
        (lambda m: m.table("region", shares="row"), "two questions"),
        (lambda m: m.table("income"), "is a number"),
        (lambda m: m.describe().test(), "no test"),
        (lambda m: m.calibrate({}), "totals"),
        (lambda m: m.calibrate("no-such-file.json"), "to be a file of known totals"),
        (lambda m: m.calibrate({"region": {"north": 1}}), "each of"),
        (lambda m: m.calibrate({"age": 200}), "between 18 and 90"),
        (lambda m: m.calibrate({"age": 40}).mean("age"), "another question"),
        (lambda m: m.synthesise(10, questions=[]), "with levels"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(ask, words: str) -> None:
    with pytest.raises((InvalidValueError, InfeasibleError), match=words):
        ask(MOMENTS)


def test_intervals_stay_within_the_bounds_and_say_what_they_assume() -> None:
    noisy = release(count=300, epsilon=0.5, seed=7)
    found = noisy.mean("married").to_dict()
    assert 0 <= found["lower"][0] <= found["upper"][0] <= 1
    pooled = MOMENTS.mean("income", by="married")
    bounded = MOMENTS.mean("income", by="married", spread="bounded")
    assert "same spread" in pooled.assumes[0]
    assert "largest spread" in bounded.assumes[0]
    wider = zip(
        bounded.to_dict()["standard_error"], pooled.to_dict()["standard_error"], strict=True
    )
    assert all(one > other for one, other in wider)
