"""One person's part in a plan: blurred once, for the wave that collects, and remembered.

    took part before? ─► is it my group's turn? ─► blur ─► journal (on disk) ─► send ─► forgotten

A person's single record has a journal of its own (`blurfit.contributor.journal`), in the folder
where blurfit remembers what was blurred (`blurfit.contributor.memory`), under a keyed hash of the
plan and of the person's name: the folder does not say whose it is. It keeps the bytes
until they are received, and the fact for ever. So whoever calls again after an answer was lost
sends the same bytes, to the wave that they were blurred for, and whoever took part is told so.

A lot decides in which wave a person takes part (`blurfit.agreement.lot`): that of the invitation,
or where anyone may take part the person's own coin, which the journal remembers. Whoever comes
before their wave is asked to come back, and whoever comes after it is told that it is complete.

**Who a person is** cannot be told from her answers, which others may share. It is a name that the
program gives, and by default the account: one account, one person. A program that contributes for
several people names each of them. Another account or machine is another person here; against
those the plan has invitations.
"""

import hashlib
from collections.abc import Callable, Sequence

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.wave import require_group
from blurfit.contributor.journal import Journal, Portion, TakenBackError
from blurfit.contributor.memory import Memory
from blurfit.contributor.receipt import Receipt, Signatures
from blurfit.contributor.sending import groups_of
from blurfit.errors import ClosedError, ConflictError, WaveClosedError

# Refuses a person, by invitations or by the coin, whose group's turn it is not.
Turn = Callable[[Agreement, Sequence[str]], None]

TOOK_PART = (
    "{who} took part in this plan before, and nobody takes part twice: what was sent then counts, "
    "and nothing was sent now."
)
LEFT_OUT = (
    "The wave that this was blurred for closed before it arrived. It is left out, and cannot be "
    "blurred again for a later wave: what has been on its way may have been seen, and a second "
    "blur would break the promise."
)


def take_part(
    once: str,
    person: str,
    blur: Callable[[str, Turn], Portion],
    send: Callable[[Portion], Signatures],
    services: tuple[str, ...],
    announce: Callable[[Portion], object] | None = None,
) -> Receipt:
    """See to it that a person's record is sent, once; her receipt is returned.

    Args:
        once: the plan's fingerprint (`Agreement.once`).
        person: whose record it is.
        blur: asks for the current wave, lets the given check refuse whoever is in another group,
            and blurs the record, under an identifier that follows from this secret. It is called
            only if nothing that depends on this person's
            record has ever left for the plan.
        send: hands it over, and returns what its receivers signed; an error if it was not received.
        services: where it goes.
        announce: sends what says nothing of the record, and comes first: the seed.

    Raises:
        ConflictError: she took part before.
        OtherGroupError: it is not her group's turn.
        WaveClosedError: it came too late for its wave, and is left out for good.
        ClosedError: a wave that is said to collect takes nothing, and nothing of the record has
            left.
    """
    memory = Memory()
    name = hashlib.blake2b(f"{once}\n{person}".encode(), key=memory.key, digest_size=16)
    with Journal(memory.folder / f"{name.hexdigest()}.journal", once, "service", "", 1) as kept:
        pending = list(kept.pending())
        if kept.blurred() and not pending:
            raise ConflictError(TOOK_PART.format(who=repr(person) if person else "You"))
        refused: set[str] = set()  # waves that took no more seeds

        def turn(agreement: Agreement, tokens: Sequence[str]) -> None:
            wave = agreement.wave
            assert wave is not None
            given = [[token] for token in tokens]
            found = kept.groups(lambda: groups_of(wave, given, 1, agreement.admission))
            require_group(wave, found.tolist())

        while True:
            if pending:
                part = pending.pop()
            else:
                kept.keep_secret()
                part = blur(str(kept.secret), turn)
                kept.record(part, has_left=announce is None)
            try:
                signatures = kept.hand_over(part, send, announce)
            except TakenBackError as taken_back:
                if part.under in refused:  # and yet it is said to collect
                    raise taken_back.refusal from None
                refused.add(part.under)
                continue
            except ClosedError as error:
                kept.acknowledge(part)  # for good: never blurred again
                kept.forget_secret()
                raise WaveClosedError(LEFT_OUT) from error
            kept.acknowledge(part, signatures)
            found = kept.receipt(services)
            kept.forget_secret()
            return found
