"""The form of joint records: what is sent, what everybody knows, and how far a record reaches."""

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.theory.forms import JointColumn, JointForm

FORM = JointForm(
    0.4,
    (
        JointColumn("age", 0.5),
        JointColumn("married", 0.3, "sign"),
        JointColumn("region=n", 0.6, "level", "region"),
        JointColumn("region=s", 0.6, "level", "region"),
        JointColumn("region=w", 0.6, "level", "region"),
    ),
)


def rows(count: int, generator: np.random.Generator) -> np.ndarray:
    levels = np.eye(3)[generator.integers(0, 3, count)]
    age, married = generator.uniform(-1, 1, count), generator.choice([-1.0, 1.0], count)
    return np.column_stack([age, married, levels])


def test_what_is_sent_and_what_is_known_make_the_whole_matrix() -> None:
    v = rows(50, np.random.default_rng(1))
    z = np.column_stack([np.full(50, 0.4), v * [0.5, 0.3, 0.6, 0.6, 0.6]])
    whole = z.T @ z
    sent = FORM.products(v)
    assert sent.shape == (50, FORM.width)
    assert FORM.matrix(sent.sum(axis=0), 50) == pytest.approx(whole, abs=1e-12)
    assert FORM.take(whole) == pytest.approx(sent.sum(axis=0), abs=1e-12)


def test_nothing_public_is_sent_and_levels_count_once() -> None:
    # 6·7/2 entries, less c², the sign's diagonal, and three zeros between levels
    assert FORM.width == 21 - 1 - 1 - 3
    assert "married·married" not in FORM.names
    assert "region=n·region=s" not in FORM.names
    assert "region=n·region=n" in FORM.names
    assert (FORM.counts == 1).sum() == 4
    v = rows(2000, np.random.default_rng(2))
    u = v * [0.5, 0.3, 0.6, 0.6, 0.6]
    assert (np.linalg.norm(u, axis=1) <= FORM.radius).all()
    assert FORM.radius == pytest.approx(np.sqrt(0.5**2 + 0.3**2 + 0.6**2))


def test_no_two_records_are_further_apart_than_the_reach() -> None:
    """By search over pairs, in the norm in which entries off the diagonal count twice."""
    generator = np.random.default_rng(3)
    counts = FORM.counts
    one, other = (FORM.products(rows(20_000, generator)) for _ in range(2))
    apart = np.sqrt(((one - other) ** 2) @ counts)
    reach = FORM.reach("replace")
    assert apart.max() <= reach.sums == reach.submission
    assert apart.max() > 0.6 * reach.sums, "the bound is not idle"
    blank = FORM.products(np.zeros((1, 5)))
    assert np.sqrt(((one - blank) ** 2) @ counts).max() <= FORM.reach("zero-out").sums


def test_levels_of_one_question_share_a_weight() -> None:
    with pytest.raises(InvalidValueError, match="one weight for all levels"):
        JointForm(
            1.0, (JointColumn("a=1", 0.5, "level", "a"), JointColumn("a=2", 0.6, "level", "a"))
        )


@pytest.mark.parametrize(
    "columns", [(), (JointColumn("a", 1.0), JointColumn("a", 1.0))], ids=["none", "twice"]
)
def test_columns_have_names_of_their_own(columns) -> None:
    with pytest.raises(InvalidValueError, match="different names"):
        JointForm(1.0, columns)
