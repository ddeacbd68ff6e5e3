"""Pictures of pages for people, with what can be judged of them by a program."""

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
SERIOUS = {"serious", "critical"}


def look_at(page: Page, name: str, width: int, scheme: str) -> None:
    """Keep a picture, and refuse serious accessibility problems and sideways scrolling."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if (width, scheme) not in ((320, "light"), (375, "dark"), (1280, "dark")):
        return  # these two have both colours and both widths
    found = Axe().run(page).response["violations"]
    problems = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found
        if one["impact"] in SERIOUS
    ]
    assert problems == []
