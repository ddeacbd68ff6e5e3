"""`blurfit calibrate` and `blurfit guarantee`: from a promise to noise, and back."""

import json
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console

import blurfit
from blurfit.agreement.promises import releases_in_words
from blurfit.commands.common import as_json as json_option
from blurfit.commands.common import options
from blurfit.commands.presentation import report
from blurfit.theory.calibration import MECHANISMS, RULES
from blurfit.theory.setting import NEIGHBOURS

_setting_options = options(
    click.option("--dimension", type=int, required=True, help="d, the length of q and p."),
    click.option(
        "--quorum", type=int, required=True, help="n, the least number of honest records."
    ),
    click.option("--q-bound", type=float, required=True, help="R_q, bound on every record's ‖q‖."),
    click.option("--p-bound", type=float, required=True, help="R_p, bound on every record's ‖p‖."),
    click.option(
        "--weight-bound", type=float, help="η, bound on the model's ‖w‖; needed by input."
    ),
    click.option("--mechanism", type=click.Choice(MECHANISMS), default="moment", show_default=True),
    click.option(
        "--neighbours", type=click.Choice(NEIGHBOURS), default="replace", show_default=True
    ),
    click.option(
        "--parallel", is_flag=True, help="p = κq with |κ| <= R_p/R_q (squared, logistic)."
    ),
    json_option,
)


@click.command(
    epilog="Example: blurfit calibrate --epsilon 1 --delta 1e-6 --dimension 14 --quorum 32768 "
    "--q-bound 1 --p-bound 1 --weight-bound 1"
)
@click.option("--epsilon", type=float, required=True, help="ε of the published model.")
@click.option("--delta", type=float, required=True, help="δ of the published model.")
@_setting_options
@click.option("--rule", type=click.Choice(RULES), default="certified", show_default=True)
@click.option(
    "--split", type=float, help="Share of ε for the determinant (input); default: chosen."
)
@click.option(
    "--balance", type=float, help="τ, noise on p over noise on qqᵀ (moment); default: chosen."
)
@click.option("--local-epsilon", type=float, help="A target ε for a single submission too.")
@click.option("--local-delta", type=float, help="δ for a single submission.")
@click.option(
    "--alpha", type=float, default=1.0, show_default=True, help="The paper's balance: ε ← αε."
)
@click.option(
    "--debias/--no-debias", default=True, show_default=True, help="Allow a negative ridge (input)."
)
def calibrate(as_json: bool, **arguments: Any) -> None:
    """Turn a promise (ε, δ) and public bounds into noise scales."""
    calibration = blurfit.calibrate(**arguments)
    if as_json:
        click.echo(json.dumps(calibration.to_dict(), indent=2))
    else:
        Console().print(report(calibration))


@click.command(
    epilog="Example: blurfit guarantee --delta 1e-6 --dimension 14 --quorum 32768 "
    "--q-bound 1 --p-bound 1 --sigma-m 8.9 --sigma-p 9 --parallel --count 20000"
)
@click.option("--epsilon", type=float, help="Give ε to learn δ.")
@click.option("--delta", type=float, help="Give δ to learn ε.")
@_setting_options
@click.option("--count", type=int, help="Honest records that came; default: the quorum.")
@click.option("--sigma-u", type=float, help="Noise on all q together (input).")
@click.option("--sigma-b", type=float, help="Noise on all p together (input).")
@click.option("--ridge", type=float, default=0.0, show_default=True, help="Δ_in (input).")
@click.option("--sigma-m", type=float, help="Noise on all qqᵀ together (moment).")
@click.option("--sigma-p", type=float, help="Noise on all p together (moment).")
def guarantee(as_json: bool, **arguments: Any) -> None:
    """Tell what given noise keeps: the inverse of calibrate."""
    kept = blurfit.guarantee(**arguments)
    if as_json:
        click.echo(json.dumps(asdict(kept), indent=2))
    else:
        click.echo(
            f"Kept: epsilon = {kept.epsilon:.6g}, delta = {kept.delta:.6g} "
            f"({kept.neighbours}, {releases_in_words(kept)})."
        )
