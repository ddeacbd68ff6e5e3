"""Options follow from `Terms`: one that is added there can be typed."""

import click
import pytest
from click.testing import CliRunner

from blurfit.agreement.terms import TERMS
from blurfit.commands.terms import term_options

NAMES = [name for name in TERMS if name not in ("databases", "debias")]


@click.command()
@term_options(*NAMES)
def command(**given: object) -> None:
    click.echo(repr({name: value for name, value in given.items() if value is not None}))


def run(*typed: str):
    return CliRunner().invoke(command, typed)


def test_defaults_are_those_of_the_terms() -> None:
    told = eval(run("--epsilon", "1", "--delta", "1e-6", "--quorum", "5").output)
    assert told == {
        **{"epsilon": 1.0, "delta": 1e-6, "quorum": 5, "approximation": "taylor", "l1": 0.0},
        **{"mechanism": "moment", "rule": "certified", "neighbours": "replace", "l2": 0.0},
        "trust": "one",
    }


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--epsilon", "1", "--delta", "1e-6"), "Missing option '--quorum'"),
        (("--epsilon", "x"), "'x' is not a valid float"),
        (("--quorum", "1.5"), "'1.5' is not a valid integer"),
        (("--mechanism", "other"), "'other' is not one of 'moment', 'input'"),
        (("--loss", "other"), "'other' is not one of 'squared', 'logistic'"),
    ],
)
def test_refusals(typed: tuple[str, ...], said: str) -> None:
    result = run(*typed)
    assert result.exit_code == 2
    assert said in result.output


def test_every_term_is_explained() -> None:
    text = " ".join(run("--help").output.split())
    for name in NAMES:
        assert f"--{name.replace('_', '-')} " in text
    assert "η, bound on the model's ‖w‖; needed by input." in text
