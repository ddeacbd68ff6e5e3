"""The page proves that what it sends is no longer than an honest submission, in Python's bytes."""

import json
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from blurfit import Agreement, Numeric, Schema
from blurfit import protocol as tokens
from blurfit.contributor.blur import PROOF_BYTES, blur, proved_with
from blurfit.messages.submissions import new_key, public_key, unseal
from blurfit.proofs.field import MODULUS
from support.proofs import verdicts

from .conftest import opened_at_both, two_services

RECORD = {"age": 42.625, "married": True, "region": "south", "income": 61234.5}
SHARES = """async ([agreement, identifier, numbers, random]) => {
  const { proved } = await import("/pages/submission.js");
  const sent = { identifier: Uint8Array.from(identifier), numbers };
  const drawn = random && Uint8Array.from(random);
  const both = await proved(agreement, agreement.fingerprint, sent, drawn);
  return both.map((one) => [...one]);
}"""
CHECK = """async (given) => {
  const { verify } = await import("/pages/verify.js");
  const { fingerprintOf } = await import("/pages/checks.js");
  given.fingerprint = await fingerprintOf(given);
  try { await verify(given, given.fingerprint); return null; } catch (e) { return e.message; }
}"""


@pytest.fixture(scope="module")
def two(tmp_path_factory, survey) -> Iterator[tuple]:
    """Two services with keys of their own, and an agreement by invitation with sealed proofs."""
    keys = [new_key(), new_key()]
    with two_services(tmp_path_factory.mktemp("proofs"), share_key=keys) as (stores, urls):
        names = ("Office", "University")
        databases = list(zip(names, urls, map(public_key, keys), strict=True))
        promise = {"epsilon": 1, "delta": 1e-6, "quorum": 1000, "proofs": True}
        agreement = Agreement.propose(survey(), **promise, databases=databases)
        yield opened_at_both(stores, agreement), stores, urls, keys


@pytest.fixture(scope="module")
def page_of_the_first(page_at, two) -> Iterator[Page]:
    with page_at(two[2][0] + "/") as page:
        yield page


@pytest.fixture
def run(chromium: Browser, page_of_the_first: Page):
    return page_of_the_first.evaluate


def wide(quorum: int) -> Agreement:
    """119 numbers a submission."""
    columns = [Numeric(f"x{place}", 0, 1) for place in range(13)]
    databases = [("First", "https://first.example"), ("Second", "https://second.example")]
    schema = Schema(features=columns, target=Numeric("y", 0, 1))
    return Agreement.propose(
        schema, epsilon=1, delta=1e-6, quorum=quorum, databases=databases, proofs=True
    )


@pytest.mark.parametrize("quorum", [20, 5000])
def test_the_page_proves_in_the_bytes_of_python(run, quorum) -> None:
    agreement = wide(quorum)
    record = dict.fromkeys((*(f"x{place}" for place in range(13)), "y"), 0.9)
    table = blur(agreement, agreement.exact(record))
    random = np.random.default_rng(quorum).bytes(PROOF_BYTES)
    right = proved_with(agreement, table, [random])
    given = [
        json.loads(agreement.to_json()),
        table.identifiers[0].tolist(),
        table.numbers[0].tolist(),
        list(random),
    ]
    found = [bytes(one) for one in run(SHARES, given)]
    assert found == [right.first.to_bytes(), right.second.to_bytes()]
    # what it draws itself is another share each time, and is believed
    first, second = ([bytes(one) for one in run(SHARES, [*given[:3], None])] for _ in range(2))
    assert first[0] != second[0]
    assert first[1] != second[1]
    for both in (first, second):
        assert believed(agreement, *both) == [True]


def believed(agreement: Agreement, first: bytes, second: bytes) -> list[bool]:
    """Whether both databases find the proof of a share valid."""
    layouts = agreement.share_layout("masked"), agreement.share_layout("seed")
    rows = [layout.rows(one) for layout, one in zip(layouts, (first, second), strict=True)]
    names = layouts[0].identifiers(rows[0])
    assert np.array_equal(names, layouts[1].identifiers(rows[1]))
    words = [layout.words(one) for layout, one in zip(layouts, rows, strict=True)]
    return verdicts(*words, names, prio3=agreement.proving.prio3).tolist()


def test_the_field_is_that_of_python_at_its_ends_too(run) -> None:
    edges = [0, 1, 2, 2**32 - 2, 2**32 - 1, 2**32, 2**32 + 1, 2**63, MODULUS - 2**32, MODULUS - 1]
    some = np.random.default_rng(4).integers(0, MODULUS, 30, dtype=np.uint64).tolist()
    pairs = [(a, b) for a in edges for b in edges] + list(zip(some, some[::-1], strict=True))
    script = """async (pairs) => {
      const { add, elements, isCanonical, mul, put, sub } = await import("/pages/field64.js");
      const [one, other, out] = [elements(1), elements(1), elements(1)];
      return pairs.map(([a, b]) => {
        put(one, 0, BigInt(a));
        put(other, 0, BigInt(b));
        return [add, sub, mul].map((work) => {
          work(out, 0, one, 0, other, 0);
          if (!isCanonical(...out)) throw new Error(`${a} ${b}`);
          return String(BigInt(out[0]) + (BigInt(out[1]) << 32n));
        });
      });
    }"""
    found = run(script, [[str(a), str(b)] for a, b in pairs])
    right = [[(a + b) % MODULUS, (a - b) % MODULUS, a * b % MODULUS] for a, b in pairs]
    assert [[int(one) for one in row] for row in found] == right


def test_the_page_proves_the_same_of_every_agreement(run, two) -> None:
    script = """async (given) => {
      const { provingOf } = await import("/pages/proving.js");
      const { digits, ceiling, calls, arity, proofLength } = provingOf(given);
      return [digits, String(ceiling), calls, arity, proofLength];
    }"""
    schema, databases = two[0].schema, two[0].databases
    promises = [(epsilon, quorum) for epsilon in (0.1, 4, 150) for quorum in (2, 777, 3_000_000)]
    for epsilon, quorum in promises:
        terms = {"epsilon": epsilon, "delta": 1e-6, "quorum": quorum, "databases": databases}
        agreement = Agreement.propose(schema, **terms, proofs=True)
        circuit, flp = agreement.proving.circuit, agreement.proving.prio3.flp
        right = [circuit.digits, str(circuit.ceiling), circuit.calls, circuit.arity]
        given = json.loads(agreement.to_json())
        assert run(script, given) == [*right, flp.proof_length]
        assert run(CHECK, given) is None


def changed(given: dict, path: str, value) -> dict:
    """An agreement with another value at one place; `...` takes it out."""
    found = json.loads(json.dumps(given))
    holder, (*outer, last) = found, path.split(".")
    for name in outer:
        holder = holder[name]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return found


def test_tampered_terms_are_refused(run, two) -> None:
    given = json.loads(two[0].to_json())
    assert run(CHECK, given) is None
    for path, value in {
        "proofs": ...,  # the grid of proofs without them
        "databases": [],
        "calibration.quorum": 10**6,
        "calibration.sigma": given["calibration"]["sigma"] * 0.99,
        "step": given["step"] * 2,
        "calibration.model.epsilon": 650,
    }.items():
        assert run(CHECK, changed(given, path, value)) is not None, path
    for value in (False, None, 1, "true", [True]):
        assert "proofs" in run(CHECK, changed(given, "proofs", value))


def test_a_proof_goes_along_and_survives_a_reload(new_tab, two, fill_in) -> None:
    """Sealed, by invitation, the first answer lost, and reloaded: the very same bytes again."""
    agreement, stores, urls, keys = two
    given = [tokens.new_token() for _ in range(2)]
    for store, token in zip(stores, given, strict=True):
        store.invite(agreement.fingerprint, [tokens.hashed(token)])
    page = new_tab()
    complaints, sent = [], []
    page.on(
        "request",
        lambda one: sent.append((one.url, one.post_data_buffer)) if one.method == "POST" else None,
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def lose_the_answer(route) -> None:
        route.fetch()
        route.abort()

    first_path = f"{urls[0]}/collections/{agreement.fingerprint}/submissions"
    page.route(first_path, lose_the_answer)
    page.goto(f"{urls[0]}/c/{agreement.fingerprint}#invitation={','.join(given)}")
    expect(page.locator("#agreement")).to_contain_text("A proof goes along", use_inner_text=False)
    fill_in(page, "income")
    page.get_by_role("button", name="Blur my answers").click()
    expect(page.locator("#preview")).to_contain_text("learn nothing else from it")
    page.get_by_role("button", name="Send the blurred numbers").click()
    expect(page.get_by_text("could not be reached")).to_be_visible()
    page.unroute_all(behavior="wait")
    page.reload()
    expect(page.get_by_text("Your blurred numbers have arrived")).to_be_visible()
    kept = page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")

    assert complaints == []
    bodies = [{body for url, body in sent if url.startswith(origin)} for origin in urls]
    assert [len(each) for each in bodies] == [1, 1], "never a second share of the same numbers"
    assert sum(url == first_path for url, _ in sent) > 1
    assert [store.count(agreement) for store in stores] == [1, 1]
    roles = zip(bodies, keys, ("first", "second"), strict=True)
    opened = [unseal(each.pop(), key, agreement.fingerprint, role) for each, key, role in roles]
    assert believed(agreement, *opened) == [True]
    assert '\\"body\\"' not in kept, "what was received is not kept"
    # together they are the blurred record, on its grid and near the truth
    prio3, circuit = agreement.proving.prio3, agreement.proving.circuit
    parts = [agreement.share_layout(part) for part in ("masked", "seed")]
    one, other = (
        part.words(part.rows(message)) for part, message in zip(parts, opened, strict=True)
    )
    both = (prio3.leader_halves(one).inputs, prio3.helper_halves(other).inputs)
    numbers = circuit.truncate(np.vstack(both)).astype(object).sum(axis=0) % MODULUS - circuit.half
    (part,) = agreement.parts
    difference = numbers.astype(float) * part.step - agreement.exact(RECORD)
    assert (np.abs(difference) < 8 * part.deviations + part.step).all()
