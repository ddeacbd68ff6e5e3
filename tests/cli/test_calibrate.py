"""From a promise to noise and back, as a user types it."""

import json

import pytest

from blurfit import calibrate, calibrate_moment
from blurfit.theory.moments import Reach, sensitivity

MOMENT = ["--quorum", "32768", "--constant", "0.5"]
INPUT = [
    *("--mechanism", "input", "--dimension", "14", "--quorum", "32768"),
    *("--q-bound", "1", "--p-bound", "1", "--weight-bound", "1"),
]
PROMISE = ["--epsilon", "1", "--delta", "1e-6"]


def told(result) -> str:
    assert result.returncode == 0, result.stderr
    return " ".join(result.stdout.split())


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_moment_is_calibrated_for_the_sensitivity_of_its_form(blurfit, neighbours) -> None:
    found = told(
        blurfit(
            *("calibrate", *PROMISE, *MOMENT, "--radius", "2", "--json"),
            *("--neighbours", neighbours),
        )
    )
    reach = Reach(sensitivity(0.5, 2, neighbours), sensitivity(0.5, 2, "replace"))
    expected = calibrate_moment(1, 1e-6, reach=reach, quorum=32768, neighbours=neighbours)
    assert json.loads(found) == json.loads(json.dumps(expected.to_dict()))


def test_input_is_what_the_library_calibrates(blurfit) -> None:
    found = told(blurfit("calibrate", *PROMISE, *INPUT, "--no-debias", "--split", "0.2", "--json"))
    survey = {"dimension": 14, "quorum": 32768, "q_bound": 1.0, "p_bound": 1.0}
    expected = calibrate(1.0, 1e-6, **survey, weight_bound=1.0, debias=False, split=0.2)
    assert json.loads(found) == json.loads(json.dumps(expected.to_dict()))


def test_guarantee_inverts_calibrate(blurfit) -> None:
    noise = json.loads(told(blurfit("calibrate", *PROMISE, "--json", *MOMENT)))
    sigma = ["--sigma", repr(noise["sigma"])]
    found = told(blurfit("guarantee", "--delta", "1e-6", "--json", *sigma, *MOMENT))
    assert json.loads(found)["epsilon"] == pytest.approx(1, rel=1e-6)
    found = told(blurfit("guarantee", "--epsilon", "1", "--json", *sigma, *MOMENT))
    assert json.loads(found)["delta"] == pytest.approx(1e-6, rel=1e-5)
    fewer = [*sigma, *MOMENT, "--count", "8192"]  # half as large a μ, for a quarter of the people
    half = told(blurfit("guarantee", "--delta", "1e-6", "--json", *fewer))
    assert json.loads(half)["epsilon"] > 2
    said = told(blurfit("guarantee", "--delta", "1e-6", *sigma, *MOMENT))
    assert "delta = 1e-06 (replace, any number of models from one final collection)" in said


def test_guarantee_inverts_calibrate_for_input(blurfit) -> None:
    noise = json.loads(told(blurfit("calibrate", *PROMISE, "--json", *INPUT)))
    scales = [
        word
        for name in ("sigma_u", "sigma_b", "ridge")
        for word in (f"--{name.replace('_', '-')}", repr(noise[name]))
    ]
    found = told(blurfit("guarantee", "--delta", "1e-6", "--json", *scales, *INPUT))
    assert json.loads(found)["epsilon"] == pytest.approx(1, rel=1e-3)
    assert json.loads(found)["epsilon"] <= 1 + 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "-1", "--delta", "1e-6", *MOMENT], "Expected epsilon=-1.0 > 0."),
        (["--epsilon", "1", "--delta", "2", *MOMENT], "Expected delta=2.0 strictly between 0 and"),
        ([*PROMISE, "--local-epsilon", "1", *MOMENT], "Give local_delta=1e-6, say."),
        ([*PROMISE, "--mechanism", "guess", *MOMENT], "'guess' is not one of"),
        ([*PROMISE, *MOMENT, "--split", "0.5"], "Expected no --split with --mechanism moment"),
        ([*PROMISE, *INPUT, "--constant", "1"], "Expected no --constant with --mechanism input"),
        ([*PROMISE, "--quorum", "5"], "Expected --constant with --mechanism moment."),
        ([*PROMISE, *INPUT[:4], "--quorum", "50"], "Expected --q-bound, --p-bound with"),
    ],
)
def test_refusals_are_one_line_and_exit_code_2(blurfit, arguments, message: str) -> None:
    result = blurfit("calibrate", *arguments)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert not result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Expected --sigma with"),
        (["--sigma", "1"], "Expected one of --epsilon and --delta"),
        (["--sigma", "1", "--epsilon", "1", "--delta", "1e-6"], "Expected one of --epsilon and"),
        (["--sigma", "-1", "--delta", "1e-6"], "Expected sigma=-1.0 > 0."),
    ],
)
def test_guarantee_refuses(blurfit, arguments, message: str) -> None:
    result = blurfit("guarantee", *MOMENT, *arguments)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
