"""Input perturbation in one process: records are blurred themselves, and one model is published."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import AnyArray
from blurfit.budget import Expense, spend
from blurfit.estimators.base import (
    PerturbationEstimator,
    Signal,
    agree,
    blur_each,
    blurred,
    require_room,
)
from blurfit.estimators.defaults import DEFAULT_SPLIT, public_ball
from blurfit.estimators.guarantee import gaussian_share, share
from blurfit.estimators.one_pass import JointTotals, joint_totals
from blurfit.learning.sums import Statistics, Totals
from blurfit.model.learner import learn
from blurfit.model.published import PublishedModel
from blurfit.schema.columns import Feature
from blurfit.schema.schema import Schema
from blurfit.simulation.sampler import input_totals
from blurfit.theory.guarantees import Rule
from blurfit.theory.input_calibration import InputCalibration


@dataclass(kw_only=True, eq=False, repr=False)
class InputPerturbation(PerturbationEstimator):
    """Blurs q and p, as in the paper: short messages, one release, more rows than columns."""

    mechanism = "input"
    least_rows = 2

    weight_bound: float | None = None
    fit_intercept: bool = True
    rule: Rule = "certified"
    split: float | None = None

    def agreement_for(self, schema: Schema, rows: int, models: int = 1) -> Agreement:
        """The contract under which a fit to this many rows of this schema blurs them.

        `models` is how many share the promise: one, or one for each of several classes.
        """
        epsilon, delta = share(self.epsilon, self.delta, models)
        local_epsilon, local_delta = self.local_epsilon, self.local_delta
        if models > 1 and local_epsilon is not None and local_delta is not None:
            local_epsilon, local_delta = gaussian_share(local_epsilon, local_delta, models)
        ball = self.weight_bound
        if ball is None:
            ball = public_ball(schema.dimension, rows, epsilon, delta, label=schema.is_label)
        by_default = self.split is None and self.rule == "certified"
        return agree(
            schema,
            epsilon=epsilon,
            delta=delta,
            quorum=rows,
            mechanism=self.mechanism,
            neighbours=self.neighbours,
            local_epsilon=local_epsilon,
            local_delta=local_delta,
            rule=self.rule,
            split=DEFAULT_SPLIT if by_default else self.split,
            weight_bound=ball,
        )

    def _learn(
        self,
        values: AnyArray,
        columns: tuple[Feature, ...],
        signals: Sequence[Signal],
        caveats: tuple[str, ...],
    ) -> list[PublishedModel]:
        schemas = [Schema(columns, signal.target, self.fit_intercept) for signal in signals]
        first = self.agreement_for(schemas[0], len(values), len(signals))
        agreements = [replace(first, schema=schema) for schema in schemas]
        found = first.calibration
        assert isinstance(found, InputCalibration)
        # What is proved of one model's noise; the whole promise, where that is what is proved.
        each = found.kept.epsilon * len(signals)
        if not self.per_record:
            require_room(first, len(values))
        what = f"{type(self).__name__} of {len(values):,} rows"
        proved = self.epsilon if found.model.proved else max(each, self.epsilon)
        spend(Expense(what, epsilon=proved, delta=self.delta), found.model.neighbours)
        if self.per_record:
            collected = [
                sum_of_each(agreement, values, columns, signal)
                for agreement, signal in zip(agreements, signals, strict=True)
            ]
        else:  # the noise of all rows in one draw for each target
            targets = np.hstack([signal.encoded for signal in signals])
            sums, seeded = joint_totals(values, targets, columns), self._seeded()
            collected = [
                blurred(agreement, clean_totals(agreement, sums, len(values), place), seeded)
                for place, agreement in enumerate(agreements)
            ]
        return [
            replace(
                learn(agreement, totals, allow_unproved=True, held=True),
                caveats=caveats,
                models=len(signals),
            )
            for agreement, totals in zip(agreements, collected, strict=True)
        ]


def sum_of_each(
    agreement: Agreement, values: AnyArray, columns: tuple[Feature, ...], signal: Signal
) -> Totals:
    """The sums of rows that are blurred one by one."""
    sent = blur_each(agreement, values, columns, signal).numbers
    d = agreement.schema.dimension
    return input_totals(agreement, Statistics.of_records(sent[:, :d], sent[:, d:]))


def clean_totals(agreement: Agreement, sums: JointTotals, count: int, target: int) -> Totals:
    """A and c of one target before any noise: the schema's x is s·(v, 1), s = 1/√m.

    q = R_q·x and p = κy·x with what the loss says: ∑qqᵀ = R_q²·Σxxᵀ, Σp = R_p·Σyx.
    """
    schema, loss = agreement.schema, agreement.loss
    gram, moment = sums.gram, sums.cross[:, target]
    if schema.intercept:
        gram = np.block([[gram, sums.total[:, None]], [sums.total[None], np.array([[count]])]])
        moment = np.append(moment, sums.targets[target])
    s = schema.scale
    clean = Statistics(count, loss.q_bound**2 * s**2 * gram, loss.p_bound * s * moment)
    return input_totals(agreement, clean)
