"""One version, in one place."""

from importlib.metadata import version

import blurfit
from blurfit.version import __version__


def test_the_version_is_the_packages() -> None:
    assert blurfit.__version__ == __version__ == version("blurfit")
