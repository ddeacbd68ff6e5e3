"""The version, which the package's metadata is made from."""

__version__ = "0.1.0"


def software() -> str:
    """Return the name and version that a model is stamped with."""
    return f"blurfit {__version__}"
