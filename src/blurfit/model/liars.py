"""What contributors who lie together could have done to what is published, in words.

The numbers are those of `blurfit.learning.inference`, and follow from what is published. Under one
wave they are bounds; what liars of earlier waves add through the map is counted to first order
(`blurfit.model.course`), and so is everything where public rows give the curve.
"""

import math
from collections.abc import Callable, Mapping

from blurfit.agreement.radius import LIARS, push_of_liars
from blurfit.model.markdown import plain
from blurfit.model.moments import PublishedMoments
from blurfit.model.published import PublishedModel
from blurfit.model.summary import number
from blurfit.schema.schema import title_of, titles

SHARE = f"{100 * LIARS:g} %"
_LISTED = 24  # coefficients in a sentence; the summary has them all


def moved_in_words(
    moved: Mapping[str, float | None],
    called: Mapping[str, str],
    escape: Callable[[str], str] = str,
) -> str:
    """Each coefficient with how far it can move, by columns as people call them.

    >>> moved_in_words({"age": 0.2713, "pets": None}, {"age": "Age"})
    'Age ± 0.271, pets by any amount'
    """
    each = [
        f"{escape(called.get(name, name))} "
        + ("by any amount" if value is None else f"± {number(value)}")
        for name, value in moved.items()
    ]
    rest = [f"and {len(each) - _LISTED} more (see the summary)"] if len(each) > _LISTED else []
    return ", ".join(each[:_LISTED] + rest)


def lies_in_words(model: PublishedModel | PublishedMoments) -> str:
    """What is not covered: what liars could have done, and on which condition."""
    agreement = model.agreement
    if not agreement.databases:
        limit = "A submission that was longer than honest ones are was refused."
    elif agreement.proofs:
        limit = (
            "Each contributor has proved to the two databases that what they sent is no longer "
            "than an honest submission; within that, anything goes."
        )
    else:
        waves = ": there are none in waves" if agreement.wave is not None else ""
        limit = (
            "Nobody could measure what was shared between the two databases without proofs"
            f"{waves}. One liar is enough to move the model by any amount."
        )
    told = "" if agreement.databases and not agreement.proofs else f" {_moved(model)}"
    doubt = f" **{model.doubt}**" if isinstance(model, PublishedModel) and model.doubt else ""
    return f"Contributors who lie to distort the model (poisoning). {limit}{told}{doubt}"


def _moved(model: PublishedModel | PublishedMoments) -> str:
    if isinstance(model, PublishedMoments):
        push = push_of_liars(model.agreement, model.count) / model.deviation
        far = f"up to {push:,.3g} standard deviations of their noise"
        return (
            f"If {SHARE} of the contributors lied together, they can have moved the sums by "
            f"{far if math.isfinite(push) else 'any amount'}; what that does to a coefficient is "
            "in the summary of each model."
        )
    if not model.liars:
        why = (
            "that follows from sums which are never shown"
            if model.agreement.mechanism == "input"
            else "it has no coefficients with standard errors"
        )
        return f"How far {SHARE} of the contributors could move this model is not told: {why}."
    called, name = titles(model.agreement.schema), model.aim.wording.label
    several = len(model.outputs) > 1
    each = [
        (plain(f"for {title_of(model.aim)} = {name(output)}: ") if several else "")
        + moved_in_words({one: moved[one] for one in inference.names}, called, plain)
        for output, inference, moved in zip(
            model.outputs, model.inference, model.liars, strict=True
        )
    ]
    order = ""
    if model.waves:
        order = (
            " What liars of the last wave can do is a bound; what those of earlier waves add "
            "through its map is counted to first order."
        )
    return (
        f"If {SHARE} of the contributors lied together, knowing everything, they can have moved "
        f"its coefficients by up to: {'; '.join(each)}. Intervals do not include this, and more "
        f"liars do more.{order}"
    )
