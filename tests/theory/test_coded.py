"""Groups and weights: what is sent, how far one person moves it, and which codes are refused."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from blurfit.errors import InvalidValueError
from blurfit.theory.coded import Code, CodedForm, Weighting
from blurfit.theory.forms import JointColumn, JointForm

SIZES = (0.35, 0.6, 1.0, 1.6, 3.0)  # c, where ρ = 1
COLUMNS = tuple(JointColumn(name, 1 / math.sqrt(3)) for name in "abc")


def grouped(c: float, overlap: float, weighting: Weighting | None = None) -> CodedForm:
    inner = JointForm(c, COLUMNS, counted=False)
    code = Code.overlapping(3, overlap)
    return CodedForm(inner, (0, 1, 2), code, (3, 4, 5), weighting, labels=("x", "y", "z"))


def weighted(c: float) -> CodedForm:
    return CodedForm(JointForm(c, COLUMNS, counted=False), (0, 1, 2), weighting=Weighting((3,)))


def records(form: CodedForm, free: np.ndarray, group: int) -> np.ndarray:
    """Records from free numbers: u anywhere in the ball, then the group or the weight."""
    along = free[:, :3] / np.linalg.norm(free[:, :3], axis=1, keepdims=True)
    answers = math.sqrt(3) * along * np.sin(free[:, 3:4])
    last = np.tile(np.eye(3)[group], (len(free), 1)) if form.groups else np.sin(free[:, 4:])
    return np.column_stack([answers, last])


def farthest(form: CodedForm, neighbours: str = "replace") -> float:
    """The largest distance that a local search finds from many starts and pairs of groups."""
    generator = np.random.default_rng(1)
    best, step = 0.0, 1e-7
    around = np.vstack([np.zeros(10), step * np.eye(10)])
    for trial in range(24):
        second = trial % 2

        def nearness(free: np.ndarray, second: int = second) -> tuple[float, np.ndarray]:
            points = free + around
            one = form.products(records(form, points[:, :5], 0))
            other = form.products(records(form, points[:, 5:], second))
            if neighbours == "zero-out":
                other = 0 * other
            values = -((one - other) ** 2) @ form.counts
            return values[0], (values[1:] - values[0]) / step

        found = minimize(nearness, generator.normal(0, 2, 10), method="BFGS", jac=True)
        best = max(best, -float(found.fun))
    return math.sqrt(best)


@pytest.mark.parametrize("c", SIZES)
def test_the_worst_pair_is_as_far_apart_as_is_claimed(c: float) -> None:
    """By search; an upper bound where codes overlap and c is beyond ρ."""
    apart = math.sqrt(2) * (c**2 + 1)
    assert grouped(c, 0.0).reach("replace").sums == pytest.approx(apart, rel=1e-9)
    assert farthest(grouped(c, 0.0)) == pytest.approx(apart, rel=1e-5)
    overlapping = farthest(grouped(c, 0.5))
    assert overlapping <= grouped(c, 0.5).reach("replace").sums
    if c <= 1:
        assert overlapping == pytest.approx(apart, rel=1e-5)
    by_weight = {0.35: apart, 0.6: apart, 1.0: apart, 1.6: 2 * math.sqrt(2) * c, 3.0: c**2 + 1}
    assert weighted(c).reach("replace").sums == pytest.approx(by_weight[c], rel=1e-9)
    assert farthest(weighted(c)) == pytest.approx(by_weight[c], rel=1e-5)
    for form in (grouped(c, 0.5), weighted(c)):
        assert form.bound == form.reach("zero-out").sums == pytest.approx(c**2 + 1, rel=1e-9)
        assert form.reach("zero-out").submission == form.reach("replace").sums
        assert farthest(form, "zero-out") == pytest.approx(c**2 + 1, rel=1e-5)


@pytest.mark.parametrize("overlap", [0.0, 0.5])
def test_sums_of_groups_follow_from_what_is_sent(overlap: float) -> None:
    form = grouped(0.6, overlap, Weighting((3, 4, 5), (1.0, 0.5, 0.25)))
    generator = np.random.default_rng(2)
    answers, group = generator.uniform(-1, 1, (200, 3)), generator.integers(0, 3, 200)
    sent = form.products(np.column_stack([answers, np.eye(3)[group]]))
    assert sent.shape == (200, form.width)
    assert len(form.names) == form.width == 3 * 10
    z = np.column_stack([np.full(200, 0.6), answers / math.sqrt(3)])
    blocks = form.blocks(sent.sum(axis=0))
    for place, w in enumerate((1.0, 0.5, 0.25)):
        own = z[group == place]
        assert blocks[place] == pytest.approx(w * own.T @ own, abs=1e-9)
    assert form.matrix(sent.sum(axis=0), 200) == pytest.approx(blocks.sum(axis=0), abs=1e-9)
    assert not form.joint.counted


@pytest.mark.parametrize("kind", ["number", "levels", "groups"])
def test_what_weights_are_worth_is_among_the_sums(kind: str) -> None:
    """f = Σw²/Σw of each group and of all, by the weights themselves."""
    generator = np.random.default_rng(4)
    answers, group = generator.uniform(-1, 1, (300, 3)), generator.integers(0, 3, 300)
    columns = COLUMNS
    if kind == "number":
        rule, w = Weighting((2,)), (1 + answers[:, 2]) / 2
    elif kind == "levels":
        level = generator.integers(0, 2, 300)
        answers[:, 1:] = np.eye(2)[level]
        columns = (COLUMNS[0], *(JointColumn(one, 0.5, "level", "q") for one in "bc"))
        rule, w = Weighting((1, 2), (0.3, 1.0)), np.array([0.3, 1.0])[level]
    else:
        rule, w = Weighting((3, 4, 5), (0.2, 1.0, 0.5)), np.array([0.2, 1.0, 0.5])[group]
    inner = JointForm(0.6, columns, counted=False)
    form = CodedForm(
        inner, (0, 1, 2), Code.overlapping(3, 0.5), (3, 4, 5), rule, labels=("x", "y", "z")
    )
    sums = form.products(np.column_stack([answers, np.eye(3)[group]])).sum(axis=0)
    each, whole = form.worth(sums)
    expected = [np.sum(w[group == g] ** 2) / w[group == g].sum() for g in range(3)]
    assert each == pytest.approx(expected)
    assert whole == pytest.approx(np.sum(w**2) / w.sum())


def test_how_many_there_are_in_all_is_known_without_weights() -> None:
    form = grouped(0.6, 0.5)
    found = form.matrix(np.zeros(form.width), 50)
    assert found[0, 0] == pytest.approx(50 * 0.36)
    assert not found[1:].any()


@pytest.mark.parametrize(("groups", "overlap"), [(2, 0.3), (6, 0.5), (6, 0.0), (17, 0.9)])
def test_noise_of_groups_is_the_closed_form(groups: int, overlap: float) -> None:
    noise = Code.overlapping(groups, overlap).noise
    k, everybody = overlap, 1 + (groups - 1) * overlap
    assert noise.sum() == pytest.approx(groups / everybody, rel=1e-6)
    assert noise[0, 0] == pytest.approx((1 + (groups - 2) * k) / ((1 - k) * everybody), rel=1e-6)
    apart = np.eye(groups)[0] - np.eye(groups)[1]
    assert apart @ noise @ apart == pytest.approx(2 / (1 - k), rel=1e-6)


def test_noise_is_the_covariance_of_what_is_read() -> None:
    """By drawing it: independent on what is sent, correlated between the groups."""
    form, generator = grouped(0.6, 0.5), np.random.default_rng(3)
    drawn = generator.normal(size=(4000, form.width)) / np.sqrt(form.counts)
    blocks = np.array([form.blocks(one)[:, 0, 0] for one in drawn])
    assert np.cov(blocks.T) == pytest.approx(form.code.noise, abs=0.12)
    total = np.array([form.joint.take(form.blocks(one).sum(axis=0)) for one in drawn])
    assert total.var(axis=0) * form.joint.counts == pytest.approx(form.gain**2, rel=0.15)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (((1.0, 0.0), (0.1, 1.0)), "longer than 1"),
        (((1.0, 0.0), (0.0, 1.0 + 1e-15)), "longer than 1"),
        (((1.0, 0.0), (-0.1, 0.9)), "at least 0"),
        (((0.9, -0.1), (0.1, 0.9)), "at least 0"),  # whose product is 0 but for rounding
        (((1.0, 0.0), (1.0, 0.0)), "tell all groups apart"),
        (((math.nan, 0.0), (0.0, 1.0)), "finite numbers"),
        ((), "1 to 256 groups"),
    ],
)
def test_codes_that_the_noise_is_not_made_for_are_refused(rows, reason) -> None:
    with pytest.raises(InvalidValueError, match=reason):
        Code(rows)


def test_overlaps_and_weights_beyond_their_range_are_refused() -> None:
    for overlap in (-0.1, 0.95, math.nan, math.inf):
        with pytest.raises(InvalidValueError, match="overlap"):
            Code.overlapping(4, overlap)
    for factors in ((1.0, 1.1), (1.0, -0.1), (1.0, math.nan), (0.0, 0.0), (1.0,)):
        with pytest.raises(InvalidValueError, match="factor"):
            Weighting((3, 4), factors)
