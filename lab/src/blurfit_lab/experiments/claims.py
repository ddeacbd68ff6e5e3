"""What the paper claims and does not show: its rate, its noise and its local ε.

* risk: the excess empirical risk J(w) − J(ŵ) of least squares against n, beside Theorem 2's 1/n.
* noise: σ_u, σ_b, certified excess risk and a submission's exact ε against Corollary 1's, which is
  for ε < 1 only: from public facts alone.
* target: the error if a submission, too, must keep ε_l, with and without debiasing.
"""

from dataclasses import dataclass
from typing import Any

from blurfit.agreement.agreement import Agreement
from blurfit.estimators.mechanisms import DEFAULT_SPLIT, public_ball
from blurfit.theory.gaussian import mu_of
from blurfit.theory.input_calibration import calibrate
from blurfit.theory.moments import Reach, calibrate_moment, sensitivity
from blurfit.theory.planning import public_weights
from blurfit_lab.experiments.cohort import Cohort
from blurfit_lab.experiments.figures import (
    DELTA,
    INPUT,
    MOMENT,
    NO_PRIVACY,
    OBJECTIVE,
    PUBLISHED_INPUT,
    QUORUMS,
    Promise,
    agreement,
    from_sums,
    least_squares,
    minimised,
    perturbed,
    squared_risk,
)
from blurfit_lab.experiments.runner import Row, cell_names, numbers_of, seeded
from blurfit_lab.rivals import GradientPerturbationRegressor

GRADIENT = "gradient (modern accounting)"
EPSILONS = (0.1, 1.0)
LOCAL_TARGETS = (1.0, 2.0, 4.0, 8.0, 16.0)
DEBIASED, BIASED = "input, debiased", "input, not debiased"


@dataclass(frozen=True)
class ExcessRisk:
    """Mean of ½(y − w·x)² over the training rows, above its least value."""

    name: str = "risk"
    quorums: tuple[int, ...] = QUORUMS

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """ε:n:trials."""
        return cell_names(population, EPSILONS, self.quorums, trials)

    def compute(self, population: Cohort, cell: str, known: Any) -> list[Row]:  # noqa: ARG002
        """From the sums alone."""
        epsilon, n, trials = numbers_of(cell)
        promise, rows = Promise(epsilon, DELTA), []
        for trial in range(trials):
            window = population.window(n, trial)
            sums = population.training_sums(window)
            least = sums.mean_squared_error(least_squares(sums)) / 2
            for line in (OBJECTIVE, PUBLISHED_INPUT, INPUT, MOMENT, GRADIENT):
                drawn = seeded(population.seed, f"{cell} {line}", trial)
                if line == OBJECTIVE:
                    risk = squared_risk(sums)
                    (weights,) = minimised(risk, [perturbed(line, risk, promise, None, drawn)])
                elif line == GRADIENT:
                    rival = GradientPerturbationRegressor(epsilon=epsilon, delta=DELTA)
                    weights = rival.release(squared_risk(sums), drawn)
                else:
                    contract = agreement(line, population, promise, n, label=False)
                    weights = from_sums(contract, sums, None, drawn, label=False)
                excess = sums.mean_squared_error(weights) / 2 - least
                rows.append(Row(line, "", epsilon, n, trial, excess))
        return rows


@dataclass(frozen=True)
class PublicNumbers:
    """Noise and local ε as calibrated for d = 14, R_q = R_p = η = 1 (input), and for 13 numbers and
    their target (moment): no data.
    """

    name: str = "noise"
    quorums: tuple[int, ...] = QUORUMS

    def cells(self, population: Cohort, trials: int) -> list[str]:  # noqa: ARG002
        """One."""
        return ["all"]

    def compute(self, population: Cohort, cell: str, known: Any) -> list[Row]:  # noqa: ARG002
        """For each ε and n of the paper."""
        rows = []
        for epsilon in EPSILONS:
            for n in self.quorums:
                common: dict[str, Any] = {"dimension": 14, "quorum": n, "weight_bound": 1.0}
                for line, terms in (
                    (PUBLISHED_INPUT, {"rule": "published"}),
                    (INPUT, {"split": DEFAULT_SPLIT}),
                ):
                    found = calibrate(epsilon, DELTA, q_bound=1.0, p_bound=1.0, **common, **terms)
                    values = {"exact local epsilon": found.local.epsilon}
                    values |= {"sigma_u": found.sigma_u, "sigma_b": found.sigma_b}
                    if found.excess_risk is not None:
                        values["certified excess risk"] = found.excess_risk
                    if found.local_claim is not None:
                        values["Corollary 1"] = found.local_claim.epsilon
                    rows += [Row(line, name, epsilon, n, 0, v) for name, v in values.items()]
                weights = public_weights(["numeric"] * 13, n, mu_of(epsilon, DELTA))
                reach = sensitivity(weights.constant, 1.0)
                joint = calibrate_moment(epsilon, DELTA, reach=Reach(reach, reach), quorum=n)
                values = {"exact local epsilon": joint.local.epsilon, "sigma": joint.sigma}
                rows += [Row(MOMENT, name, epsilon, n, 0, v) for name, v in values.items()]
        return rows


@dataclass(frozen=True)
class LocalTarget:
    """RMSE at model ε = 1 if each submission keeps (ε_l, δ) too."""

    name: str = "target"
    quorums: tuple[int, ...] = (2**15, 2**17, 2**19, 2**21)

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """ε_l:n:trials."""
        return cell_names(population, LOCAL_TARGETS, self.quorums, trials)

    def compute(self, population: Cohort, cell: str, known: Any) -> list[Row]:  # noqa: ARG002
        """Input with and without debiasing, moment, and no privacy at all."""
        target, n, trials = numbers_of(cell)
        d = population.schema.dimension
        ball = public_ball(d, n, 1.0, DELTA, label=False)
        contracts = {
            line: Agreement.propose(
                population.schema,
                epsilon=1.0,
                delta=DELTA,
                quorum=n,
                local_epsilon=target,
                local_delta=DELTA,
                mechanism="moment" if line == MOMENT else "input",
                weight_bound=None if line == MOMENT else ball,
                debias=line != BIASED,
            )
            for line in (DEBIASED, BIASED, MOMENT)
        }
        rows = []
        for trial in range(trials):
            window = population.window(n, trial)
            sums, tested = population.training_sums(window), population.test_sums(window)
            plain = tested.rmse(least_squares(sums))
            rows.append(Row(NO_PRIVACY, f"{target:g}", 1.0, n, trial, plain))
            for line, contract in contracts.items():
                drawn = seeded(population.seed, f"{cell} {line}", trial)
                weights = from_sums(contract, sums, None, drawn, label=False)
                rows.append(Row(line, f"{target:g}", 1.0, n, trial, tested.rmse(weights)))
        return rows
