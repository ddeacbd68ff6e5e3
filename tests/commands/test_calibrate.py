"""From a promise to noise and back, as a user types it."""

import json

import pytest

from blurfit import calibrate

SURVEY = [
    "--dimension",
    "14",
    "--quorum",
    "32768",
    "--q-bound",
    "1",
    "--p-bound",
    "1",
    "--weight-bound",
    "1",
]
PROMISE = ["--epsilon", "1", "--delta", "1e-6"]


def test_calibrate_prints_a_table_and_what_is_promised(blurfit) -> None:
    result = blurfit("calibrate", *PROMISE, *SURVEY)
    assert result.returncode == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert "moment perturbation, certified" in words
    assert "(1, 1e-06)-differentially private" in words
    assert "The database could learn a great deal from a single submission." in words


@pytest.mark.parametrize("mechanism", ["input", "moment"])
def test_calibrate_json_is_the_dataclass(blurfit, mechanism) -> None:
    result = blurfit("calibrate", *PROMISE, "--mechanism", mechanism, "--json", *SURVEY)
    expected = calibrate(
        1.0,
        1e-6,
        dimension=14,
        quorum=32768,
        q_bound=1.0,
        p_bound=1.0,
        weight_bound=1.0,
        mechanism=mechanism,
    )
    assert json.loads(result.stdout) == json.loads(json.dumps(expected.to_dict()))


def test_published_is_said_not_to_be_proved(blurfit) -> None:
    result = blurfit("calibrate", *PROMISE, "--mechanism", "input", "--rule", "published", *SURVEY)
    words = " ".join(result.stdout.split())
    assert "NOT proved" in words
    assert "Corollary 1" in words


def test_guarantee_inverts_calibrate(blurfit) -> None:
    noise = json.loads(blurfit("calibrate", *PROMISE, "--json", *SURVEY).stdout)
    scales = ["--sigma-m", str(noise["sigma_m"]), "--sigma-p", str(noise["sigma_p"])]
    result = blurfit("guarantee", "--delta", "1e-6", "--json", *scales, *SURVEY)
    assert json.loads(result.stdout)["epsilon"] == pytest.approx(1, rel=1e-6)
    result = blurfit("guarantee", "--delta", "1e-6", *scales, *SURVEY)
    assert (
        "epsilon = 1, delta = 1e-06 (replace, any number of models from one final collection)"
        in result.stdout
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "-1", "--delta", "1e-6"], "Expected epsilon=-1.0 > 0."),
        (["--epsilon", "1", "--delta", "2"], "Expected delta=2.0 strictly between 0 and 1."),
        ([*PROMISE, "--local-epsilon", "1"], "Give local_delta=1e-6, say."),
        ([*PROMISE, "--mechanism", "guess"], "'guess' is not one of"),
    ],
)
def test_refusals_are_one_line_and_exit_code_2(blurfit, arguments, message: str) -> None:
    result = blurfit("calibrate", *arguments, *SURVEY)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert not result.stdout
