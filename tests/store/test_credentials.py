"""Two services that start at the same moment make one token."""

import threading

from blurfit.protocol import tokens
from blurfit.store.store import Store


def test_one_token_of_two(place) -> None:
    made: list[bool] = []
    with Store(place) as first, Store(place) as second:
        threads = [
            threading.Thread(
                target=lambda store=store, token=token: made.append(
                    store.appoint(tokens.hashed(token))
                )
            )
            for store, token in ((first, "one"), (second, "two"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(made) == [False, True]
        assert first.administrator() == second.administrator() is not None
        assert first.administrator() in (tokens.hashed("one"), tokens.hashed("two"))
