"""What the two databases ask each other needs the token that both have."""

from blurfit.service.openapi import document
from blurfit.service.openapi_shares import shares


def test_only_the_other_database_may_ask() -> None:
    whole = document()["paths"]
    for path, methods in shares().items():
        assert whole[path] == methods
        assert "/shares/" in path
        for method, operation in methods.items():
            if method != "parameters":
                assert operation["security"] == [{"peer": []}], f"{method} {path}"
