"""blurfit-server: collect blurred submissions, lose nothing, publish once.

A store that keeps what contributors send, the HTTP service and its pages, two databases that check
and add up what neither can read, and what administrators do. Its commands (`serve`, `open`,
`invite`, `publish` and others) join the command `blurfit`.

The public interface is `__all__` of this package. All other modules are internal.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from blurfit.errors import require_version
from blurfit_server.version import __version__ as __version__

if TYPE_CHECKING:
    from blurfit_server.service.app import Limits as Limits
    from blurfit_server.service.app import Service as Service
    from blurfit_server.service.app import in_a_thread as in_a_thread
    from blurfit_server.store.store import Store as Store
    from blurfit_server.store.store import backup as backup
    from blurfit_server.store.store import restore as restore

require_version("blurfit-server", __version__)

# Where each public name lives: it is read when it is first used, so that commands start at once.
_HOME = dict.fromkeys(("Limits", "Service", "in_a_thread"), "blurfit_server.service.app")
_HOME |= dict.fromkeys(("Store", "backup", "restore"), "blurfit_server.store.store")
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
