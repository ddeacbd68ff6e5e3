"""The statement must say what is promised, and when it protects little."""

import html
import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

from blurfit import Agreement, Categorical, Numeric, PublishedModel, Schema
from blurfit.model.release import PublishedMoments
from blurfit.model.statement import Statement, as_card, as_html, as_markdown, as_yaml
from blurfit.schema.columns import About, Wording
from blurfit.theory.moments import at_most
from support.published import published

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("<income>", 0, 100))


def model(**arguments) -> PublishedModel:
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20_000, **arguments)
    return published(agreement, 25_000)


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_says_what_is_promised_to_whom(neighbours) -> None:
    found = model(neighbours=neighbours)
    text = words(as_markdown(found))
    local = found.agreement.calibration.local
    assert local.epsilon <= float(at_most(local.epsilon)) < 1.001 * local.epsilon, "rounded up"
    for told in (
        "(1, 1e-06)-differentially private",
        f"neighbours: {neighbours}",
        f"ε = {at_most(local.epsilon)}",
        f"μ = {at_most(local.mu)}",
        "25,000 people",
        "20,000",
        found.fingerprint,
        found.software,
        "2.72 times as likely",
        "poisoning",
        "Each person contributed once",
        "The database could learn a great deal from a single submission.",
    ):
        assert told in text
    assert ("loss" in text) is False
    anything = "the blurred sums (the moments), and any number of models that are made from them"
    assert anything in text
    weights = found.agreement.weights
    told = f"(intercept) {weights.constant:.4g}, age {weights.columns[0]:.4g}"
    assert f"public weights | {told}, \\<income\\> {weights.columns[1]:.4g}" in text
    assert "may be predicted | age, \\<income\\>" in text


def test_moments_have_a_statement_too() -> None:
    agreement = model().agreement
    moments = PublishedMoments(agreement, 25_000, np.zeros(agreement.width))
    text = words(as_markdown(moments))
    assert "Blurred sums of all products of two of **age, \\<income\\>**" in text
    assert "(1, 1e-06)-differentially private" in text
    assert "Summary statistics" in as_yaml(moments)
    assert "<income>" not in as_html(moments)


NASTY = "![x](http://evil.example/i.png) <b>*y*</b> `z` | # \\\\ _u_ [l](//e.example) &lt;"


def test_no_name_becomes_markup() -> None:
    """A name that somebody chose is shown as it is: no image, no link, no emphasis, no entity."""
    databases = [(NASTY, "https://first.example"), ("B", "https://second.example")]
    schema = Schema(features=[Numeric("age", 0, 100)], target=Numeric(NASTY, 0, 100))
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 20_000}
    agreement = Agreement.propose(schema, **promise, databases=databases)
    found = as_html(published(agreement, 20_001))
    assert found.count(f"<strong>{html.escape(NASTY)}</strong>") == 1
    assert found.count(html.escape(NASTY)) == 5  # with its weight, and among the targets
    for markup in ("<img", "<a ", "<em>", "<b>"):
        assert markup not in found


def test_two_databases_say_what_holds_against_whom() -> None:
    databases = [("Office", "https://first.example"), ("University", "https://second.example")]
    schema = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
    promise = {"epsilon": 0.5, "delta": 1e-7, "quorum": 20_000}
    agreement = Agreement.propose(schema, **promise, databases=databases)
    model = published(agreement, 20_001)
    told, local = " ".join(as_markdown(model).split()), agreement.calibration.local
    assert "**Either of the two databases alone.** Office gets a masked share" in told
    assert "ε = 0.5, δ = 1e-07, holds against each of the two as well" in told
    assert "**Office and University together.** Together they could undo the sharing" in told
    assert f"μ = {at_most(local.mu)} Gaussian" in told
    assert f"ε = {at_most(local.epsilon)} at δ" in told
    assert "Together they could learn a great deal from a single submission." in told
    assert "do not put their shares together" in told
    assert "if neither invents contributors: at least 20,000 of those who are counted" in told
    assert "follow the protocol" in told
    assert "invents contributors" in as_yaml(model)
    assert "The database that collected" not in told
    assert "second.example" in as_yaml(model)
    assert "<strong>Either" in as_html(model)


def test_who_asked_and_what_for_is_said_and_escaped() -> None:
    """Markdown and HTML in a text stay text."""
    harmful = "**bold** <b>x</b> [a](javascript:b) | c"
    about = About(title="Work", purpose=harmful, organiser="The Office", contact="a@b.example")
    income = Numeric("income", 0, 100, wording=Wording(title="Income # of all"))
    schema = Schema([Numeric("age", 0, 100)], income, about=about)
    found = published(Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=20_000), 25_000)
    shown = as_html(found)
    for told in ("Survey: Work", "Asked by: The Office", "Contact: a@b.example", "Income # of all"):
        assert told in shown
    assert html.escape("**bold** <b>x</b> [a](javascript:b) | c") in shown
    assert "<b>" not in shown
    assert "javascript" not in shown.replace("[a](javascript:b)", "")
    assert "picks the right one from it at most 55 times in 100" in words(as_markdown(found))
    entry = yaml.safe_load(as_yaml(found))["deployment"]["product"]
    assert entry["data_curators"] == ["The Office"]
    assert entry["intended_use"] == harmful


@pytest.mark.parametrize("caveats", [(), ("Noise was seeded.",)])
def test_the_statement_is_data_and_its_text_says_all_of_it(caveats) -> None:
    shown = replace(model(), caveats=caveats)
    found, text = Statement.of(shown), as_markdown(shown)
    said = [found.subject, *found.assumed, *found.not_covered]
    for pair in (*found.claims, *found.facts):
        said += pair
    assert all(one in text for one in said)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["promise"] == shown.guarantee.facts()
    if caveats:
        assert not found.assumed
        assert [title for title, _ in found.claims] == ["Nothing."]
        assert "ε" not in str(found.to_dict())
    else:
        assert len(found.claims) == 3
        assert {"what is published", "one submission"} <= dict(found.facts).keys()


# ---- A model card: front matter that a hub reads, and the statement without a word changed
@pytest.fixture(scope="module")
def odd_model():
    schema = Schema(
        [Numeric("age ![x](y)", 18, 90), Categorical("region", ["a|b", "c"])],
        Numeric("income", 0, 90_000),
    )
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=4000)
    names = ("age ![x](y)", "region")
    return PublishedModel(agreement, "income", names, np.ones((1, 4)), 5000, "least squares")


def test_a_card_has_the_promise_and_every_line_of_the_statement(odd_model):
    _, head, _ = as_card(odd_model).split("---\n", 2)
    found = yaml.safe_load(head)
    assert found["pipeline_tag"] == "tabular-regression"
    assert found["privacy"] == {
        "epsilon": 1.0,
        "delta": 1e-6,
        "neighbours": "replace",
        "caveats": [],
        "seen_by": "collector",
        "agreement": odd_model.fingerprint,
    }
    card = as_card(odd_model)
    for line in as_markdown(odd_model).splitlines():
        assert line.lstrip("# ") in card


# ---- the registry's entry has its fields, and the numbers of the agreement
PLAIN = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))


def test_yaml_has_the_registrys_fields() -> None:
    agreement = Agreement.propose(PLAIN, epsilon=1, delta=1e-6, quorum=20_000)
    entry = yaml.safe_load(as_yaml(published(agreement, 25_000)))["deployment"]
    assert entry["product"]["name"] == "Model of income"
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert entry["dp_flavor"]["name"] == "Approximate DP"
    parts = ["product", "dp_flavor", "privacy_loss", "model", "accounting", "implementation"]
    assert sorted(entry) == sorted(parts)
