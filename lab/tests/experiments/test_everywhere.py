"""Populations have the law that their names promise; verdicts are counted right."""

import math

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from blurfit_lab.cli import main
from blurfit_lab.experiments import everywhere
from blurfit_lab.experiments.everywhere import best_fit, design, floor_of, loss_of, verdicts
from blurfit_lab.experiments.lines import Cell, frame, read
from blurfit_lab.experiments.populations import ASIDE, CHOICES, FIFTEEN, people

EVERY = [(task, name) for task, made in CHOICES.items() for name in (*made, *ASIDE[task])]


@pytest.mark.parametrize(("task", "name"), EVERY)
def test_rows_keep_to_their_bounds_and_follow_from_the_seed(task, name):
    crowd = people(name, task, 6)
    rows, again, others = (crowd.draw(300, seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(rows.X, again.X)
    assert (rows.y == again.y).all()
    assert not (rows.y == others.y).all() or not rows.X.equals(others.X)
    x, y = crowd.schema.encode({**rows.X, "y": rows.y})
    assert np.abs(x).max() <= 1
    assert np.abs(y).max() <= 1
    floor = floor_of(crowd)
    assert floor.variance > 0
    constant = np.full(len(crowd.tested.y), crowd.tested.y.mean())
    assert floor.loss < loss_of(task, constant, crowd.tested.y)  # there is something to learn


def test_there_are_fifteen_and_some_are_kept_aside():
    assert len(FIFTEEN) == 15
    assert len(ASIDE["number"]) >= 3
    assert not any(set(CHOICES[task]) & set(ASIDE[task]) for task in CHOICES)


def test_loose_bounds_are_ten_times_as_wide_as_the_people():
    rows = people("loose", "number", 5).draw(4000, 0)
    assert rows.X.std().to_numpy() == pytest.approx(0.033, rel=0.1)
    assert rows.y.std() == pytest.approx(0.033, rel=0.1)


def test_any_population_can_have_wider_bounds():
    tight, wide = people("age", "number", 3), people("age-wide", "number", 3)
    assert wide.tested is tight.tested
    assert [(one.lower, one.upper) for one in wide.schema.questions] == [(-10, 10)] * 4
    assert people("age-loose", "label", 3).schema.target == people("age", "label", 3).schema.target


@pytest.mark.parametrize(
    ("rival", "terms"),
    [
        ("IterativeHessianMixingRegressor", {"steps": 3, "accounting": "exact"}),
        ("GradientPerturbationRegressor", {"steps": 512}),
        ("BoostedAdaSSPRegressor", {"rounds": 20, "calibration": "exact"}),
    ],
)
def test_rivals_run_as_their_authors_mean_them_with_exact_noise(rival, terms):
    crowd = people("gauss", "number", 2)
    model = everywhere.fit(rival, crowd, crowd.draw(200, 0), 1.0, 0, "zero-out").model
    given = model.get_params()
    assert {name: given[name] for name in terms} == terms
    assert (given["neighbours"], given["delta"]) == ("zero-out", 1 / 200**2)


def test_two_databases_have_more_noise_because_some_may_collude():
    crowd = people("gauss", "number", 3)
    rows = crowd.draw(4000, 0)
    send, two = (
        everywhere.fit(method, crowd, rows, 1.0, 0).model.estimates() for method in ("send", "two")
    )
    assert all(a.value == pytest.approx(b.value, abs=0.05) for a, b in zip(send, two, strict=True))
    assert all(
        0.9 < a.standard_error / b.standard_error < 1 for a, b in zip(send, two, strict=True)
    )


@pytest.mark.parametrize("task", ["label", "count"])
def test_the_best_fit_is_where_the_likelihood_is_flat(task):
    crowd = people("rare", task, 4)
    x, y = design(crowd, crowd.tested.X), crowd.tested.y
    score = x @ best_fit(task, x, y)
    rate = 1 / (1 + np.exp(-score)) if task == "label" else np.exp(score)
    assert x.T @ (y - rate) / len(y) == pytest.approx(0, abs=1e-9)


def test_excess_of_a_line_is_never_negative_and_least_squares_has_little(tmp_path):
    out = tmp_path / "numbers.jsonl"
    cells = [Cell("gauss", 3, 2000, 8.0)]
    everywhere.run("number", cells, [0, 1], ["NonPrivateRegressor", "holder", "mean"], out)
    means = everywhere.excess_table(frame([out])).iloc[0]
    assert 0 <= means["NonPrivateRegressor"] < 0.01
    assert means["NonPrivateRegressor"] <= means["holder"] < means["mean"]


def test_a_run_goes_on_where_it_stopped(tmp_path):
    out = tmp_path / "numbers.jsonl"
    cells = [Cell("gauss", 3, 500, 1.0)]
    everywhere.run("number", cells, [0], ["mean"], out)
    first = out.read_text()
    out.write_text(first + '{"cut off')
    everywhere.run("number", cells, [0, 1], ["mean", "one"], out)
    lines = [(line["seed"], line["method"]) for line in read(out)]
    assert lines == [(0, "mean"), (0, "one"), (1, "mean"), (1, "one")]
    assert out.read_text().startswith(first)


def lines_of(**losses):
    return pd.DataFrame(
        [
            {"population": "p", "d": 1, "n": 2, "epsilon": 1.0, "seed": k, "method": m, "loss": v}
            for m, values in losses.items()
            for k, v in enumerate(values)
        ]
    )


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([1.20, 1.21, 1.19, 1.20], "loses"),
        ([1.04, 1.05, 1.03, 1.04], "even"),  # worse, within five per cent
        ([0.80, 0.81, 0.79, 0.80], "wins"),
        ([0.10, 3.00, 0.20, 2.90], "even"),  # larger, and unsure
    ],
)
def test_verdicts_are_paired_and_against_the_better_reference(ours, verdict):
    lines = lines_of(holder=ours, one=[1.0] * 4, mean=[2.0] * 4)
    (row,) = verdicts(lines, "holder", ["one", "mean"], "number").itertuples()
    assert (row.best, row.verdict) == ("one", verdict)
    assert row.ratio == pytest.approx(np.mean(ours))


def test_a_refused_fit_leaves_the_other_seeds_to_judge_by():
    lines = lines_of(holder=[1.20, 1.21, 1.19, 1.20], one=[1.0, 1.0, 1.0, math.nan])
    (row,) = verdicts(lines, "holder", ["one"], "number").itertuples()
    assert (row.verdict, row.seeds, row.ratio) == ("loses", 3, pytest.approx(1.2))


def test_commands_print_tables_and_add_to_a_file(tmp_path):
    def told(*words):
        result = CliRunner().invoke(main, [*words], catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    few = ("--d", "2", "--n", "2^9", "--epsilon", "8")
    out = ("--out", str(tmp_path / "lines.jsonl"))
    chosen = ("--population", "gauss")
    text = told("everywhere", "numbers", *chosen, *few, "--seeds", "0:2", *out)
    assert "**holder** against the better of one, mean" in text
    again = told("everywhere", "numbers", *chosen, *few, "--table-only", *out)
    assert "**holder** against the better of one, mean" in again
