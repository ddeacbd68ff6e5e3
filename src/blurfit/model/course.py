"""From the releases of a plan to its model, and to the agreement of its next wave.

Everything here follows from published sums, so anybody can do it: `learn_plan` reads the releases
of a plan's waves; `next_agreement` is what the database announces, and `follows` a contributor's
check of it.

**What `follows` checks.** The marks (SHA-256) of the releases that the agreement names are those of
the releases at hand; the agreement states what the plan states (`Plan.require`), and its noise
keeps the promise (`Agreement.verify`). Nothing is computed a second time to be compared: machines
round differently. In particular *the map is taken as it is announced*. The privacy of the people in
its wave does not rest on it: `Agreement.verify` finds the noise sufficient for any map whatever
(`blurfit.theory.forms`), and every submission carries the fingerprint of the map, so none of a
wave's submissions is older than its map. Whoever announces a bad map gets a bad model, and learns
nothing more about anybody. What readers learn of *earlier* people from a map is nothing only if it
was made of published sums, which is the announcer's word: the statement lists it among what is
assumed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import kept_columns, model_columns
from blurfit.agreement.plan import Agreed, HeldWaves, Plan
from blurfit.errors import (
    BlurfitError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
)
from blurfit.learning.beliefs import Belief, first_belief
from blurfit.learning.inference import Inference, estimates_apart, infer
from blurfit.learning.shrinkage import linear_bayes
from blurfit.learning.sums import Submodel, crowded_bound
from blurfit.learning.wave_inference import held_places, wave_estimates
from blurfit.learning.waves import WaveSums, learn_wave, next_map, on_curve
from blurfit.model.model import Link, PublishedModel, WaveShare, coefficient_places
from blurfit.model.release import PublishedMoments
from blurfit.schema.schema import units
from blurfit.theory.forms import WaveForm
from blurfit.theory.maps import WaveMap
from blurfit.wording import Message, message_of

Waves = Plan | HeldWaves  # of different people, or of all rows each
Releases = Sequence[PublishedMoments]

WRONG_SUMS = (BlurfitError, ArithmeticError, ValueError)  # what sums can be: too large, singular, …


@contextmanager
def _taught() -> Iterator[None]:
    """Refuse sums that no people have, even with their noise: then no model follows from them."""
    try:
        yield
    except BlurfitError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise InfeasibleError(
            "These releases teach nothing: their sums are like those of no people. Were they "
            "changed, or did many contributors lie?"
        ) from error


@dataclass(frozen=True, eq=False)
class Course:
    """The waves so far: each release was checked to be of the next wave.

    What was agreed is a plan, or an agreement, which is a course of one wave.
    """

    agreed: Agreed | HeldWaves
    releases: tuple[PublishedMoments, ...] = ()
    known: tuple[Belief, ...] = ()  # after the first of them, as far as they were asked for

    @classmethod
    def of(cls, agreed: Agreed | HeldWaves, releases: Releases = ()) -> "Course":
        """Follow what was agreed through its releases; one that does not follow is refused."""
        course = cls(agreed)
        for release in releases:
            course = course.then(release)
        return course

    @property
    def plan(self) -> Waves:
        """The plan of several waves."""
        if isinstance(self.agreed, Agreement):
            raise InvalidValueError("Expected a plan: an agreement has no other wave.")
        return self.agreed

    @property
    def marks(self) -> tuple[str, ...]:
        """The SHA-256 of each release."""
        return tuple(release.mark for release in self.releases)

    @cached_property
    def beliefs(self) -> tuple[Belief, ...]:
        """What is believed after each release, learned when it is first asked for."""
        found = list(self.known)
        for release in self.releases[len(found) :]:
            if not found:
                found.append(_first(self.plan, release))
            else:
                found.append(learn_wave(found[-1], _chart_of(release), wave_sums(release)))
        return tuple(found)

    @_taught()
    def next_agreement(self) -> Agreement:
        """The agreement of the wave that comes now."""
        if not self.releases:
            return self.agreed.first()
        return self.agreed.following(self.marks, self._chart())

    def require(self, agreement: Agreement) -> None:
        """Refuse an agreement that is not the next one: see the module's docstring."""
        self.agreed.require(agreement)
        wave = None if isinstance(self.agreed, Agreement) else agreement.wave
        follows = () if wave is None else wave.follows
        if follows != self.marks:
            raise NotCertifiedError(
                "Expected wave {releases_count}, which follows the releases "
                "{marks}, and got wave {follows_count} after "
                "{follows}. Ask for the releases that it follows.",
                releases_count=len(self.releases) + 1,
                marks=[mark[:12] for mark in self.marks],
                follows_count=len(follows) + 1,
                follows=[mark[:12] for mark in follows],
            )

    def then(self, release: PublishedMoments) -> "Course":
        """The course with one more release."""
        self.require(release.agreement)
        known = self.__dict__.get("beliefs", self.known)
        return Course(self.agreed, (*self.releases, release), known)

    @_taught()
    def model(self) -> PublishedModel:
        """Return the model after the waves so far: all of them, or fewer if it ended early.

        A number has a line, a label log-odds, a count a log rate after a Newton wave and a line
        before. Standard errors are those of the last wave's own estimand
        (`blurfit.learning.wave_inference`), or there is a reason why not.
        """
        if not self.releases:
            raise InvalidValueError("Expected at least the first wave's release.")
        return self.releases[0].fit() if len(self.agreed) == 1 else _model(self)

    def best_model(self) -> tuple[PublishedModel | None, Message | None]:
        """Return the model of as many waves as allow one, or why there is none."""
        refusal = Message("no wave was released.")
        for waves in range(len(self.releases), 0, -1):
            known = self.__dict__.get("beliefs", self.known)[:waves]
            fewer = waves < len(self.releases)
            course = Course(self.agreed, self.releases[:waves], known) if fewer else self
            try:
                return course.model(), None
            except WRONG_SUMS as error:
                refusal = message_of(error)
        return None, refusal

    def _chart(self) -> WaveMap:
        place = len(self.releases)
        if place >= len(self.agreed):
            raise InvalidValueError(
                "Expected fewer than {agreed_count} releases: there is no wave after them.",
                agreed_count=len(self.agreed),
            )
        kind, quorum = self.plan.kinds[place], self.plan.quorums[place]
        last, belief, mu = place == len(self.plan) - 1, self.beliefs[-1], self.plan.mus[place]
        held, repeated = isinstance(self.plan, HeldWaves), self.releases[0].agreement.diaries
        return next_map(belief, kind, quorum, mu, last=last, held=held, repeated=repeated)


def next_agreement(agreed: Agreed | HeldWaves, releases: Releases) -> Agreement:
    """Return the agreement of the wave after these releases: the first one's without any."""
    return Course.of(agreed, releases).next_agreement()


def follows(agreed: Agreed | HeldWaves, releases: Releases, agreement: Agreement) -> None:
    """Refuse an agreement that does not follow from the plan and the releases, or whose noise does
    not keep its promise. A contributor calls it before she answers anything.
    """
    agreement.verify()
    Course.of(agreed, releases).require(agreement)


def learn_plan(agreed: Agreed | HeldWaves, releases: Releases) -> PublishedModel:
    """Return the model after the waves so far: see `Course.model`."""
    return Course.of(agreed, releases).model()


def _model(course: Course) -> PublishedModel:
    plan, releases = course.plan, course.releases
    belief = course.beliefs[-1]
    if belief.task == "label":
        belief = on_curve(belief)
    link: Link = "linear" if belief.line else "logistic" if belief.task == "label" else "log"
    inference, fixed, refusal = _wave_inference(course)
    held = any(release.held for release in releases)  # then nobody contributed who could lie
    schema = plan.schema
    weights = np.zeros((1, 1 + len(model_columns(schema))))  # 0 for last levels
    weights[0, coefficient_places(schema)] = belief.coefficients
    whole = plan.in_all if isinstance(plan, HeldWaves) else None  # every row is in every wave
    return PublishedModel(
        agreement=whole or releases[-1].agreement,
        target=schema.target.name,
        features=schema.default_predictors(schema.target.name),
        weights=weights,
        count=releases[-1].count if whole else sum(release.count for release in releases),
        method=_method(plan, releases),
        link=link,
        inference=inference,
        refusal=refusal,
        transform=_chart_of(releases[-1]).to_dict() if inference else None,
        fixed=fixed,
        disagreeing=None if held else _disagreeing(course),
        crowded=crowded_bound(releases[0].joint, schema.target),
        software=releases[-1].software,
        caveats=tuple(dict.fromkeys(one for release in releases for one in release.caveats)),
        held=held,
        releases=len(releases) if whole else 1,
        waves=() if whole else tuple(WaveShare.of(one.count, one.agreement) for one in releases),
    )


def _method(plan: Waves, releases: Sequence[PublishedMoments]) -> str:
    kinds = plan.kinds[: len(releases)]
    if isinstance(plan, Plan):
        return f"waves: {', '.join(kinds)}"
    shares = zip(kinds, plan.fractions, strict=False)
    told = ", ".join(f"{kind} {share:.0%}" for kind, share in shares)
    return f"waves of all rows, which share μ²: {told}"


def wave_sums(release: PublishedMoments) -> WaveSums:
    """A later wave's release as `blurfit.learning.waves` reads it."""
    form = release.agreement.form
    if not isinstance(form, WaveForm):
        raise InvalidValueError("Expected the release of a later wave, and got a first one's.")
    return WaveSums(
        release.count,
        form.matrix(release.sums, release.count),
        form.linear(release.sums),
        release.deviation,
        form.squares(release.sums),
    )


def _first(plan: Waves, release: PublishedMoments) -> Belief:
    """Return linear Bayes of the joint sums: quick, and good enough for a start."""
    sums = _joint_sums(plan, release)
    return first_belief(sums, linear_bayes(sums), plan.task, plan.count_bound)


def _chart_of(release: PublishedMoments) -> WaveMap:
    wave = release.agreement.wave
    assert wave is not None and wave.chart is not None  # noqa: PT018 - `require` has seen to it
    return wave.chart


def _wave_inference(
    course: Course,
) -> tuple[tuple[Inference, ...], tuple[int, ...], str | None]:
    """Return the last wave's errors in the user's units, and which of its coefficients were held;
    or why there are none.
    """
    plan = course.plan
    if len(course.releases) == 1:
        return (), (), "The plan ended after its first wave; fit its release for standard errors."
    last = _last(course, -1)
    try:
        found = wave_estimates(*last)
    except InfeasibleError as error:
        return (), (), str(error)
    belief = course.beliefs[-1]
    if belief.line:
        found = replace(found, r_squared=belief.explained)
    names = plan.schema.default_predictors(plan.schema.target.name)
    told = units(plan.schema, plan.schema.target.name, names, log_odds=not belief.line)
    in_units = found.in_units(told, coefficient_places(plan.schema))
    return (in_units,), held_places(last[1], found), None


def _joint_sums(plan: Waves, release: PublishedMoments) -> Submodel:
    """Return a first wave's sums, without last levels."""
    kept = [plan.schema.columns[place] for place in kept_columns(plan.schema)]
    return release.joint.submodel(plan.schema.target.name, kept)


def _last(course: Course, place: int) -> tuple[Belief, WaveMap, WaveSums]:
    """Return what a wave's estimates of one column are made of."""
    release = course.releases[place]
    chart = _chart_of(release)
    return course.beliefs[place - 1], chart, wave_sums(release)


def _disagreeing(course: Course) -> tuple[int, int] | None:
    """Return two waves that have the same coefficients and differ by more than chance, if any do.

    A first wave and residual waves tell those of a line, Newton's those of a curve.
    """
    told: dict[bool, tuple[int, Inference]] = {}
    for place, release in enumerate(course.releases):
        try:
            found = _estimates(course, place)
        except InfeasibleError:
            continue
        curve = isinstance(release.agreement.form, WaveForm) and release.agreement.form.is_newton
        before, told[curve] = told.get(curve), (place, found)
        if before is not None and estimates_apart(before[1], found):
            return before[0] + 1, place + 1
    return None


def _estimates(course: Course, place: int) -> Inference:
    """Return what one wave tells, of (1, v) without last levels."""
    if place == 0:
        return infer(_joint_sums(course.plan, course.releases[0]))
    return wave_estimates(*_last(course, place))
