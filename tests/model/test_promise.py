"""Every paper is written from the promise of a release: no number where a caveat stands, no word of
invitations or databases where somebody held the rows."""

import html
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from blurfit import Agreement, InvalidValueError, PublishedModel, PublishedMoments
from blurfit.cli import main
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.sending import blur_table
from blurfit.errors import NotPrivateWarning
from blurfit.estimators import (
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
)
from blurfit.estimators.base import CLASSES_READ, SEEDED
from blurfit.files.engines import Threads
from blurfit.files.learn import release_files
from blurfit.model.course import learn_plan
from blurfit.model.statement import Published, as_card, as_html, as_markdown, as_yaml
from blurfit.schema.schema import Numeric, Schema
from blurfit_server.store.store import Store
from support.proposals import PEOPLE, propose
from support.published import published

mpl.use("Agg")
ROWS = np.random.default_rng(1).uniform(0, 100, (2000, 2))
NUMBERS = ROWS @ [0.2, 0.5]
CLASSES = np.digitize(NUMBERS, [25, 45])
SCHEMA = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 100))
TWO = [("Office", "https://first.example"), ("University", "https://second.example")]
BOUNDS = {"bounds": (0, 100)}
TARGET = BOUNDS | {"target_bounds": (0, 100)}


def fitted(estimator, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return estimator.fit(ROWS, y)


def again(release: Published) -> Published:
    """As somebody reads it who has the file alone."""
    return type(release).from_json(release.to_json())


def collected(**terms) -> PublishedModel:
    """A model of a collection."""
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2000, **terms)
    return published(agreement, 2000)


@cache
def releases(of: str) -> dict[str, Published]:
    """Releases of every kind: by a caveat's name, or of those that have none."""
    seed = {"random_state": 7} if of == "seeded" else {}
    classes = {} if of == "classes" else {"classes": [0, 1, 2]}
    label = fitted(MomentPerturbationClassifier(**BOUNDS, **seed, **classes), CLASSES)
    found: dict[str, Published] = {
        "moments": label.moments_,
        "fitted": label.model_,
        "fitted to the file": again(label.moments_).fit(target="x0"),
    }
    if of != "classes":
        waves = fitted(MomentPerturbationRegressor(**TARGET, **seed, waves=2), NUMBERS)
        found |= {
            "waves": waves.model_,
            "waves, from their files": learn_plan(waves.plan_, list(map(again, waves.releases_))),
        }
    return found


CAVEATS = {"seeded": SEEDED, "classes": CLASSES_READ}
VOID = [(of, name) for of in CAVEATS for name in releases(of)]
KEPT = [("none", name) for name in releases("none")]


def typed(*words: str) -> str:
    done = CliRunner().invoke(main, words)
    assert done.exit_code in (0, 1), done.output
    return done.output


def drawn(release: Published) -> str:
    figure = release.plot().figure
    found = "\n".join(text.get_text() for text in figure.findobj(mpl.text.Text))
    mpl.pyplot.close(figure)
    return found


def in_notebook(release: Published) -> str:
    return html.unescape(release._repr_html_())


def is_model(release: Published) -> bool:
    return isinstance(release, PublishedModel)


def has_correlations(release: Published) -> bool:
    return is_model(release) or not release.agreement.is_later_wave


def always(_release: Published) -> bool:
    return True


# Each paper: for which releases it is, and what it says of one that is also in a file.
MEDIA: dict[str, tuple[Callable[[Published], bool], Callable[[Published, Path], str]]] = {
    "statement": (always, lambda one, _: as_markdown(one)),
    "statement in HTML": (always, lambda one, _: html.unescape(as_html(one))),
    "statement typed": (always, lambda _, file: typed("statement", str(file))),
    "registry": (always, lambda one, _: as_yaml(one)),
    "registry typed": (always, lambda _, file: typed("statement", str(file), "--format", "yaml")),
    "card": (is_model, lambda one, _: as_card(one)),
    "summary": (is_model, lambda one, _: str(one.summary())),
    "summary in Markdown": (is_model, lambda one, _: one.summary().to_markdown()),
    "notebook": (has_correlations, lambda one, _: in_notebook(one)),
    "repr": (always, lambda one, _: repr(one)),
    "picture": (has_correlations, lambda one, _: drawn(one)),
    "show": (has_correlations, lambda _, file: typed("show", str(file))),
    "verify": (always, lambda _, file: typed("verify", str(file))),
    "condition": (always, lambda one, _: one.condition),
}
FOR_SCRIPTS: dict[str, tuple[Callable[[Published], bool], Callable[[Published, Path], object]]] = {
    "statement": (always, lambda _, file: json.loads(typed("statement", str(file), "--json"))),
    "show": (has_correlations, lambda _, file: json.loads(typed("show", str(file), "--json"))),
    "registry": (always, lambda one, _: yaml.safe_load(as_yaml(one))),
    "card": (is_model, lambda one, _: yaml.safe_load(as_card(one).split("---\n")[1])),
    "file": (always, lambda one, _: {**one.to_dict(), "agreement": None}),
}
SHORT = ("repr", "picture", "notebook")  # where the caveat itself has no room, or only in a model's
PROMISED = re.compile(
    r"[εδμ] ?[=≤] ?\d|epsilon['\"]?[=:] ?\d|delta['\"]?[=:] ?\d|differentially private|times in 100"
)


@pytest.fixture
def file(tmp_path):
    def write(release: Published) -> Path:
        release.save(tmp_path / "release.json")
        return tmp_path / "release.json"

    return write


def told(medium: str, release: Published, file: Callable[[Published], Path]) -> str | None:
    suits, tell = MEDIA[medium]
    return " ".join(tell(release, file(release)).split()) if suits(release) else None


def unescaped(text: str) -> str:
    """Without the marks of Markdown and YAML."""
    return text.replace("\\", "").replace("''", "'")


@pytest.mark.parametrize(("of", "name"), VOID)
def test_no_paper_and_no_field_promises_anything_where_a_caveat_stands(of, name, file) -> None:
    release = releases(of)[name]
    assert CAVEATS[of] in release.guarantee.caveats
    for medium in MEDIA:
        if (text := told(medium, release, file)) is None:
            continue
        assert not PROMISED.search(text), (medium, text)
        assert "othing is promised" in text, medium
        assert medium in SHORT or CAVEATS[of] in unescaped(text), medium
    for medium, (suits, tell) in FOR_SCRIPTS.items():
        if not suits(release):
            continue
        document = tell(release, file(release))
        assert set(numbers(document).values()) <= {None}, medium
        assert CAVEATS[of] in json.dumps(document, ensure_ascii=False), medium


def numbers(value: object, path: str = "") -> dict[str, object]:
    """What a document states under a name of a privacy loss, at any depth."""
    if isinstance(value, dict):
        found = {}
        for key, one in value.items():
            found |= numbers(one, f"{path}.{key}")
        return found
    last = path.rsplit(".", 1)[-1]
    names = ("epsilon", "delta", "mu", "privacy_parameters", "bound_on_output_distance")
    return {path: value} if last.removeprefix("local_") in names else {}


@pytest.mark.parametrize(("_of", "name"), KEPT)
def test_every_paper_tells_the_numbers_where_no_caveat_stands(_of, name, file) -> None:
    """So that the tests above would see them."""
    release = releases("none")[name]
    assert (release.guarantee.epsilon, release.guarantee.delta) == (1.0, 1e-6)
    for medium in set(MEDIA) - {"condition"}:
        if (text := told(medium, release, file)) is not None:
            assert PROMISED.search(text), (medium, text)
            assert "Nothing is promised" not in text, (medium, text)
    for medium in set(FOR_SCRIPTS) - {"file"}:
        suits, tell = FOR_SCRIPTS[medium]
        if suits(release):
            assert 1.0 in numbers(tell(release, file(release))).values()


COLLECTING = re.compile(
    r"invit|submission|contribut|database|nobody collected|blurred before|were required|took part"
    r"|\bsent\b|admission",
    re.IGNORECASE,
)


@pytest.mark.parametrize(("of", "name"), [*KEPT, *VOID])
def test_no_paper_of_rows_that_somebody_held_tells_of_a_collection(of, name, file) -> None:
    release = releases(of)[name]
    if not release.held:
        assert name in ("collected", "open")
        return
    assert release.guarantee.seen_by == "holder"
    for medium in MEDIA:
        if (text := told(medium, release, file)) is None:
            continue
        assert not (found := COLLECTING.search(text)), (medium, found, text)
    short = ("repr", "picture", "condition", *(() if is_model(release) else ("notebook",)))
    for medium in set(MEDIA) - {*short, "verify"} if of == "none" else ():
        if (text := told(medium, release, file)) is not None:
            assert "nothing is promised against them" in text, (medium, text)
    assert again(release).held
    assert release.to_dict()["seen_by"] == "holder"
    assert release.to_dict()["admission"] is None


@pytest.mark.parametrize("admission", ["invited", "anyone"])
@pytest.mark.parametrize("databases", [(), TWO], ids=["one", "two"])
def test_who_could_see_a_record_is_said_of_a_collection(databases, admission, file) -> None:
    release = collected(databases=databases, admission=admission)
    seen_by = "nobody" if databases else "collector"
    assert release.guarantee.seen_by == again(release).guarantee.seen_by == seen_by
    assert release.to_dict()["seen_by"] == seen_by
    card = told("card", release, file)
    alone = "The database could learn a great deal from a single submission."
    assert (alone in card) is not bool(databases)
    shared = "shared between two databases, so that neither sees it. This holds only if the two do"
    assert (shared in card) is bool(databases)
    for medium in MEDIA:
        text = told(medium, release, file)
        assert "held the rows" not in text, medium
        assert "Nobody collected" not in text, medium


def test_a_file_says_what_its_agreement_allows(file) -> None:
    for databases, wrong in ((TWO, "holder"), (TWO, "collector"), ((), "nobody"), ((), "us")):
        document = collected(databases=databases).to_dict()
        with pytest.raises(InvalidValueError, match=r"seen_by|held=False"):
            PublishedModel.from_dict({**document, "seen_by": wrong})
    for wrong in ("NOT PRIVATE", [""], [1], None):
        with pytest.raises(InvalidValueError, match="caveats"):
            PublishedModel.from_dict({**document, "caveats": wrong})


def test_caveats_of_agreements_and_releases_are_all_said_once() -> None:
    waves = fitted(MomentPerturbationRegressor(**TARGET, waves=2), NUMBERS)
    *others, last = waves.releases_
    assert learn_plan(waves.plan_, [*others, last]).caveats == ()
    void = replace(last, caveats=("One.", "Two."))
    assert learn_plan(waves.plan_, [*others, void]).caveats == ("One.", "Two.")
    assert learn_plan(waves.plan_, [*others, replace(last, held=False)]).held


def test_a_table_that_its_owner_blurred_was_held(tmp_path) -> None:
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20)
    lines = [f"{age},{age}" for age in range(20)]
    (tmp_path / "people.csv").write_text("\n".join(["age,income", *lines]))
    blur_table(agreement, tmp_path / "people.csv", tmp_path / "people.parquet")
    found = release_files(agreement, [str(tmp_path / "people.parquet")], Threads())
    model = PublishedModel.from_json(found.text())
    assert model.held
    assert PublishedMoments.from_json(found.moments).held
    assert "held the rows" in as_card(model)


# ---- what is published says who could take part, and what its promise needs
def stored(**terms) -> tuple[PublishedModel, PublishedMoments]:
    agreement = propose(**terms)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        model = store.publish(agreement)
        return model, store.moments(agreement)


@pytest.mark.parametrize("admission", ["invited", "anyone"])
def test_a_model_names_its_condition(admission) -> None:
    for shown in stored(admission=admission):
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
    model, _ = stored(admission="anyone")
    assert "submissions: 40" in str(model.summary())
    assert "Nobody can check" in str(model.summary())
    model, _ = stored(admission="invited")
    assert "people:" in str(model.summary())
