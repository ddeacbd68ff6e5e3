"""Rules that no linter knows: who may draw noise, where tests are, what the package offers."""

import ast
import unicodedata
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import blurfit
from blurfit import estimators

SOURCE = Path(blurfit.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
MAY_DRAW_NOISE = {"input_perturbation", "contributor", "randomness", "simulation", "forecast"}
# Tokens, and pauses that are spread out: random, but no noise.
MAY_DRAW_NOISE |= {"protocol"}
# NumPy's generator under a key that simulations hand it: it asks for no bits of its own.
MAY_DRAW_NOISE |= {"chacha"}
# From a release alone: an integral by sampling, errors by noise drawn anew, rows from its tables.
AFTER_THE_RELEASE = {"learning/shrinkage.py", "learning/hazards.py", "model/tables.py"}
# Who may ask for the operating system's bits; tests replay them (`tests/support/replay.py`).
MAY_ASK_FOR_BITS = {"contributor", "protocol", "simulation"}
BITS = {"octets", "words", "whole", "below"}  # of `blurfit.randomness`


def nodes(module: Path, *words: str) -> Iterator[ast.AST]:
    """Everything that a module's text says, if one of some words is in it, as Python reads it."""
    text = unicodedata.normalize("NFKC", module.read_text(encoding="utf-8"))
    if any(word in text for word in words):
        yield from ast.walk(ast.parse(text))


def room(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_only_some_rooms_draw_noise() -> None:
    drawing = []
    for module in MODULES:
        place = module.relative_to(SOURCE).as_posix()
        if room(module) in MAY_DRAW_NOISE or place in AFTER_THE_RELEASE:
            continue
        for node in nodes(module, "random", "secrets", "rvs", "default_rng"):
            names, wrong = set(), {"random", "secrets"}
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name.split(".")[0] for alias in node.names}
                names |= {str(getattr(node, "module", "")).split(".")[0]}
            elif isinstance(node, ast.Attribute):
                names, wrong = {node.attr}, {"random", "default_rng", "urandom", "rvs"}
            drawing += [f"{place}, line {node.lineno}: {name}" for name in names & wrong]
    assert not drawing


def test_only_the_noise_touches_the_source_of_bits() -> None:
    """No other room can see, exchange or seed what noise, masks and tokens are made of, and nobody
    but one module asks the operating system."""
    touching = set()
    for module in MODULES:
        found = [*nodes(module, "randomness", "entropy")]
        names = {"entropy"} | {
            alias.asname or alias.name
            for node in found
            if isinstance(node, ast.ImportFrom) and node.module == "blurfit"
            for alias in node.names
            if alias.name == "randomness"
        }
        for node in found:
            imported = isinstance(node, ast.ImportFrom) and (
                node.module == "blurfit.randomness" and BITS & {alias.name for alias in node.names}
            )
            named = isinstance(node, ast.Import | ast.Constant) and "blurfit.randomness" in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.value]
            )
            used = (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in names
            )
            assert not (used and isinstance(node.ctx, ast.Store)), f"{module}, line {node.lineno}"
            if imported or named or (used and node.attr in BITS):
                touching.add(room(module))
    assert touching == MAY_ASK_FOR_BITS
    asking = {
        module.relative_to(SOURCE).as_posix()
        for module in MODULES
        for node in nodes(module, "urandom", "secrets", "getrandom")
        if (isinstance(node, ast.Attribute) and node.attr in {"urandom", "getrandom"})
        or (isinstance(node, ast.Import) and node.names[0].name == "secrets")
    }
    assert asking == {"randomness.py"}


def test_all_is_what_the_package_offers() -> None:
    """`__all__` is every name that type checkers are told of; and what is offered lazily is the
    very object of the module that defines it."""
    tree = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    offered = {
        alias.name: f"{node.module}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {"__version__", *blurfit.__all__} == set(offered)
    for name, module in offered.items():
        assert getattr(blurfit, name) is getattr(import_module(module), name)
    assert set(blurfit.__all__) <= set(dir(blurfit))
    assert set(estimators.__all__) <= set(dir(estimators))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = blurfit.nothing


def test_every_error_and_warning_is_offered() -> None:
    """Whoever may meet one can name it."""
    raised = {
        name
        for name, one in vars(import_module("blurfit.errors")).items()
        if isinstance(one, type) and issubclass(one, Exception)
    }
    assert raised <= set(blurfit.__all__)


def test_one_exception_tree() -> None:
    for name in ("InfeasibleError", "InvalidValueError", "NotCertifiedError"):
        assert issubclass(getattr(blurfit, name), blurfit.BlurfitError)
