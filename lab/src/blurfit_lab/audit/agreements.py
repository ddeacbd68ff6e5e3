"""Attack an agreement's own guarantee, on the neighbours that are hardest to hide.

`audit` takes any release, as a function of a dataset and a generator: an estimator's coefficients,
a rival's, your own. `audit_agreement` attacks what an agreement's contributors and database really
do (`blurfit_lab.audit.examination` has the attackers). A mechanism whose audited ε exceeds the
promise is broken (but for 1 − confidence); one whose ε stays below is not proved right by that.

**What the attacker sees.** A record is the numbers that it would send without noise
(`Agreement.exact`). The target's own submission is always blurred by the contributor's code
(`blurfit.contributor.blur.blur`). So are all others where that is affordable; else their noise
comes from the exact sampler, which has the same law. Models are learned by the database's code, by
linear Bayes throughout (`blurfit.simulation`): whichever reading is published, it is made of the
sums alone, which are attacked themselves.

**The neighbours** are answers to the schema's own questions, as far apart as any two that a search
finds. The crowd around them is what lets a single record matter most. (The paper's mechanism has
other worst cases: `blurfit_lab.audit.input_perturbation`.)

**Contributors who lie about what they prove**, in every way that we could think of. Under an
agreement with proofs (`blurfit.agreement.numbers`) two databases believe a share if they find its
proof valid. Here provers do all that the protocol asks for but for one thing, and both databases
verify as they really do. Whatever is believed even once breaks the promise: for an honest
implementation the probability is below 2⁻⁴⁰ for everything that is ever tried.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit import randomness
from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import blur
from blurfit.data import BoolArray, ByteArray, FloatArray, WordArray
from blurfit.errors import InfeasibleError, Progress, silent
from blurfit.learning.sums import Totals
from blurfit.proofs import field
from blurfit.proofs.prio3 import HELPER, LEADER, SEED_BYTES, SEED_WORDS, Prio3, ShortVector, Xof
from blurfit.randomness import to_grid
from blurfit.simulation import weights_of
from blurfit.theory.coded import CodedForm
from blurfit.theory.forms import Form, JointForm, WaveForm
from blurfit.theory.gaussian import epsilon_of
from blurfit_lab.audit import CONFIDENCE, TRIALS
from blurfit_lab.audit.examination import Finding, Findings, Score, along, examine

NUMBERS_AFFORDABLE = 1e7  # are blurred one by one; beyond, the others come from the sampler


@dataclass(frozen=True, eq=False)
class Crowd:
    """Everyone but the target: `honest` records that are zero, and colluders who pull at the sum.

    Colluders send what they like without noise, here numbers that sum to `pull`; they are not among
    the honest, so they do not count for the quorum.
    """

    honest: int
    pull: FloatArray


def submissions(agreement: Agreement, record: FloatArray, trials: int) -> FloatArray:
    """Blur the record anew in each trial: (trials, width). Nobody asks for identifiers."""
    nameless = np.zeros((trials, 16), dtype=np.uint8)
    return blur(agreement, np.tile(record, (trials, 1)), nameless).numbers


def sums(
    agreement: Agreement,
    record: FloatArray,
    crowd: Crowd,
    trials: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Return what the database adds up of the target and the crowd: the sums of `Totals`, in each
    trial.

    A crowd that is not blurred one by one is drawn at once. What the sampler draws are floats,
    whose last bits would betray the target; contributors send multiples of the grid, so its sums
    are rounded to it.
    """
    own = submissions(agreement, record, trials)
    affordable = 0 < crowd.honest * trials * agreement.width <= NUMBERS_AFFORDABLE
    total = own + crowd.pull
    for _ in range(agreement.database_draws):
        total += randomness.database_steps(agreement, trials) * agreement.step
    if affordable:
        others = submissions(agreement, nobody(agreement), crowd.honest * trials)
        return np.asarray(total + others.reshape(trials, crowd.honest, -1).sum(axis=1))
    if crowd.honest:
        scales = math.sqrt(crowd.honest) * noise_scales(agreement)
        drawn = generator.standard_normal(total.shape) * scales
        total += to_grid(drawn, agreement.step, toward_zero=False)
    return total


def models(
    agreement: Agreement,
    record: FloatArray,
    crowd: Crowd,
    trials: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Return the published weights, a row for each trial; a refusal to publish is told by zeros.

    (A refusal is an output too. Nothing else gives weights that are zero to the last bit.)
    """
    found: list[FloatArray | None] = []
    for one in sums(agreement, record, crowd, trials, generator):
        count, draws = max(crowd.honest + 1, agreement.quorum), agreement.database_draws
        totals = Totals(count, one, agreement.fingerprint, draws)
        try:
            found.append(weights_of(agreement, totals).ravel())
        except InfeasibleError:
            found.append(None)
    width = next((len(weights) for weights in found if weights is not None), 1)
    return np.array([np.zeros(width) if weights is None else weights for weights in found])


def noise_scales(agreement: Agreement) -> FloatArray:
    """Return the deviation of the noise on each number of one submission."""
    return np.concatenate([part.deviations for part in agreement.parts])


def nobody(agreement: Agreement) -> FloatArray:
    """Return the record of which all numbers are zero."""
    return np.zeros(agreement.width)


_BETWEEN = np.linspace(-1.0, 1.0, 41)  # values of a number that the search tries
_ROUNDS = 20
_CORNERS = 512  # of which the farthest two are taken


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring collections: a record, the other, and everyone else."""

    name: str
    first: FloatArray
    second: FloatArray
    crowd: Crowd
    of_collections: bool = True  # else of two submissions, which no database blurs


def submission_pairs(agreement: Agreement) -> list[Pair]:
    """For an attacker who sees one submission: any two records are neighbours."""
    zero, (extreme, other) = nobody(agreement), _farthest(agreement)
    alone = Crowd(0, zero)
    opposite = Pair("opposite records", extreme, other, alone, of_collections=False)
    return [opposite, replace(opposite, name="zero and extreme", second=zero)]


def collection_pairs(agreement: Agreement) -> list[Pair]:
    """For one who sees the model or the sums: the quorum met exactly, the others' records zero.

    Where the relation is zero-out, one record of each pair is the zero record.
    """
    zero, (extreme, other) = nobody(agreement), _farthest(agreement)
    crowd = Crowd(agreement.quorum - 1, zero)
    pairs = [Pair("zero and extreme", extreme, zero, crowd)]
    if agreement.calibration.model.neighbours == "replace":
        pairs.insert(0, Pair("opposite records", extreme, other, crowd))
    return pairs


def lying_crowd(agreement: Agreement) -> Pair:
    """Let all others lie: they send what the attacker likes, whose noise she knows. Here it is
    nothing.

    Where a promise counts on honest contributors alone, this breaks it; noise of the database
    keeps it (`blurfit.theory.moments`).
    """
    extreme, other = _farthest(agreement)
    if agreement.calibration.model.neighbours == "zero-out":
        other = nobody(agreement)
    return Pair("all others lie", extreme, other, Crowd(0, nobody(agreement)))


def exact_mu(agreement: Agreement, pair: Pair) -> float:
    """Return μ of this pair, where all that is released is additive Gaussian noise: a submission,
    or moment's sums.

    The distance of the two, coordinate by coordinate in deviations of the noise; the noise of the
    honest crowd adds to the target's own, and that of a database is as much as a quorum's.
    """
    databases = agreement.database_draws if pair.of_collections else 0
    growth = math.sqrt(pair.crowd.honest + 1 + databases * agreement.quorum)
    return float(np.linalg.norm((pair.first - pair.second) / (noise_scales(agreement) * growth)))


def _farthest(agreement: Agreement) -> tuple[FloatArray, FloatArray]:
    """Find two records that are as far apart as any in the noise's geometry: an extreme one
    first.

    Under a later wave's map, which bends records: the farthest of some hundred random corners.
    """
    form = agreement.form
    if isinstance(form, WaveForm):
        return farthest_under_a_map(form)
    if isinstance(form, CodedForm):
        return farthest_of_groups(form)
    assert isinstance(form, JointForm)
    first, second = farthest_answers(form)
    return form.products(first), form.products(second)


def farthest_under_a_map(form: WaveForm) -> tuple[FloatArray, FloatArray]:
    """Return what is sent of the two corners that are farthest apart under an announced map, among
    some.

    Corners need not be records that a schema encodes (several levels at once): noise that hides
    corners hides records.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_CORNERS, len(form.columns)))
    return _farthest_among(form, form.products(np.unique(signs, axis=0)))


def farthest_of_groups(form: CodedForm) -> tuple[FloatArray, FloatArray]:
    """Return what is sent of the two records that are farthest apart, among those with the answers
    of `farthest_answers`, in each of two groups and with every weight.
    """
    rule = form.weighting
    at = () if rule is None else rule.places
    weights = np.eye(len(at)) if rule is None or rule.factors else np.array([[-1.0], [1.0]])
    rows = []
    for answers in farthest_answers(form.inner):
        for group in form.groups[:2] or (None,):
            for weight in weights if at else [np.zeros(0)]:
                row = np.zeros(1 + max((*form.kept, *form.groups, *at)))
                row[list(form.kept)] = answers
                row[list(at)] = weight
                row[list(form.groups)] = [float(one == group) for one in form.groups]
                rows.append(row)
    return _farthest_among(form, form.products(np.array(rows)))


def _farthest_among(form: Form, sent: FloatArray) -> tuple[FloatArray, FloatArray]:
    scaled = sent * np.sqrt(form.counts)
    squares = np.einsum("ij,ij->i", scaled, scaled)
    apart = squares[:, None] + squares[None] - 2 * scaled @ scaled.T
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    return sent[one], sent[other]


def farthest_answers(form: JointForm) -> tuple[FloatArray, FloatArray]:
    """Columns v and v' of two records whose zzᵀ differ most, as far as a search finds them.

    `blurfit.theory.moments.sensitivity` is attained where ‖u‖ = ‖u'‖ = ρ with cosine −c²/ρ². A
    record of full length answers every number with ±1, so the cosine of two of them is Σ ±ω²/ρ²
    over questions (0 for two levels of one categorical), and may miss −c²/ρ². By symmetry the first
    may answer 1 throughout. The second starts from signs that come close, or opposite throughout,
    and goes on question by question, values between −1 and 1 included, as long as that helps.
    """
    blocks = _questions(form)
    first = np.zeros(len(form.columns))
    first[[block[0] for block in blocks]] = 1.0
    here = form.products(first)

    def distance(others: FloatArray) -> FloatArray:
        return np.asarray(((form.products(others) - here) ** 2) @ form.counts)

    best, farthest = -1.0, first
    for start in _starts(form, blocks, first):
        second, reached = start, float(distance(start[None])[0])
        for _ in range(_ROUNDS):
            before = reached
            for block in blocks:
                tried = _answers(form, block, second)
                away = distance(tried)
                place = int(away.argmax())
                if away[place] > reached:
                    second, reached = tried[place], float(away[place])
            if reached <= before:
                break
        if reached > best:
            best, farthest = reached, second
    return first, farthest


def _questions(form: JointForm) -> list[list[int]]:
    """Return the columns of each question: one, or those of all levels."""
    found: dict[str, list[int]] = {}
    for place, column in enumerate(form.columns):
        found.setdefault(f"\0{place}" if column.group is None else column.group, []).append(place)
    return list(found.values())


def _answers(form: JointForm, block: list[int], record: FloatArray) -> FloatArray:
    """Return the record with every answer to one question, a row for each."""
    if form.columns[block[0]].is_share:
        answers = np.eye(len(block))[:2]  # further levels are as far as the second
    elif len(block) > 1:  # a number that need not be said, or at the levels of a choice
        said = np.zeros((len(_BETWEEN), len(block)))
        said[:, 0] = _BETWEEN
        answers = np.vstack([said, np.eye(len(block))[1:]])
    elif form.columns[block[0]].kind == "sign":
        answers = np.array([[1.0], [-1.0]])
    else:
        answers = _BETWEEN[:, None]
    found = np.tile(record, (len(answers), 1))
    found[:, block] = answers
    return found


def _starts(form: JointForm, blocks: list[list[int]], first: FloatArray) -> Iterator[FloatArray]:
    """Opposite throughout; and, from the heaviest question on, opposite wherever that brings u·u'
    closer to −c².
    """
    opposite = first.copy()
    for block in blocks:
        has_levels = form.columns[block[0]].is_share
        opposite[block] = _answers(form, block, first)[-1 if has_levels else 0, block]
        if form.columns[block[0]].kind == "sign":
            opposite[block] = -1.0
    yield opposite
    near, product = first.copy(), form.radius**2
    for block in sorted(blocks, key=lambda block: -form.columns[block[0]].weight):
        has_levels = form.columns[block[0]].is_share
        turned = product - form.columns[block[0]].weight ** 2 * (1 if has_levels else 2)
        if abs(turned + form.constant**2) < abs(product + form.constant**2):
            near[block], product = opposite[block], turned
    yield near


Publish = Callable[[Any, np.random.Generator], npt.ArrayLike]

CHEAP = 50  # as many more trials where no model has to be learned,
MOST_NUMBERS = 4e6  # as long as they are no more numbers than these


def audit(
    release: Publish,
    first: Any,
    second: Any,
    *,
    epsilon: float,
    delta: float,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    attacks: Mapping[str, Score] | None = None,
    name: str = "release",
) -> Finding:
    """Return a lower bound on the ε of any release, from its outputs on two neighbouring datasets.

    `release` turns a dataset, of any type, and a NumPy generator into a vector of numbers; each of
    the trials of either dataset gets a generator of its own. `attacks` are scores of your own,
    beside the attackers that learn by themselves.

    >>> def mean(values, generator):                       # claims ε = 1, and adds too little
    ...     return [np.mean(values) + generator.normal(0, 0.001)]
    >>> found = audit(mean, [0.0] * 10, [0.0] * 9 + [1.0], epsilon=1, delta=1e-6, trials=2000)
    >>> found.broken, found.attack
    (True, 'linear')
    """
    sequences = np.random.SeedSequence(seed).spawn(2)

    def draw(which: bool, count: int) -> FloatArray:
        dataset = second if which else first
        children = sequences[which].spawn(count)
        rows = [release(dataset, np.random.default_rng(child)) for child in children]
        return np.array(rows, dtype=np.float64).reshape(count, -1)

    return examine(
        draw,
        trials=trials,
        confidence=confidence,
        promise=(epsilon, delta),
        labels=(name, "given datasets"),
        attacks=attacks,
    )


def audit_agreement(
    agreement: Agreement,
    *,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    progress: Progress = silent,
    liars: bool = False,
) -> Findings:
    """Attack a submission, the sums and the model, in turn.

    The agreement is not verified: to attack a broken one is the point. `trials` models are learned
    from each neighbour, and up to fifty times as many submissions and sums are seen; `confidence`
    is that of each finding. The seed is for the honest crowd, where it is drawn at once:
    contributors take none. `progress` is told how many attacks of how many are done.

    With `liars`, a collection is attacked too in which all others lie. Without noise of
    the database no promise is made of it, and it is broken; with it, it is always attacked.
    """
    attacks = list(_attacks(agreement, trials, np.random.default_rng(seed), liars=liars))
    found = Findings()
    for attack in attacks:
        found.append(attack(confidence=confidence))
        progress(len(found), len(attacks))
    return found


def _attacks(
    agreement: Agreement, trials: int, generator: np.random.Generator, *, liars: bool
) -> Iterator[Callable[..., Finding]]:
    """Yield each attack, but for the confidence of its finding."""
    local = agreement.calibration.local
    # what costs no solver is tried as much more often as memory bears
    many = max(trials, min(CHEAP * trials, int(MOST_NUMBERS / agreement.width)))

    def attack(
        view: str,
        pair: Pair,
        seen: Callable[..., FloatArray],
        trials: int,
        promise: tuple[float, float],
        *,
        gaussian: bool = True,
        additive: bool = False,
    ) -> Callable[..., Finding]:
        known: dict[str, Any] = {}
        if additive:  # Gaussian noise, of which the best direction and the true ε are known
            apart = (pair.first - pair.second) / noise_scales(agreement) ** 2
            exact = epsilon_of(exact_mu(agreement, pair), promise[1])
            known = {"attacks": {"known direction": along(apart)}, "exact": exact, "bridge": True}
        return partial(
            examine,
            lambda which, count: seen(pair.second if which else pair.first, count),
            trials=trials,
            promise=promise,
            labels=(view, pair.name),
            gaussian=promise[1] if gaussian else None,
            **known,
        )

    def of(release: Callable[..., FloatArray], crowd: Crowd) -> Callable[..., FloatArray]:
        return lambda record, count: release(agreement, record, crowd, count, generator)

    promise, alone = (local.epsilon, local.delta), submission_pairs(agreement)
    for pair in alone:
        yield attack(
            "submission", pair, partial(submissions, agreement), many, promise, additive=True
        )
    beside = replace(alone[0], name="beside a colluder's noise")
    seen = partial(beside_a_colluder, agreement)
    yield attack("submission", beside, seen, many, promise, gaussian=False)
    promise, together = (agreement.epsilon, agreement.delta), collection_pairs(agreement)
    if agreement.database_noise or liars:
        together.append(lying_crowd(agreement))
    for pair in together:
        yield attack("sums", pair, of(sums, pair.crowd), many, promise, additive=True)
        yield attack("model", pair, of(models, pair.crowd), trials, promise)


def beside_a_colluder(agreement: Agreement, record: FloatArray, trials: int) -> FloatArray:
    """Return the target's submission, and a colluder's noise, which must tell nothing about it."""
    target = submissions(agreement, record, trials)
    return np.hstack([target, submissions(agreement, nobody(agreement), trials)])


# ---- provers who lie

Change = Callable[[WordArray, WordArray, ByteArray], BoolArray]
TRIES = 64


@dataclass(frozen=True)
class Lie:
    """A way to lie, how often it was tried, and how often it was believed."""

    name: str
    tries: int
    believed: int

    @property
    def broken(self) -> bool:
        """Whether proofs prove less than they should."""
        return self.believed > 0

    def to_dict(self) -> dict[str, str | int]:
        """For JSON."""
        return {"view": "proof", "lie": self.name, "tries": self.tries, "believed": self.believed}


def lies(agreement: Agreement, *, tries: int = TRIES, seed: int = 0) -> list[Lie]:
    """Try each way to lie; of honest proofs, first, count how many were *not* believed."""
    generator = np.random.default_rng(seed)
    prio3 = agreement.proving.prio3
    honest = verdicts(prio3, *shared(prio3, _honest(agreement, tries, generator), generator))
    found = [Lie("nothing, and still not believed", tries, int((~honest).sum()))]
    for name, inputs in false_encodings(agreement.proving.circuit).items():
        several = np.repeat(inputs, tries, axis=0)
        first, second, names = shared(prio3, several, generator)
        found.append(Lie(name, tries, int(verdicts(prio3, first, second, names).sum())))
        first = fitted(prio3, several, first, second)
        believed = verdicts(prio3, first, second, names)
        found.append(Lie(f"{name}, and a proof to fit", tries, int(believed.sum())))
    inputs = _honest(agreement, tries, generator)
    for name, change in _changes(prio3):
        believed = change(*shared(prio3, inputs, generator))
        found.append(Lie(name, tries, int(believed.sum())))
    return found


def shared(
    prio3: Prio3, inputs: WordArray, generator: np.random.Generator
) -> tuple[WordArray, WordArray, ByteArray]:
    """Shares of some inputs, valid or not, with proofs as good as can be; and names for them."""
    names = generator.integers(0, 256, (len(inputs), 16), dtype=np.uint8)
    random = [generator.bytes(4 * SEED_BYTES) for _ in names]
    first, second = prio3.shard(inputs, names, random)
    return first.words(), second, names


def verdicts(
    prio3: Prio3,
    first: WordArray,
    second: WordArray,
    names: ByteArray,
    *,
    others: ByteArray | None = None,
    key: bytes = b"a key that no contributor knows.",
) -> BoolArray:
    """Return what both databases believe; the second may know the shares by other names."""
    leader = prio3.prepare(LEADER, prio3.leader_halves(first), names, key)
    helper = prio3.prepare(
        HELPER, prio3.helper_halves(second), names if others is None else others, key
    )
    valid, answers = prio3.decide(helper, leader.words())
    return np.asarray(valid & prio3.confirm(leader, answers))


def false_encodings(circuit: ShortVector) -> dict[str, WordArray]:
    """Inputs of the circuit that are no short vector's, one row each, by the way in which not."""
    length = circuit.length * circuit.digits
    short = circuit.encode(np.zeros((1, circuit.length), dtype=np.int64))
    places = (("first digit", 0), ("last digit", length - 1), ("digit of the norm", -1))
    found = {
        f"a {what} that is {value}": _with(short, place, value)
        for what, place in places
        for value in (4, -1)
    }
    half = circuit.half
    longest = np.where(np.arange(circuit.length) % 2, -half, half - 1)[None]
    digits = circuit.digits_of(longest)
    said = np.full((1, circuit.norm_digits), 3, dtype=np.uint64)
    found["the longest vector, the largest norm"] = np.hstack([digits, said])
    found["the longest vector, no norm"] = np.hstack([digits, 0 * said])
    true = sum(w * int(v) ** 2 for w, v in zip(circuit.weights, longest[0], strict=True))
    fitting = _with(np.hstack([digits, 0 * said]), length, true)
    found["the longest vector, its norm in one element"] = fitting
    # 1/2 in place of a digit: numbers that wrap around, and a norm that fits in the field
    halved = _with(short, 0, field.inverse(2))
    number = int(circuit.truncate(halved)[0, 0]) - half
    halved[0, length:] = 0
    found["half a digit, and a norm that fits"] = _with(
        halved, length, circuit.weights[0] * number**2
    )
    return found


def _honest(agreement: Agreement, count: int, generator: np.random.Generator) -> WordArray:
    """Inputs that are as long as they may be, in random directions."""
    circuit = agreement.proving.circuit
    directions = generator.normal(size=(count, circuit.length))
    norms = np.sqrt((directions**2 * np.array(circuit.weights)).sum(axis=1))
    lengths = 0.999 * np.sqrt(float(circuit.ceiling)) / norms
    return circuit.encode(np.trunc(directions * lengths[:, None]).astype(np.int64))


def _changes(prio3: Prio3) -> Iterator[tuple[str, Change]]:
    """Ways to change honest shares on their way."""
    proof = prio3.circuit.inputs
    at_first = {
        "share": 0,
        "proof": proof,
        "gadget polynomial": proof + prio3.circuit.arity,
        "blind": -2 * SEED_WORDS,
        "part of the joint randomness": -1,
    }
    at_second = {"seed": 0, "blind": SEED_WORDS, "part of the joint randomness": -1}

    def changed(first_place: int | None, second_place: int | None) -> Change:
        return lambda a, b, n: verdicts(prio3, _moved(a, first_place), _moved(b, second_place), n)

    for what, place in at_first.items():
        yield f"another {what} at the first", changed(place, None)
    for what, place in at_second.items():
        yield f"another {what} at the second", changed(None, place)
    other = Prio3(prio3.circuit, prio3.proofs, Xof(prio3.xof.algorithm, b"another agreement"))
    yield "a proof for another agreement", lambda a, b, n: verdicts(other, a, b, n)
    yield (
        "a proof replayed by somebody else",
        lambda a, b, n: verdicts(prio3, a, b, np.roll(n, 1, 0)),
    )
    yield (
        "shares under different names",
        lambda a, b, n: verdicts(prio3, a, b, n, others=np.roll(n, 1, axis=0)),
    )
    yield (
        "shares of two people mixed up",
        lambda a, b, n: verdicts(prio3, a, np.roll(b, 1, axis=0), n),
    )


def fitted(prio3: Prio3, inputs: WordArray, first: WordArray, second: WordArray) -> WordArray:
    """Return the first's shares with gadget polynomials for which the circuit's output is zero.

    f is lowered by a polynomial h with h(αᵏ) = 0 for all k but one.
    """
    circuit, flp = prio3.circuit, prio3.flp
    assert isinstance(circuit, ShortVector)
    halves = prio3.leader_halves(first)
    joint = prio3.joint_randomness(second[:, -SEED_WORDS:], halves.parts)
    proofs = halves.proofs.reshape(len(first), prio3.proofs, -1).copy()
    for number in range(prio3.proofs):
        results = circuit.gadget(circuit.wires(inputs, joint[:, number]))[:, None]
        outputs = circuit.check(inputs, results, 1)[:, 0]
        values = np.zeros((len(first), flp.order), dtype=np.uint64)
        values[:, [1]] = outputs
        start = circuit.arity
        some = proofs[:, number, start : start + flp.order]
        some[:] = field.sub(some, field.inverse_transform(values))
    changed = first.copy()
    changed[:, circuit.inputs : -2 * SEED_WORDS] = proofs.reshape(len(first), -1)
    return changed


def _with(rows: WordArray, place: int, value: int) -> WordArray:
    """Rows with another element at one place."""
    changed = rows.copy()
    changed[:, place] = field.element(value)
    return changed


def _moved(rows: WordArray, place: int | None) -> WordArray:
    """Rows with one more than there was at one place."""
    if place is None:
        return rows
    changed = rows.copy()
    changed[:, place] = field.add(changed[:, place] % np.uint64(field.MODULUS), field.element(1))
    return changed
