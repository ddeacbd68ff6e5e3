"""`blurfit calibrate` and `blurfit guarantee`: from a promise to noise, and back."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from blurfit.commands.common import as_json as json_option
from blurfit.commands.common import options
from blurfit.commands.term_options import given, term_options
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.theory.guarantees import ModelGuarantee
    from blurfit.theory.moments import MomentCalibration

# What only one of the mechanisms knows, and what it needs.
_ONLY = {
    "moment": ("constant", "radius", "sigma"),
    "input": (
        *("dimension", "q_bound", "p_bound", "weight_bound", "rule", "split", "local_share"),
        *("debias", "alpha", "sigma_u", "sigma_b", "ridge"),
    ),
}
_NEEDED = {"moment": ("constant",), "input": ("dimension", "q_bound", "p_bound")}
_OF_THE_NOISE = {"moment": ("sigma",), "input": ("sigma_u", "sigma_b")}

_setting_options = options(
    term_options("quorum", required=("quorum",)),
    term_options("mechanism", "neighbours", "constant"),
    click.option(
        "--radius", type=float, help="Bound on the weighted columns' norm; default: 1. (moment)"
    ),
    click.option("--dimension", type=int, help="d, the length of q and p. (input)"),
    click.option("--q-bound", type=float, help="R_q, bound on every record's ‖q‖. (input)"),
    click.option("--p-bound", type=float, help="R_p, bound on every record's ‖p‖. (input)"),
    term_options("weight_bound"),
    json_option,
)


@click.command(
    epilog="Example: blurfit calibrate --epsilon 1 --delta 1e-6 --quorum 32768 --constant 0.5"
)
@term_options("epsilon", "delta", required=("epsilon", "delta"))
@_setting_options
@term_options("local_epsilon", "local_delta", "rule", "split", "local_share", "debias")
@click.option("--alpha", type=float, help="The paper's balance: ε ← αε. (input)")
def calibrate(as_json: bool, **typed: Any) -> None:
    """Turn a promise (ε, δ) and public bounds into noise scales."""
    from blurfit.theory import input_calibration as of_input

    mechanism, found = _asked(typed)
    calibration = _moment(found) if mechanism == "moment" else of_input.calibrate(**found)
    if as_json:
        click.echo(json.dumps(calibration.to_dict(), indent=2))
        return
    from rich.console import Console

    from blurfit.commands.presentation import calibration_report

    Console().print(calibration_report(calibration))


@click.command(
    epilog="Example: blurfit guarantee --delta 1e-6 --quorum 32768 --constant 0.5 --sigma 7.5 "
    "--count 20000"
)
@click.option("--epsilon", type=float, help="Give ε to learn δ.")
@click.option("--delta", type=float, help="Give δ to learn ε.")
@_setting_options
@click.option("--count", type=int, help="How many honest records came; default: the quorum.")
@click.option("--sigma", type=float, help="Noise on the sums. (moment)")
@click.option("--sigma-u", type=float, help="Noise on all q together. (input)")
@click.option("--sigma-b", type=float, help="Noise on all p together. (input)")
@click.option("--ridge", type=float, help="Δ_in, the ridge that the database adds. (input)")
def guarantee(as_json: bool, **typed: Any) -> None:
    """Tell which promise given noise keeps: the inverse of calibrate."""
    from blurfit.agreement.promises import releases_in_words
    from blurfit.theory import input_calibration as of_input

    mechanism, found = _asked(typed, noise=True)
    kept = _kept_by_moment(found) if mechanism == "moment" else of_input.guarantee(**found)
    if as_json:
        click.echo(json.dumps(asdict(kept), indent=2))
    else:
        click.echo(
            f"Kept: epsilon = {kept.epsilon:.6g}, delta = {kept.delta:.6g} "
            f"({kept.neighbours}, {releases_in_words(kept)})."
        )


def _asked(typed: Mapping[str, Any], *, noise: bool = False) -> tuple[str, dict[str, Any]]:
    """The mechanism, and what was said for it; refuses what only the other one knows."""
    found = given(dict(typed))
    mechanism = found.pop("mechanism", "moment")
    other = "input" if mechanism == "moment" else "moment"
    if wrong := _flags(name for name in _ONLY[other] if name in found):
        raise InvalidValueError(
            f"Expected no {wrong} with --mechanism {mechanism}: it belongs to {other}."
        )
    needed = (*_NEEDED[mechanism], *(_OF_THE_NOISE[mechanism] if noise else ()))
    if missing := _flags(name for name in needed if name not in found):
        raise InvalidValueError(f"Expected {missing} with --mechanism {mechanism}.")
    return mechanism, found


def _flags(names: Any) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _moment(found: dict[str, Any]) -> "MomentCalibration":
    from blurfit.theory.moments import Reach, calibrate_moment, sensitivity, submission_sensitivity

    constant, radius = found.pop("constant"), found.pop("radius", 1.0)
    neighbours = found.get("neighbours", "replace")
    reach = Reach(
        sensitivity(constant, radius, neighbours), submission_sensitivity(constant, radius)
    )
    return calibrate_moment(reach=reach, **found)


def _kept_by_moment(found: dict[str, Any]) -> "ModelGuarantee":
    """What uncalibrated noise keeps: the promise is computed from σ alone."""
    from blurfit.errors import InvalidValueError
    from blurfit.validate import positive

    sigma, count = found.pop("sigma"), found.pop("count", None)
    epsilon, delta = found.pop("epsilon", None), found.pop("delta", None)
    positive(sigma=sigma)
    if (epsilon is None) == (delta is None):
        raise InvalidValueError("Expected one of --epsilon and --delta: the other is computed.")
    some = _moment({**found, "epsilon": 1.0, "delta": 0.5})  # for its reach; σ replaces its noise
    noise = replace(some, sigma=sigma, mu=some.reach.sums / sigma)
    return noise.guarantee(count=count, epsilon=epsilon, delta=delta)
