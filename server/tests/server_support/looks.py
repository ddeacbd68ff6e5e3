"""What can be judged by a program of how a page looks, and pictures of it for people."""

import os
from pathlib import Path

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

# Contrast is judged on what elements paint. Whether ::before and ::after paint over them, of which
# axe would only say that it cannot tell, is half of what it looks at.
AXE = (
    AXE_SCRIPT
    + """;
const { options } = axe._audit.checks["color-contrast"];
axe.configure({ checks: [{ id: "color-contrast", options: { ...options, ignorePseudo: true } }] });
"""
)
SCREENSHOTS = Path(__file__).parents[3] / "build" / "screenshots"
PICTURES = bool(os.environ.get("BLURFIT_PICTURES"))  # which take as long as all the rest
NARROW, WIDE = (320, "light"), (1280, "dark")  # both widths and both colours
# What is serious, of what axe finds: all else that it tells is long, and nobody reads it. While a
# dialog is open nobody gets at the page behind it, which is looked at before.
SERIOUS = """axe.run(document.querySelector("dialog[open]") ?? document,
    { resultTypes: ["violations"], elementRef: false, preload: false }).then(({ violations }) =>
  violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 200))]))"""


def look_at(page: Page, name: str, *looks: tuple[int, str]) -> None:
    """As it is, narrow in light colours and wide in dark ones, or as told.

    Refuses serious accessibility problems and sideways scrolling; keeps a picture, if wanted. The
    page is left narrow and light.
    """
    page.evaluate("scrollTo(0, 0)")
    for width, scheme in looks or (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        if PICTURES:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert problems(page) == [], (width, scheme)


def problems(page: Page) -> list[tuple[str, list[str]]]:
    """Serious problems of accessibility, by rule, and where they are."""
    if not page.evaluate("'axe' in window"):  # it stays until the page is left
        page.evaluate(AXE)
    return page.evaluate(SERIOUS)  # type: ignore[no-any-return]
