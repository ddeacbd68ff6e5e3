"""A date at which a collection closes: chosen and read in each person's own time zone."""

from playwright.sync_api import expect

from blurfit import Agreement
from blurfit.dates import instant
from support.closings import let_pass


def test_everyone_sees_the_same_moment(visit, service, survey) -> None:
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 40, "admission": "anyone"}
    agreement = Agreement.propose(survey("dated income"), **terms)
    name = service.open(agreement)
    administrator = visit(timezone_id="America/New_York", locale="en-US")
    administrator.context.clock.install()
    admin = administrator.go("/admin")
    admin.get_by_label("Administrator’s token").fill(service.token)
    admin.get_by_role("button", name="Enter").click()
    entry = admin.locator(f'[data-fingerprint="{name}"]')
    entry.get_by_role("button", name="Date…").click()
    dialog = admin.get_by_role("dialog", name="When it closes")
    dialog.get_by_label("Closes by itself at").fill("2096-01-31T18:00")
    dialog.get_by_role("button", name="Set the date").click()
    expect(entry).to_contain_text("closes January 31, 2096 at 6:00 PM")
    assert service.store.status(name).closes == instant("2096-01-31T23:00Z")

    tokyo = visit(timezone_id="Asia/Tokyo", locale="en-US")
    page = tokyo.go(f"/c/{name}")
    expect(page.get_by_text("Open until February 1, 2096 at 8:00 AM.")).to_be_visible()
    tokyo.go(f"/collections/{name}")
    expect(page.get_by_text("Closes February 1, 2096 at 8:00 AM.")).to_be_visible()
    let_pass(service.store, name)
    berlin = visit(timezone_id="Europe/Berlin", locale="de-DE").go(f"/c/{name}")
    expect(berlin.get_by_text("Antworten wurden bis 9. September 2001")).to_be_visible()
    admin.clock.fast_forward(4_000)  # after which it asks again
    expect(entry.get_by_text("Closed", exact=True)).to_be_visible()
