"""What an agreement's attackers see, the pairs that they tell apart, and what they find."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.linear_model import LinearRegression

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    InfeasibleError,
    InvalidValueError,
    Numeric,
    Schema,
    learn,
)
from blurfit.contributor.blur import share
from blurfit.estimators import InputPerturbationRegressor
from blurfit.learning.sums import Totals
from blurfit.messages.submissions import expand
from blurfit.theory.forms import JointColumn, JointForm
from blurfit.theory.gaussian import epsilon_of
from blurfit.theory.moments import total_deviation
from blurfit_lab.audit import CONFIDENCE
from blurfit_lab.audit import agreements as module
from blurfit_lab.audit.agreements import (
    Crowd,
    audit,
    audit_agreement,
    collection_pairs,
    exact_mu,
    farthest_answers,
    farthest_of_groups,
    farthest_under_a_map,
    lying_crowd,
    models,
    noise_scales,
    submission_pairs,
    submissions,
    sums,
)
from blurfit_lab.audit.examination import examine

from .broken import louder, small_agreement
from .broken_waves import Sequence, broken_waves

ANSWERS = {"x0": 0.6, "x1": -0.8, "y": 0.5}


def propose(columns: int = 2, **terms) -> Agreement:
    features = [Numeric(f"x{i}", -1, 1) for i in range(columns)]
    given = {"epsilon": 1.0, "delta": 1e-5, "quorum": 20} | terms
    return Agreement.propose(Schema(features, Numeric("y", -1, 1), intercept=False), **given)


def agreement(quorum: int = 12) -> Agreement:
    return propose(quorum=quorum)


def still(made: Agreement, honest: int = 11) -> Crowd:
    return Crowd(honest, np.zeros(made.width))


def test_submissions_are_the_record_and_noise_of_the_stated_scale() -> None:
    made = agreement()
    record = made.exact(ANSWERS)
    seen = (submissions(made, record, 20_000) - record) / noise_scales(made)
    assert np.abs(seen.mean(axis=0)).max() < 7 / np.sqrt(20_000)
    assert seen.std(axis=0) == pytest.approx(1, abs=0.04)


@pytest.mark.statistical
def test_both_ways_of_drawing_the_crowd_agree(monkeypatch) -> None:
    made = agreement()
    crowd, record = Crowd(11, np.full(made.width, 0.5)), made.exact(ANSWERS)
    seen = []
    for affordable in (1e9, 0):
        monkeypatch.setattr(module, "NUMBERS_AFFORDABLE", affordable)
        found = sums(made, record, crowd, 3000, np.random.default_rng(1))
        seen.append((*found.T, found.sum(axis=1), found[:, 0] * found[:, 2] - found[:, 1] ** 2))
    for one, other in zip(*seen, strict=True):
        assert ks_2samp(one, other, method="asymp").pvalue > 1e-8


@pytest.mark.parametrize("affordable", [1e9, 0])
def test_sums_are_multiples_of_the_grid(affordable: float, monkeypatch) -> None:
    monkeypatch.setattr(module, "NUMBERS_AFFORDABLE", affordable)
    made = agreement()
    seen = sums(made, made.exact(ANSWERS), still(made), 50, np.random.default_rng(1))
    assert not (seen % made.step).any()


def test_models_are_what_the_database_publishes(monkeypatch) -> None:
    """Where it publishes the reading of linear Bayes."""
    quorum = 4000
    made = agreement(quorum)
    kept = {}
    inner = module.sums

    def remember(*arguments):
        kept["sums"] = inner(*arguments)
        return kept["sums"]

    monkeypatch.setattr(module, "sums", remember)
    crowd = still(made, quorum - 1)
    found = models(made, made.exact(ANSWERS), crowd, 10, np.random.default_rng(1))
    for weights, one in zip(found, kept["sums"], strict=True):
        model = learn(made, Totals(quorum, one, made.fingerprint))
        assert (weights == model.weights.ravel()).all()


def test_a_refusal_is_told_by_zeros(monkeypatch) -> None:
    made = agreement()

    def refuse(*_arguments, **_named):
        raise InfeasibleError("no curvature")

    monkeypatch.setattr(module, "weights_of", refuse)
    found = models(made, made.exact(ANSWERS), still(made), 5, np.random.default_rng(1))
    assert not found.any()


# ---- pairs
def equal_weights(columns: int, constant: float) -> dict:
    names = (*(f"x{i}" for i in range(columns)), "y")
    return {"weights": dict.fromkeys(names, 1.0), "constant": constant}


@pytest.mark.parametrize(
    ("columns", "constant"), [(2, 1.0), (4, 1.0), (4, 9**0.5), (3, 2**0.5), (2, 5.0), (7, 2.0)]
)
def test_where_the_schema_allows_the_worst_angle_it_is_found(columns: int, constant) -> None:
    """All weights 1: ±1 − … sum to −c² for whole c² of the right parity, and for c > ρ to −ρ²."""
    made = propose(columns, quorum=50, **equal_weights(columns, constant))
    for promised, pair in (
        (made.calibration.local.mu, submission_pairs(made)[0]),
        (made.calibration.mu, collection_pairs(made)[0]),
    ):
        assert 0.998 * promised < exact_mu(made, pair) <= promised


def test_the_default_weights_are_nearly_attained_for_both_relations() -> None:
    made = propose(13, quorum=50)
    found = exact_mu(made, collection_pairs(made)[0])
    assert 0.99 * made.calibration.mu < found <= made.calibration.mu
    made = propose(2, quorum=50, neighbours="zero-out")
    assert not any(pair.second.any() for pair in collection_pairs(made))
    assert 0.998 * made.calibration.mu < exact_mu(made, collection_pairs(made)[0])


FORMS = [
    JointForm(0.4, (JointColumn("a", 0.7), JointColumn("b", 0.5))),
    JointForm(2.0, (JointColumn("a", 0.7), JointColumn("b", 0.5, "sign"))),
    JointForm(0.1, (JointColumn("a", 1.0),)),
    JointForm(
        0.6, (JointColumn("a", 0.9, "sign"), *(JointColumn(c, 0.8, "level", "g") for c in "xyz"))
    ),
]


@pytest.mark.parametrize("form", FORMS)
def test_no_other_pair_of_answers_is_farther_apart(form: JointForm) -> None:
    """Against every pair on a grid, both records free."""
    axes = []
    for column in form.columns:
        if column.kind == "numeric":
            axes.append(np.linspace(-1, 1, 21))
        elif column.kind == "sign":
            axes.append(np.array([-1.0, 1.0]))
    rows = np.array(list(itertools.product(*axes)))
    levels = sum(column.kind == "level" for column in form.columns)
    if levels:
        one_hot = np.eye(levels)
        rows = np.array([[*row, *level] for row in rows for level in one_hot])
    counts = form.counts
    products = form.products(rows) * np.sqrt(counts)
    largest = max(np.linalg.norm(products - one, axis=1).max() for one in products)
    first, second = farthest_answers(form)
    found = np.linalg.norm((form.products(first) - form.products(second)) * np.sqrt(counts))
    assert 0.9999 * largest <= found <= form.reach("replace").sums
    for answers in (first, second):
        assert np.abs(answers).max() <= 1
        if levels:
            assert sorted(answers[-levels:]) == [0, 0, 1]


WIDE = Schema(
    [
        Numeric("age", 18, 80),
        Categorical("region", ["north", "south", "west"], optional=True),
        Binary("married"),
        Numeric("design", 0, 4),
    ],
    Numeric("income", 0, 100),
)
FACTORS = {"north": 1.0, "south": 0.5, "west": 0.25, "(not said)": 0.0}


@pytest.mark.parametrize(
    ("terms", "least", "search"),
    [
        ({}, 0.9, farthest_answers),
        ({"groups": "region"}, 0.97, farthest_of_groups),
        ({"groups": "region", "overlap": 0.5}, 0.97, farthest_of_groups),
        ({"weighting": "design"}, 0.97, farthest_of_groups),
        # a level is an answer and a factor
        ({"weighting": "region", "factors": FACTORS}, 0.85, farthest_of_groups),
    ],
)
def test_the_search_comes_near_the_stated_reach_and_stays_below(terms, least, search) -> None:
    form = Agreement.propose(WIDE, epsilon=1, delta=1e-6, quorum=3000, **terms).form
    first, second = search(form)
    if search is farthest_answers:
        first, second = form.products(first), form.products(second)
    apart, claimed = np.sqrt((first - second) ** 2 @ form.counts), form.reach("replace").sums
    assert least * claimed <= apart <= claimed


def test_pairs_are_records_that_the_schema_can_send_at_the_quorum() -> None:
    # Each is `Agreement.exact` of some answers, or the zero record of zero-out.
    features = [Binary("b"), Categorical("c", ["x", "y", "z"])]
    made = Agreement.propose(Schema(features, Binary("y")), epsilon=1, delta=1e-5, quorum=40)
    answers = itertools.product([0, 1], ["x", "y", "z"], [0, 1])
    known = [made.exact({"b": b, "c": c, "y": y}) for b, c, y in answers]
    for pair in collection_pairs(made) + submission_pairs(made):
        assert any(np.allclose(pair.first, one) for one in known)
        assert not pair.second.any() or any(np.allclose(pair.second, one) for one in known)
    assert {pair.crowd.honest for pair in collection_pairs(made)} == {39}


# ---- findings
def sums_of(agreement: Agreement, pair):
    generator = np.random.default_rng(0)

    def draw(which: bool, count: int) -> np.ndarray:
        record = pair.second if which else pair.first
        return module.sums(agreement, record, pair.crowd, count, generator)

    return draw


# -- what is known exactly is met ------------------------------------------------------------------
@pytest.mark.statistical
@pytest.mark.parametrize(
    "terms",
    [
        {"quorum": 20},
        {"quorum": 500, "local_epsilon": 4.0, "local_delta": 1e-6},
    ],
)
def test_submissions_are_audited_within_a_tenth_of_the_truth(terms) -> None:
    """What is found is 0.96 of the truth, with a deviation of less than 0.01 over streams."""
    attacks = module._attacks(propose(**terms), 2000, np.random.default_rng(0), liars=False)
    found = next(attacks)(confidence=CONFIDENCE)
    assert found.view == "submission"
    assert found.exact is not None
    assert found.gaussian is not None
    assert 0.9 * found.exact < found.gaussian <= found.exact <= found.promised


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "trials"), [(2.0, 300_000), (4.0, 100_000)])
def test_moments_sums_are_audited_within_a_tenth_of_the_truth(epsilon: float, trials: int) -> None:
    """Every record of every collection is blurred by the contributor's own code.

    What is found is 0.95 of the truth, with a deviation of less than 0.01 over streams of noise.
    """
    agreement = propose(1, epsilon=epsilon, quorum=4, delta=1e-6)
    pair = collection_pairs(agreement)[0]
    known = module.along((pair.first - pair.second) / module.noise_scales(agreement) ** 2)
    draw = sums_of(agreement, pair)
    how = {"trials": trials, "confidence": 0.9999, "promise": (agreement.epsilon, agreement.delta)}
    how |= {"labels": ("sums", pair.name), "gaussian": agreement.delta}
    found = examine(draw, attacks={"known direction": known}, **how)
    exact = epsilon_of(module.exact_mu(agreement, pair), agreement.delta)
    assert found.gaussian is not None
    assert 0.9 * exact < found.gaussian <= exact


# -- what is certified is not broken ---------------------------------------------------------------
@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(6))
def test_random_certified_agreements_are_never_broken(seed: int, monkeypatch) -> None:
    """Any dimension, relation and promise; the quorum met exactly.

    Of ten thousand submissions and sums, noise that is smaller by a third would be seen. Models
    are made of the sums, so that few will do.
    """
    generator = np.random.default_rng(seed)
    columns, least = int(generator.integers(1, 5)), 1
    terms = {
        "epsilon": float(np.exp(generator.uniform(-1, 2))),
        "delta": float(10 ** generator.uniform(-6, -1.5)),
        "quorum": least + int(generator.integers(0, 3) ** 5),
        "neighbours": ("replace", "zero-out")[int(generator.integers(2))],
    }
    if generator.random() < 0.3:
        terms |= {"local_epsilon": 8.0, "local_delta": 1e-5}
    agreement = propose(columns, **terms)
    trials = 100
    monkeypatch.setattr(module, "CHEAP", 10_000 // trials)
    told: list[tuple[int, int]] = []
    asked = {"trials": trials, "confidence": 0.9999, "seed": seed}
    findings = audit_agreement(agreement, **asked, progress=lambda *one: told.append(one))
    assert told == [(k, len(findings)) for k in range(1, len(findings) + 1)]
    for one in findings:
        assert one.audited <= one.promised, one
        assert not one.broken
        if one.exact is not None:
            assert one.audited <= one.exact


# -- what is broken is caught ----------------------------------------------------------------------
@pytest.mark.statistical
def test_noise_over_four_is_caught_in_submissions_sums_and_models() -> None:
    found = audit_agreement(louder(propose(quorum=4), 0.25), trials=400)
    caught = {one.view for one in found if one.broken}
    assert caught == {"submission", "sums", "model"}


# -- any release, through a function ---------------------------------------------------------------
def neighbouring_tables() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    X, y = np.zeros((20, 1)), np.zeros(20)
    X[0], y[0] = 1.0, 1.0
    other = y.copy()
    other[0] = -1.0
    return (X, y), (X, other)


@pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")
def test_an_estimator_is_audited_through_its_public_interface() -> None:
    first, second = neighbouring_tables()

    def private(table, generator: np.random.Generator):
        public = {"bounds": (-1, 1), "target_bounds": (-1, 1), "fit_intercept": False}
        asked = {"epsilon": 1.0, "delta": 1e-5, "random_state": generator}
        model = InputPerturbationRegressor(**asked, **public)
        return model.fit(*table).coef_

    def naked(table, generator: np.random.Generator):
        return LinearRegression(fit_intercept=False).fit(*table).coef_ + generator.normal(0, 0.01)

    promise = {"epsilon": 1.0, "delta": 1e-5, "trials": 120}
    assert not audit(private, first, second, **promise).broken
    found = audit(naked, first, second, name="naked", **promise)
    assert found.broken
    assert found.view == "naked"
    assert found.to_dict()["broken"] is True


def test_the_same_seed_gives_the_same_finding_and_mistakes_are_named() -> None:
    def release(dataset: float, generator: np.random.Generator) -> list[float]:
        return [dataset + generator.normal()]

    one, other = (
        audit(release, 0.0, 1.0, epsilon=1, delta=1e-5, trials=500, seed=9) for _ in range(2)
    )
    assert one == other
    assert math.isfinite(one.ratio)
    with pytest.raises(InvalidValueError, match="trials=99"):
        audit(lambda d, g: [0.0], 0, 1, epsilon=1, delta=0.1, trials=99)
    with pytest.raises(InvalidValueError, match="confidence=1"):
        audit(lambda d, g: [0.0], 0, 1, epsilon=1, delta=0.1, confidence=1)


# ---- lying crowd
TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))


@pytest.mark.parametrize(
    ("terms", "draws"),
    [({}, 0), ({"database_noise": True}, 1), ({"database_noise": True, "databases": TWO}, 2)],
)
def test_the_exact_privacy_of_the_one_honest_person(terms, draws) -> None:
    agreement = small_agreement(2, quorum=4, **terms)
    calibration = agreement.calibration
    found = exact_mu(agreement, lying_crowd(agreement))
    unknown = total_deviation(calibration.sigma, agreement.quorum, 1, draws)
    most = calibration.reach.sums / unknown
    assert 0.95 * most < found <= most
    assert (found <= calibration.mu) is bool(draws)


def test_both_are_shown(monkeypatch) -> None:
    """By the sums, of which models are made: those are few, and attacked all the same."""
    monkeypatch.setattr(module, "CHEAP", 150)
    plain, noisy = (small_agreement(2, quorum=4, database_noise=noise) for noise in (False, True))
    lying = {}
    for name, agreement in (("plain", plain), ("noisy", noisy)):
        found = audit_agreement(agreement, trials=100, confidence=0.9999, seed=3, liars=True)
        lying[name] = [one for one in found if one.pair == "all others lie"]
        assert len(lying[name]) == 2, "of the sums, and of the model"
        assert not any(one.broken for one in found if one.pair != "all others lie")
    assert any(one.broken for one in lying["plain"])
    assert not any(one.broken for one in lying["noisy"])
    promised = plain.epsilon
    assert max(one.audited for one in lying["plain"]) > promised
    assert max(one.audited for one in lying["noisy"]) <= promised


# ---- waves
KINDS = ("residual", "newton")
WAYS = ("a person in two waves", "a map that peeks", "no cut to the ball")
BROKEN = {kind: broken_waves(kind) for kind in KINDS}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_broken_is_caught_and_its_honest_twin_is_not(kind: str, way: str) -> None:
    found = BROKEN[kind][way].audit()
    assert found.audited > 1.05 * found.promised
    # In wave 1 and in wave 2, under hostile maps that follow what wave 1 published.
    found = BROKEN[kind][way].audit(honest=True)
    assert not found.broken
    assert found.audited > 0.1 * found.promised  # the attack sees something


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_maps_bring_people_as_far_apart_as_the_reach(kind: str) -> None:
    for agreement in Sequence(kind).later:
        agreement.verify()
        one, other = farthest_under_a_map(agreement.form)
        apart = ((one - other) ** 2 @ agreement.form.counts) ** 0.5
        reach = agreement.form.reach("replace").sums
        assert 0.7 * reach < apart <= reach * (1 + 1e-12)


# ---- two databases
PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 2000, "databases": TWO}
AGES = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
AGREEMENT = Agreement.propose(AGES, **PROMISE, proofs=False)
PROVED = Agreement.propose(AGES, **PROMISE)
LOW, HIGH = {"age": 0.0, "income": 0.0}, {"age": 100.0, "income": 100.0}
TRIALS = 2000


def views(record: dict[str, float]) -> dict[str, list[list[float]]]:
    """What each database gets of so many people with this record: all of it, as numbers."""
    shared = share(AGREEMENT, {name: np.full(TRIALS, v) for name, v in record.items()})
    width = shared.first.words.shape[1]
    together = (shared.first.words - expand(shared.second.words, width)).view(np.int64)
    return {
        "first": (shared.first.words / 2.0**64).tolist(),
        "second": (shared.second.words / 2.0**64).tolist(),
        "together": together.astype(np.float64).tolist(),
    }


@pytest.fixture(scope="module")
def seen() -> list[dict[str, list[list[float]]]]:
    return [views(LOW), views(HIGH)]


def examined(seen, view: str):
    sources = [iter(one[view]) for one in seen]
    return audit(
        lambda source, _generator: next(source), *sources, epsilon=1e-9, delta=0.0, trials=TRIALS
    )


@pytest.mark.statistical
@pytest.mark.parametrize("view", ["first", "second"])
def test_a_database_cannot_tell_opposite_records_apart(seen, view) -> None:
    found = examined(seen, view)
    assert found.counted == 0.0, "no ε at all was found"
    assert not found.broken


@pytest.mark.statistical
def test_both_together_can(seen) -> None:
    """So the attack works; what protects then is the record's own noise, which is little."""
    found = examined(seen, "together")
    assert found.counted > 3
    assert found.counted < AGREEMENT.calibration.local.epsilon


def proved_views(record: dict[str, float]) -> dict[str, list[list[float]]]:
    """What each database gets where there are proofs, and what the other tells it of them."""
    count = 200
    shared = share(PROVED, {name: np.full(count, v) for name, v in record.items()})
    prio3, names, key = PROVED.proving.prio3, shared.first.identifiers, b"k" * 32
    halves = prio3.leader_halves(shared.first.words), prio3.helper_halves(shared.second.words)
    told = [prio3.prepare(who, half, names, key).verifiers for who, half in enumerate(halves)]
    return {
        "first": (np.hstack([shared.first.words, told[1]]) / 2.0**64).tolist(),
        "second": (np.hstack([shared.second.words, told[0]]) / 2.0**64).tolist(),
    }


@pytest.mark.statistical
def test_proofs_tell_a_database_nothing() -> None:
    """Though each gets more here than it would: all of the other's half of the verifiers."""
    both = [proved_views(LOW), proved_views(HIGH)]
    for view in ("first", "second"):
        sources = [iter(one[view]) for one in both]
        found = audit(
            lambda source, _generator: next(source), *sources, epsilon=1e-9, delta=0.0, trials=200
        )
        assert found.counted == 0.0
        assert not found.broken
