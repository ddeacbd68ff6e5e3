"""What takes long tells whoever watches how far it is; by default nobody does."""

from collections.abc import Callable

Progress = Callable[..., object]


def silent(*_done: object) -> None:
    """Tell nobody: the default of a parameter `progress`."""
