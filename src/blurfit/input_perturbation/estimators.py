"""Both parties of the paper in one process, as scikit-learn estimators.

    X, y ─ bounds ─► x, y ─ loss ─► Σqqᵀ, Σp ─ noise ─► A, c ─ solve ─► w ─► coef_, intercept_

Encoded columns are divided by √m, where m counts them and the intercept, so ‖x‖ ≤ 1. A weight of √m
lets one column move the prediction over its whole range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from blurfit.agreement.numbers import DISCRETE_SHARE, promised_in_all
from blurfit.agreement.statement import HOLDER
from blurfit.data import AnyArray, FloatArray
from blurfit.errors import InvalidValueError, inside_unit_interval, positive
from blurfit.estimators.base import (
    FitGuarantee,
    PerturbationClassifier,
    PerturbationEstimator,
    PerturbationRegressor,
    Signal,
    promise_in_words,
)
from blurfit.estimators.passes import JointTotals, Rows, refuse_too_many
from blurfit.estimators.people import People
from blurfit.estimators.rows import by_formula, design, read_rows, records
from blurfit.input_perturbation.algorithms import (
    Sums,
    add_up,
    blur_record,
    blur_sums,
    require_room,
    solve,
)
from blurfit.input_perturbation.calibration import LATTICE_SHARE, PublicInput, Rule
from blurfit.input_perturbation.losses import LogisticLoss, SquaredLoss
from blurfit.schema.columns import Binary, Feature, Question
from blurfit.schema.schema import Coefficients, Schema, units
from blurfit.theory.gaussian import epsilon_of, mu_of

# How far a score reaches, in units of √m: a number's from one end of its range to the other; a
# label's log-odds are twice the least-squares fit of ±1, which is itself longer than a number's.
REACH_OF_NUMBER, REACH_OF_LABEL = 1.0, 3.0
# η is as long as that from n·μ/m^{3/2} = 256 on, and falls with its fourth root below. Chosen, as
# the split is, on public census microdata (lab/docs/experiments.md), n = 2⁹ to 2¹⁷, ε = 0.1 and 1.
WHOLE_BALL = 256.0
DEFAULT_SPLIT = 0.2  # J's share of ε

UNPROVED = (
    "NOT PROVED: the noise follows rule='published', as the paper prints it, which does not follow "
    "from its proof. For experiments only; use rule='certified' for real people."
)


def public_ball(dimension: int, rows: int, epsilon: float, delta: float, *, label: bool) -> float:
    """η = reach·√m·min(1, (n·μ(ε, δ)/(256·m^{3/2}))^{1/4}), for one model.

    The noise on Σp grows with η, and the error with noise over n. So where n·μ is small, a smaller
    ball loses less to noise than it clips. μ(ε, δ) is the Gaussian privacy that the promise pays
    for; m^{3/2} is the noise's length √m times the m over which columns share the unit ball.

    >>> public_ball(14, 2**21, 1.0, 1e-6, label=False) == sqrt(14)
    True
    """
    reach = REACH_OF_LABEL if label else REACH_OF_NUMBER
    signal = rows * mu_of(epsilon, delta) / dimension**1.5
    return reach * sqrt(dimension) * min(1.0, sqrt(sqrt(signal / WHOLE_BALL)))


@dataclass(frozen=True, eq=False)
class InputModel:
    """The weights w of Algorithm 2 for the encoded columns of a table, and the public input."""

    public: PublicInput
    schema: Schema
    w: FloatArray
    count: int

    link: ClassVar = "linear"
    curve: ClassVar = None

    @property
    def aim(self) -> Question:
        """The target's column."""
        return self.schema.target

    @property
    def is_label(self) -> bool:
        """Whether yes or no is predicted."""
        return isinstance(self.aim, Binary)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The target alone."""
        return (self.aim.name,)

    @property
    def coefficients(self) -> Coefficients:
        """intercept + Σ effect·value, in the user's units.

        For a label the quadratic a + ½cz² − yz/2 is least squares in disguise: its minimiser is
        1/(2c) times the least-squares fit of y = ±1, whose value estimates E[y|x].
        """
        scaled = self.w * self.schema.scale
        if isinstance(self.public.loss, LogisticLoss):
            scaled = 2 * self.public.loss.parabola.curvature * scaled
        constant, slopes = (scaled[-1], scaled[:-1]) if self.schema.intercept else (0.0, scaled)
        names = tuple(feature.name for feature in self.schema.features)
        found = units(self.schema, self.aim.name, names)
        intercept, *effects = found.apply(np.concatenate([[constant], slopes])).tolist()
        return Coefficients(intercept, dict(zip(found.names[1:], effects, strict=True)))

    def coefficients_of(self, output: str) -> Coefficients:  # noqa: ARG002
        """Return the coefficients of the only output."""
        return self.coefficients


@dataclass(kw_only=True, eq=False, repr=False)
class InputPerturbation(PerturbationEstimator):
    """Blurs q and p; publishes w. Needs more rows than columns."""

    least_rows = 2

    weight_bound: float | None = None
    fit_intercept: bool = True
    rule: Rule = "certified"
    split: float | None = None

    def public_input_for(self, schema: Schema, rows: int, models: int = 1) -> PublicInput:
        """Return the public input under which a fit to so many rows of this schema blurs them.

        `models` is how many share the promise: one, or one for each of several classes.
        """
        epsilon, delta = share(self.epsilon, self.delta, models)
        local_epsilon, local_delta = self.local_epsilon, self.local_delta
        if models > 1 and local_epsilon is not None and local_delta is not None:
            local_epsilon, local_delta = gaussian_share(local_epsilon, local_delta, models)
        label, d = schema.is_label, schema.dimension
        ball = self.weight_bound
        if ball is None:
            ball = public_ball(d, rows, epsilon, delta, label=label)
        by_default = self.split is None and self.rule == "certified"
        return PublicInput.agree(
            LogisticLoss() if label else SquaredLoss(),
            dimension=d,
            quorum=rows,
            epsilon=epsilon,
            delta=delta,
            weight_bound=ball,
            neighbours=self.neighbours,
            local_epsilon=local_epsilon,
            local_delta=local_delta,
            rule=self.rule,
            split=DEFAULT_SPLIT if by_default else self.split,
        )

    def _learn(
        self,
        values: AnyArray,
        columns: tuple[Feature, ...],
        signals: Sequence[Signal],
        caveats: tuple[str, ...],
        people: People | None,
    ) -> list[InputModel]:
        if people is not None:
            raise InvalidValueError(
                "Expected no groups with input perturbation, which blurs each row by itself: a "
                "mean of rows is no row. Take MomentPerturbationRegressor or -Classifier."
            )
        rows, schemas = (
            len(values),
            [Schema(columns, s.target, self.fit_intercept) for s in signals],
        )
        public = self.public_input_for(schemas[0], rows, len(signals))
        calibration = public.calibration
        if not self.per_record:
            refuse_too_many(rows)
            require_room(public, rows)
        # What is proved of one model's noise; the whole promise, where that is what is proved.
        proved = max(calibration.kept.epsilon * len(signals), self.epsilon)
        spent = self.epsilon if calibration.model.proved else proved
        what = f"{type(self).__name__} of {rows:,} rows"
        self._pay(what, self.neighbours, epsilon=spent, delta=self.delta)
        if self.per_record:
            collected = []
            for schema, signal in zip(schemas, signals, strict=True):
                table = {**records(values, columns), signal.target.name: signal.recorded}
                sent = blur_record(public, *schema.encode(table), allow_unproved=True)
                collected.append(add_up(public, *sent))
        else:  # the noise of all rows in one draw for each target
            targets = np.hstack([signal.encoded for signal in signals])
            joint, generator = Rows(values, targets, columns).joint, self._seeded()
            collected = [
                blur_sums(public, clean_sums(public, schema, joint, rows, place), generator)
                for place, schema in enumerate(schemas)
            ]
        models = [
            InputModel(public, schema, solve(public, sums), rows)
            for schema, sums in zip(schemas, collected, strict=True)
        ]
        if not calibration.model.proved:
            caveats = (*caveats, UNPROVED)
        self.public_input_ = public
        self.guarantee_ = guarantee_of(public, rows, len(signals), caveats)
        return models

    def _linear(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        values, _, columns = read_rows(self, by_formula(self, X)[0], reset=False)
        return np.asarray(design(values, columns) @ self.coef_.T + self.intercept_)


def clean_sums(
    public: PublicInput, schema: Schema, sums: JointTotals, count: int, target: int
) -> Sums:
    """Return Σqqᵀ and Σp of one target before any noise: the schema's x is s·(v, 1), s = 1/√m.

    q = R_q·x and p = R_p·yx for both losses: Σqqᵀ = R_q²·Σxxᵀ, Σp = R_p·Σyx.
    """
    gram, moment = sums.gram, sums.cross[:, target]
    if schema.intercept:
        gram = np.block([[gram, sums.total[:, None]], [sums.total[None], np.array([[count]])]])
        moment = np.append(moment, sums.targets[target])
    s, loss = schema.scale, public.loss
    return Sums(count, loss.q_bound**2 * s**2 * gram, loss.p_bound * s * moment)


def share(epsilon: float, delta: float, models: int) -> tuple[float, float]:
    """(ε/K, δ/K): what each of K models may spend, by basic composition.

    >>> share(1.0, 1e-6, 4)
    (0.25, 2.5e-07)
    """
    positive(epsilon=epsilon)
    inside_unit_interval(delta=delta)
    return epsilon / models, delta / models


def gaussian_share(epsilon: float, delta: float, releases: int) -> tuple[float, float]:
    """(ε', δ/K) with μ(ε', δ/K) = μ(ε, δ)/√K: what each of K submissions of one person may tell.

    Gaussian mechanisms that are μ/√K-GDP are together μ-GDP, exactly (Dong, Roth and Su 2022,
    Corollary 3.3). ε' > 0 always: δ/K alone does not cover μ/√K, because
    erf(x/√K) ≥ erf(x)/√K > erf(x)/K.
    """
    mu = mu_of(epsilon, delta) / sqrt(releases)
    return epsilon_of(mu, delta / releases), delta / releases


def guarantee_of(
    public: PublicInput, count: int, models: int, caveats: tuple[str, ...]
) -> FitGuarantee:
    """Return what a fit promises: for all its models together."""
    promised, neighbours = public.calibration.model, public.calibration.setting.neighbours
    if caveats:
        return FitGuarantee(None, None, neighbours, private=False, statement=" ".join(caveats))
    # what the division among several models and their product round off is put back
    together = models * (1 - 1e-14) if models > 1 else 1.0
    epsilon = promised_in_all(together * promised.epsilon, LATTICE_SHARE)
    delta = min(1.0, promised_in_all(together * promised.delta, DISCRETE_SHARE))
    seen = f"Somebody held the rows. {HOLDER}"
    sentences = promise_in_words("The coefficients", epsilon, delta, neighbours, count, seen)
    if models > 1:
        sentences.append(
            f"It is divided among {models} models, one for each class against the rest: "
            "epsilon and delta are divided by their number (basic composition)."
        )
    return FitGuarantee(epsilon, delta, neighbours, private=True, statement=" ".join(sentences))


@dataclass(kw_only=True, eq=False, repr=False)
class InputPerturbationRegressor(InputPerturbation, PerturbationRegressor):
    """Linear regression from records x and yx that are blurred themselves: the paper's way.

    One model is all that is released: no moments, no standard errors. Needs more rows than columns.

    Args:
        epsilon: ε of the model.
        delta: δ of the model.
        bounds: what is publicly known of the features: {"age": (18, 90), "region": ["north",
            "south"]} for a DataFrame, a `Schema`, or (lower, upper), each one number or one for
            each column. Needed: never take them from the data. Values outside are clipped.
        target_bounds: (lower, upper) of the target, public likewise; a `Schema` has its own.
        neighbours: what may change of one person: "replace" their row by any other, or "zero-out".
        local_epsilon: a target for each blurred record too; raises the noise until it is kept.
        local_delta: its δ, to be given with `local_epsilon`.
        weight_bound: η, the largest length of the encoded weights; the proof is for weights within
            it. More lets the model follow stronger effects, and costs noise. None takes what the
            number of rows and the promise can pay for (`public_ball`).
        fit_intercept: without it, the middle of the bounds is predicted to be the middle of
            `target_bounds`, which is the usual line through zero where bounds are ±b.
        rule: "certified" is proved, "published" is what the paper prints.
        split: the share of ε that pays for the curvature; None takes 0.2, which does better on
            public data than what minimises the bound on the excess risk for the worst of data.
        per_record: blur each row by itself, as its own contributor would. The same distribution,
            for more time.
        random_state: None for noise from the operating system. A seed, or a NumPy generator, is
            for experiments only: a `NotPrivateWarning`, `guarantee_` and the model say so.

    Attributes:
        coef_: what predictions multiply each feature by, in your own units; of a categorical, each
            level but the first.
        intercept_: what they start from.
        model_: the `InputModel`: w of Algorithm 2, and the schema of the table.
        guarantee_: a `FitGuarantee`, in numbers and in words.
        public_input_: the `PublicInput` under which rows were blurred.
        n_features_in_: how many features there were.
        feature_names_in_: what they are called, where X has names.

    >>> generator = np.random.default_rng(0)
    >>> rooms = generator.uniform(1, 9, 50_000)
    >>> model = InputPerturbationRegressor(
    ...     epsilon=1.0, bounds=(1, 9), target_bounds=(0, 20)
    ... ).fit(rooms[:, None], 2 * rooms)
    >>> bool(abs(model.predict([[5]])[0] - 10) < 1)
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class InputPerturbationClassifier(InputPerturbation, PerturbationClassifier):
    """Logistic regression from records √c·x and ½yx that are blurred themselves: the paper's way.

    Models are all that is released: no moments, no standard errors. More than two classes take one
    model for each against the rest, which share the promise: ε/k and δ/k each. Needs more rows than
    columns.

    Args:
        epsilon: ε of all models of a fit.
        delta: δ of all models of a fit.
        bounds: what is publicly known of the features: {"age": (18, 90), "region": ["north",
            "south"]} for a DataFrame, a `Schema`, or (lower, upper), each one number or one for
            each column. Needed: never take them from the data. Values outside are clipped.
        classes: all labels that there could be, which are public; not every one need occur in y,
            and any other is refused. A `Schema` has its own. None reads them from y, which is not
            private: `classes_` gives away a person whose label nobody else has. A
            `NotPrivateWarning`, `guarantee_` and the model say so.
        neighbours: what may change of one person: "replace" their row by any other, or "zero-out".
        local_epsilon: a target for each blurred record too; raises the noise until it is kept.
        local_delta: its δ, to be given with `local_epsilon`.
        weight_bound: η, the largest length of the encoded weights; the proof is for weights within
            it. None takes what the number of rows and the promise can pay for
            (`public_ball`): three times the regressor's, as log-odds reach further than a
            number's range.
        fit_intercept: without it, the middle of the bounds is a tie.
        rule: "certified" is proved, "published" is what the paper prints.
        split: the share of ε that pays for the curvature; None takes 0.2, which does better on
            public data than what minimises the bound on the excess risk for the worst of data.
        per_record: blur each row by itself, as its own contributor would. The same distribution,
            for more time.
        random_state: None for noise from the operating system. A seed, or a NumPy generator, is
            for experiments only: a `NotPrivateWarning`, `guarantee_` and the model say so.

    Attributes:
        classes_: the labels, in order.
        coef_: (1, d) for two classes, of a score E[±1] whose sign decides; (k, d) for more, one
            for each class against the rest.
        intercept_: (1,) or (k,), likewise.
        model_: the `InputModel`; for more than two classes a list of one for each.
        guarantee_: a `FitGuarantee`, in numbers and in words.
        public_input_: the `PublicInput` under which rows were blurred.
        n_features_in_: how many features there were.
        feature_names_in_: what they are called, where X has names.

    >>> generator = np.random.default_rng(0)
    >>> height = generator.uniform(100, 200, (50_000, 1))
    >>> tall = height[:, 0] + generator.normal(0, 5, 50_000) > 150
    >>> model = InputPerturbationClassifier(
    ...     epsilon=1.0, bounds=(100, 200), classes=[False, True]
    ... ).fit(height, tall)
    >>> model.predict([[110], [190]]).tolist()
    [False, True]
    """

    def _of_many(self, name: str, classes: AnyArray, codes: AnyArray) -> list[Signal]:
        return [
            Signal(Binary(f"{name}={label}"), codes == code) for code, label in enumerate(classes)
        ]
