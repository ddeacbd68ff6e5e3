"""What anyone may read, and what there is not."""

from blurfit.contributor.blur import perturb, perturb_table
from support.requests import ADMINISTRATOR, opened, refused, send
from support.stores import PEOPLE


def test_unknown_collections_and_paths(http, agreement) -> None:
    one = perturb(agreement, {"age": 30, "income": 20})
    unknown = f"/collections/{agreement.fingerprint}"
    refused(send(http, unknown, one.to_bytes()), 404, "unknown-collection", agreement.fingerprint)
    for path in ("", "/agreement", "/model", "/statement", "/moments"):
        refused(http.get(unknown + path), 404, "unknown-collection")
    for strange in ("%00", "%ff", "%F0%9F%98%80", "x" * 5000, "A" * 64, "%27%20OR%201=1--"):
        refused(http.get(f"/collections/{strange}"), 404, "unknown-collection")
        refused(send(http, f"/collections/{strange}", b""), 404, "unknown-collection")
    refused(http.get("/nothing"), 404, "not-found")
    refused(http.get("/collections/a/b/c/submissions"), 405, "method-not-allowed")
    refused(http.delete("/collections"), 405, "method-not-allowed")
    refused(http.put(f"{unknown}/submissions"), 405, "method-not-allowed")


def test_metrics_and_health(http, agreement) -> None:
    path = opened(http, agreement)
    send(http, path, perturb_table(agreement, PEOPLE).to_bytes())
    send(http, path, b"garbage")
    text = http.get("/metrics").text
    assert 'blurfit_submissions_total{kind="new"} 40.0' in text
    assert 'blurfit_refusals_total{kind="invalid"} 1.0' in text
    assert http.get("/healthz").json() == {"status": "ok"}


def test_exact_counts_are_for_those_who_may_read_them(http, agreement) -> None:
    path = opened(http, agreement)
    send(http, path, perturb_table(agreement, {k: [*v] * 3 for k, v in PEOPLE.items()}).to_bytes())
    send(http, path, perturb(agreement, {"age": 1, "income": 2}).to_bytes())
    name = 'blurfit_submissions_total{kind="new"}'
    assert f"{name} 120.0" in http.get("/metrics").text
    assert f"{name} 121.0" in http.get("/metrics", headers=ADMINISTRATOR).text
    wrong = {"authorization": "Bearer of-nothing"}
    refused(http.get("/metrics", headers=wrong), 401, "unauthorised")
