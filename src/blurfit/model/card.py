"""A model card: Markdown with YAML front matter, as model hubs read it.

What a reader of a hub looks for, in the order of "Model Cards for Model Reporting" (Mitchell et al.
2019), with the privacy statement as its middle. Each number is the model's own; what only whoever
publishes can know is said to be missing rather than made up.
"""

from typing import Any

import yaml

from blurfit.model.markdown import plain
from blurfit.model.published import PublishedModel
from blurfit.model.statement import as_markdown
from blurfit.schema.columns import Categorical, Numeric

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
