"""JavaScript and Python agree: the same vectors through both, in the real browser."""

import json
import math
import re
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import rfc8785
from scipy import stats

from blurfit import (
    Agreement,
    Bands,
    Binary,
    BlurfitError,
    Categorical,
    Condition,
    Cross,
    Curve,
    Numeric,
    Poly,
    Product,
    Schema,
    Submission,
    TimeToEvent,
)
from blurfit.agreement.statement import local_in_words
from blurfit.schema.schema import values
from blurfit.theory import gaussian
from blurfit.theory.moments import LocalGuarantee, local_guarantee
from support.contracts import deviations, mutations, on_grid, records, steps, table_of
from support.fair import CHANCE, DEVIATIONS

DRAWS = 100_000
KS_LIMIT = math.sqrt(math.log(2 / CHANCE) / 2)  # √n·D is beyond it with this probability


DATABASES = [
    ("Statistics Office", "https://first.example"),
    ("University", "https://second.example"),
]
SHARED = {"databases": DATABASES, "proofs": False}  # numbers are rounded, and not at random


FACTORS = (("south", 1.0), ("east", 0.3), ("north", 0.0))  # in another order than the levels
GROUPS = {
    "groups": {"groups": "region"},
    "overlap": {"groups": "region", "overlap": 0.37, "neighbours": "zero-out"},
    "weights": {"weighting": "region", "factors": FACTORS, "constant": 3.0},
    "both": {"groups": "region", "overlap": 0.5, "weighting": "region", "factors": FACTORS},
}


def names(schema: Schema) -> list[str]:
    return [one.name for one in (*schema.features, schema.target)]


def wide() -> Schema:
    """Odd names, odd bounds, many levels, and no intercept."""
    return Schema(
        [
            Numeric("größe – ß \U0001f600", -0.1, 1e-7),
            Numeric("mass", -1e21, 3e22, outside="refuse"),
            Binary('"quoted" \\ and spaced'),
            Categorical("letter", [chr(97 + i) for i in range(9)]),
            Categorical("number", ["1", "2", "\u00e9\u0301"]),
        ],
        Numeric("1", 5e-324, 1.5),
        intercept=False,
    )


def classes() -> Schema:
    """A target with classes, of which only it and the age may be predicted."""
    features = [Numeric("age", 18, 80), Binary("married"), Categorical("sex", ["f", "m"])]
    target = Categorical("party", ["red", "green", "blue", "none"])
    return Schema(features, target, targets=["party", "age"])


def richer() -> Schema:
    """The survey with columns of all kinds that are computed from its answers."""
    return Schema(
        [
            Numeric("age", 18, 80),
            Binary("married"),
            Categorical("region", ["north", "south", "east"]),
            Bands("income", edges=[0.1 + 0.2, 1e-7 * 3e11, 123456.7890123]),
            Cross("married", "region"),
            Cross("region", "married", "turned"),
            Product("age", "income"),
            Product("age", "age", "square"),
            Product("married", "income"),
            Product("region", "age"),
            Curve("age", knots=[18, 0.1 + 19.2, 47.123456789, 80]),
            Curve("weight", knots=[-3e-7, 1 / 3, 2]),
            Poly("age", degree=2),
            Poly("income", degree=7),
            Condition("grown", "age", above=18),
            Condition("southern", "region", level="south"),
        ],
        Numeric("income", 0, 200_000),
        sources=[Numeric("weight", -1, 2)],
    )


@pytest.fixture(scope="session")
def agreements(survey) -> list[Agreement]:
    """Both relations, all kinds of targets, small and huge quorums, ε and δ, one database
    and two, weights by default and by hand.
    """
    found = []
    cases = [
        (1, 1e-6, 1000, "replace"),
        (0.1, 1e-9, 50_000, "zero-out"),
        (8, 1e-3, 20_000_000, "replace"),
        (0.5, 1e-7, 3_000_000, "zero-out"),
    ]
    local = {"local_epsilon": 2, "local_delta": 1e-7}
    kinds = {"number": survey(), "label": survey(above=37_000), "wide": wide(), "class": classes()}
    kinds["derived"] = richer()
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 3000}
    for schema in kinds.values():
        for epsilon, delta, quorum, neighbours in cases:
            common = {"epsilon": epsilon, "delta": delta, "quorum": quorum}
            found.append(Agreement.propose(schema, **common, neighbours=neighbours))
        options = [
            local,
            {"epsilon": 1e-5},
            {"delta": 1e-30},
            {"constant": 5.0},
            SHARED,
            SHARED | {"neighbours": "zero-out", "quorum": 70_000},
        ]
        found += [Agreement.propose(schema, **(promise | one)) for one in options]
    found += [Agreement.propose(survey(), **(promise | one)) for one in GROUPS.values()]
    found += [Agreement.propose(survey(), **promise, **SHARED, **GROUPS["overlap"])]
    crossed = {"groups": "turned", "weighting": "bands(income)"}
    levels = richer().question("bands(income)").levels
    crossed["factors"] = tuple((level, 1 / (3 + at)) for at, level in enumerate(levels))
    found.append(Agreement.propose(richer(), **promise, **crossed))
    design = Schema([Numeric("age", 18, 80), Numeric("design", 0, 7.3)], Numeric("income", 0, 9))
    found.append(Agreement.propose(design, **promise, weighting="design"))
    found.append(
        Agreement.propose(
            survey(),
            **promise,
            constant=0.7,
            weights={"age": 2.0, "married": 0.3, "region": 1.1, "income": 0.9},
        )
    )
    return found


def test_canonical_json(run) -> None:
    values = [
        0.0, -0.0, 1.0, 100.0, 1e21, 1e20, 123456789012345680000.0, 1e-6, 1e-7, 5e-324,
        1.7976931348623157e308, 0.1, 1 / 3, 2.0**53, 4.5e15, True, None,
        "é\u2028\u0000\"\\\U0001f600",
        {"\U0001f600": 1.5, "\ufb33": 2.5, "a": [], "": {}, "A": [None, False]},
    ]  # fmt: skip
    generator = np.random.default_rng(0)
    values += generator.integers(0, 2**64, 2000, dtype=np.uint64).view(np.float64).tolist()
    values = [one for one in values if not isinstance(one, float) or math.isfinite(one)]
    texts = run("checks", "return given.map((one) => checks.canonical(JSON.parse(one)));",
                [json.dumps(one) for one in values])  # fmt: skip
    assert texts == [rfc8785.dumps(one).decode() for one in values]


def test_fingerprints_and_verification_of_honest_agreements(run, agreements) -> None:
    """Each is accepted, and what is stated of a submission is just above the page's own μ."""
    found = agreements
    body = """
        return Promise.all(given.map(async (text) => {
          const agreement = JSON.parse(text);
          try {
            const mu = await verify.verify(agreement, agreement.fingerprint);
            return [await checks.fingerprintOf(agreement), mu];
          } catch (error) { return [error.message, 0]; }
        }));"""
    answers = run("verify checks", body, [one.to_json() for one in found])
    assert [name for name, _ in answers] == [one.fingerprint for one in found]
    for (_, mu), one in zip(answers, found, strict=True):
        assert mu < one.calibration.local.mu < mu * (1 + 2**-24)


def forgeries(agreement: Agreement) -> dict[str, dict[str, Any]]:
    """Agreements that promise a millionth more than they keep, consistent but for one thing."""
    made: dict[str, dict[str, Any]] = {}

    def forge(name: str) -> dict[str, Any]:
        made[name] = agreement.to_dict()
        return made[name]["calibration"]  # type: ignore[no-any-return]

    for name, by in (("epsilon", 1 - 1e-6), ("delta", 1 - 1e-5)):
        fields = forge(name)
        fields["model"][name] *= by
    forge("local mu")["local"]["mu"] *= 1 - 1e-6
    forge("local epsilon")["local"]["epsilon"] *= 1 - 1e-6
    forge("local epsilon overstated")["local"]["epsilon"] *= 1 + 1e-6
    forge("unknown")["surprise"] = 1
    for name, factor in (("coarse", 2), ("fine", 0.5), ("crooked", 0.75)):
        made[name] = agreement.to_dict()
        made[name]["step"] *= factor
    made["unknown field"] = agreement.to_dict() | {"trust": "one"}
    made["no targets"] = agreement.to_dict()
    made["no targets"]["schema"]["targets"] = ["age"]
    made["one database"] = agreement.to_dict()
    made["one database"]["databases"] = [{"name": "A", "url": "https://a.example"}]
    fields = forge("less noise")
    fields["sigma"] *= 1 - 1e-6
    fields["mu"] /= 1 - 1e-6
    local = local_guarantee(fields["local"]["mu"] / (1 - 1e-6), fields["local"]["delta"])
    fields["local"] = asdict(local)
    fields = forge("reach")  # records are said to reach less far than they do
    fields["reach"]["sums"] *= 1 - 1e-6
    fields["mu"] *= 1 - 1e-6
    forge("reach of a submission")["reach"]["submission"] *= 1 - 1e-6
    forge("releases")["model"]["releases"] = 1  # which is no field
    made["diaries"] = agreement.to_dict() | {"diaries": False}  # which is never written out
    for name in list(agreement.to_dict()["weights"])[:3]:  # which reach further than was said
        made[f"weight of {name}"] = agreement.to_dict()
        made[f"weight of {name}"]["weights"][name] *= 1 + 1e-5
    return made


def hostile(agreement: Agreement) -> dict[str, dict[str, Any]]:
    """Rules that their questions do not allow, or that say more than is known of them."""
    changes: dict[str, list[dict[str, Any]]] = {
        "bands(income)": [
            {"edges": edges}
            for edges in ([], [2, 1], [1, 1], [0, 1], [1, 200_000], [None], "12", 3, ["1"])
        ],
        "married:region": [{"of": ["married", "married"]}, {"of": ["married", "age"]}],
        "age:income": [
            {"of": ["age"]},
            {"of": ["married", "region"]},
            {"of": "age"},
            {"lower": -1},
        ],
        "curve(age)": [
            {"knots": knots}
            for knots in (
                [],
                [18, 80],
                [18, 18, 80],
                [18, 80, 40],
                [17, 40, 80],
                [18, 40, 81],
                "123",
            )
        ],
        "poly2(age)": [{"degree": degree} for degree in (1, 10, 2.5, "2", None)],
        "grown": [{"above": 80}, {"above": 17}, {"above": None}, {"level": "south"}],
        "southern": [{"level": "west"}, {"of": "age"}, {"of": "nobody"}, {"of": "grown"}],
    }
    every: list[dict[str, Any]] = [{"kind": "spline"}, {"optional": True}, {"of": None}]
    every += [
        {"question": 3},
        {"surprise": 1},
        {"name": ""},
        {"name": "age"},
        {"labels": {"?": "a"}},
    ]
    made = {}
    for name, own in changes.items():
        for change in (*own, *every):
            made[f"{name} with {change}"] = document = agreement.to_dict()
            features = document["schema"]["features"]
            next(one for one in features if one["name"] == name).update(change)
    silent = made["of an optional question"] = agreement.to_dict()
    silent["schema"]["features"][0]["optional"] = True
    silent["schema"]["targets"].remove("age")
    return made


KINDS: dict[str, dict[str, Any]] = {
    "moment": {},
    "two databases": SHARED,
    "proofs": {"databases": DATABASES},
    "derived": {},
    "groups": GROUPS["both"],
}


WRONG_CODES: dict[str, list[Any]] = {
    "groups": ["married", "age", "income", "nobody", "", None, 3, ["region"]],
    "overlap": [0, 0.95, 1.2, -0.1, None, "0.5", [0.5]],  # 0 is never written out
    "weighting": ["married", "age", "income", "nobody", None, 3],
    "factors": [
        [],
        [["south", 1.0], ["east", 0.3]],
        [["south", 1.0], ["east", 0.3], ["west", 0.0]],
        [["south", 1.0], ["east", 0.3], ["north", 0.0], ["north", 0.0]],
        [["south", 1.1], ["east", 0.3], ["north", 0.0]],
        [["south", 1.0], ["east", -0.3], ["north", 0.0]],
        [["south", 1.0], ["east", None], ["north", 0.0]],
        [["south", 0.0], ["east", 0.0], ["north", 0.0]],
        {"south": 1.0, "east": 0.3, "north": 0.0},
        None,
    ],
}


def surveyed(survey: Any, kind: str, **options: Any) -> Schema:
    return richer() if kind == "derived" else survey(**options)


@pytest.mark.parametrize("quorum", [2000, 8_000_000])
@pytest.mark.parametrize("kind", list(KINDS))
def test_what_python_refuses_the_page_refuses(verdicts, survey, kind, quorum) -> None:
    """Both refuse each forgery, under a fingerprint that fits it."""
    for neighbours in ("replace", "zero-out"):
        agreement = Agreement.propose(
            surveyed(survey, kind),
            epsilon=1,
            delta=1e-6,
            quorum=quorum,
            neighbours=neighbours,
            **KINDS[kind],
        )
        forged = forgeries(agreement)
        if kind == "derived":
            forged |= hostile(agreement)
        if kind == "groups":
            forged |= {
                f"{name} = {value}": agreement.to_dict() | {name: value}
                for name, values in WRONG_CODES.items()
                for value in values
            }
            for name in ("groups", "weighting"):
                forged[f"no {name}"] = agreement.to_dict()
                del forged[f"no {name}"][name]
        for name, document in forged.items():
            with pytest.raises(BlurfitError):
                Agreement.from_dict(document).verify()
                pytest.fail(name)
        found = dict(zip(forged, verdicts(list(forged.values())), strict=True))
        assert found == dict.fromkeys(forged, "refused")


@pytest.mark.parametrize("kind", list(KINDS))
def test_what_the_page_accepts_python_accepts(verdicts, survey, kind) -> None:
    """Mutated contracts, under fingerprints that fit: the page is never the more lenient one."""
    given = []
    kinds = surveyed(survey, kind), surveyed(survey, kind, above=37_000)
    for schema, neighbours in zip(kinds, ("replace", "zero-out"), strict=True):
        agreement = Agreement.propose(
            schema, epsilon=1, delta=1e-6, quorum=3000, neighbours=neighbours, **KINDS[kind]
        )
        given += mutations(agreement, 200)
    answers = verdicts(given)
    assert set(answers) <= {"accepted", "refused"}
    accepted = 0
    for document, answer in zip(given, answers, strict=True):
        if answer == "accepted":
            accepted += 1
            Agreement.from_dict(document).verify()
    print(f"{kind}: {accepted} of {len(given)} accepted")
    assert 5 < accepted < 400


def test_what_is_blurred_is_pythons_to_the_last_bit(run, agreements) -> None:
    """Columns, products and their names, steps and deviations; and how far they reach."""
    body = """
        const agreement = JSON.parse(given.agreement);
        await forms.ready(agreement);
        const form = forms.formOf(agreement);
        const names = ["1", ...form.columns.map(({ name }) => name)];
        const shown = form.sent.map(([row, column]) => `${names[row]}·${names[column]}`);
        const own = shown.slice(0, shown.length / (form.labels ?? [1]).length);
        const blurred = given.records.map((record) => [
          forms.valuesOf(agreement.schema, record),
          perturb.exactly(agreement)(record),
          perturb.onGrid(agreement, record),
        ]);
        return {
          blurred,
          noise: grid.noiseFor(agreement),
          names: form.labels?.flatMap((label) => own.map((one) => `${label}·${one}`)) ?? shown,
          reach: given.neighbours.map((one) => form.reach(one)),
        };"""
    for place, agreement in enumerate(agreements):
        people = records(agreement.schema, 100 if place % 2 == 0 else 2)
        relations = [agreement.calibration.model.neighbours, "replace"]
        given = {"agreement": agreement.to_json(), "neighbours": relations, "records": people}
        got = run("perturb forms grid", body, given)
        assert tuple(got["names"]) == agreement.form.names
        assert got["reach"] == pytest.approx(agreement.form.reach(relations[0]), rel=1e-14)
        (part,), shown = agreement.parts, got["noise"]
        assert (shown["step"], shown["deviations"]) == (part.step, part.deviations.tolist())
        v, exact, whole = map(list, zip(*got["blurred"], strict=True))
        table = table_of(people)
        assert v == values(agreement.schema, table).tolist()
        assert exact == agreement.exact(table).tolist()
        assert whole == (on_grid(agreement, table) / steps(agreement)).tolist()
        # and a record by itself is blurred as it is in a table
        assert whole[0] == (on_grid(agreement, people[0]) / steps(agreement)).tolist()


def test_exits_are_pythons_to_the_last_bit(run) -> None:
    features = [Numeric("age", 18, 80), Binary("married"), Categorical("region", ["a", "b", "c"])]
    features.append(Curve("age", knots=[18, 30, 50, 80]))
    body = """
        const agreement = JSON.parse(given.agreement);
        await verify.verify(agreement, given.fingerprint);
        const form = forms.formOf(agreement);
        return {
          exact: given.records.map((record) => perturb.exactly(agreement)(record)),
          counts: form.counts,
          size: form.size,
          reach: ["replace", "zero-out"].map((one) => form.reach(one)),
        };"""
    for bands, extra in ((2, {}), (7, {"neighbours": "zero-out"}), (8, SHARED)):
        schema = Schema(features, TimeToEvent("months", "left", horizon=24, bands=bands))
        agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=3000, **extra)
        given = records(schema, 60)
        given[0] |= {"months": 24.0, "left": True}
        given[1] |= {"months": 0.0, "left": True}
        asked = {"agreement": agreement.to_json(), "fingerprint": agreement.fingerprint}
        got = run("perturb forms verify", body, asked | {"records": given})
        assert got["exact"] == agreement.exact(table_of(given)).tolist()
        assert got["counts"] == agreement.form.counts.tolist()
        assert got["size"] == agreement.form.size
        reach = [agreement.form.reach(one).sums for one in ("replace", "zero-out")]
        assert got["reach"] == pytest.approx(reach, rel=1e-14)


def test_a_diary_is_pythons_mean_to_the_last_bit(run, survey) -> None:
    body = """
        const agreement = JSON.parse(given.agreement);
        await verify.verify(agreement, given.fingerprint);
        return perturb.exactly(agreement)(given.records);"""
    for extra in ({}, {"groups": "region"}, {"neighbours": "zero-out"}):
        promise = {"epsilon": 1, "delta": 1e-6, "quorum": 3000, "diaries": True}
        agreement = Agreement.propose(survey(), **promise, **extra)
        given = records(agreement.schema, 7)
        asked = {"agreement": agreement.to_json(), "fingerprint": agreement.fingerprint}
        got = run("perturb verify", body, asked | {"records": given})
        (exact,) = agreement.exact(table_of(given), np.zeros(7, dtype=int))
        assert got == exact.tolist()


def test_false_exits_are_refused_by_the_page(verdicts) -> None:
    """Each of these Python refuses as well, in its own words."""
    schema = Schema([Numeric("age", 18, 80)], TimeToEvent("months", "left", horizon=24))
    document = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=3000).to_dict()
    lies = []
    for change in (
        lambda d: d["calibration"].update(sigma=d["calibration"]["sigma"] * 0.99),
        lambda d: d["weights"].update(left=d["weights"]["left"] * 1.05),
        lambda d: d["schema"]["target"].update(bands=49),
        lambda d: d["schema"]["target"].update(horizon=25.0),
        lambda d: d["schema"]["features"][1].update(outside="clip"),
    ):
        lie = json.loads(json.dumps(document))
        change(lie)
        with pytest.raises(BlurfitError):
            Agreement.from_dict(lie).verify()
        lies.append(lie)
    lies.append(document | {"diaries": True})  # which no service collects
    assert verdicts(lies) == ["refused"] * len(lies)


@pytest.mark.statistical
def test_each_number_gets_its_own_noise(run, survey) -> None:
    """4,000 times the same record: each of the numbers has its mean, its deviation and no
    correlation with the others. Limits of a false alarm in 10⁹ over all of them.
    """
    agreement = Agreement.propose(survey(), epsilon=1, delta=1e-6, quorum=2000)
    record = records(agreement.schema, 1)[0]
    body = """
        const agreement = JSON.parse(given.agreement);
        return Array.from({length: given.times},
          () => perturb.perturb(agreement, given.record).numbers);"""
    times = 4000
    given = {"agreement": agreement.to_json(), "record": record, "times": times}
    drawn = np.array(run("perturb", body, given))
    found = (drawn - on_grid(agreement, record)) / deviations(agreement)
    limit = stats.norm.isf(CHANCE / found.shape[1] ** 2)
    assert np.abs(found.mean(axis=0)).max() < limit / math.sqrt(times)
    assert np.abs(found.var(axis=0) - 1).max() < limit * math.sqrt(2 / times)
    beside = np.corrcoef(found.T) - np.eye(found.shape[1])
    assert np.abs(beside).max() < limit / math.sqrt(times)
    assert (drawn % steps(agreement) == 0).all(), "what is sent lies on the grid"


def test_submissions_byte_for_byte(run) -> None:
    for width in (1, 10, 300):
        sent = Submission("0f" * 16, "a1" * 32, np.random.default_rng(2).normal(size=width))
        body = """
            const sent = {numbers: given.numbers, identifier: new Uint8Array(16).fill(15)};
            const bytes = submission.toBytes(given.fingerprint, sent);
            return [Array.from(bytes), submission.identifierOf(bytes)];"""
        data, name = run("submission", body, json.loads(sent.to_json()))
        assert bytes(data) == sent.to_bytes()
        assert name == sent.identifier


def test_the_gaussian_profile_is_never_below_pythons(run) -> None:
    points = [
        (mu, epsilon)
        for mu in (1e-6, 1e-3, 0.05, 0.3, 1.0, 3.0, 10.0, 40.0, 500.0)
        for epsilon in (0.0, 1e-6, 0.01, 0.1, 1.0, 5.0, 20.0, 700.0, 1e5)
        if gaussian.log_delta_of(mu, epsilon) > -700
    ]
    got = run("gaussian", "return given.map(([mu, e]) => gaussian.logDelta(mu, e));", points)
    for (mu, epsilon), value in zip(points, got, strict=True):
        difference = value - gaussian.log_delta_of(mu, epsilon)
        assert -1e-12 < difference < 1e-9, (mu, epsilon)


def test_chi_square_tails(run) -> None:
    points = []
    for freedom in (1, 2, 3, 7, 50, 333):
        for noncentrality in (0.0, 0.5, 30.0, 4000.0, 9e5):
            for probability in (1e-3, 1e-8, 1e-14):
                x = (
                    stats.ncx2.isf(probability, freedom, noncentrality)
                    if noncentrality
                    else stats.chi2.isf(probability, freedom)
                )
                points.append((float(x), freedom, noncentrality))
    got = run("proving", "return given.map((one) => proving.noncentralUpperTail(...one));", points)
    for (x, freedom, noncentrality), value in zip(points, got, strict=True):
        expected = (
            stats.ncx2.sf(x, freedom, noncentrality) if noncentrality else stats.chi2.sf(x, freedom)
        )
        assert value == pytest.approx(expected, rel=1e-9), (x, freedom, noncentrality)


def test_strength_is_pythons(run) -> None:
    """How much one submission tells, by its μ, is called strong, some or weak as in Python."""
    mus = [0.01, 0.1, 0.2, 0.235, 0.24, 0.3, 1.0, 1.7, 1.8, 1.9, 2.0, 3.0, 100.0]
    words = {"strong": "very little", "some": "something", "weak": "a great deal"}
    got = run("words", "return given.map((mu) => words.strengthOf(mu));", mus)
    for mu, strength in zip(mus, got, strict=True):
        assert words[strength] in local_in_words(LocalGuarantee(mu, 1.0, 1e-6))


def test_promises_are_pythons(run, agreements) -> None:
    for agreement in agreements[::4]:
        got = run("words", "return words.promiseOf(JSON.parse(given));", agreement.to_json())
        assert got["epsilon"] == pytest.approx(agreement.epsilon, rel=1e-11)
        assert got["delta"] == pytest.approx(agreement.delta, rel=1e-11)


def test_the_agreement_in_words_names_who_collects(run, agreements) -> None:
    """With two databases both are named, and never the sentence about the one that sees all."""
    seen = set()
    for agreement in agreements:
        mu = agreement.calibration.local.mu
        body = """
            const agreement = JSON.parse(given[0]);
            await forms.ready(agreement);
            return words.agreementInWords(agreement, given[1]);"""
        rows = dict(run("words forms", body, [agreement.to_json(), mu]))
        text = " ".join((*rows, *rows.values()))
        assert rows["Each person sends"] == f"{agreement.width:,} blurred numbers, once"
        assert f"{agreement.quorum:,} people" in rows["Nothing is published"]
        seen.add(agreement.trust)
        if agreement.trust == "shared":
            assert all(name in text and url in text for name, url in DATABASES)
            holds = f"at least {agreement.honest:,} of those counted must be real people"
            assert holds in rows["Promise against either of them"]
            together = rows["One submission, if both put their parts together"]
            assert local_in_words(agreement.calibration.local, "Together they") in together
            assert "the database" not in text.lower().replace("the databases", "")
        else:
            assert "Promise against either of them" not in rows
            alone = rows["One submission, seen by the database"]
            assert local_in_words(agreement.calibration.local).removesuffix(".") in alone
        others = [name for name in agreement.targets if name != agreement.schema.target.name]
        if others:
            assert f"predict {', '.join(others)} by" in rows["What may be published"]
        assert ("Compared" in rows, "Weights" in rows) == (
            agreement.groups is not None,
            agreement.weighting is not None,
        )
    assert seen == {"one", "shared"}


@pytest.mark.statistical
@pytest.mark.parametrize("deviation", [0.6, 3.7, 70000.123])
def test_noise_is_the_discrete_gaussian(run, deviation) -> None:
    """10⁵ draws in the browser: Kolmogorov–Smirnov against the exact law, and the variance.

    Nothing can be seeded here, so the limits are those of a false alarm in 10⁹.
    """
    body = """
        const fraction = noise.fractionOf(given[0]);
        return Array.from({length: given[1]}, () => Number(noise.discreteGaussian(...fraction)));"""
    drawn = np.sort(run("noise", body, [deviation, DRAWS]))
    reach = math.ceil(12 * deviation)
    support = np.arange(-reach, reach + 1)
    mass = np.exp(-(support**2) / (2 * deviation**2))
    mass /= mass.sum()
    law = np.cumsum(mass)
    empirical = np.searchsorted(drawn, support, side="right") / DRAWS
    distance = float(np.abs(empirical - law).max())
    variance = float((drawn**2).mean() / (mass @ support**2))
    print(f"deviation {deviation}: KS {distance:.5f}, variance ratio {variance:.5f}")
    assert distance * math.sqrt(DRAWS) < KS_LIMIT
    kurtosis = float(mass @ support**4.0) / float(mass @ support**2) ** 2
    assert abs(variance - 1) < DEVIATIONS * math.sqrt((kurtosis - 1) / DRAWS)
    assert abs(drawn.mean()) < DEVIATIONS * deviation / math.sqrt(DRAWS)


@pytest.mark.statistical
def test_dither_and_bits_are_uniform(run) -> None:
    body = "return Array.from({length: given[1]}, () => Number(noise.uniformBits(given[0])));"
    for bits in (3, 37):
        drawn = np.array(run("noise", body, [bits, DRAWS]))
        assert drawn.min() >= 0
        assert drawn.max() < 2**bits
        bins = np.bincount((drawn / 2 ** (bits - 3)).astype(int), minlength=8)
        assert stats.chisquare(bins).pvalue > CHANCE


def test_names_are_random(run) -> None:
    names = run("noise", "return Array.from({length: 1000}, () => [...noise.newIdentifier()]);")
    assert len({bytes(one) for one in names}) == 1000
    ones = np.unpackbits(np.array(names, dtype=np.uint8)).mean()
    assert abs(ones - 0.5) < DEVIATIONS * 0.5 / math.sqrt(128_000)


def test_numbers_of_a_promise_are_rounded_up(run) -> None:
    """As `at_most` does: “at most 2.01 times” would be false of e^0.7."""
    bounds = [(math.exp(0.7), 3), (1.0000004, 6), (9.99996, 5), (0.5, 6), (1e-6, 6), (0.0, 3)]
    bounds += [(1.23449e-6, 6), (9.9991e-4, 4), (218.73588, 4), (5e12, 6), (1234.4, 4)]
    body = "return given.map(([value, digits]) => language.atMost(value, digits));"
    assert run("language", body, bounds) == [
        "2.02", "1.00001", "10", "0.5", "10⁻⁶", "0",
        "1.235·10⁻⁶", "0.001", "218.8", "5·10¹²", "1,235",
    ]  # fmt: skip
    agreement = Agreement.propose(
        wide(), epsilon=1.0000000000004, delta=1.2345678912349e-6, quorum=500
    )
    found = run("words", "return words.promiseOf(given);", agreement.to_document())
    assert found == {"epsilon": agreement.epsilon, "delta": agreement.delta}


def test_numbers_are_read_as_people_write_them(run) -> None:
    readings = {
        "34,5": 34.5, "34.5": 34.5, " 34 ": 34.0, "1,234.5": 1234.5, "1.234,5": 1234.5,
        "1 234,5": 1234.5, "1’234.5": 1234.5, "1,234,567": 1234567.0, "1.234.567": 1234567.0,
        "-3": -3.0, "−3,25": -3.25, ".5": 0.5, ",5": 0.5, "0,125": 0.125, "5e3": 5000.0,
    }  # fmt: skip
    body = "return Object.keys(given).map((text) => language.parseNumber(text, 'en'));"
    assert run("language", body, readings) == list(readings.values())
    local = [
        ("1,234", "en", 1234.0),
        ("1,234", "de", 1.234),
        ("1.234", "de", 1234.0),
        ("1.234", "en", 1.234),
    ]
    body = "return given.map(([text, locale]) => language.parseNumber(text, locale));"
    assert run("language", body, local) == [value for _, _, value in local]
    none = ["", "abc", "1,2,3.4.5", "1-2", "0x10", "Infinity", "1e", "--1", "12 kg"]
    body = "return given.filter((text) => !Number.isNaN(language.parseNumber(text, 'en')));"
    assert run("language", body, none) == []


@pytest.mark.parametrize("databases", [(), DATABASES])
def test_noise_with_twice_as_many_people_follows_from_that_of_each_person(run, databases) -> None:
    """Seen before: "With twice as many people it is half of that". It falls by √2."""
    schema = Schema([Binary("married")], Numeric("income", 0, 15_000_000))
    shared = {"databases": databases, "proofs": False} if databases else {}
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 2000, "admission": "invited"}
    agreement = Agreement.propose(schema, **promise, **shared)
    said = run("words", "return words.noiseInWords(JSON.parse(given));", agreement.to_json())
    found = re.findall(r"(?:deviation of|people,) ([\d,]+)", said)
    deviation, doubled = (float(one.replace(",", "")) for one in found)
    of_databases = agreement.calibration.sigma**2 * 2 if agreement.database_noise else 0
    each = agreement.calibration.sigma**2 / 2000
    ratio = 0.5 * math.sqrt((4000 * each + of_databases) / (2000 * each + of_databases))
    assert doubled / deviation == pytest.approx(ratio, rel=0.06)  # of two digits
