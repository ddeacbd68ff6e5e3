"""Verdicts are paired and against every rival; runs are continued; pages say what was found."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from blurfit import InvalidValueError
from blurfit_lab.cli import main
from blurfit_lab.experiments import headtohead, histories
from blurfit_lab.experiments.everywhere import HOLDER, MEAN, RIVALS, SEND
from blurfit_lab.experiments.headtohead import FAMILIES, Family, judged, near, over
from blurfit_lab.experiments.lines import Cell, Collections, wide

CELL = Cell("p", 1, 2, 1.0)
FAMILY = Family("a few", "number", ("gauss",), (300,), (8.0,))
LABELS = Family("a few labels", "label", ("gauss",), (300,), (8.0,))


def lines_of(value="loss", **losses):
    return pd.DataFrame(
        [
            {**CELL._asdict(), "seed": k, "method": method, "loss": one, value: one}
            for method, values in losses.items()
            for k, one in enumerate(values)
        ]
    )


def judgement(task="number", **losses):
    (row,) = judged(lines_of(**losses), task, HOLDER, ["a", "b"]).itertuples()
    return row


def test_a_cell_is_lost_to_any_rival_that_is_surely_ahead():
    # b has the smaller mean by luck in one trial; a is surely ahead
    row = judgement(holder=[1.2, 1.21, 1.19, 1.2], a=[1.0] * 4, b=[0.1, 0.1, 0.1, 3.6])
    assert (row.verdict, row.against) == ("loses", "a")
    assert row.ratio == pytest.approx(1.2)
    assert 1.05 < row.sure < 1.2


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([1.04, 1.05, 1.03, 1.04], "even"),  # behind, within five per cent
        ([0.10, 3.00, 0.20, 2.90], "even"),  # far behind, and unsure
        ([0.80, 0.81, 0.79, 0.80], "wins"),
    ],
)
def test_what_is_not_lost_is_won_only_against_the_best(ours, verdict):
    row = judgement(holder=ours, a=[1.0] * 4, b=[2.0] * 4)
    assert (row.verdict, row.against) == (verdict, "a")


def test_labels_lose_by_accuracy_too():
    losses = lines_of(holder=[0.5, 0.5, 0.5], a=[0.5, 0.5, 0.5])
    losses["accuracy"] = [0.011, 0.012, 0.011, 0.010, 0.0112, 0.0101]
    (row,) = judged(losses, "label", HOLDER, ["a"]).itertuples()
    assert (row.verdict, row.ratio) == ("even", 0)
    losses["accuracy"] = [0.0110, 0.0120, 0.0111, 0.0100, 0.0110, 0.0101]
    (row,) = judged(losses, "label", HOLDER, ["a"]).itertuples()
    assert row.verdict == "loses"
    assert row.accuracy == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("ours", "open_"),
    [
        ([1.2, 1.21, 1.19, 1.2], False),  # surely beyond the tolerance
        ([1.01, 1.02, 1.01, 1.0], False),  # surely within
        ([1.0, 1.1, 1.0, 1.12], True),
        ([0.9, 1.1, 0.9, 0.8], False),  # ahead in the mean
    ],
)
@pytest.mark.parametrize("method", [HOLDER, SEND])
def test_more_trials_go_where_the_verdict_is_open(ours, open_, method):
    lines = lines_of(**{method: ours, "a": [1.0] * 4})
    assert near(lines, "number", [CELL]) == ([CELL] if open_ else [])
    assert near(lines, "number", []) == []


def test_ratios_are_geometric_means_of_mean_losses():
    first, second = lines_of(holder=[1, 3], a=[4, 4]), lines_of(holder=[8, 8], a=[1, 1])
    lines = pd.concat([first, second.assign(epsilon=2.0)])
    means = wide(lines).groupby(level=list(Cell._fields), sort=False).mean()
    assert over(means, HOLDER, "a") == pytest.approx(np.sqrt(0.5 * 8))
    assert np.isnan(over(means, HOLDER, "nobody"))


def test_every_family_has_cells_of_its_own():
    generated = [one for one in FAMILIES if one.populations[0].startswith("gauss")]
    cells = [
        tuple(cell) for one in generated for name in one.populations for cell in one.cells(name)
    ]
    numbers = {one[0] for one in cells}
    assert {"gauss", "gauss-wide", "rare-wide", "hump"} <= numbers
    assert all(d == 14 for _, d, _, _ in cells)


def test_a_run_is_continued_by_the_same_commit_and_told(tmp_path: Path, monkeypatch):
    out = tmp_path / "run"
    monkeypatch.setattr(headtohead, "FAMILIES", (FAMILY, LABELS))
    monkeypatch.setattr(headtohead.read, "__defaults__", ((FAMILY, LABELS),))
    measure = partial(headtohead.measure, out, trials=2, most=2, relations=["replace"])
    measure([FAMILY, LABELS])
    kept = {file: file.read_text() for file in out.rglob("*.jsonl")}
    assert len(kept) == 2
    measure([FAMILY, LABELS])
    assert kept == {file: file.read_text() for file in out.rglob("*.jsonl")}
    methods = {
        json.loads(line)["method"] for line in kept[out / "replace/number-gauss.jsonl"].splitlines()
    }
    assert methods == {*headtohead.OURS, MEAN, *RIVALS["number"]}

    page, headline = tmp_path / "rivals.md", tmp_path / "comparison.md"
    words = ["rivals", "--out", str(out), "--pages-only", "--page", str(page)]
    result = CliRunner().invoke(main, [*words, "--headline", str(headline)], catch_exceptions=False)
    assert result.exit_code == 0
    for text in (page.read_text(), headline.read_text()):
        assert "{" not in text.replace("e^{", "")
        assert headtohead.commit("ours") in text
        assert "| a few |" in text

    (out / headtohead.RUN).write_text('{"rivals": "another"}')
    measure([FAMILY], parts=["ours"])
    with pytest.raises(InvalidValueError, match="of another"):
        measure([FAMILY])


def test_an_unknown_family_is_refused_by_name():
    result = CliRunner().invoke(main, ["rivals", "--family", "martians"])
    assert result.exit_code == 2
    assert "martians" in result.output


def test_persons_are_compared_by_their_errors(tmp_path: Path):
    out = tmp_path / "persons.jsonl"
    histories.persons(Collections([1500], [8.0], 2), out)
    found = pd.read_json(out, lines=True).set_index(["what", "method"]).error
    assert found["slopes", "no privacy"] < found["slopes", "own regressions"] < 0.2
    assert found["slopes", "AdaSSP of persons"] < 0.2
    assert found["curve", "no privacy"] <= found["curve", "noisy counts"] < 0.05


def test_every_method_has_a_name():
    known = {*headtohead.OURS, MEAN, *RIVALS["number"], *RIVALS["label"]}
    assert known == set(headtohead.NAMES)
