"""What an operator types: `blurfit backup`, `blurfit restore`."""

from pathlib import Path

import click

from blurfit.commands.common import answer, as_json, next_step, out_file, store_option
from blurfit.errors import InvalidValueError


@click.command(epilog="Example: blurfit backup --store sqlite:///collection.db --out monday.db")
@store_option()
@out_file("The backup, a new file.", required=True)
@as_json
def backup(place: str, out: Path, as_json: bool) -> None:
    """Copy a store while it is in use, as of one moment, and check the copy.

    A plain copy of the file lacks whatever is still in SQLite's log, which may be everything. Back
    up PostgreSQL with pg_dump.
    """
    from blurfit.store.backup import backup as copy

    found = copy(place, out)
    facts = {"out": str(out), "collections": found.collections, "submissions": found.submissions}
    sentence = (
        f"Wrote {out}: {found.collections:,} collections with {found.submissions:,} submissions, "
        "each sum compared with its checksum."
    )
    answer(facts, sentence, as_json=as_json)


@click.command(epilog="Example: blurfit restore monday.db --store sqlite:///collection.db")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@store_option("The new store.")
@click.option(
    "--original-lost",
    is_flag=True,
    help="Declare that the original is lost, and that it published and exported nothing after the "
    "backup: collections of `moment` with one database then go on. Plans of waves end anyway.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="The store exists already, filled by pg_restore: close what must not publish again.",
)
@as_json
def restore(
    file: Path | None, place: str, original_lost: bool, in_place: bool, as_json: bool
) -> None:
    """Restore a store from a backup FILE, so that nothing can be published a second time.

    What was published stays. Collections that had published nothing are closed for good, because
    the original may have published since then, from other people; see --original-lost.
    """
    from blurfit.store import connecting
    from blurfit.store.backup import Copied, mark_restored
    from blurfit.store.backup import restore as copy

    if in_place == (file is not None):
        raise InvalidValueError("Expected the FILE of a backup, or --in-place without one.")
    if file is None:
        found = Copied(0, 0, mark_restored(place, original_lost=original_lost))
        sentence = f"Marked {place} as restored."
    else:
        target = connecting.file_of(place)
        if target is None:
            raise InvalidValueError(
                f"Expected --store to be a file in SQLite, and got {place!r}. Fill PostgreSQL with "
                "pg_restore, then use --in-place."
            )
        found = copy(file, target, original_lost=original_lost)
        sentence = (
            f"Wrote {target}: {found.collections:,} collections with {found.submissions:,} "
            "submissions."
        )
    if found.closed:
        sentence += (
            f" {len(found.closed):,} of them are closed for good, because the original may have "
            f"published since: {', '.join(one[:12] for one in found.closed)}."
        )
    facts = {
        "store": place,
        "collections": found.collections,
        "submissions": found.submissions,
        "closed": list(found.closed),
    }
    answer(facts, sentence, as_json=as_json)
    next_step(f"`blurfit serve --store {place} …`.", quiet=as_json)
