"""Signatures stay as they were kept, in the order of the agreement's keys."""

from blurfit import Store
from blurfit.messages.signing import Signature, Signer, new_key
from blurfit.store.signatures import keep, kept
from support import sharing


def test_the_first_stays_and_the_order_is_the_agreements(place) -> None:
    keys = [Signer(new_key()).key for _ in range(2)]
    agreement = sharing.new_agreement(signing_keys=keys)
    first, second = (Signature(key, digit * 128) for key, digit in zip(keys, "ab", strict=True))
    with Store(place) as store:
        store.open(agreement, role="first")
        collection = store.collection(agreement.fingerprint)
        assert store.read(kept, collection, "model") == ()
        store.write(keep, collection, "model", [second])
        store.write(keep, collection, "model", [first, Signature(keys[1], "c" * 128)])
        store.write(keep, collection, "moments", [])
        assert store.read(kept, collection, "model") == (first, second)
        assert store.read(kept, collection, "moments") == ()
