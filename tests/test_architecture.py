"""Rules that no linter knows: who may draw noise, where tests are, what the package offers."""

import ast
from importlib.metadata import version
from pathlib import Path

import pytest

import blurfit

SOURCE = Path(blurfit.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
MAY_DRAW_NOISE = {"contributor", "baselines", "simulation", "forecast", "audit"}
# Tokens, and pauses that are spread out: random, but no noise.
MAY_DRAW_NOISE |= {"protocol"}


def room(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_some_rooms_draw_noise(module: Path) -> None:
    if room(module) in MAY_DRAW_NOISE:
        return
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name.split(".")[0] for alias in node.names}
            names |= (
                {node.module.split(".")[0]}
                if isinstance(node, ast.ImportFrom) and node.module
                else set()
            )
            assert not names & {"random", "secrets"}, f"line {node.lineno}"
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"random", "default_rng", "urandom", "rvs"}, (
                f"line {node.lineno}"
            )


def test_public_api() -> None:
    """What users may rely on; a change here belongs into the changelog."""
    assert sorted(blurfit.__all__) == blurfit.__all__
    assert blurfit.__all__ == [
        "Agreement",
        "BelowQuorumError",
        "Binary",
        "BlurfitError",
        "Calibration",
        "Categorical",
        "ClosedError",
        "ConflictError",
        "InfeasibleError",
        "InputCalibration",
        "InvalidValueError",
        "LocalGuarantee",
        "ModelGuarantee",
        "MomentCalibration",
        "NotCertifiedError",
        "NotInvitedError",
        "NotPublishedError",
        "Numeric",
        "PublishedModel",
        "Schema",
        "ServiceError",
        "Setting",
        "Statistics",
        "StorageError",
        "Store",
        "Submission",
        "Submissions",
        "UnknownCollectionError",
        "calibrate",
        "guarantee",
        "learn",
        "perturb",
        "perturb_table",
    ]
    assert all(hasattr(blurfit, name) for name in blurfit.__all__)


def test_one_exception_tree() -> None:
    for name in ("InfeasibleError", "InvalidValueError", "NotCertifiedError"):
        assert issubclass(getattr(blurfit, name), blurfit.BlurfitError)


def test_version_is_the_packages() -> None:
    assert blurfit.__version__ == version("blurfit")


def test_tests_mirror_the_source() -> None:
    tests = Path(__file__).parent
    for module in MODULES:
        relative = module.relative_to(SOURCE)
        if module.name == "__init__.py" or relative.parts[:2] == ("theory", "losses"):
            continue
        expected = tests / relative.with_name(f"test_{relative.name}")
        assert expected.exists(), f"{relative} has no {expected.relative_to(tests)}"
