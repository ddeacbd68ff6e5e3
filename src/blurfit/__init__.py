"""blurfit: blur your own record, then fit together.

Contributors perturb their records themselves; a database learns a linear or logistic model from
what they send; the published model is (ε, δ)-differentially private. With two databases neither has
to be trusted with a record, as long as they do not collude and follow the protocol.

The public interface is `__all__` of this package and of `blurfit.estimators`, the room of the paper
(`blurfit.input_perturbation`), and the command `blurfit`. All other modules are internal: they may
change from one version to the next. Rivals,
real data sets, experiments and the audit are a distribution of their own, `blurfit-lab`.
"""

from importlib import import_module
from typing import Any

from blurfit.version import __version__ as __version__

# `__init__.pyi` is the public list: where each name lives, for type checkers and for us. A name is
# read when it is first used, so that `import blurfit` takes no time.
with open(f"{__file__}i", encoding="ascii") as _list:  # noqa: PTH123
    _lines = [one.split() for one in _list.read().replace("(\n    ", "").splitlines()]
_HOME = {one[3]: one[1] for one in _lines if one[:1] == ["from"]}  # from MODULE import NAME as NAME
__all__ = sorted(_HOME.keys() - {"__version__"})


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
