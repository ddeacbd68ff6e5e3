"""For tests and for the examples of the documentation: noise is replayed, so none fails by luck."""

from support.replay import pytest_fixture_setup, pytest_make_collect_report, replayed

__all__ = ["pytest_fixture_setup", "pytest_make_collect_report", "replayed"]
