"""An agreement for a notebook: a table of its promises, and a picture of them.

Somebody who knows everything but one answer tests two hypotheses about it. If they may be wrong
with probability α where the first is true, then where the second is true they are right with
probability at most

    readers of what is published    min(1, e^ε·α + δ, 1 − e^{−ε}(1 − δ − α))
    whoever sees one submission     Φ(Φ⁻¹(α) + μ)

(Kairouz, Oh, Viswanath 2015; Dong, Roth, Su 2022).

The diagonal is guessing. The nearer a curve is to it, the less can be told.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from blurfit.agreement.promises import caveats_of
from blurfit.arrays import FloatArray
from blurfit.notebook import html_table
from blurfit.optional import axes
from blurfit.theory.guarantees import at_most

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement


def readers_power(alpha: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """The best chance to be right about the second hypothesis, from an (ε, δ)-private release.

    >>> readers_power(np.array([0.0, 0.5]), 0.0, 0.0).tolist()
    [0.0, 0.5]
    """
    far = 1 - np.exp(-epsilon) * (1 - delta - alpha)
    found: FloatArray = np.clip(np.minimum(np.exp(epsilon) * alpha + delta, far), 0, 1)
    return found


def submission_power(alpha: FloatArray, mu: float) -> FloatArray:
    """The best chance to be right about the second hypothesis, from one μ-GDP submission."""
    found: FloatArray = ndtr(ndtri(alpha) + mu)
    return found


def as_html(agreement: "Agreement") -> str:
    """What is asked, sent and promised, as a table for a notebook."""
    local, caveats = agreement.calibration.local, caveats_of(agreement)
    numbers = f"ε = {at_most(agreement.epsilon, 6)}, δ = {at_most(agreement.delta, 6)}"
    promised = [
        ("what is published", numbers),
        ("needs", f"{agreement.honest:,} honest contributors"),
        (_seen(agreement), f"μ ≤ {at_most(local.mu)}, ε ≤ {at_most(local.epsilon)}"),
    ]
    rows = [
        ("asked", ", ".join(one.name for one in agreement.schema.questions)),
        ("sent", f"{agreement.width:,} blurred numbers a person, once ({agreement.mechanism})"),
        *([("nothing is promised", " ".join(caveats))] if caveats else promised),
        ("fingerprint", agreement.fingerprint),
    ]
    return html_table(["agreement", ""], rows)


def _seen(agreement: "Agreement") -> str:
    """Who sees a whole submission."""
    return "one submission" if agreement.trust == "one" else "both databases together"


def plot(agreement: "Agreement", ax: Any = None) -> Any:
    """Draw both curves into `ax`, or into a figure of its own; the axes are returned."""
    ax = axes(ax, 5, 5)
    alpha = np.linspace(0, 1, 501)
    local, caveats = agreement.calibration.local, caveats_of(agreement)
    ax.plot(alpha, alpha, color="grey", linestyle=":", label="guessing")
    if not caveats:
        submission = f"{_seen(agreement)}, μ ≤ {at_most(local.mu, 3)}"
        ax.plot(alpha, submission_power(alpha, local.mu), label=submission)
        numbers = f"ε = {at_most(agreement.epsilon, 6)}, δ = {at_most(agreement.delta, 6)}"
        readers = readers_power(alpha, agreement.epsilon, agreement.delta)
        ax.plot(alpha, readers, label=f"what is published, {numbers}")
    ax.set(
        xlim=(0, 1),
        ylim=(0, 1),
        aspect="equal",
        xlabel="wrong, if the answer is the first",
        ylabel="right, if it is the second, at most",
        title="Nothing is promised"
        if caveats
        else "How well one answer could be told from another",
    )
    ax.legend(loc="lower right", fontsize="small")
    return ax
