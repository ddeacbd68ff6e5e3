"""Options follow from `Terms`: one that is added there can be typed."""

import click
from click.testing import CliRunner

from blurfit.agreement.terms import TERMS, Terms
from blurfit.cli.agree import given, term_options

FLAGS = {
    "databases": "database",
    "weights": "weight",
    "admission": "anyone",
    "signing_keys": "signing-key",
    "factors": "factor",
}
SWITCHES = {"--no-debias": False, "--proofs": True, "--database-noise": True, "--diaries": True}


def tell(**typed: object) -> None:
    click.echo(repr(given(typed)))


command = click.Command("terms", params=term_options(*TERMS, required=("quorum",)), callback=tell)


def run(*typed: str):
    return CliRunner().invoke(command, typed)


def test_what_is_not_typed_is_left_to_the_terms() -> None:
    assert eval(run("--quorum", "5").output) == {"quorum": 5}


def test_every_term_can_be_typed() -> None:
    typed = {
        "epsilon": ("1", 1.0),
        "delta": ("1e-6", 1e-6),
        "quorum": ("5", 5),
        "mechanism": ("input", "input"),
        "neighbours": ("zero-out", "zero-out"),
        "local_epsilon": ("2", 2.0),
        "local_delta": ("1e-5", 1e-5),
        "public_rows": ("ab12", "ab12"),
        "sends": ("targets", "targets"),
        "groups": ("region", "region"),
        "overlap": ("0.5", 0.5),
        "weighting": ("stratum", "stratum"),
        "colluders": ("0.2", 0.2),
        "constant": ("0.5", 0.5),
        "loss": ("logistic", "logistic"),
        "approximation": ("chebyshev", "chebyshev"),
        "rule": ("published", "published"),
        "weight_bound": ("3", 3.0),
        "l1": ("0.25", 0.25),
        "l2": ("0.5", 0.5),
        "split": ("0.1", 0.1),
        "local_share": ("0.3", 0.3),
    }
    words = [
        word for name, (text, _) in typed.items() for word in (f"--{name.replace('_', '-')}", text)
    ]
    switched = {
        flag.strip("-").removeprefix("no-").replace("-", "_"): on for flag, on in SWITCHES.items()
    }
    words += [*SWITCHES, "--anyone", "--weight", "age", "2", "--weight", "sex", "1"]
    words += ["--signing-key", "a1", "--signing-key", "b2"]
    words += ["--factor", "urban", "1", "--factor", "rural", "0.4"]
    words += ["--database", "A", "https://a.example", "--database", "B", "https://b.example"]
    assert eval(run(*words).output) == {
        **{name: value for name, (_, value) in typed.items()},
        **switched,
        "admission": "anyone",
        "weights": {"age": 2.0, "sex": 1.0},
        "signing_keys": ("a1", "b2"),
        "factors": (("urban", 1.0), ("rural", 0.4)),
        "databases": (("A", "https://a.example"), ("B", "https://b.example")),
    }
    others = {*switched, "admission", "weights", "databases", "signing_keys", "factors"}
    assert {*typed, *others} == set(Terms.__struct_fields__)
