"""The command as an administrator meets it, in a folder of its own, and a real service."""

from collections.abc import Iterator

import pytest

from blurfit import protocol as tokens
from blurfit.agreement.agreement import Agreement
from blurfit.protocol import RemoteDatabase
from server_support.command import Blurfit, Served
from support.command import propose

__all__ = ["propose"]


@pytest.fixture
def blurfit(tmp_path) -> Blurfit:
    return Blurfit(tmp_path)


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[Served]:
    """One service for a file of tests, whose store and token are in its folder."""
    folder = tmp_path_factory.mktemp("service")
    with Blurfit(folder).serving("--admin-token-file", "token.txt") as served:
        yield served


@pytest.fixture(scope="module")
def asked(service) -> list[str]:
    """The options by which the service above is asked for something."""
    return ["--to", service.url, "--patience", "120"]


@pytest.fixture(scope="module")
def as_administrator(service, asked) -> list[str]:
    """The same for its administrator."""
    return [*asked, "--admin-token-file", str(service.folder / "token.txt")]


@pytest.fixture
def agreed(blurfit, propose, request) -> Agreement:
    """An agreement in agreement.json that no other test has: each has its own ε."""
    name = request.node.name
    epsilon = 1 + int.from_bytes(tokens.hashed(name)[:2]) / 2**16
    agreement = propose(epsilon=epsilon, admission="invited" if "invit" in name else "anyone")
    agreement.save(blurfit.folder / "agreement.json")
    return agreement


@pytest.fixture
def database(service) -> Iterator[RemoteDatabase]:
    """The service above as its administrator sees it."""
    token = tokens.read_token(service.folder / "token.txt")
    with RemoteDatabase(service.url, token=token) as database:
        yield database
