"""Any model of one release, as a user types it."""

import json

import pytest

from blurfit import PublishedModel
from support.joint_release import release

MOMENTS = release()
FORMULA = "income ~ age + education + C(region, 'south')"


@pytest.fixture
def fit(blurfit):
    MOMENTS.save(blurfit.folder / "moments.json")

    def fit(*arguments: str):
        return blurfit("fit", "moments.json", *arguments)

    return fit


def test_the_model_is_the_librarys(fit, tmp_path) -> None:
    done = fit(FORMULA, "--out", "model.json")
    assert done.returncode == 0, done.stderr
    expected = MOMENTS.fit(FORMULA)
    assert (tmp_path / "model.json").read_text() == expected.to_json()
    assert done.stdout == f"{expected.summary()}\n\nWrote model.json.\n"
    assert "Next: `blurfit predict model.json TABLE`" in done.stderr


def test_without_a_formula_the_agreed_target_is_predicted(fit, tmp_path) -> None:
    done = fit()
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{MOMENTS.fit().summary()}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["moments.json"]


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        (["--ridge", "0"], {"ridge": 0.0}),
        (["--ridge", "0.5", "--uneven"], {"ridge": 0.5, "uneven": True}),
        (["--lasso", "0.01"], {"lasso": 0.01}),
    ],
)
def test_options_reach_the_fit(fit, tmp_path, typed, options) -> None:
    assert fit(FORMULA, *typed, "--out", "m.json").returncode == 0
    assert (tmp_path / "m.json").read_text() == MOMENTS.fit(FORMULA, **options).to_json()


def test_for_scripts(fit) -> None:
    facts = json.loads(fit("married ~ age + income", "--out", "m.json", "--json").stdout)
    assert (facts["model"], facts["target"], facts["count"]) == ("m.json", "married", 20_000)
    (output,) = facts["outputs"].values()
    age = output["estimates"][1]
    assert age["lower"] < age["value"] < age["upper"]
    assert age["standard_error"] > age["privacy_error"] > 0


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["income ~ log(age)"], "a transformation needs the records themselves"),
        (["income ~ age:married"], "which is not in the release: it has products of two columns"),
        (["income ~ height"], "'height'"),
        ([FORMULA, "--ridge", "-1"], "ridge=-1.0"),
    ],
)
def test_refusals(fit, tmp_path, typed, message: str) -> None:
    refused = fit(*typed, "--out", "model.json")
    assert refused.returncode == 2
    assert message in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "model.json").exists()


def test_a_model_is_not_moments(blurfit) -> None:
    MOMENTS.fit().save(blurfit.folder / "model.json")
    refused = blurfit("fit", "model.json")
    assert refused.returncode == 2
    assert "Is this a release of moments" in " ".join(refused.stderr.split())


def test_a_fitted_model_predicts(fit, blurfit) -> None:
    fit("education ~ income + married", "--out", "education.json")
    (blurfit.folder / "people.csv").write_text("income,married\n30000,1\n60000,0\n")
    done = blurfit("predict", "education.json", "people.csv")
    assert done.returncode == 0, done.stderr
    model = PublishedModel.load(blurfit.folder / "education.json")
    expected = model.predict({"income": [30_000, 60_000], "married": [1, 0]})
    heading, *lines = done.stdout.split()
    assert heading == "education"
    assert [float(line) for line in lines] == pytest.approx(expected, abs=5e-5)
