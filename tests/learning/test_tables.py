"""Counts, tables and means by level: exact without noise, best linear, and honest with it."""

import numpy as np
import pytest
from scipy import stats

from blurfit.errors import InfeasibleError
from blurfit.learning import tables
from blurfit.learning.sums import JointSums
from blurfit.learning.tables import Blurred, Levels
from blurfit.theory.forms import JointColumn, JointForm

W = 5**-0.5
FORM = JointForm(
    0.5,
    (
        JointColumn("sex", W, "sign"),
        *(JointColumn(f"region={k}", W, "level", "region") for k in range(3)),
        *(JointColumn(f"school={k}", W, "level", "school") for k in range(4)),
        JointColumn("pay", W),
        JointColumn("owns", W, "numeric", "owns"),
        JointColumn("owns=(not said)", W, "level", "owns"),
    ),
)
SEX = Levels("sex", ("yes", "no"), (1,), np.array([[1.0, -1.0]]))
REGION = Levels("region", tuple("abc"), (2, 3, 4), np.eye(3))
SCHOOL = Levels("school", tuple("abcd"), (5, 6, 7, 8), np.eye(4))
OWNS = Levels("owns", ("yes", "no", "-"), (10, 11), np.array([[1.0, -1, 0], [0, 0, 1]]))
PAY = 9
P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.3, 0.4])


def people(count: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Independent answers; those of the last region earn less evenly."""
    found = {
        "sex": generator.choice(2, count, p=[0.45, 0.55]),
        "region": generator.choice(3, count, p=P),
        "school": generator.choice(4, count, p=Q),
        "owns": generator.choice(3, count, p=[0.3, 0.5, 0.2]),
    }
    spread = 0.2 + 0.05 * (found["region"] == 2)
    found["pay"] = np.clip(0.1 + spread * generator.standard_normal(count), -1, 1)
    return found


def sums_of(who: dict[str, np.ndarray], noise: float, generator: np.random.Generator) -> JointSums:
    """Their blurred sums, with noise of this standard deviation on the diagonal."""
    v = [SEX.values.T[who["sex"]], np.eye(3)[who["region"]], np.eye(4)[who["school"]]]
    v += [who["pay"][:, None], OWNS.values.T[who["owns"]]]
    z = np.column_stack([np.full(len(who["pay"]), 0.5), np.hstack(v) * W])
    size = z.shape[1]
    beside = np.triu(generator.normal(0, noise / 2**0.5, (size, size)), 1)
    blurred = z.T @ z + beside + beside.T + np.diag(generator.normal(0, noise, size))
    return JointSums(FORM.columns, 0.5, len(z), blurred, noise)


def crossed(who, one: str, other: str, shape: tuple[int, int]) -> np.ndarray:
    return np.bincount(who[one] * shape[1] + who[other], minlength=shape[0] * shape[1])


PAIRS = [(SEX, "sex", REGION, "region"), (REGION, "region", SCHOOL, "school")]
PAIRS += [(OWNS, "owns", SCHOOL, "school"), (SEX, "sex", OWNS, "owns")]


@pytest.mark.parametrize(("one", "name", "other", "second"), PAIRS, ids=lambda x: str(x)[:6])
def test_without_noise_a_table_is_the_rows_own(one, name, other, second) -> None:
    generator = np.random.default_rng(1)
    who = people(500, generator)
    sums = sums_of(who, 0.0, generator)
    found = tables.table(sums, one, other)
    exact = crossed(who, name, second, (len(one), len(other)))
    assert found.values == pytest.approx(exact, abs=1e-6)
    assert tables.counts(sums, one).values == pytest.approx(
        np.bincount(who[name], minlength=len(one)), abs=1e-6
    )
    assert tables.totals(sums, PAY, one).values == pytest.approx(
        np.bincount(who[name], who["pay"], minlength=len(one)), abs=1e-6
    )


def test_without_noise_tests_are_the_textbook_s() -> None:
    generator = np.random.default_rng(2)
    who = people(800, generator)
    sums = sums_of(who, 0.0, generator)
    found = tables.independent(tables.table(sums, REGION, SCHOOL), (3, 4), 800, "")
    cells = crossed(who, "region", "school", (3, 4)).reshape(3, 4)
    exact = stats.chi2_contingency(cells, correction=False)
    assert (found.statistic, found.p_value) == pytest.approx((exact.statistic, exact.pvalue))
    totals, counts = tables.totals(sums, PAY, REGION), tables.counts(sums, REGION)
    means = tables.means(totals, counts, float(who["pay"] @ who["pay"]), 800)
    groups = [who["pay"][who["region"] == k] for k in range(3)]
    assert means.values == pytest.approx([group.mean() for group in groups])
    anova = stats.f_oneway(*groups)
    found = tables.equal(means, "", 800 - 3)
    # the spread within levels is over n here, and over n − 3 in the textbook
    assert found.statistic == pytest.approx(anova.statistic * 800 / 797, rel=1e-6)
    four = Blurred(np.array([30.0, 10.0, 20.0, 40.0]), np.zeros((4, 4)))
    odds = tables.log_odds_ratio(four)
    exact = stats.contingency.odds_ratio([[30, 10], [20, 40]], kind="sample").statistic
    assert np.exp(odds.values[0]) == pytest.approx(exact)
    assert odds.sampling[0, 0] == pytest.approx(1 / 30 + 1 / 10 + 1 / 20 + 1 / 40)


def test_the_table_of_levels_is_the_closed_form_of_the_theory() -> None:
    """Section 8.6: margins by precision, and what is left of the block beside them."""
    generator = np.random.default_rng(3)
    noise, count = 8.0, 2000
    sums = sums_of(people(count, generator), noise, generator)
    found = tables.table(sums, REGION, SCHOOL)
    v1, v = noise**2 / (W**2 * (W**2 + 2 * 0.5**2)), noise**2 / (2 * W**4)
    block = sums.matrix[2:5, 5:9] / W**2
    one, other = (
        np.array([sums.matrix[row, row] / W**2 for row in levels.rows])
        for levels in (REGION, SCHOOL)
    )
    centre = [np.eye(k) - np.ones((k, k)) / k for k in (3, 4)]

    def margin(raw, own, k, other_size):
        by_block, by_count = other_size / v, other_size**2 / v1
        mean = by_block * centre[k] @ raw + by_count * centre[k] @ own / other_size
        return mean / (by_block + by_count), 1 / (by_block + by_count)

    row, of_row = margin(block.mean(axis=1), one, 0, 4)
    column, of_column = margin(block.mean(axis=0), other, 1, 3)
    expected = count / 12 + row[:, None] + column + centre[0] @ block @ centre[1]
    assert found.values == pytest.approx(expected.ravel())
    covariance = of_row * np.kron(centre[0], np.ones((4, 4)))
    covariance += of_column * np.kron(np.ones((3, 3)), centre[1])
    assert found.noise == pytest.approx(covariance + v * np.kron(*centre))


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [3.0, 25.0])
def test_intervals_cover_and_tests_reject_as_often_as_they_say(noise: float) -> None:
    generator = np.random.default_rng(4)
    count, trials = 4000, 300
    truth = {"cells": np.outer(P, Q).ravel(), "rows": np.tile(Q, 3), "pay": np.full(2, 0.1)}
    inside = {name: [] for name in truth}
    rejected = []
    for _ in range(trials):
        sums = sums_of(people(count, generator), noise, generator)
        blurred = tables.table(sums, REGION, SCHOOL)
        cells = tables.shares(blurred)
        found = {
            "cells": cells,
            "rows": tables.within(cells, np.kron(np.eye(3), np.ones((1, 4)))),
            "pay": tables.means(
                tables.totals(sums, PAY, SEX),
                tables.counts(sums, SEX),
                float(sums.matrix[PAY, PAY]) / W**2,
                count,
            ),
        }
        for name, answer in found.items():
            error = np.sqrt(np.diag(answer.covariance))
            inside[name].append(np.abs(answer.values - truth[name]) < 1.96 * error)
        p_values = [
            tables.independent(blurred, (3, 4), count, "").p_value,
            tables.equal(found["pay"], "", count - 2).p_value,
        ]
        rejected.append(np.array(p_values) < 0.05)
    for name, hits in inside.items():
        assert np.mean(hits) == pytest.approx(0.95, abs=0.02), name
    assert np.mean(rejected, axis=0) == pytest.approx([0.05, 0.05], abs=0.03)


def test_what_the_noise_hides_is_refused() -> None:
    generator = np.random.default_rng(5)
    sums = sums_of(people(60, generator), 40.0, generator)
    cells = tables.shares(tables.table(sums, REGION, SCHOOL))
    with pytest.raises(InfeasibleError, match="join rare levels"):
        tables.within(cells, np.kron(np.eye(3), np.ones((1, 4))))
    with pytest.raises(InfeasibleError, match="larger epsilon"):
        tables.log_odds_ratio(tables.table(sums, SEX, SEX))


def test_shares_for_display_are_the_nearest_ones() -> None:
    values = np.array([0.5, 0.4, 0.3, -0.2])
    found = tables.on_simplex(values)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    for other in np.random.default_rng(6).dirichlet(np.ones(4), 200):
        assert np.sum((found - values) ** 2) <= np.sum((other - values) ** 2)
