"""What the four estimators share: columns → agreement → blurred sums → published models.

    X, y ─ bounds ─► z ─ one pass ─► Σ ─ exact sampler ─► Σ̃ ─ learn ─► coef_, intercept_

Only the model leaves, so nobody needs the blurred records themselves: the noise of all of them is
drawn at once, exactly (`blurfit.simulation.sampler`). `per_record=True` goes the long way round and
blurs each row as its own contributor would; the coefficients have the same distribution.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.grid import power_of_two_below
from blurfit.contributor import noise
from blurfit.contributor.perturb import perturb_table
from blurfit.errors import InvalidValueError, NotPrivateWarning
from blurfit.estimators.bounds import bounded_columns
from blurfit.estimators.defaults import DEFAULT_SPLIT, PublicFacts
from blurfit.estimators.guarantee import SEEDED, FitGuarantee, gaussian_share, share
from blurfit.estimators.one_pass import encoded_sums
from blurfit.learning.learner import learn
from blurfit.learning.statistics import Statistics
from blurfit.model.published import PublishedModel
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.simulation.entropy import generator_for
from blurfit.simulation.sampler import clean_sums, sampler_for
from blurfit.theory import triangle
from blurfit.theory.calibration import InputCalibration, Mechanism, MomentCalibration, Rule
from blurfit.theory.setting import Neighbours

AnyArray = npt.NDArray[Any]
Signal = tuple[Numeric | Binary, AnyArray]  # what is learned: a target, and its value in each row


@dataclass(kw_only=True, eq=False, repr=False)
class PerturbationEstimator(BaseEstimator):  # type: ignore[misc]
    """Parameters and steps that all estimators have in common.

    A row is one person. The quorum is the number of rows, which `neighbours` takes to be public.
    Predictions follow `coef_` and `intercept_`, in your own units, also beyond the bounds.
    Weights of samples are not supported: each person counts once.

    Args:
        epsilon: ε of all that is learned in one fit.
        delta: δ of all that is learned in one fit.
        bounds: (lower, upper) of the features, each one number or one for each column. Needed, and
            public: never take them from the data. Values outside are clipped.
        weight_bound: η, the largest length that the encoded weights may have; None for any.
        neighbours: what one person may change: "replace" her row by any other, or "zero-out".
        local_epsilon: a target for each blurred record too; raises the noise until it is kept.
        local_delta: its δ, to be given with `local_epsilon`.
        fit_intercept: without it, the middle of the bounds is predicted to be the middle of
            `target_bounds` (or a tie), which is the usual line through zero where bounds are ±b.
        per_record: blur each row by itself, as its own contributor would. The same distribution,
            for more time.
        random_state: None for noise from the operating system. A seed, or a NumPy generator, is
            for experiments only: a `NotPrivateWarning`, `guarantee_` and the model say so.

    Attributes:
        coef_, intercept_: the model in your own units.
        agreement_: the contract under which rows were blurred; for classes one against the rest, a
            list of one for each.
        published_model_: the model with its agreement, standard errors and files; a list likewise.
        guarantee_: a `FitGuarantee`, in numbers and in words.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    mechanism: ClassVar[Mechanism]
    least_rows: ClassVar[int] = 1

    epsilon: float = 1.0
    delta: float = 1e-6
    bounds: Any = None
    weight_bound: float | None = None
    neighbours: Neighbours = "replace"
    local_epsilon: float | None = None
    local_delta: float | None = None
    fit_intercept: bool = True
    per_record: bool = False
    random_state: Any = None

    def _mechanism_terms(self, public: PublicFacts, /) -> dict[str, Any]:
        """The parameters that only this mechanism has, by the agreement's names, and η."""
        raise NotImplementedError  # pragma: no cover

    def _feature_columns(self) -> tuple[Numeric, ...]:
        """A column for each feature, under its own name, or as x0, x1 and so on."""
        unnamed = [f"x{place}" for place in range(self.n_features_in_)]
        names = [str(name) for name in getattr(self, "feature_names_in_", unnamed)]
        return bounded_columns("bounds", self.bounds, names)

    def _publish(
        self,
        values: AnyArray,
        columns: tuple[Numeric, ...],
        signals: Sequence[Signal],
        caveats: Sequence[str] = (),
    ) -> list[PublishedModel]:
        """One model for each signal, all of them together within the promise.

        `caveats` are the reasons for which the promise does not hold, where there are any.
        """
        if self.per_record and self.random_state is not None:
            raise InvalidValueError(
                f"Expected random_state={self.random_state!r} to be None with per_record=True: "
                "contributors take no seed. Leave per_record=False for experiments."
            )
        if self.random_state is not None:
            caveats = [SEEDED, *caveats]
        agreements = self._agreements(len(values), columns, [target for target, _ in signals])
        collect = self._from_each_row if self.per_record else self._at_once
        models = [
            replace(learn(agreement, statistics), caveat=" ".join(caveats) or None)
            for agreement, statistics in zip(
                agreements, collect(agreements, values, columns, signals), strict=True
            )
        ]
        self.agreement_ = agreements if len(agreements) > 1 else agreements[0]
        self.published_model_ = models if len(models) > 1 else models[0]
        self.guarantee_ = FitGuarantee.of(
            models,
            self.epsilon,
            self.delta,
            caveats=caveats,
        )
        for caveat in caveats:
            warnings.warn(caveat, NotPrivateWarning, stacklevel=3)  # where `fit` is called
        return models

    def agreement_for(self, schema: Schema, rows: int, models: int = 1) -> Agreement:
        """The contract under which a fit to so many rows of this schema would blur them.

        `models` is how many share the promise: one, or one for each of several classes.
        """
        epsilon, delta = share(self.mechanism, self.epsilon, self.delta, models)
        local_epsilon, local_delta = self.local_epsilon, self.local_delta
        if models > 1 and local_epsilon is not None and local_delta is not None:
            # a submission is Gaussian for either mechanism
            local_epsilon, local_delta = gaussian_share(local_epsilon, local_delta, models)
        public = PublicFacts(schema.dimension, rows, epsilon, delta, label=schema.is_label)
        return agree(
            schema,
            epsilon=epsilon,
            delta=delta,
            quorum=rows,
            mechanism=self.mechanism,
            neighbours=self.neighbours,
            local_epsilon=local_epsilon,
            local_delta=local_delta,
            **self._mechanism_terms(public),
        )

    def _agreements(
        self, rows: int, columns: tuple[Numeric, ...], targets: Sequence[Numeric | Binary]
    ) -> list[Agreement]:
        """A contract for each target, all with one calibration of the noise."""
        schema = Schema(columns, targets[0], self.fit_intercept)
        agreement = self.agreement_for(schema, rows, len(targets))
        return [
            replace(agreement, schema=Schema(columns, target, self.fit_intercept))
            for target in targets
        ]

    def _at_once(
        self,
        agreements: Sequence[Agreement],
        values: AnyArray,
        columns: tuple[Numeric, ...],
        signals: Sequence[Signal],
    ) -> list[Statistics]:
        """The blurred sums of all rows, with the noise of all of them in one draw for each target.

        The schema's x is s·z, s = 1/√m.
        """
        s, loss = agreements[0].schema.scale, agreements[0].loss
        targets = np.column_stack([target.scale(column) for target, column in signals])
        sums = encoded_sums(values, targets, columns, intercept=self.fit_intercept)
        gram, moments = s**2 * sums.gram, s * sums.moments
        seeded = None if self.random_state is None else generator_for(self.random_state)
        return [
            blurred(agreement, clean_sums(loss, len(values), gram, moment), seeded)
            for agreement, moment in zip(agreements, moments.T, strict=True)
        ]

    def _from_each_row(
        self,
        agreements: Sequence[Agreement],
        values: AnyArray,
        columns: tuple[Numeric, ...],
        signals: Sequence[Signal],
    ) -> list[Statistics]:
        """The blurred sums of rows that are blurred one by one, anew for each target."""
        table = {column.name: values[:, place] for place, column in enumerate(columns)}
        total = Statistics.of_moments if self.mechanism == "moment" else Statistics.of_records
        collected = []
        for agreement, (target, column) in zip(agreements, signals, strict=True):
            sent = perturb_table(
                agreement, {**table, target.name: column}, allow_unproved=True
            )  # `guarantee_` says what is not proved, to whoever chose rule="published"
            collected.append(total(sent.quadratic, sent.linear).under(agreement.fingerprint))
        return collected


@dataclass(kw_only=True, eq=False, repr=False)
class MomentPerturbation(PerturbationEstimator):
    """Blurs qqᵀ and p: exact Gaussian noise on the sums, and standard errors for coefficients.

    Args:
        balance: τ, the noise on p relative to that on qqᵀ; None for what suits weights of
            `weight_bound`, or without one of half the length that one column needs to carry the
            whole range (`PublicFacts.balance`).
    """

    mechanism = "moment"

    balance: float | None = None

    def _mechanism_terms(self, public: PublicFacts, /) -> dict[str, Any]:
        balance = self.balance
        if balance is None and self.weight_bound is None:
            balance = public.balance(self.neighbours)
        return {"balance": balance, "weight_bound": self.weight_bound}


@dataclass(kw_only=True, eq=False, repr=False)
class InputPerturbation(PerturbationEstimator):
    """Blurs q and p, as in the paper: short messages, one release, more rows than columns.

    Args:
        weight_bound: η; the proof is for weights within it. More lets the model follow stronger
            effects, and costs noise. None takes what the number of rows and the promise can pay
            for (`PublicFacts.ball`).
        rule: "certified" is proved, "published" is what the paper prints.
        split: the share of ε that pays for the curvature; None takes 0.2, which does better on
            public data than what minimises the bound on the excess risk for the worst of data.
    """

    mechanism = "input"
    least_rows = 2

    rule: Rule = "certified"
    split: float | None = None

    def _mechanism_terms(self, public: PublicFacts, /) -> dict[str, Any]:
        ball = public.ball() if self.weight_bound is None else self.weight_bound
        split = DEFAULT_SPLIT if self.split is None and self.rule == "certified" else self.split
        return {"rule": self.rule, "split": split, "weight_bound": ball}


def agree(schema: Schema, **terms: Any) -> Agreement:
    """`Agreement.propose`, remembered: it depends on public terms alone, and fits repeat them."""
    try:
        hash(tuple(terms.values()))
    except TypeError:  # a list, say, which is refused by its name
        return Agreement.propose(schema, **terms)
    return _agree(schema, **terms)


_agree = lru_cache(maxsize=32, typed=True)(Agreement.propose)


def blurred(agreement: Agreement, clean: Statistics, random_state: Any) -> Statistics:
    """The sums with the noise of as many contributors as the quorum, drawn at once.

    For people: exact discrete Gaussian noise on the agreement's grid, as each of them would have
    drawn it, for all together. Rounding the sums to the grid moves two neighbours apart by no more
    than rounding the records would. For `input` only Σp̃ is drawn so: the noise on q has to be
    Gaussian for the curvature's sake, which no last bit of it decides, and the learner rounds the
    weights. For experiments (a seed): the sampler's own draw.
    """
    found, grid = agreement.calibration, agreement.grid
    if random_state is None and isinstance(found, MomentCalibration):
        diagonal = triangle.on_diagonal(clean.dimension)
        scales = np.where(diagonal, found.sigma_m, found.sigma_m / math.sqrt(2))
        quadratic = exactly(triangle.pack(clean.gram), scales, grid.quadratic)
        linear = exactly(clean.moment, found.sigma_p, grid.linear)
        return Statistics(
            clean.count, triangle.unpack(quadratic, clean.dimension), linear, agreement.fingerprint
        )
    drawn = sampler_for(found, clean).draw(generator_for(random_state))
    if random_state is None and isinstance(found, InputCalibration):
        step = max(grid.dither, power_of_two_below(found.sigma_b) * 2.0**-40)
        drawn = Statistics(clean.count, drawn.gram, exactly(clean.moment, found.sigma_b, step))
    return drawn.under(agreement.fingerprint)


def exactly(sums: AnyArray, scale: npt.ArrayLike, step: float) -> AnyArray:
    """Sums to the grid, and exact noise on it."""
    return noise.add(noise.to_grid(sums, step, toward_zero=False), scale, step)


def free_name(given: object, taken: Sequence[str]) -> str:
    """The given name, or "target" if it is none; underscored until no feature has it."""
    name = given if isinstance(given, str) and given else "target"
    while name in taken:
        name += "_"
    return name
