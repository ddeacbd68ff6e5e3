"""The page's lot is Python's, so that a link's group is the one that the service finds."""

from blurfit.agreement.waves import Lot
from blurfit.protocol.tokens import hashed

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
