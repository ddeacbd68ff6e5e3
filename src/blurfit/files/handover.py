"""A closed collection as a file of submissions, from which others can learn with more of the kind.

What belongs to the collection's one release goes along (`blurfit.model.release`):

| collection | its file |
| --- | --- |
| still collecting | is refused: whoever came in between two exports could be told |
| published | carries the release's mark: files allow that very release, and no other |
| closed, not published | takes the release over: the store never publishes, nor exports again |
| of shares | is refused: they mean nothing without the other database |
"""

from functools import partial
from pathlib import Path

from blurfit.errors import NotPublishedError
from blurfit.messages.files import Writer
from blurfit.progress import Progress, silent
from blurfit.store.collections import Collection
from blurfit.store.store import Store


def export(store: Store, fingerprint: str, path: Path, progress: Progress = silent) -> int:
    """Write a closed collection to a .parquet or .arrow file; how many rows there are."""
    status, collection = store.status(fingerprint), store.collection(fingerprint)
    if status.state != "collecting" and not status.count:
        raise NotPublishedError(f"Nobody has contributed under {fingerprint}.")
    path = path.resolve()
    release, complete = store.hand_over(collection, str(path))
    if complete is not None:
        path.with_name(complete).replace(path)
        return status.count
    mark, finish = None, None
    if release is None:
        finish = partial(_finish, store, collection)
    else:
        mark = release.mark()
    with Writer(path, collection.agreement.layout, mark, before=finish) as writer:
        for table in store.submissions(fingerprint):
            writer.add(table)
            progress(writer.rows, status.count)
    return writer.rows


def _finish(store: Store, collection: Collection, name: str) -> None:
    store.complete_handover(collection, name)
