"""Joint moments in one process: releases of blurred sums, and the model of their target.

The rows are summed in one pass, the sums are blurred exactly, and `PublishedMoments` is what leaves
(`releases_`: one, or one for each wave of a plan, `blurfit.estimators.row_waves`). Everything after
that is post-processing. All classes of a label are columns of one release, so that no budget is
divided among them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.grid import DISCRETE_SHARE
from blurfit.agreement.plan import Plan
from blurfit.arrays import AnyArray
from blurfit.budget import Expense, spend
from blurfit.errors import InfeasibleError
from blurfit.estimators.base import (
    PerturbationEstimator,
    Signal,
    agree,
    blur_each,
    blurred,
    require_room,
)
from blurfit.estimators.one_pass import joint_totals
from blurfit.estimators.row_waves import collect, later_totals, plan_for, refuse_waves
from blurfit.estimators.rows import read_rows, records, refuse_outside, refuse_unless_binary
from blurfit.learning.public_features import Family
from blurfit.learning.sums import Totals
from blurfit.model.course import learn_plan
from blurfit.model.learner import moments_of
from blurfit.model.moments import PublishedMoments
from blurfit.model.public_fitting import fit_public
from blurfit.model.published import PublishedModel
from blurfit.schema.columns import Feature
from blurfit.schema.schema import Schema
from blurfit.schema.vectors import kind_of
from blurfit.simulation.entropy import generator_for
from blurfit.theory.forms import JointForm
from blurfit.theory.gaussian import mu_of
from blurfit.theory.moments import MomentCalibration
from blurfit.theory.planning import public_weights


@dataclass(kw_only=True, eq=False, repr=False)
class MomentPerturbation(PerturbationEstimator):
    """Blurs the products of all columns, the target's among them; publishes `moments_`."""

    mechanism = "moment"

    public_X: Any = None  # noqa: N815 - as scikit-learn writes tables
    waves: int | Literal["auto"] = "auto"

    def agreement_for(self, schema: Schema, rows: int) -> Agreement:
        """The contract under which a fit in one wave to this many rows blurs them."""
        weights = {} if self.public_X is None else self._weights_for_public_rows(schema, rows)
        return agree(schema, quorum=rows, **self._promise(), **weights)

    def plan_for(self, schema: Schema, rows: int) -> Plan | None:
        """The waves of a fit to this many rows of this schema; None if there is only one."""
        if self.public_X is not None:
            refuse_waves(self.waves, "public_X")
            return None
        counts = self._family() == "poisson"
        return plan_for(schema, rows, self.waves, counts=counts, **self._promise())

    def _promise(self) -> dict[str, Any]:
        names = ("epsilon", "delta", "neighbours", "local_epsilon", "local_delta")
        return {name: getattr(self, name) for name in names}

    def _weights_for_public_rows(self, schema: Schema, rows: int) -> dict[str, Any]:
        """c, ω and the target's b = R, which make the noise on Σyx smallest.

        With x = (c, ωv) of length at most R, the noise on an entry of Σyx is (R² + b²)/(bμ) over
        the column's own weight, least at b = R: 2R/μ, as if nothing else were released. The others
        share R as columns of a regression do; the constant is one more of them, of spread 1.
        """
        kinds = [kind_of(feature) for feature in schema.features]
        mu = mu_of(self.epsilon, self.delta)
        *features, constant = public_weights([*kinds, "sign"], rows, mu).features
        radius = math.sqrt(math.fsum(weight**2 for weight in (*features, constant)))
        names = [feature.name for feature in schema.features]
        weights = dict(zip(names, features, strict=True)) | {schema.target.name: radius}
        return {"constant": constant, "weights": weights}

    def _family(self) -> Family | None:
        """What the public rows are read for."""
        return None

    def _learn(
        self,
        values: AnyArray,
        columns: tuple[Feature, ...],
        signals: Sequence[Signal],
        caveats: tuple[str, ...],
    ) -> list[PublishedModel]:
        (signal,) = signals
        public = None
        if self.public_X is not None:  # refused before anything is spent
            rows, _, _ = read_rows(self, self.public_X, reset=False)
            refuse_unless_binary(rows, columns)
            for place, column in enumerate(columns):
                refuse_outside(rows[:, place], column)
            public = records(rows, columns)
        schema = Schema(columns, signal.target, targets=self._targets(signal, columns))
        self.plan_ = self.plan_for(schema, len(values))
        self.releases_ = self._releases(schema, values, signal, caveats)
        self.moments_ = self.releases_[0]
        if self.plan_ is not None:
            return [learn_plan(self.plan_, self.releases_)]
        if public is None:
            return [self.moments_.fit()]
        try:
            model, self.balance_ = fit_public(self.moments_, public, family=self._family())
        except InfeasibleError as error:
            raise InfeasibleError(
                f"{error} The release has been made and stands: moments_.fit() learns from it "
                "without public rows."
            ) from error
        return [model]

    def _releases(
        self, schema: Schema, values: AnyArray, signal: Signal, caveats: tuple[str, ...]
    ) -> tuple[PublishedMoments, ...]:
        """All that leaves: spent for first, and once, then blurred."""
        random = self._seeded()

        def release(agreement: Agreement, rows: AnyArray, part: Signal) -> PublishedMoments:
            if self.per_record:
                sent = blur_each(agreement, rows, schema.features, part)
                totals = Totals(len(rows), sent.numbers.sum(axis=0), agreement.fingerprint)
            else:
                require_room(agreement, len(rows))  # of later waves, before rows are looked at
                totals = blurred(agreement, clean_totals(agreement, rows, part), random)
            return replace(moments_of(agreement, totals, held=True), caveats=caveats)

        if self.plan_ is None:
            agreement = self.agreement_for(schema, len(values))
            self._spend(agreement, len(values))
            return (release(agreement, values, signal),)
        self._spend(self.plan_.first(), len(values))
        lot = generator_for(None) if random is None else random
        return collect(self.plan_, values, signal, lot, release)

    def _spend(self, agreement: Agreement, rows: int) -> None:
        """μ, once for all waves: everybody is in one of them (`blurfit.estimators.row_waves`)."""
        found = agreement.calibration
        assert isinstance(found, MomentCalibration)
        if not self.per_record:
            require_room(agreement, rows)
        # A local target may raise the noise of one wave and not of another: what none exceeds.
        mu = found.mu if self.plan_ is None else self.plan_.mu
        # Of the thousandth of δ that is kept back for discrete noise less than a tenth is used
        # (`blurfit.agreement.grid`); half of it is counted.
        kept_back = DISCRETE_SHARE / 2 * agreement.delta
        what = f"{type(self).__name__} of {rows:,} rows"
        spend(Expense(what, mu=mu, delta=kept_back), found.model.neighbours)

    def _targets(self, signal: Signal, columns: Sequence[Feature]) -> tuple[str, ...]:
        """What may be predicted from the release: as the schema says, if there is one; else all."""
        if not isinstance(self.bounds, Schema):
            return ()
        names = {signal.target.name, *(column.name for column in columns)}
        return tuple(name for name in self.bounds.targets if name in names)


def clean_totals(agreement: Agreement, values: AnyArray, signal: Signal) -> Totals:
    """The sums of what the rows would send, in one pass and before any noise."""
    form = agreement.form
    if not isinstance(form, JointForm):
        return later_totals(agreement, values, signal)
    sums = joint_totals(values, signal.encoded, agreement.schema.features)
    scale = np.array([form.constant, *(column.weight for column in form.columns)])
    matrix = sums.matrix(len(values)) * np.outer(scale, scale)
    return Totals(len(values), form.take(matrix), agreement.fingerprint)
