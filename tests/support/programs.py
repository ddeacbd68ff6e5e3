"""Find the programs that some tests run, and tell at the end which of them are missing.

Where CI=true, `make test` installs all of them (`make programs`), and a missing one is a failure:
nothing is green only because it did not run. Everybody else reads one line.
"""

import os
import shutil
from typing import NoReturn

import pytest

_MISSING = "needs a program that is not installed: "
_FOLDERS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def program(*names: str) -> str:
    """Return the path of the first of these programs that is here; skip the test if none is."""
    found = next(filter(None, (shutil.which(name, path=_FOLDERS) for name in names)), None)
    if found is None:
        missing(names[0])
    return found


def missing(name: str) -> NoReturn:
    """Skip the test that needs a program, or fail it where programs were to be installed."""
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(f"{name} is not installed, and CI=true asks for it: run `make programs`.")
    pytest.skip(_MISSING + name)


def left_out(skipped: list[pytest.TestReport]) -> str | None:
    """Say in one line which programs were missing, and how to get them."""
    reasons = [one.longrepr[2] for one in skipped if isinstance(one.longrepr, tuple)]
    names = sorted({words.partition(_MISSING)[2] for words in reasons if _MISSING in words})
    if not names:
        return None
    count = sum(_MISSING in words for words in reasons)
    return (
        f"Left out: {count} tests, because {', '.join(names)} "
        f"{'is' if len(names) == 1 else 'are'} not installed. "
        "`make programs` installs what is missing."
    )
