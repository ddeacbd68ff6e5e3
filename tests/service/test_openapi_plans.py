"""Anyone may read a plan; a token is needed to change one."""

from blurfit.service.openapi import document
from blurfit.service.openapi_plans import plans


def test_whoever_changes_a_plan_needs_a_token_and_whoever_reads_it_none() -> None:
    whole = document()["paths"]
    for path, methods in plans().items():
        assert whole[path] == methods
        for method, operation in methods.items():
            if method != "parameters":
                needed = [{"administrator": []}] if method == "post" else None
                assert operation.get("security") == needed, f"{method} {path}"
