"""What anyone may ask needs no token, and is part of the document."""

from blurfit.service.openapi import document
from blurfit.service.openapi_public import pages, reading, sending


def test_nobody_needs_a_token() -> None:
    found = reading() | sending() | pages()
    whole = document()["paths"]
    for path, methods in found.items():
        assert whole[path].items() >= methods.items()
        for method, operation in methods.items():
            if method != "parameters":
                assert "security" not in operation, f"{method} {path}"
