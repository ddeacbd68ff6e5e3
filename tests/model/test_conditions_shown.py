"""What is published says who could take part, and what its promise needs."""

import json

import pytest

from blurfit import Agreement, InvalidValueError, PublishedModel, PublishedMoments
from blurfit.contributor.blur import perturb_table
from blurfit.model.statement import as_markdown, as_yaml
from blurfit.store.store import Store
from support.stores import PEOPLE, propose


def published(**terms) -> tuple[PublishedModel, PublishedMoments]:
    agreement = propose(**terms)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        model = store.publish(agreement)
        return model, store.moments(agreement)


@pytest.mark.parametrize("admission", ["invited", "anyone"])
def test_a_model_names_its_condition(admission) -> None:
    for shown in published(admission=admission):
        document = json.loads(shown.to_json())
        assert document["admission"] == admission
        assert document["condition"] == shown.condition
        is_open = admission == "anyone"
        assert ("Nobody can check" in shown.condition) is is_open
        statement = " ".join(as_markdown(shown).split())
        assert shown.condition in statement
        assert f"| admission | {admission} |" in statement
        assert ("40 submissions" in statement) is is_open
        assert ("40 people" in statement) is not is_open
        assert f"Admission: {admission}." in " ".join(as_yaml(shown).split())
        assert type(shown).from_json(shown.to_json()).to_json() == shown.to_json()


def test_a_summary_counts_submissions_where_people_cannot_be_counted() -> None:
    model, _ = published(admission="anyone")
    assert "submissions: 40" in str(model.summary())
    assert "Nobody can check" in str(model.summary())
    model, _ = published(admission="invited")
    assert "people:" in str(model.summary())


def test_what_is_no_json_is_refused_by_name() -> None:
    with pytest.raises(InvalidValueError, match="a model in JSON"):
        PublishedModel.from_json("{")
    assert isinstance(propose(), Agreement)
