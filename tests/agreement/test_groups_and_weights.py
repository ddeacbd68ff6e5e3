"""Groups and weights at the agreement's door: what is stated, and what is refused."""

import pytest

from blurfit import Agreement, Binary, Categorical, Numeric, Plan, Schema
from blurfit.agreement.terms import Terms
from blurfit.contributor.blur import perturb, share
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError
from blurfit.learning.sums import Screen

SCHEMA = Schema(
    [
        Numeric("age", 18, 80),
        Categorical("region", ["north", "south", "west"], optional=True),
        Binary("married"),
        Numeric("design", 0, 4),
    ],
    Numeric("income", 0, 100),
)
TERMS = {"epsilon": 1, "delta": 1e-6, "quorum": 3000}
FACTORS = {"north": 1.0, "south": 0.5, "west": 0.25, "(not said)": 0.0}
TWO = [("A", "https://a.example"), ("B", "https://b.example")]
RECORD = {"age": 49, "region": "west", "married": True, "design": 1.0, "income": 80}


def propose(**terms: object) -> Agreement:
    found = Agreement.propose(SCHEMA, **TERMS, **terms)
    found.verify()
    assert Agreement.from_json(found.to_json()) == found
    return found


def test_a_record_is_in_its_group_and_has_its_weight() -> None:
    plain = propose(groups="region")
    named = dict(zip(plain.form.names, plain.exact(RECORD), strict=True))
    assert {name for name, value in named.items() if value} <= {
        name for name in named if name.startswith("region=west·")
    }
    assert named["region=west·1·1"] == pytest.approx(plain.weights.constant**2)
    assert {one.name for one in plain.questions} == {"age", "married", "design", "income"}
    assert plain.targets == ("age", "married", "design", "income")
    weighted = propose(groups="region", weighting="region", factors=FACTORS, overlap=0.5)
    assert weighted.fingerprint != plain.fingerprint
    blocks = weighted.form.blocks(weighted.exact(RECORD))
    assert blocks[2, 0, 0] == pytest.approx(0.25 * weighted.weights.constant**2)
    assert blocks[[0, 1, 3]] == pytest.approx(0, abs=1e-9)
    by_number = propose(weighting="design")
    assert by_number.exact(RECORD)[0] == pytest.approx(0.25 * by_number.weights.constant**2)
    stated = by_number.weights.to_dict(by_number.questions)
    assert stated["design"] == pytest.approx(stated["(intercept)"] / 2)


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ({"groups": "nobody"}, "one of the features"),
        ({"groups": "income"}, "one of the features"),
        ({"groups": "married"}, "a question with levels"),
        ({"groups": "region", "overlap": 0.95}, "overlap=0.95"),
        ({"groups": "region", "overlap": -0.1}, "overlap=-0.1"),
        ({"overlap": 0.5}, "groups with overlap"),
        ({"factors": FACTORS}, "weighting with factors"),
        ({"weighting": "age"}, "lower bound 0"),
        ({"weighting": "region"}, "lower bound 0"),
        ({"weighting": "region", "factors": FACTORS | {"north": 1.01}}, "from 0 to 1"),
        ({"weighting": "region", "factors": FACTORS | {"north": -0.01}}, "from 0 to 1"),
        ({"weighting": "region", "factors": FACTORS | {"east": 1.0}}, "one factor for each level"),
        ({"weighting": "region", "factors": {"north": 1.0}}, "one factor for each level"),
        ({"weighting": "age", "factors": FACTORS}, "one factor for each level"),
        ({"weighting": "region", "factors": dict.fromkeys(FACTORS, 0.0)}, "above 0"),
    ],
)
def test_what_the_noise_is_not_made_for_is_refused(terms, reason) -> None:
    with pytest.raises((InvalidValueError, InfeasibleError), match=reason):
        propose(**terms)


@pytest.mark.parametrize("terms", [{"groups": "region"}, {"weighting": "design"}])
def test_waves_have_no_groups_and_no_weights(terms) -> None:
    with pytest.raises(InfeasibleError, match="no weighting with waves"):
        Plan.propose(SCHEMA, waves=2, terms=Terms.of(**TERMS, **terms))


def test_an_agreement_of_less_noise_than_groups_need_is_refused() -> None:
    """Weights that reach further, or another code, under noise that was made for the first."""
    document = propose(groups="region", constant=2.0).to_dict()
    for change in (
        {"weights": document["weights"] | {"age": document["weights"]["age"] * 1.001}},
        {"groups": "design"},
        {"weighting": "region", "factors": [["north", 1.5]]},
    ):
        with pytest.raises(BlurfitError):
            Agreement.from_dict(document | change).verify()
    plain = propose(
        constant=2.0, weights=dict.fromkeys(("age", "region", "married", "design", "income"), 0.5)
    ).to_dict()
    weights = dict(plain["weights"])
    del weights["region"]
    with pytest.raises(BlurfitError):  # √2(c² + ρ²) is more than 2√2·cρ
        Agreement.from_dict(plain | {"groups": "region", "weights": weights}).verify()


def test_submissions_pass_the_screen_and_are_shared_with_proofs() -> None:
    agreement = propose(groups="region", overlap=0.5)
    table = {name: [value] * 20 for name, value in RECORD.items()}
    Screen.of(agreement).require(perturb(agreement, table).numbers)
    shared = propose(groups="region", databases=TWO)
    assert shared.proofs, "the norm of what is sent is proved, whatever it is made of"
    assert len(share(shared, RECORD)) == 1
