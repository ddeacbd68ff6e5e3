"""The published model for other tools, hubs and registries.

**A scikit-learn pipeline, and ONNX.** Both take raw records in the model's columns and do what
`PublishedModel.predict` does, public bounds and clipping included. What leaves here is the same
weights: exporting is post-processing.

**A model card**: Markdown with YAML front matter, as model hubs read it. What a reader of a hub
looks for, in the order of "Model Cards for Model Reporting" (Mitchell et al. 2019), with the
privacy statement as its middle. Each number is the model's own; what only whoever publishes can
know is said to be missing rather than made up.

**An entry of OpenDP's registry of deployments**, for those who compare. Numbers and sentences are
those of its promise (`blurfit.agreement.statement`); where a caveat stands, fields for numbers are
empty.
"""

from typing import Any

import numpy as np
import yaml

from blurfit.agreement.statement import HOLDER, condition_in_words, local_in_words
from blurfit.errors import InfeasibleError
from blurfit.model.model import PublishedModel
from blurfit.model.statement import Published, as_markdown
from blurfit.model.summary import plain
from blurfit.optional import optional
from blurfit.schema.schema import Categorical, Numeric, title_of
from blurfit.theory.guarantees import at_most


def to_sklearn(model: PublishedModel) -> Any:
    """A fitted pipeline: columns to [−1, 1] by their public bounds, then a linear model.

    It takes a pandas DataFrame with the model's columns, and predicts what the model does: a number
    in its own units, a label as False or True, a class by its word. Probabilities are the model's
    own for a label whose link is logistic. For others they follow the logistic curve (for classes,
    the softmax) whose slope is that of `predict_proba` where all are equally likely; elsewhere they
    are only as good as that curve.
    """
    from sklearn.compose import ColumnTransformer  # type: ignore[import-untyped]
    from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]

    features = _features(model)
    columns = ColumnTransformer(
        [(feature.name, _scaler(feature), [feature.name]) for feature in features],
        verbose_feature_names_out=False,
    )
    pipeline = Pipeline([("columns", columns), ("model", _linear(model))])
    # Fitted to the public bounds, never to data: the corners of the schema's own box.
    columns.fit(_corners(features))
    return pipeline


def to_onnx(model: PublishedModel) -> bytes:
    """The pipeline of `to_sklearn` as an ONNX graph, by skl2onnx (`pip install blurfit[onnx]`)."""
    kinds = optional("skl2onnx.common.data_types")
    word, number = kinds.StringTensorType([None, 1]), kinds.FloatTensorType([None, 1])
    inputs = [
        (feature.name, word if isinstance(feature, Categorical) else number)
        for feature in _features(model)
    ]
    found = optional("skl2onnx").to_onnx(to_sklearn(model), initial_types=inputs)
    graph: bytes = found.SerializeToString()
    return graph


def _features(model: PublishedModel) -> list[Any]:
    features: list[Any] = [model.agreement.schema.question(name) for name in model.features]
    if unsaid := [feature.name for feature in features if feature.optional]:
        raise InfeasibleError(
            f"Expected features that everybody answers, and {', '.join(unsaid)} may be left "
            "unsaid: these formats have no column for that. Predict with blurfit itself."
        )
    return features


def _scaler(feature: Any) -> Any:
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder  # type: ignore[import-untyped]

    if isinstance(feature, Categorical):
        return OneHotEncoder(categories=[list(feature.levels)], sparse_output=False)
    return MinMaxScaler(feature_range=(-1, 1), clip=True)


def _corners(features: Any) -> Any:
    width = max(2, *(len(f.levels) for f in features if isinstance(f, Categorical)), 2)
    corners: dict[str, list[Any]] = {}
    values: list[Any]
    for feature in features:
        if isinstance(feature, Categorical):
            values = list(feature.levels)
        elif isinstance(feature, Numeric):
            values = [float(feature.lower), float(feature.upper)]
        else:
            values = [0.0, 1.0]
        corners[feature.name] = (values * width)[:width]
    return optional("pandas").DataFrame(corners)


def _linear(model: PublishedModel) -> Any:
    """The weights on columns in [−1, 1]; of a label or a class, for log-odds."""
    from sklearn.linear_model import LinearRegression, PoissonRegressor  # type: ignore[import-untyped]

    constants, slopes = model.weights[:, 0], model.weights[:, 1:]
    aim = model.aim
    if isinstance(aim, Categorical):
        # Softmax has slope 1/K where all are equally likely; there K logistic curves, whose sum is
        # 1, have (K − 1)/K².
        count = float(len(aim.levels))
        steepness = (count - 1) / count if model.link == "logistic" else count
        if count == 2:  # for which scikit-learn has one row, of their difference
            constants, slopes = np.diff(constants), np.diff(slopes, axis=0)
        return _curve(np.array(aim.levels, dtype=object), steepness * slopes, steepness * constants)
    if model.is_label:
        steepness = 1.0 if model.link == "logistic" else 2.0  # the logistic curve's slope is ¼ at ½
        return _curve(np.array([False, True]), steepness * slopes, steepness * constants)
    if model.link == "log":
        found = PoissonRegressor()
        found.coef_, found.intercept_ = slopes[0], float(constants[0])
        found._base_loss = found._get_loss()
    else:
        assert isinstance(aim, Numeric)
        slope, constant = aim.affine
        found = LinearRegression()
        found.coef_, found.intercept_ = slopes[0] / slope, float(constants[0] - constant) / slope
    found.n_features_in_ = slopes.shape[1]
    return found


def _curve(classes: Any, slopes: Any, constants: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression()
    found.classes_, found.coef_, found.intercept_ = classes, slopes, constants
    found.n_features_in_ = slopes.shape[1]
    return found


_IN_FRONT = ("epsilon", "delta", "neighbours", "models", "caveats", "seen_by")


def as_card(model: PublishedModel) -> str:
    """The whole card."""
    head = yaml.safe_dump(_front_matter(model), sort_keys=False, allow_unicode=True, width=100)
    statement = as_markdown(model).replace("# Privacy statement", "## Privacy statement", 1)
    statement = statement.replace("\n## What", "\n### What").replace("\n## How", "\n### How")
    features = "\n".join(_feature(model, name) for name in model.features)
    return f"""\
---
{head}---

# {plain(model.target)} by {plain(", ".join(model.features))}

A {model.link} model of **{plain(model.target)}**, learned by {model.software} from
{model.guarantee.counted}. {_told(model)}

## Use

```python
from blurfit import PublishedModel

model = PublishedModel.load("model.json")
model.predict(records)  # a table or a DataFrame with the columns below
```

| column | what it takes |
| --- | --- |
{features}

The model describes the people whose records it was learned from. It does not know whether they are
like those that you ask about, and it does not say what causes what.

## What it found

{model.summary().to_markdown()}
{statement}
## Not known here

Whose records these are, what the model is meant for, and how well it predicts on people who are not
among them: whoever publishes it should add that.
"""


def _told(model: PublishedModel) -> str:
    """Who could see a record, and what the promise needs; or why there is none."""
    promise = model.guarantee
    return f"{promise.seen} {promise.condition}" if promise.private else promise.condition


def _front_matter(model: PublishedModel) -> dict[str, Any]:
    promise = model.guarantee.facts()
    private = ["differential-privacy"] if model.guarantee.private else []
    task = "regression" if isinstance(model.aim, Numeric) else "classification"
    return {
        "library_name": "blurfit",
        "pipeline_tag": f"tabular-{task}",
        "tags": ["tabular", *private, f"{model.agreement.mechanism}-perturbation"],
        "privacy": {
            **{name: promise[name] for name in _IN_FRONT},
            "agreement": model.fingerprint,
        },
    }


def _feature(model: PublishedModel, name: str) -> str:
    one = model.agreement.schema.question(name)
    if isinstance(one, Numeric):
        takes = f"a number from {one.lower:g} to {one.upper:g}"
    elif isinstance(one, Categorical):
        takes = "one of " + ", ".join(plain(level) for level in one.levels)
    else:
        takes = "yes or no (1 or 0)"
    return f"| {plain(name)} | {takes} |"


def as_yaml(model: Published) -> str:
    """An entry for OpenDP's registry of deployments; what only you know is left empty."""
    entry = _registry_entry(model)
    return str(yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100))


def _registry_entry(model: Published) -> dict[str, Any]:
    agreement, promise, held = model.agreement, model.guarantee, model.held
    about = agreement.schema.about
    numbers = {"epsilon": promise.epsilon, "delta": promise.delta} if promise.private else None
    how = "" if held else f", blurred before they were sent. Admission: {model.admission}"
    one = "row" if held else "record"
    noise = "" if held else f", for at least {model.honest_in_words} honest people"
    return {
        "status": "Draft",
        "deployment": {
            "product": {
                "name": _name(model),
                "data_curators": [str(about.organiser)] if about.organiser else [],
                "intended_use": str(about.purpose or ""),
                "data_product_type": "Machine learning model"
                if isinstance(model, PublishedModel)
                else "Summary statistics",
                "description": f"From {promise.counted}{how}. {promise.condition}",
            },
            "dp_flavor": {
                "name": "Approximate DP" if promise.private else "none",
                "input_metric": f"{promise.neighbours} one {one}",
                "bound_on_input_distance": 1,
                "output_measure": "approximate max-divergence",
                "bound_on_output_distance": numbers,
                "unprotected_quantities": f"the number of {'rows' if held else 'submissions'}",
            },
            "privacy_loss": {
                "privacy_unit": "person-level",
                "privacy_unit_description": f"One {one} for each person"
                f"{'' if held else ', contributed once'}.",
                "privacy_parameters": numbers,
                "privacy_parameters_description": promise.in_words,
            },
            "model": {
                "model_name": f"Noise added by whoever held the rows ({agreement.mechanism})"
                if held
                else f"Local noise, distributed over a quorum ({agreement.mechanism})",
                "actors": _actors(model),
                "release_type": "One release"
                if promise.releases == 1
                else "Any number of releases",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": _composition(model),
                "post_processing": "exact minimisation of a quadratic over the blurred sums"
                if promise.releases == 1
                else "anything that follows from the blurred sums, which are published themselves",
            },
            "implementation": {
                "mechanisms": f"Gaussian noise, {agreement.mechanism} perturbation{noise}",
                "justification": "Public bounds only; how much noise is enough can be verified "
                f"from the agreement{_of_the_last_wave(model)} {model.fingerprint}."
                if promise.private
                else promise.in_words,
                "software": model.software,
            },
        },
    }


def _name(model: Published) -> str:
    if isinstance(model, PublishedModel):
        return f"{'Classifier' if model.is_label else 'Model'} of {title_of(model.aim)}"
    names = ", ".join(title_of(one) for one in model.agreement.schema.questions)
    return f"Blurred moments of {names}"


def _of_the_last_wave(model: Published) -> str:
    in_waves = isinstance(model, PublishedModel) and len(model.waves) > 1
    return " of the last wave, and the releases of the others:" if in_waves else ""


def _composition(model: Published) -> str:
    if model.models > 1:
        return f"basic, of {model.models} models of one fit"
    if model.agreement.wave is not None:
        return "parallel, of waves: each person is in one"
    return "none"


def _actors(model: Published) -> str:
    """Who did what, and what is promised against them."""
    if model.held:
        return f"Somebody held the rows. {HOLDER}"
    who, local, against = "Records are blurred before they are sent.", model.guarantee.local, ""
    if databases := model.agreement.databases:
        named = " and ".join(f"{one.name} ({one.url})" for one in databases)
        who = f"{who} Each submission is shared between two databases, {named}."
    if local is None:
        return f"{who} Nothing is promised against anyone."
    if databases:
        condition = condition_in_words(model.agreement, model.honest_in_words)
        against = f" Against either alone the model's promise holds. {condition} Against both:"
    return (
        f"{who}{against} A single submission is {at_most(local.mu)}-GDP, epsilon "
        f"{at_most(local.epsilon)} at delta {at_most(local.delta, 3)}. "
        f"{local_in_words(local, 'Together they' if databases else 'The database')}"
    )
