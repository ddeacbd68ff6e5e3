"""Products with the target alone: what is sent, and how far one person moves it."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from blurfit.errors import InvalidValueError
from blurfit.theory.forms import JointColumn, JointForm, TargetForm

FEATURES = (JointColumn("a", 0.5), JointColumn("b", 0.4), JointColumn("s", 0.3, "sign"))
TARGETS = {
    "number": (JointColumn("y", 0.8),),
    "heavy number": (JointColumn("y", 3.0),),
    "label": (JointColumn("y", 0.8, "sign"),),
    "classes": tuple(JointColumn(f"y={k}", 0.8, "level", "y") for k in range(3)),
    "heavy classes": tuple(JointColumn(f"y={k}", 0.1, "level", "y") for k in range(3)),
    "number or nothing": (
        JointColumn("y", 0.8, "numeric", "y"),
        JointColumn("y=none", 0.8, "level", "y"),
    ),
}


def form_of(name: str, constant: float = 0.4) -> TargetForm:
    target = TARGETS[name]
    return TargetForm(constant, (*FEATURES, *target), len(target))


def answers(name: str, free: np.ndarray, which: int) -> np.ndarray:
    """Records from rows of free numbers: features in [−1, 1], signs relaxed to all of it."""
    numbers = np.sin(free)
    size = len(TARGETS[name])
    target = np.zeros((len(free), size))
    if name in ("number", "heavy number", "label"):
        target[:, 0] = numbers[:, 3]
    elif name == "number or nothing":
        target[:, which % 2] = 1.0 if which % 2 else numbers[:, 3]
    else:
        target[:, which % size] = 1.0
    return np.column_stack([numbers[:, :3], target])


def farthest(name: str, form: TargetForm, neighbours: str) -> float:
    """The largest distance that a local search finds from many starts and pairs of classes."""
    generator = np.random.default_rng(1)
    best, step = 0.0, 1e-7
    around = np.vstack([np.zeros(8), step * np.eye(8)])
    for trial in range(12):
        first, second = trial % 3, (trial // 3) % 3

        def nearness(
            free: np.ndarray, first: int = first, second: int = second
        ) -> tuple[float, np.ndarray]:
            """Minus the squared distance, and its slopes by steps along all axes at once."""
            points = free + around
            one = form.products(answers(name, points[:, :4], first))
            other = form.products(answers(name, points[:, 4:], second))
            if neighbours == "zero-out":
                other = form.products(np.zeros(len(form.columns)))
            values = -((one - other) ** 2) @ form.counts
            return values[0], (values[1:] - values[0]) / step

        found = minimize(nearness, generator.normal(0, 2, 8), method="BFGS", jac=True)
        best = max(best, -float(found.fun))
    return math.sqrt(best)


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("name", list(TARGETS))
def test_no_pair_of_records_is_farther_apart_than_the_reach(name, neighbours) -> None:
    form = form_of(name)
    reached, stated = farthest(name, form, neighbours), form.reach(neighbours).sums
    assert reached <= stated
    is_bound = neighbours == "replace" and name in ("heavy number", "number or nothing")
    assert reached >= (0.7 if is_bound else 0.999) * stated


@pytest.mark.parametrize("name", list(TARGETS))
def test_it_never_takes_more_noise_than_sending_everything(name) -> None:
    form = form_of(name)
    whole = JointForm(form.constant, form.columns)
    for neighbours in ("replace", "zero-out"):
        assert form.reach(neighbours).sums <= whole.reach(neighbours).sums * (1 + 1e-9)


def test_at_equal_weights_the_noise_is_that_of_the_joint_release() -> None:
    radius = math.sqrt(0.4**2 + 0.5**2 + 0.4**2 + 0.3**2)
    columns = (*FEATURES, JointColumn("y", radius))
    part, whole = TargetForm(0.4, columns), JointForm(0.4, columns)
    assert part.reach("replace").sums == pytest.approx(whole.reach("replace").sums)


def test_what_is_sent_is_a_part_of_everything_and_public_rows_fill_the_rest() -> None:
    form = form_of("number")
    whole = JointForm(form.constant, form.columns)
    assert form.names == ("1·y", "a·y", "b·y", "s·y", "y·y")
    v = np.array([0.3, -0.2, 1.0, 0.5])
    everything = dict(zip(whole.names, whole.products(v), strict=True))
    assert form.products(v) == pytest.approx([everything[name] for name in form.names])
    assert form_of("label").width == 4
    with pytest.raises(InvalidValueError, match="is not known"):
        form.matrix(np.zeros(5), 3)
    with pytest.raises(InvalidValueError, match="outputs=4"):
        TargetForm(0.4, form.columns, 4)
    v = np.array([[0.3, -0.2, 1.0, 0.5], [0.1, 0.2, -1.0, -0.5]])
    design = np.column_stack([np.ones(2), v[:, :3]])
    found = form.beside(form.products(v).sum(axis=0), design.T @ design / 2, 2)
    z = np.column_stack([np.ones(2), v]) * form.scale
    assert found == pytest.approx(z.T @ z)
