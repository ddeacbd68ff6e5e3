"""A date at which a collection closes: chosen and read in each person's own time zone."""

from playwright.sync_api import expect

from blurfit import Agreement
from blurfit.agreement.plan import Plan
from blurfit.errors import instant
from server_support.closings import let_pass

from .conftest import enter


def test_everyone_sees_the_same_moment(visit, service, survey) -> None:
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 40, "admission": "anyone"}
    agreement = Agreement.propose(survey("dated income"), **terms)
    name = service.open(agreement)
    administrator = visit(timezone_id="America/New_York", locale="en-US")
    administrator.context.clock.install()
    admin = administrator.go("/admin")
    enter(admin, service.token)
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
    expect(page.get_by_text("Open until February 1, 2096 at 8:00 AM.")).to_be_visible()
    let_pass(service.store, name)
    berlin = visit(timezone_id="Europe/Berlin", locale="de-DE").go(f"/c/{name}")
    expect(berlin.get_by_text("Antworten wurden bis 9. September 2001")).to_be_visible()
    admin.clock.fast_forward(4_000)  # after which it asks again
    expect(entry.get_by_text("Closed", exact=True)).to_be_visible()


def test_a_plan_from_a_file_closes_at_the_date_chosen_with_it(
    visit, service, survey, tmp_path
) -> None:
    """And not at the one in the form beside it, which is for another collection."""
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 60, "admission": "anyone"}
    plan = Plan.propose(survey("planned income"), waves=2, **terms)
    file = tmp_path / "plan.json"
    file.write_text(plan.to_json())
    admin = visit(timezone_id="America/New_York", locale="en-US").go("/admin")
    enter(admin, service.token)
    admin.get_by_label("Closes by itself at").fill("2097-01-31T18:00")
    admin.get_by_label("Or open an agreement from a file").set_input_files(file)
    dialog = admin.get_by_role("dialog", name="Open an agreement from a file")
    dialog.get_by_label("Closes by itself at").fill("2096-01-31T18:00")
    dialog.get_by_role("button", name="Open this survey").click()
    expect(admin.get_by_text("The survey is open.")).to_be_visible()
    closes = service.store.status(plan.fingerprint).closes
    assert closes == instant("2096-01-31T23:00Z")
