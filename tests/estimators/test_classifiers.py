import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from blurfit import InvalidValueError, NotPrivateWarning
from blurfit.estimators import InputPerturbationClassifier, MomentPerturbationClassifier
from blurfit.estimators.base import CLASSES_READ, SEEDED

# Seeded, so that they can be repeated: what is said about that is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")
BOTH = pytest.mark.parametrize("kind", [MomentPerturbationClassifier, InputPerturbationClassifier])
CENTRES = np.array([[0.2, 0.2], [0.8, 0.3], [0.5, 0.9]])


def blobs(rows: int, classes: int, spread: float = 0.1):
    generator = np.random.default_rng(rows + classes)
    codes = generator.integers(0, classes, rows)
    X = CENTRES[codes] + spread * generator.standard_normal((rows, 2))
    return X, np.array(["left", "right", "top"])[codes]


def classifier(kind, **parameters):
    if kind is InputPerturbationClassifier:
        parameters = {"weight_bound": 5.0} | parameters
    return kind(**{"bounds": (0, 1), "random_state": 0} | parameters)


@BOTH
def test_two_classes(kind) -> None:
    X, y = blobs(20_000, 2)
    fitted = classifier(kind).fit(X, y)
    assert fitted.classes_.tolist() == ["left", "right"]
    assert fitted.coef_.shape == (1, 2)
    assert fitted.intercept_.shape == (1,)
    assert fitted.score(X, y) > 0.97
    scores = fitted.decision_function(X)
    np.testing.assert_allclose(scores, X @ fitted.coef_[0] + fitted.intercept_[0])
    assert np.array_equal(fitted.predict(X) == "right", scores > 0)


@BOTH
def test_three_classes_keep_one_promise(kind) -> None:
    X, y = blobs(20_000, 3)
    fitted = classifier(kind).fit(X, y)
    assert fitted.coef_.shape == (3, 2)
    assert fitted.score(X, y) > 0.9
    assert (fitted.guarantee_.epsilon, fitted.guarantee_.delta) == (None, None)  # it is seeded
    kept = classifier(kind, random_state=None, classes=fitted.classes_).fit(X, y).guarantee_
    assert (kept.epsilon, kept.delta) == (1.0, 1e-6)
    scores = fitted.decision_function(X)
    assert np.array_equal(fitted.predict(X), fitted.classes_[scores.argmax(axis=1)])


def test_classes_of_moment_come_from_one_release_and_nothing_is_split() -> None:
    X, y = blobs(20_000, 3)
    three = classifier(MomentPerturbationClassifier).fit(X, y)
    two = classifier(MomentPerturbationClassifier).fit(X, y == "left")
    assert three.agreement_.calibration.mu == two.agreement_.calibration.mu
    assert three.agreement_.epsilon == 1.0
    assert three.model_.outputs == ("left", "right", "top")
    assert "split" not in three.guarantee_.statement
    inside = {"x0": np.clip(X[:, 0], 0, 1), "x1": np.clip(X[:, 1], 0, 1)}
    np.testing.assert_allclose(
        three.predict_proba(np.column_stack(list(inside.values()))),
        three.model_.predict_proba(inside),
        atol=1e-9,
    )
    assert [one.name for one in three.estimates(output="top")] == ["(intercept)", "x0", "x1"]


def test_classes_of_input_share_the_promise() -> None:
    classes = ["left", "right", "top"]
    fitted = classifier(InputPerturbationClassifier, random_state=None, classes=classes).fit(
        *blobs(300, 3)
    )
    names = [model.schema.target.name for model in fitted.model_]
    assert names == ["target=left", "target=right", "target=top"]
    assert "divided among 3 models" in fitted.guarantee_.statement
    assert 3 * fitted.public_input_.epsilon == pytest.approx(1.0)
    assert 3 * fitted.public_input_.delta == pytest.approx(1e-6)
    assert (fitted.guarantee_.epsilon, fitted.guarantee_.delta) == (1.0, 1e-6)


@pytest.mark.parametrize(
    ("classes", "name"),
    [([False, True], "work"), ([0, 1], "work"), (["no", "yes"], "work=yes"), ([3, 7], "work=7")],
)
def test_what_a_label_is_called(classes, name) -> None:
    X, y = blobs(300, 2)
    answers = pd.Series(np.array(classes)[(y == "right").astype(int)], name="work")
    fitted = classifier(MomentPerturbationClassifier, classes=classes).fit(X, answers)
    assert fitted.agreement_.schema.target.name == name


def test_each_class_of_input_has_noise_of_its_own() -> None:
    """Were the noise the same, the models of two classes would differ by what the data say."""
    X = np.full((50, 2), 0.5)
    y = np.arange(50) % 2 * 2 + (np.arange(50) == 0)  # the classes 0 and 2 have 24 and 25 rows
    first, _, last = classifier(InputPerturbationClassifier).fit(X, y).model_
    assert not np.allclose(first.w, last.w, rtol=0.1)


def test_probabilities_of_two_classes_are_the_published_models() -> None:
    X, y = blobs(2000, 2, spread=0.3)
    fitted = classifier(MomentPerturbationClassifier, epsilon=20.0).fit(X, y)
    inside = np.clip(X, 0, 1)
    records = {"x0": inside[:, 0], "x1": inside[:, 1]}
    ours, published = fitted.predict_proba(inside), fitted.model_.predict_proba(records)
    np.testing.assert_allclose(ours, published, atol=1e-9)
    assert fitted.model_.predict(records).tolist() == (fitted.predict(inside) == "right").tolist()
    assert len(np.unique(ours.round(3))) > 100


@BOTH
def test_little_noise_gives_the_least_squares_fit_of_signs(kind) -> None:
    X, y = blobs(20_000, 2, spread=0.2)
    few = {"split": 0.01, "weight_bound": 8.0}
    if kind is MomentPerturbationClassifier:
        few = {"waves": 1}
    X = np.clip(X, 0, 1)
    fitted = classifier(kind, epsilon=1000.0, **few).fit(X, y)
    plain = LinearRegression().fit(X, np.where(y == "right", 1.0, -1.0))
    _, factor = fitted.model_.curve or (0.0, 1.0)  # from the line to log-odds
    np.testing.assert_allclose(fitted.coef_[0] / factor, plain.coef_, rtol=0.01, atol=0.02)


@BOTH
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_probabilities_and_agree_with_predict(kind, classes) -> None:
    X, y = blobs(1000, classes)
    fitted = classifier(kind, epsilon=50.0).fit(X, y)
    likely = fitted.predict_proba(3 * X - 1)
    assert likely.shape == (1000, classes)
    assert likely.min() >= 0
    np.testing.assert_allclose(likely.sum(axis=1), 1)
    assert np.array_equal(fitted.classes_[likely.argmax(axis=1)], fitted.predict(3 * X - 1))


@BOTH
def test_probabilities_are_calibrated_where_the_truth_is_linear(kind) -> None:
    generator = np.random.default_rng(5)
    X = generator.uniform(0, 1, (100_000, 1))
    y = generator.uniform(0, 1, 100_000) < 0.2 + 0.6 * X[:, 0]
    fitted = classifier(kind, epsilon=20.0).fit(X, y)
    np.testing.assert_allclose(
        fitted.predict_proba([[0.0], [0.5], [1.0]])[:, 1], [0.2, 0.5, 0.8], atol=0.02
    )


@BOTH
@pytest.mark.parametrize("labels", [[3, 7], [True, False], [-1, 1], ["a", "b"], [0.0, 1.0]])
def test_labels_of_any_kind(kind, labels) -> None:
    X, y = blobs(5000, 2)
    y = np.where(y == "left", *labels)
    assert classifier(kind).fit(X, y).score(X, y) > 0.95


@BOTH
def test_a_single_class(kind) -> None:
    with pytest.raises(InvalidValueError, match="one class only: there is"):
        classifier(kind).fit(blobs(100, 2)[0], ["left"] * 100)


@BOTH
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.linspace(0, 1, 100), "Unknown label type: continuous"),
        (np.where(np.arange(100) == 7, np.nan, 1.0), "y contains NaN"),
        (["a"] * 99, "inconsistent numbers of samples"),
    ],
)
def test_bad_labels(kind, labels, message) -> None:
    with pytest.raises(ValueError, match=message):
        classifier(kind).fit(blobs(100, 2)[0], labels)


@BOTH
def test_one_row_does_not_change_the_classes(kind) -> None:
    """Replacing a row by any other is what the promise is about: nothing may show it for sure."""
    X, y = blobs(2000, 3)
    y[y == "top"] = "left"
    other = y.copy()
    other[7] = "top"
    public = classifier(kind, classes=["top", "left", "right"])
    with_it, without = (clone(public).fit(X, labels) for labels in (other, y))
    assert with_it.classes_.tolist() == without.classes_.tolist() == ["left", "right", "top"]
    assert with_it.coef_.shape == without.coef_.shape == (3, 2)
    everyone_alike = clone(public).fit(X, np.full(2000, "left"))
    assert everyone_alike.coef_.shape == (3, 2)


@BOTH
def test_classes_that_are_read_from_the_data_are_not_private(kind) -> None:
    X, y = blobs(300, 2)
    guess = classifier(kind, random_state=None)
    with pytest.warns(NotPrivateWarning, match=r"classes were read from y.*classes=\["):
        fitted = guess.fit(X, y)
    assert not fitted.guarantee_.private
    assert "classes were read from y" in fitted.guarantee_.statement
    if kind is MomentPerturbationClassifier:
        assert not fitted.model_.guarantee.private
        assert "classes were read from y" in str(fitted.summary())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stated = guess.set_params(classes=["left", "right"]).fit(X, y)
    assert stated.guarantee_.private
    assert "NOT" not in stated.guarantee_.statement


@BOTH
def test_a_seed_and_guessed_classes_are_two_warnings(kind) -> None:
    with pytest.warns(NotPrivateWarning) as heard:
        classifier(kind).fit(*blobs(300, 2))
    assert [str(one.message)[:40] for one in heard] == [SEEDED[:40], CLASSES_READ[:40]]
    assert {one.filename for one in heard} == {__file__}


@BOTH
@pytest.mark.parametrize(
    ("classes", "labels", "message"),
    [
        (["a", "b"], ["a", "secret"], r"one of classes=\['a', 'b'\], and some are not"),
        ([0, 1], ["a", "b"], r"one of classes=\[0, 1\]"),
        (["a", "b"], [0, 1], r"one of classes=\['a', 'b'\]"),
        (["a", 0, None], ["a", "b"], "labels of one kind"),
        (["a"], ["a", "a"], "at least two classes"),
        ([], ["a", "b"], "at least two classes"),
        ("ab", ["a", "b"], "at least two classes"),
    ],
)
def test_bad_classes(kind, classes, labels, message) -> None:
    with pytest.raises(InvalidValueError, match=message) as caught:
        classifier(kind, classes=classes).fit(np.full((50, 2), 0.5), labels * 25)
    assert "secret" not in str(caught.value)


@BOTH
@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ([True, False], [0, 1]),
        ([0, 1], [True, False]),
        (["no", "perhaps"], np.array(["no", "perhaps"], dtype=object)),
        (("no", "perhaps"), pd.Series(["no", "perhaps"], name="answer")),
        ([0.0, 1.0, 2.0], [0, 1]),
    ],
)
def test_classes_and_labels_of_different_types(kind, classes, labels) -> None:
    y = np.tile(np.asarray(labels), 50)
    X = np.linspace(0, 1, 100)[:, None]
    assert classifier(kind, classes=classes).fit(X, y).classes_.tolist() == sorted(classes)
