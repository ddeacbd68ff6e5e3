"""`python -m blurfit` is the command."""

import subprocess
import sys

from blurfit import __version__


def test_the_module_is_the_command() -> None:
    asked = [sys.executable, "-m", "blurfit", "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said.startswith("blurfit")
    assert __version__ in said
