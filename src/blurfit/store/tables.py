"""The store's tables, and what is in each.

| table | what is in it |
| --- | --- |
| `migrations` | which steps have been taken (`blurfit.store.migrations`) |
| `settings` | the hash of the administrator's token |
| `collections` | an agreement, its state, and once published its model, for ever |
| `recent`, `identifiers` | the identifiers that were taken |
| `blocks` | submissions as they came, some hundreds in a row, with their sums and a checksum |
| `invitations` | hashes of those that nobody has used; using one removes it |
| `sharing` | which of two databases this is for a collection, and the set that both sum over |
| `verdicts` | whose proofs, where there are proofs, have been looked at, and what was found |
| `withdrawn` | identifiers that are taken and whose submissions were withdrawn |
| `signatures` | of what was published, by whichever key |
| `stewards`, `deeds` | further tokens with what each is good for, and what was done with any |
| `plans`, `waves` | plans of waves, how far they are, and which collection is which wave |
| `joint_plans` | of a plan between two databases: what the second knows of how the first stands |

`identifiers` and `blocks` are apart because they are asked for apart: an identifier on every
arrival, numbers hardly ever. The sums of a block let a model be learned without reading its numbers
again.

Identifiers are random, so each lands on another page of an index, and SQLite's log holds whole
pages. That is why they first go to `recent`, which is small, and are moved to `identifiers` in
order, some thirty thousand at a time: half of the time per submission. PostgreSQL logs rows, and
there they stay.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

metadata = sa.MetaData()
_Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite counts up only in INTEGER

migrations = sa.Table(
    "migrations",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
)
settings = sa.Table(
    "settings",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
)
collections = sa.Table(
    "collections",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    sa.Column("agreement", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("model", sa.Text),
    sa.Column("moments", sa.Text),  # the sums that a `moment` model is from
    sa.Column("refusal", sa.Text),  # why there will never be a model
    sa.Column("handed_over", sa.Text),  # the file that its release was left to
    sa.Column("handed_in", sa.Text),  # the complete file, before it took that name
    sa.Column("opened", sa.Integer),  # since 1970: when, to the hour
    sa.Column("closes", sa.BigInteger),  # the second since 1970 from which nothing is taken
    sa.Column("noise", sa.LargeBinary),  # of the database itself, drawn with its set; words
    sa.CheckConstraint(
        "state IN ('collecting', 'paused', 'closed', 'published')", name="known_state"
    ),
    sa.CheckConstraint("(state = 'published') = (model IS NOT NULL)", name="published_has_model"),
)


def _taken(table: str) -> sa.Table:
    return sa.Table(
        table,
        metadata,
        sa.Column("collection", _Key, primary_key=True),
        sa.Column("identifier", sa.LargeBinary, primary_key=True),
        sqlite_with_rowid=False,
    )


identifiers, recent, withdrawn = map(_taken, ("identifiers", "recent", "withdrawn"))
blocks = sa.Table(
    "blocks",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("collection", _Key, nullable=False),
    sa.Column("hour", sa.Integer, nullable=False),  # since 1970: when, to the hour
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("checksum", sa.LargeBinary, nullable=False),
    sa.Column("sums", sa.LargeBinary, nullable=False),
    sa.Column("rows", sa.LargeBinary, nullable=False),
    sa.Index("blocks_by_collection", "collection", "hour", "count"),
)
invitations = sa.Table(
    "invitations",
    metadata,
    sa.Column("collection", _Key, primary_key=True),
    sa.Column("hash", sa.LargeBinary, primary_key=True),
    sqlite_with_rowid=False,
)
sharing = sa.Table(
    "sharing",
    metadata,
    sa.Column("collection", _Key, primary_key=True, autoincrement=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("digest", sa.LargeBinary),  # of the common set; written once, never changed
    sa.Column("count", sa.BigInteger),  # how many are in it
    # The identifiers that are here and not in it, in order; or "+", and those that are in it.
    sa.Column("left_out", sa.LargeBinary),
    sa.Column("noise", sa.LargeBinary),  # of this database itself, drawn with the set; words
    sa.Column("delivered", sa.Boolean, nullable=False),  # to the other database: the result
    sa.Column("verification", sa.LargeBinary),  # the key for proofs; written once, never changed
    sa.CheckConstraint("role IN ('first', 'second')", name="known_role"),
)
verdicts = sa.Table(
    "verdicts",
    metadata,
    sa.Column("collection", _Key, primary_key=True),
    sa.Column("identifier", sa.LargeBinary, primary_key=True),
    sa.Column("valid", sa.Boolean, nullable=False),
    sqlite_with_rowid=False,
)
plans = sa.Table(
    "plans",
    metadata,
    sa.Column("fingerprint", sa.Text, primary_key=True),
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),  # why it ended before its last wave, or has no model
    sa.Column("learned", sa.Boolean, nullable=False),  # there is a model, or there will be none
    sa.CheckConstraint("state IN ('collecting', 'held', 'ended')", name="known_plan_state"),
)
waves = sa.Table(
    "waves",
    metadata,
    sa.Column("plan", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("collection", _Key, nullable=False, unique=True),
)
joint_plans = sa.Table(
    "joint_plans",
    metadata,
    sa.Column("plan", sa.Text, primary_key=True),
    sa.Column("told", sa.Text, nullable=False),  # the first's state, as the second knows it
    sa.CheckConstraint("told IN ('collecting', 'held', 'ended')", name="known_told_state"),
)
signatures = sa.Table(
    "signatures",
    metadata,
    sa.Column("collection", _Key, primary_key=True, autoincrement=False),
    sa.Column("document", sa.Text, primary_key=True),  # "model" or "moments"
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("signature", sa.Text, nullable=False),
)
stewards = sa.Table(
    "stewards",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("right", sa.Text, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
)
deeds = sa.Table(
    "deeds",
    metadata,
    sa.Column("key", _Key, primary_key=True),
    sa.Column("second", sa.BigInteger, nullable=False),  # since 1970
    sa.Column("steward", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text),
    sa.Column("outcome", sa.Integer, nullable=False),
)


def of_waves(plan: Any, *columns: Any) -> sa.Select[Any]:
    """Columns of the collections that are the waves of a plan, in the order of the waves."""
    joined = sa.select(*columns).join(waves, waves.c.collection == collections.c.key)
    return joined.where(waves.c.plan == plan).order_by(waves.c.number)


def insert_if_absent(connection: Connection, table: sa.Table) -> Any:
    """An INSERT that leaves alone what is there already."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()
