"""What wave 1 says of made-up people, nearly without noise: for tests of what comes after it."""

import numpy as np
from scipy.special import expit

from blurfit.learning.beliefs import Belief, first_belief
from blurfit.learning.shrinkage import linear_bayes
from blurfit.learning.sums import JointSums
from blurfit.theory.forms import JointColumn
from support.joint_sums import clean_sums

QUIET = 1e-6


def belief_of(v: np.ndarray, y: np.ndarray, task, count_bound=None, noise: float = QUIET) -> Belief:
    """What wave 1 says, nearly without noise."""
    columns = [JointColumn(f"v{j}", 0.4) for j in range(v.shape[1])]
    columns.append(JointColumn("y", 0.5, "sign" if task == "label" else "numeric"))
    sums = JointSums(
        tuple(columns), 0.4, len(v), clean_sums(columns, 0.4, np.column_stack([v, y])), noise
    )
    chosen = sums.submodel("y")
    return first_belief(chosen, linear_bayes(chosen), task, count_bound)


def features(generator: np.random.Generator, n: int, p: int = 3) -> np.ndarray:
    mixing = np.tril(np.full((p, p), 0.05), -1) + np.diag(np.linspace(0.1, 0.3, p))
    return np.clip(generator.normal(size=(n, p)) @ mixing.T + 0.1, -1, 1)


def labels(generator: np.random.Generator, v: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return np.where(generator.random(len(v)) < expit(beta[0] + v @ beta[1:]), 1.0, -1.0)
