"""Signatures stay as they were kept, in the order of the agreement's keys."""

from blurfit.service.peer import publish
from blurfit.store.signatures import keep, kept, missing

from blurfit import Store
from blurfit.messages.signing import Signature, Signer, new_key
from blurfit.store import joint_publication
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


def test_what_lacks_one_is_listed_once_both_databases_have_it(place) -> None:
    keys = [Signer(new_key()).key for _ in range(2)]
    agreement = sharing.new_agreement(signing_keys=keys)
    name = agreement.fingerprint
    signed = [Signature(key, "a" * 128) for key in keys]
    with Store(place) as first, Store() as second:
        peer = sharing.opened(agreement, first, second)
        sharing.send(agreement, first, second, 1, 2, 3)
        second.write(joint_publication.consent, second.collection(name))
        assert name not in first.read(missing)
        assert first.status(name).awaits is None
        publish(first, name, peer)
        collection = first.collection(name)
        for document in ("model", "moments"):
            for one in signed:
                assert name in first.read(missing)
                first.write(keep, collection, document, [one])
        assert name not in first.read(missing)
        assert name not in second.read(missing), "the first asks for it"
