"""What a set of submissions comes to, once and for ever; and why an agreement has one set.

**One agreement, one set.** Let R(S) be what the release of a set S shows: the blurred sums for
`moment`, the weights for `input`. The promise is about R(S), and holds for whatever anyone computes
from it (post-processing; Dwork and Roth 2014, Proposition 2.1): further models of the same sums are
free. It says nothing about a pair R(S), R(S') with S' ≠ S. The noise of everyone in both sets is
*the same* in both, so it cancels: for S' = S ∪ {i} and `moment`, R(S') − R(S) is i's own
submission, which her noise alone protects. Composition theorems are of no help here: they are
about fresh noise.

So a second release is allowed only if it shows what the first one showed. `Release.mark` is the
SHA-256 of that, and two releases with equal marks have R(S') = R(S), up to a collision. Then the
pair is a function of R(S), and the promise holds for it as it held for R(S) alone. That the marks
differ is told to whoever holds the submissions, and to nobody else.

The right to the first release is in one place at a time, and is used once:

| what happens | who may release then |
| --- | --- |
| a store collects, or is closed | the store |
| it publishes | nobody, unless with the same mark, which every file that it exports carries |
| it exports, unpublished | whoever has the file; the store never publishes, nor exports again |
| a model is learned from files | nobody, unless from files of the same contents: receipts tell |
| a backup is restored | the original; or the restored store, if the original is lost |

By induction over these steps there is at most one set for each store and everything exported from
it. Receipts are beside the files and in what the account remembers, so files may be moved or
renamed. **A copy is enough to break this**: nothing tells two copies of a store from each other, or
what somebody learns from a copy of a file under another account, on another machine, or with its
rows in a new file. Where the database adds noise of its own, such a copy of the *same* set is
enough, since whoever learns from it draws that noise anew: what k of them release has its variance
divided by k.

**Refused for ever.** If the sums allow no model (for `input` an event that the guarantee excludes),
that is the outcome, and there will be no other: to try again with a few more would be a second
release. Below the quorum nothing has been shown, and more may come.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BelowQuorumError, BlurfitError, InfeasibleError
from blurfit.learning.sums import Totals
from blurfit.model.learner import learn, moments_of
from blurfit.model.moments import WITHOUT_PUBLIC_ROWS, PublishedMoments
from blurfit.model.published import PublishedModel
from blurfit.model.published_file import as_text

ALIKE, ALIKE_IF_SAMPLED = 1e-6, 0.1  # how far two machines may be apart in one model's numbers

WITHOUT_A_MODEL = (
    "A wave is published as its sums, and has no model of its own: learn from all releases of its "
    "plan together, with blurfit.model.course.learn_plan."
)


@dataclass(frozen=True)
class Release:
    """The text of a model, for `moment` that of its sums; or why there will never be one."""

    model: str | None = None
    moments: str | None = None
    refusal: str | None = None

    @classmethod
    def of(
        cls, agreement: Agreement, totals: Totals, *, sums_alone: bool = False, held: bool = False
    ) -> "Release":
        """Learn, or find that there is no model; below the quorum an error is raised.

        A later wave's sums are published without a model of their own: `blurfit.model.course`
        learns from all releases of the plan. So are a first wave's with `sums_alone`, and products
        with the target alone, from which models follow beside public rows. `held` says that
        somebody held records among them.
        """
        beside = agreement.sends != "everything"
        if agreement.is_later_wave or sums_alone or beside:
            agreement.verify()
            moments = moments_of(agreement, totals, held=held).to_json()
            reason = WITHOUT_PUBLIC_ROWS if beside else WITHOUT_A_MODEL
            return cls(moments=moments, refusal=reason)
        try:
            model = learn(agreement, totals, allow_unproved=True, held=held).to_json()
        except BelowQuorumError:
            raise
        except BlurfitError as error:
            return cls(refusal=str(error))
        if agreement.mechanism == "input":
            return cls(model)
        return cls(model, moments_of(agreement, totals, held=held).to_json())

    def text(self) -> str:
        """The model's text, always the same bytes; an error where there is none."""
        if self.model is None:
            shown = "The sums are published, and are not a model. " if self.moments else ""
            raise InfeasibleError(shown + (self.refusal or "There is no model."))
        return self.model

    def shown(self) -> str:
        """What whoever publishes gets: the model's text, or that of sums that have none of their
        own, as under `sends="targets"`.
        """
        return self.moments if self.model is None and self.moments is not None else self.text()

    def mark(self) -> str:
        """What stands for everything that is shown: two releases with one mark show the same."""
        shown = self.moments
        if shown is None:
            model = PublishedModel.from_json(self.text())
            weights = (model.weights + 0.0).tolist()  # without the sign of a zero
            shown = json.dumps([model.fingerprint, model.count, weights])
        return hashlib.sha256(shown.encode()).hexdigest()

    def follows(self, agreement: Agreement, count: int) -> bool:
        """Whether these are moments of so many people under an agreement, and their model if they
        have one of their own.

        Up to rounding, which differs from machine to machine: see `alike`.
        """
        if self.moments is None:
            return False
        shown = PublishedMoments.from_json(self.moments)
        if (shown.fingerprint, shown.count) != (agreement.fingerprint, count):
            return False
        if self.model is None or agreement.sends != "everything":  # then they have none
            wanted = self.model is None and agreement.sends != "everything"
            return wanted and shown.to_json() == self.moments
        if shown.to_json() != self.moments:
            return False
        draws = agreement.database_draws
        again = learn(agreement, Totals(count, shown.sums, shown.fingerprint, draws))
        return is_model(self.model, again)


def is_model(text: str, again: PublishedModel) -> bool:
    """Tell whether a text is that of a model which was learned again, as blurfit writes it, but for
    rounding.
    """
    found, document = PublishedModel.from_json(text), json.loads(text)
    is_plain = as_text(document) == text and _alike(document, json.loads(found.to_json()))
    return is_plain and alike(found, again)


def alike(stated: PublishedModel, again: PublishedModel) -> bool:
    """Whether a model is the one that was learned again from the same sums, but for rounding.

    Machines round differently, so numbers may differ by `ALIKE` of themselves. Where noise
    dominates, weights are found by sampling (`blurfit.learning.shrinkage`), and another
    rounding takes another path: there they are compared to a tenth. No promise depends on it: the
    sums are public.
    """
    one, other = stated.to_dict(), again.to_dict()
    if "posterior" in again.method and stated.weights.shape == again.weights.shape:
        apart = float(np.abs(stated.weights - again.weights).max())
        if apart > ALIKE_IF_SAMPLED * (1 + float(np.abs(again.weights).max())):
            return False
        one |= {name: other[name] for name in ("weights", "coefficients")}
    return _alike(one | {"software": None}, other | {"software": None})


def _alike(one: Any, other: Any) -> bool:
    """Whether two plain values are equal but for the rounding of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=ALIKE, abs_tol=1e-9)
    return bool(one == other)
