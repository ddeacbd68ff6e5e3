r"""A plan of waves between two databases: the steps from wave to wave, and why they are safe.

What the first does is in `blurfit.store.plan_leader`, what the second does in
`blurfit.store.plan_follower`.

::

    first, which leads                               second
    ──────────────────                               ──────
    wave k has its quorum here
    asks whose shares it has                  ─────► says so, unless the plan is held there
    enough are at both? else it waits
    asks it to close wave k                   ─────► closes it: from now on no seed is taken
    asks again, fixes C, closes wave k, and
    writes C down
    sends C                                   ─────► writes it down, then gives Σ mask over C
    Σ shares over C − Σ mask = Σ v
    publishes Σ v and opens wave k + 1,
    or ends the plan
    sends Σ v, and the agreement that follows ─────► it states what the plan does, with enough
                                                     noise? publishes the same Σ v and opens it
    tells if it is held, resumed or ended     ─────► is so too, with the same model at the end

Every arrow is one transaction at whoever writes something down, and may be repeated: it finds what
was written, and gives the same answer. Both hold the plan's row first and the wave's second.

**One wave, one set, one sum.** For each wave this is `blurfit.store.joint_publication`, whose
argument holds word for word: a set's digest is written down before anything that depends on the set
is given away, and never a second one, by either side (`blurfit.store.commitment`); the digest is
over the wave's fingerprint, so a set of one wave is none of another. Σv is a function of the set,
and is written down by the first in the transaction that opens the next wave, and never again; the
second takes no other text for that wave. So a wave has one release, and by the theorem of
`blurfit.theory.planning` everything that is ever published keeps (ε, δ) for a person of one wave,
against readers and, as far as the masks hide, against either database: what it sees of wave j can
be made up from Σv of wave j (`blurfit.contributor.blur`), for every j, one after the other.

**Killed anywhere** the plan is in one of these states, and the first goes on from each:

| at the first, wave k | at the second, wave k | then |
| --- | --- | --- |
| collects | collects | it begins |
| collects | closed | asking again changes nothing; it goes on to fix C |
| C is fixed | closed, or C is fixed | C is sent again; the second gives the same sum for it |
| released, k + 1 collects | C is fixed | the release is sent again |
| released, k + 1 collects | released, k + 1 collects | nothing is missing |

Nobody has blurred for wave k + 1 before it is open at both: a contributor asks both, and they must
name the same agreement (`blurfit.contributor.client`). A wave is closed at the second *first*:
whoever comes late is refused where her seed goes, which says nothing of her record, and her share
never leaves her. That enough are at both is seen before anything is closed, and shares and seeds
are never lost, so a wave that is closed has its quorum.

**Nobody needs to trust the other about the map.** The first announces the next agreement, and the
second refuses one that does not follow (`blurfit.model.course`): it checks, and does not compute it
again, for two machines round differently. A first that lies about its sums, or announces another
map than they say, makes a useless map; the noise of wave k + 1 suffices for any map whatever.

**Consent.** The second's administrator consents to all waves by opening the plan, and takes that
back for as long as she holds it. A store that was restored from a backup has ended its plans
(`blurfit.store.backup`), so that neither side sums a wave a second time.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.errors import InfeasibleError
from blurfit.store import tables
from blurfit.store.collections import Collection
from blurfit.store.plan_rows import State


class News(NamedTuple):
    """How the leading database's plan stands; when it has ended, why, and with which model."""

    state: State
    reason: str | None = None
    model: str | None = None


def tell(connection: Connection, fingerprint: str, state: State) -> None:
    """Write down what the second database knows of the first's plan."""
    here = tables.joint_plans.c.plan == fingerprint
    connection.execute(sa.update(tables.joint_plans).where(here).values(told=state))


def plan_of(wave: Collection) -> str:
    """The fingerprint of the plan that a wave belongs to."""
    if wave.agreement.wave is None:
        raise InfeasibleError("Expected a wave of a plan, and this collection is not one.")
    return wave.agreement.wave.plan
