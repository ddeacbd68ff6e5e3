"""`make demo`: calibrate a small example by four routes, and say what is promised to whom."""

from functools import partial

from rich.console import Console

import blurfit
from blurfit.presentation import report


def main() -> None:
    """14 attributes in the unit ball, 32,768 contributors, ε = 1, δ = 10⁻⁶."""
    console = Console()
    console.print(
        "A survey of 14 answers, each record scaled into the unit ball; no model below 32,768 "
        "contributors; the model shall be (1, 1e-06)-differentially private.\n"
    )
    survey = partial(
        blurfit.calibrate,
        1,
        1e-6,
        dimension=14,
        quorum=32_768,
        q_bound=1.0,
        p_bound=1.0,
        weight_bound=1.0,
    )
    for title, calibration in {
        "Blur the record's quadratic (the default)": survey(parallel=True),
        "The same, with a promise for a single submission too": survey(
            parallel=True, local_epsilon=5, local_delta=1e-6
        ),
        "Blur the record itself, as in the paper, calibrated as proved": survey(mechanism="input"),
        "The paper's own numbers": survey(mechanism="input", rule="published"),
    }.items():
        console.rule(title, align="left")
        console.print(report(calibration), "")


if __name__ == "__main__":
    main()
