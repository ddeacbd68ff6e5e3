"""What the page seals, the database opens: two programs that share nothing but RFC 9180."""

import pytest

from blurfit.errors import InvalidValueError
from blurfit.messages.shares import new_key, public_key, unseal

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
