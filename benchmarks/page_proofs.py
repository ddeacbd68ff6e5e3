"""What a proof takes in the page: milliseconds in the system's Chromium, and bytes of its script.

`python benchmarks/page_proofs.py`: 119 numbers a submission. The first proof of a page is what a
contributor waits for: the script has come by then, as the page needs it to check the agreement, but
the browser has not compiled it yet. Time is that of the page's own thread, so that others on the
machine matter less, and that of the clock beside it.
"""

import json
import shutil
import statistics
from typing import Any

import click
from playwright.sync_api import CDPSession, sync_playwright

from blurfit import Agreement
from blurfit.contributor.blur import blur
from blurfit_server import Store
from blurfit_server.service.app import Service, in_a_thread
from proofs import DATABASES, SCHEMA

MODULES = ("proving", "prio3", "field64", "turboshake")
CHECK = """async (agreement) => {
  const [{ proved }, { provingOf }] = await Promise.all(
    ["submission", "proving"].map((name) => import(`/pages/${name}.js`)));
  provingOf(agreement);
  globalThis.prove = (identifier, numbers) =>
    proved(agreement, agreement.fingerprint, { identifier: Uint8Array.from(identifier), numbers });
}"""
PROVE = """async ([identifier, numbers]) => {
  const start = performance.now();
  await prove(identifier, numbers);
  return performance.now() - start;
}"""
SIZES = """async (names) => {
  const sizes = names.map(async (name) => {
    const { url } = await fetch(`/pages/${name}.js`, { cache: "reload" });
    return performance.getEntriesByName(url).at(-1).encodedBodySize;
  });
  return Promise.all(sizes);
}"""


@click.command()
@click.option("--quorum", default=5000)
@click.option("--pages", default=3, help="Pages that are loaded anew.")
@click.option("--times", default=10, help="Proofs on each of them.")
def main(quorum: int, pages: int, times: int) -> None:
    """Prove in a browser, and print it."""
    terms: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "quorum": quorum, "databases": DATABASES}
    agreement = Agreement.propose(SCHEMA, **terms, proofs=True)
    record = dict.fromkeys([*(one.name for one in SCHEMA.features), "y"], 0.3)
    table = blur(agreement, agreement.exact(record))
    blurred = [table.identifiers[0].tolist(), table.numbers[0].tolist()]
    firsts: list[tuple[float, Any]] = []
    others: list[tuple[float, Any]] = []
    with Store() as store, in_a_thread(Service(store)) as url, sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for _ in range(pages):
            page = browser.new_context().new_page()
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(url)
            page.evaluate(CHECK, json.loads(agreement.to_json()))
            before = _busy(session)
            for turn in range(times):
                clock = page.evaluate(PROVE, blurred)
                after = _busy(session)
                (others if turn else firsts).append((after - before, clock))
                before = after
        sizes = page.evaluate(SIZES, list(MODULES))
        browser.close()
    for name, seen in (("first proof of a page", firsts), ("later ones", others)):
        busy, clock = (statistics.median(one) for one in zip(*seen, strict=True))
        click.echo(f"{name}: {busy:.0f} ms of its thread, {clock:.0f} ms by the clock")
    click.echo(f"script that comes with proofs alone: {sum(sizes) / 1000:.1f} kB, compressed")


def _busy(session: CDPSession) -> float:
    """Milliseconds that the page's thread has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1e3 * float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


if __name__ == "__main__":
    main()
