"""Small parts of the pages, each against another program: codes, lots, seals."""

import pytest
import segno

from blurfit.agreement.mechanisms import Lot
from blurfit.errors import InvalidValueError
from blurfit.messages.submissions import new_key, public_key, unseal
from blurfit.protocol import hashed

# Full versions, in which nothing is padded: the other library pads with a byte more than it must.
FULL = {1: 14, 2: 26, 4: 62, 6: 106, 7: 122, 8: 152, 9: 180, 10: 213, 11: 251, 14: 362, 20: 666}
LINK = "https://first.example/c/" + "a1" * 32 + "#invitation=" + "Zq-_9" * 120


def test_codes_are_segnos(run) -> None:
    """With the mask that the other library chose."""
    made = [
        (LINK[:length], segno.make(LINK[:length], error="m", boost_error=False, mode="byte"))
        for length in FULL.values()
    ]
    given = [[text, one.mask] for text, one in made]
    body = """
        const { correction: { M }, generate, mode } = await import("/pages/lean-qr.js");
        const options = {modes: [mode.ascii], minCorrectionLevel: M, maxCorrectionLevel: M};
        return given.map(([text, mask]) => {
          const code = generate(text, {...options, mask});
          const places = [...Array(code.size).keys()];
          const picture = inviting.picturesque(code);
          return [places.map((y) => places.map((x) => code.get(x, y))), picture];
        });"""
    for (found, svg), (_, expected) in zip(run("inviting", body, given), made, strict=True):
        assert found == [[bool(one) for one in row] for row in expected.matrix]
        size = len(found) + 8  # a quiet zone of four modules
        assert f'viewBox="-4 -4 {size} {size}"' in svg
        assert svg.count("h1v1h-1z") == sum(map(sum, found))


WAVE = {"plan": "ab" * 32, "number": 1, "people": [20, 30, 50]}


def drawing(run, body: str, wave: dict[str, object]) -> list[int]:
    """What comes of a body if the device draws the hundredths of all that it could, in turn."""
    draws = """
        let at = 0;
        crypto.getRandomValues = (words) => {
          words[0] = (BigInt(at++) << 64n) / 100n + 1n;
          return words;
        };"""
    whole = f"{draws} try {{ {body} }} finally {{ delete crypto.getRandomValues; }}"
    found: list[int] = run("waves", whole, wave)
    return found


def test_the_group_of_an_invitation_is_python_s(run) -> None:
    tokens = [f"invitation-{number}" for number in range(300)]
    people = [(4000, 6000, 2**40), (2, 3, 5), (2**52,)]
    for lot in (Lot("cd" * 32, one) for one in people):
        body = "return Promise.all(given[1].map((one) => waves.groupOf(given[0], one)));"
        found = run("waves", body, [{"plan": lot.plan, "people": list(lot.people)}, tokens])
        assert found == [lot.group_of(hashed(one)) for one in tokens]


def test_shares_are_in_proportion_and_a_single_one_is_fair(run) -> None:
    body = "return waves.shares(given[0], given[1], given[2]);"
    assert run("waves", body, [WAVE, 300, 1]) == [60, 90, 150]
    assert run("waves", body, [WAVE, 16, 2]) == [0, 6, 10]
    many = "return Array.from({length: 100}, () => waves.shares(given, 1, 1).indexOf(1));"
    found = drawing(run, many, WAVE)
    assert [found.count(place) for place in range(3)] == WAVE["people"]


def test_a_coin_is_fair_among_the_waves_that_are_left_and_tossed_once(run) -> None:
    body = """
        const toss = () => {
          const found = waves.coin(given);
          if (waves.coin(given) !== found) return null; // as it fell
          localStorage.clear();
          return found;
        };
        return Array.from({length: 100}, toss);"""
    found = drawing(run, body, WAVE)
    assert [found.count(group) for group in (1, 2, 3)] == WAVE["people"]
    later = drawing(run, body, WAVE | {"number": 3})
    assert set(later) == {3}


MARK = "5c" * 32
SEAL = """async ([message, key, mark, place]) => {
  const { seal } = await import("/pages/submission.js");
  const sealed = await seal(Uint8Array.from(message), key, mark, place);
  return [...sealed];
}"""


def test_the_page_seals_what_the_database_opens(visit) -> None:
    page, private = visit().go("/"), new_key()
    message = bytes(range(256)) * 3
    for place, role, other in ((1, "first", "second"), (2, "second", "first")):
        given = [list(message), public_key(private), MARK, place]
        first, second = (bytes(page.evaluate(SEAL, given)) for _ in range(2))
        assert first != second, "a key of its own each time"
        assert unseal(first, private, MARK, role) == unseal(second, private, MARK, role) == message
        with pytest.raises(InvalidValueError):
            unseal(first, private, MARK, other)
