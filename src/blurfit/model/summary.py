"""A model for people and for other tools: its summary and pictures, and what statsmodels and
scikit-learn know it by.

**The summary** is one table, as text, Markdown or HTML. Coefficients are the unbiased ones with
honest errors, in the user's units; what predictions are made with, which the noise may have shrunk,
stands beside them. **For code that was written for statsmodels** (`params`, `bse`, `conf_int()`)
names and shapes are its own, and errors count the noise of privacy besides the sample.

**Exported**, a model takes raw records in its columns, cuts them to their public bounds, and does
what `PublishedModel.predict` does; but a number is the line's own, even beyond the target's bounds.
An answer that was left unsaid is NaN for a number or a yes/no, and the empty word for a choice. All
of this is post-processing of what is published.
"""

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from blurfit.data import html_table
from blurfit.errors import InfeasibleError, axes, optional
from blurfit.learning.inference import Estimate
from blurfit.schema.columns import Categorical, Numeric
from blurfit.schema.schema import title_of, titles
from blurfit.wording import Series

if TYPE_CHECKING:
    from blurfit.agreement.statement import Promise
    from blurfit.learning.tables import Test
    from blurfit.model.model import PublishedModel
    from blurfit.model.release import PublishedMoments


WIDTH = 110  # of a line of text

# What makes markup anywhere, in a line, or at its beginning; a point in a word could make a link.
_MARKS = re.compile(
    r"[#$&*<>@\[\\\]^`{|}]|(?<! )~|~(?! )|:(?=/)|(?<=[^\W\d])\.(?=\w)|(?<!\w)_|_(?!\w)"
    r"|^[-+=](?=\s|$)|^=+$"
)


def plain(text: str) -> str:
    r"""Text as one line in which Markdown finds nothing to interpret.

    >>> print(plain("-1,234.5 ![x](www.example.org)"))
    -1,234.5 !\[x\](www\.example\.org)
    >>> print(plain("What is it worth? (An example.)"))
    What is it worth? (An example.)
    """
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


UNEVEN = (
    "Standard errors assume constant variance, which the released sums cannot test; uneven=True "
    "(--uneven on the command line) allows for any."
)
OWN_ESTIMAND = (
    "Estimates are of {estimand}. Standard errors cover sampling and the noise of privacy, in what "
    "the last wave's own update would find among everybody."
)
FIXED = (
    "The noise hides {names}: without intervals, and held at the value that the last wave started "
    "from while the others were estimated."
)
PROBABILITY = "Coefficients are changes in probability (a linear probability model)."
CURVE = "Coefficients are on the scale of {scale}. Errors {robust} that the model is correct."
CROWDED = (
    "Many people seem to be at the {bound} bound of {target}, {value}, as the released mean and "
    "second moment show. If answers beyond it are possible, they were clipped, the mean is biased "
    "and all coefficients are too near to 0, which no standard error covers."
)
HIDDEN = "Not shown: {names} (too few people to tell from none). Predictions use 0 for them."
_SCALES = {"logistic": "log-odds", "log": "the logarithm of the mean"}


@dataclass(frozen=True)
class Section:
    """The rows of one output: the target, or one class of it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Summary:
    """What `model.summary()` gives: print it, or let a notebook show it."""

    title: str
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, model: "PublishedModel", confidence: float = 0.95) -> "Summary":
        """The summary of a model, with intervals at this confidence."""
        promise, held = model.guarantee, model.held
        least = "" if held else f" (at least {model.agreement.quorum:,} were required)"
        if model.waves:
            of = "{0:,}" if held else "{0:,} of at least {1:,}"
            each = ", ".join(of.format(one.count, one.quorum) for one in model.waves)
            one = "row" if promise.unit == "row" else "person"
            least = f" in {len(model.waves)} waves ({each}), each {one} in one"
        notes = []
        if model.link == "linear" and not isinstance(model.aim, Numeric):
            notes.append(PROBABILITY)
        if model.inference:
            robust = model.inference[0].classical is not None
            if model.link != "linear":
                assume = "do not assume" if robust else "assume"
                notes.append(CURVE.format(scale=_SCALES[model.link], robust=assume))
            elif model.transform is None and not model.inference[0].uneven:
                notes.append(UNEVEN)
            if model.transform is not None:
                notes.append(OWN_ESTIMAND.format(estimand=model.estimand_in_words))
            if unknown := [one.names[place] for one in model.inference for place in one.unlimited]:
                notes.append(FIXED.format(names=", ".join(unknown)))
        elif model.refusal:
            notes.append(f"No standard errors: {model.refusal}")
        if model.hidden:
            notes.append(_of_hidden(model))
        if model.crowded:
            notes.append(f"Caution: {crowded_in_words(model)}")
        if model.doubt:
            notes.append(f"Caution: {model.doubt}")
        if held and promise.private:
            notes.append(f"{promise.seen} {promise.condition}")
        elif promise.caveats or model.admission == "anyone":
            notes.append(promise.condition)
        estimated = [("estimand", model.estimand_in_words)] if model.inference else []
        return cls(
            title=f"{model.target} ~ {' + '.join(model.features) or '1'}",
            sections=tuple(_section(model, output, confidence) for output in model.outputs),
            facts=(*facts_of(promise, least), ("method", model.method), *estimated),
            notes=tuple(notes),
        )

    def __str__(self) -> str:
        lines = _folded(self.title, "    ")
        lines.append("=" * max(map(len, lines)))
        for name, value in self.facts:
            lines += _folded(f"{name + ':':<12} {value}", " " * 13)
        for section in self.sections:
            lines.append("")
            if section.title:
                lines.append(section.title)
            head, *rows = aligned([section.head, *section.rows])
            lines += [head, "-" * max(map(len, (head, *rows))), *rows]
            lines += [f"{name + ':':<22} {value}" for name, value in section.facts]
        lines += ["", *(line for note in self.notes for line in _folded(note))]
        return "\n".join(lines).rstrip()

    def to_markdown(self) -> str:
        """As Markdown tables, with whatever a name could do to them escaped."""
        lines = [f"### {plain(self.title)}", ""]
        for section in self.sections:
            if section.title:
                lines += [f"**{plain(section.title)}**", ""]
            lines.append("| " + " | ".join(section.head) + " |")
            lines.append("| --- |" + " ---: |" * (len(section.head) - 1))
            lines += ["| " + " | ".join(map(plain, row)) + " |" for row in section.rows]
            lines += ["", *(f"- {name}: {value}" for name, value in section.facts), ""]
        lines += [f"- {name}: {value}" for name, value in self.facts]
        lines += ["", *map(plain, self.notes)] if self.notes else []
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """As a fragment of HTML without scripts, styles or outside addresses."""
        parts = [f"<h4>{escape(self.title)}</h4>"]
        for section in self.sections:
            parts.append(html_table(section.head, section.rows, section.title))
            parts += [f"<p>{escape(name)}: {escape(value)}</p>" for name, value in section.facts]
        facts = "".join(f"<li>{escape(name)}: {escape(value)}</li>" for name, value in self.facts)
        parts.append(f"<ul>{facts}</ul>")
        parts += [f"<p>{escape(note)}</p>" for note in self.notes]
        return "".join(parts)

    def _repr_html_(self) -> str:
        return self.to_html()


def facts_of(promise: "Promise", more: str = "") -> tuple[tuple[str, str], ...]:
    """Return of how many people something is, and what is promised to them."""
    number, whom = promise.counted.split(" ")
    protects = [("protects", promise.protects)] if promise.private else []
    return (whom, f"{number}{more}"), ("privacy", promise.numbers), *protects


def crowded_in_words(model: "PublishedModel") -> str:
    """Say which bound of the target clips many people, and what follows."""
    value = number(getattr(model.aim, str(model.crowded)))
    return CROWDED.format(bound=model.crowded, target=title_of(model.aim), value=value)


def _of_hidden(model: "PublishedModel") -> str:
    """Say which answers hardly anybody gave, and how people who gave them are predicted."""
    called = titles(model.agreement.schema)
    names = ", ".join(called.get(name, name) for name in model.hidden)
    return HIDDEN.format(names=names)


def _section(model: "PublishedModel", output: str, confidence: float) -> Section:
    title, called = "", titles(model.agreement.schema)
    if len(model.outputs) > 1:
        title = f"{title_of(model.aim)} = {model.aim.wording.label(output)}"
    every = model.coefficients_of(output).by_name()
    predicting = {name: value for name, value in every.items() if name not in model.hidden}
    if not model.inference:
        plain = tuple((called.get(name, name), number(value)) for name, value in predicting.items())
        return Section(title, ("", "for prediction"), plain, ())
    inference = model.inference_of(output)
    known = {one.name: one for one in inference.estimates(confidence)}
    interval = f"{100 * confidence:g} % interval"
    head = ("", "coefficient", "std. error", "of it privacy", interval, "z", "p")
    rows = []
    for name, value in predicting.items():
        one, error = known.get(name), None
        told = ["–"] * (len(head) - 1)  # of a level that hardly anybody has
        if one is not None and not one.is_unlimited:
            told = [*cells(one), f"{one.statistic:.2f}", probability(one.p_value)]
            error = one.standard_error
        rows.append((called.get(name, name), *told, number(value, error)))
    facts: list[tuple[str, str]] = []
    if inference.r_squared is not None:
        share = f"{inference.r_squared:.3f} (share of the spread explained, noise taken out)"
        facts.append(("R²", share))
    if inference.residual_variance is not None:
        facts.append(("residual deviation", number(math.sqrt(inference.residual_variance))))
    return Section(title, (*head, "for prediction"), tuple(rows), tuple(facts))


def cells(one: Estimate) -> tuple[str, ...]:
    """An estimate, its error, how much of that is privacy's, and its interval."""
    error = one.standard_error
    return (
        number(one.value, error),
        number(error),
        number(one.privacy_error),
        f"{number(one.lower, error)} to {number(one.upper, error)}",
    )


def number(value: float, error: float | None = None) -> str:
    """A number for people: three significant digits, or enough for two of its standard error.

    >>> number(1086.34, 52.1), number(0.00012345), number(-101234.0), number(1e-6, 8.3e-8)
    ('1,086', '0.000123', '-101,000', '1.00e-06')
    """
    if not math.isfinite(value):
        return str(value)
    if error and math.isfinite(error):
        places = 1 - math.floor(math.log10(error))
    elif value == 0:
        return "0"
    else:
        places = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    if (rounded and abs(rounded) < 1e-4) or abs(rounded) >= 1e15:
        return f"{value:.2e}"
    return f"{rounded + 0.0:,.{max(places, 0)}f}"


def probability(p: float) -> str:
    """A p-value, of which nobody needs more than three digits."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _folded(text: str, indent: str = "") -> list[str]:
    """Lines of at most `WIDTH` letters; a word is never broken."""
    keep = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, **keep) or [""]  # type: ignore[arg-type]


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Columns side by side: the first ones to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def plot_model(
    model: "PublishedModel", ax: Any = None, *, output: str | None = None, confidence: float = 0.95
) -> Any:
    """Draw each coefficient with its interval, over its feature's whole range so that they compare;
    without standard errors, the coefficients that predictions are made with. Return the axes.
    """
    output = model.outputs[0] if output is None else output
    found = model.coefficients_of(output)
    known = model.estimates(confidence, output)[1:] if model.inference else []
    shown = [one for one in known if one.name not in model.hidden]
    estimates = [one for one in shown if not one.is_unlimited]
    effects = {name: one for name, one in found.effects.items() if name not in model.hidden}
    names = [one.name for one in estimates] or list(effects)
    asked = (model.agreement.schema.question(name) for name in model.features)
    widths = {one.name: one.width for one in asked if isinstance(one, Numeric)}
    ranges = np.array([widths.get(name, 1.0) for name in names])
    ax = axes(ax, 7, 1.6 + 0.35 * len(names))
    places = np.arange(len(names))
    if estimates:
        middle = ranges * [one.value for one in estimates]
        reach = ranges * [one.upper - one.value for one in estimates]
        of_it = [one.privacy_error / (one.standard_error or 1) for one in estimates]
        ax.hlines(places, middle - reach, middle + reach, linewidth=1.5)
        ax.hlines(places, middle - reach * of_it, middle + reach * of_it, linewidth=4, alpha=0.5)
        ax.plot(middle, places, "o")
        note = f"{confidence:.0%} intervals; thick: the part due to privacy noise"
    else:
        ax.plot(ranges * list(effects.values()), places, "o")
        note = "no standard errors"
    ax.axvline(0, color="grey", linewidth=1)
    called = titles(model.agreement.schema)
    ax.set_yticks(places, [called.get(name, name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    unit = model.target if model.link == "linear" else f"{model.link} scale of {model.target}"
    ax.set_xlabel(f"effect of the whole range on {unit}\n{note}")
    ax.set_title(f"{output}: {model.guarantee.counted}, {model.guarantee.numbers}")
    return ax


def plot_moments(moments: "PublishedMoments", ax: Any = None) -> Any:
    """Draw the correlations of all columns, blank where the noise drowns one; return the axes."""
    found = moments.correlations()
    size = 1.5 + 0.45 * len(found.names)
    ax = axes(ax, size + 1, size)
    picture = ax.imshow(np.clip(found.values, -1, 1), cmap="RdBu", vmin=-1, vmax=1)
    ax.figure.colorbar(picture, ax=ax, label="correlation")
    places = np.arange(len(found.names))
    ax.set_xticks(places, found.names, rotation=45, ha="right")
    ax.set_yticks(places, found.names)
    if len(found.names) <= 12:
        for row, column in np.ndindex(found.values.shape):
            if np.isfinite(value := found.values[row, column]):
                colour = "white" if abs(value) > 0.6 else "black"
                kept = {"ha": "center", "va": "center", "color": colour, "fontsize": "small"}
                ax.text(column, row, f"{value:.2f}", **kept)
    ax.set_title(f"{moments.guarantee.counted}, {moments.guarantee.numbers}")
    return ax


def _column(attribute: str, doc: str) -> Any:
    """Make a property that has one number of each estimate."""

    def series(self: "Results") -> Any:
        found = self.model.estimates(output=self.output)
        numbers = [np.nan if one.is_unlimited else getattr(one, attribute) for one in found]
        return optional("pandas").Series(numbers, [one.name for one in found], name=attribute)

    return property(series, doc=doc)


@dataclass(frozen=True)
class Results:
    """One output of a model with standard errors, in pandas' own shapes."""

    model: "PublishedModel"
    output: str

    params = _column("value", "Unbiased coefficients in the user's units, the intercept first.")
    bse = _column("standard_error", "Standard errors: sampling and privacy together.")
    tvalues = _column("statistic", "Coefficients over their standard errors.")
    pvalues = _column("p_value", "Of the hypothesis that a coefficient is zero, two-sided.")

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Lower and upper bounds at confidence 1 − α, in columns 0 and 1."""
        found = self.model.estimates(1 - alpha, self.output)
        bounds = [(np.nan,) * 2 if one.is_unlimited else (one.lower, one.upper) for one in found]
        return optional("pandas").DataFrame(bounds, [one.name for one in found])

    def cov_params(self) -> Any:
        """The covariance of the coefficients: sampling and privacy together."""
        found = self.model.inference_of(self.output)
        covariance = found.covariance
        covariance[list(found.unlimited)] = covariance[:, list(found.unlimited)] = np.nan
        return optional("pandas").DataFrame(covariance, found.names, found.names)

    @property
    def estimand(self) -> str:
        """What the coefficients estimate, in words."""
        return self.model.estimand_in_words

    def wald_test(self, hypotheses: str) -> "Test":
        """Test linear hypotheses together: "age = 0, hours = 2*education"."""
        return self.model.test(hypotheses, self.output)

    t_test = f_test = wald_test

    def compare_f_test(self, restricted: "Results") -> tuple[float, float, float]:
        """F, its p-value and its degrees of freedom, of a smaller model of the same release."""
        found = self.model.compare(restricted.model, self.output)
        return found.statistic, found.p_value, found.degrees

    @property
    def df_resid(self) -> int:
        """How many people there are beyond the coefficients."""
        return self.nobs - len(self.model.inference_of(self.output).names)

    @property
    def rsquared(self) -> float:
        """The share of the spread that is explained, noise taken out; nan for a curve."""
        found = self.model.inference_of(self.output).r_squared
        return np.nan if found is None else found

    @property
    def nobs(self) -> int:
        """How many people took part."""
        return self.model.count

    def predict(self, exog: Any) -> Any:
        """What the model predicts for records, with the coefficients shrunk for prediction."""
        return self.model.predict(exog)

    def summary(self, alpha: float = 0.05) -> "Summary":
        """The model's own summary table, at confidence 1 − α."""
        return self.model.summary(1 - alpha)


_FAR = 1e38  # stands for what was not said, beyond any answer


def as_pipeline(model: "PublishedModel") -> Any:
    """Return a fitted scikit-learn pipeline on raw records: columns to [−1, 1] by their public
    bounds, then a linear model.

    Probabilities are the model's own for a label that has a curve. For others they follow the
    logistic curve (for classes, the softmax) whose slope is that of `predict_proba` where all are
    equally likely; elsewhere they are only as good as that curve.
    """
    from sklearn.compose import ColumnTransformer  # type: ignore[import-untyped]
    from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]

    features = _features(model)
    columns = ColumnTransformer(
        [part for feature in features for part in _scalers(feature)],
        verbose_feature_names_out=False,
    )
    pipeline = Pipeline([("columns", columns), ("model", _linear(model))])
    # Fitted to the public bounds, never to data: the corners of the schema's own box.
    columns.fit(_corners(features))
    return pipeline


def _features(model: "PublishedModel") -> list[Any]:
    features: list[Any] = [model.agreement.schema.question(name) for name in model.features]
    if derived := [one.name for one in features if one.of]:
        raise InfeasibleError(
            "Expected features that are asked, and {derived} is computed from answers, "
            "which scikit-learn does not do. Predict with blurfit itself, or in R.",
            derived=Series(derived),
        )
    return features


def _scalers(feature: Any) -> list[tuple[str, Any, list[str]]]:
    """Return what makes the columns of one question, in their order."""
    from sklearn.impute import SimpleImputer  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Binarizer, MinMaxScaler, OneHotEncoder  # type: ignore[import-untyped]

    name = feature.name
    if isinstance(feature, Categorical):
        levels = _levels(feature)
        return [(name, OneHotEncoder(categories=[levels], sparse_output=False), [name])]
    scaler = MinMaxScaler(feature_range=(-1, 1), clip=True)
    if not feature.optional:
        return [(name, scaler, [name])]
    middle = feature.centre if isinstance(feature, Numeric) else 0.5
    said = SimpleImputer(strategy="constant", fill_value=middle)
    unsaid = SimpleImputer(strategy="constant", fill_value=_FAR)
    return [
        (name, make_pipeline(said, scaler), [name]),
        (f"{name} not said", make_pipeline(unsaid, Binarizer(threshold=_FAR / 2)), [name]),
    ]


def _levels(feature: Categorical) -> list[str]:
    return [*feature.levels, *([""] if feature.optional else [])]


def _corners(features: Any) -> Any:
    width = max(2, *(len(_levels(f)) for f in features if isinstance(f, Categorical)), 2)
    corners: dict[str, list[Any]] = {}
    values: list[Any]
    for feature in features:
        if isinstance(feature, Categorical):
            values = _levels(feature)
        elif isinstance(feature, Numeric):
            values = [float(feature.lower), float(feature.upper)]
        else:
            values = [0.0, 1.0]
        corners[feature.name] = (values * width)[:width]
    return optional("pandas").DataFrame(corners)


def _linear(model: "PublishedModel") -> Any:
    """Return the weights on columns in [−1, 1]; of a label or a class, for log-odds."""
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
        # Without a curve of its own, that of slope ¼ at ½.
        shift, steepness = model.curve or (0.0, 1.0 if model.link == "logistic" else 2.0)
        return _curve(np.array([False, True]), steepness * slopes, shift + steepness * constants)
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
