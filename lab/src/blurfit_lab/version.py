"""The version, which the package's metadata is made from: always that of blurfit."""

__version__ = "0.1.0"
