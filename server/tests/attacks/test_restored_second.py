"""A second database that was restored from a backup, or copied, tells no sum over another set."""

import shutil

import pytest

from blurfit import ConflictError, InfeasibleError
from blurfit.contributor.blur import share
from blurfit_server.store import blocks, joint
from blurfit_server.store.store import Store, backup, move_here, restore
from server_support.sharing import arrival, opened
from support.sharing import new_agreement

PEOPLE = {"age": [30.0] * 41, "income": [50.0] * 41}


def asked(store, collection, left_out):
    """What a first database asks for: the sum of masks over everyone but these."""
    held = store.read(blocks.held_identifiers, collection.key)
    digest = joint.digest_of(collection, blocks.minus(held, left_out))
    count, bits = len(held) - len(left_out), blocks.members(held, left_out)
    return store.sum_of_masks(collection, digest, count, bits)[2]


@pytest.mark.parametrize("closed_before", [True, False])
def test_no_second_set_is_summed_over(in_memory, closed_before) -> None:
    """Seen before: the two sums differed by one victim's mask, so her submission was laid bare."""
    agreement = new_agreement()
    shared = share(agreement, PEOPLE)
    with Store() as first, Store(in_memory / "second.db") as second:
        opened(agreement, first, second)
        here = second.collection(agreement.fingerprint)
        second.receive(here, [arrival(shared.second)])
        if closed_before:
            second.close_collection(agreement.fingerprint)
        backup(in_memory / "second.db", in_memory / "backup.db")
        second.close_collection(agreement.fingerprint)
        nobody = shared.second.identifiers[:0]
        asked(second, here, nobody)
    restore(in_memory / "backup.db", in_memory / "again.db")
    with Store(in_memory / "again.db") as again:
        here = again.collection(agreement.fingerprint)
        with pytest.raises(InfeasibleError, match="restored from a backup"):
            asked(again, here, shared.second.identifiers[:1])
        with pytest.raises(InfeasibleError, match="restored from a backup"):
            again.require_consent(here)


def test_no_copy_sums_over_a_second_set(in_memory) -> None:
    """Its own commitment is another one: the record that both share knows the first."""
    agreement = new_agreement()
    shared = share(agreement, PEOPLE)
    nobody = shared.second.identifiers[:0]
    with Store() as first, Store(in_memory / "second.db") as second:
        opened(agreement, first, second)
        second.receive(second.collection(agreement.fingerprint), [arrival(shared.second)])
        second.close_collection(agreement.fingerprint)
        (in_memory / "copy").mkdir()
        for path in in_memory.glob("second.db*"):
            shutil.copy(path, in_memory / "copy")
        asked(second, second.collection(agreement.fingerprint), nobody)
    (in_memory / "second.db").unlink()
    move_here(in_memory / "copy" / "second.db")
    with Store(in_memory / "copy" / "second.db") as copy:
        for left_out in (shared.second.identifiers[:1], nobody):
            with pytest.raises(ConflictError):
                asked(copy, copy.collection(agreement.fingerprint), left_out)
