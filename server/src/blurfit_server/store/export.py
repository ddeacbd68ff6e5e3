"""Write a closed collection to a file, and what belongs to its single release along with it.

| collection | its file |
| --- | --- |
| still collecting | is refused: whoever came in between two exports could be told |
| published | carries the release's mark: files allow that very release, and no other |
| closed, not published | takes the release over: the store never publishes, nor exports again |
| of shares | is refused: they mean nothing without the other database |
"""

from pathlib import Path

from blurfit.errors import NotPublishedError, Progress, silent
from blurfit.messages.files import Writer
from blurfit_server.store.store import Store


def export(store: Store, fingerprint: str, path: Path, progress: Progress = silent) -> int:
    """Write a closed collection to a .parquet or .arrow file; return how many rows it has."""
    status, collection = store.status(fingerprint), store.collection(fingerprint)
    if status.state != "collecting" and not status.count:
        raise NotPublishedError(
            "Nobody has contributed under {fingerprint}.", fingerprint=fingerprint
        )
    path = path.resolve()
    release, complete = store.hand_over(collection, str(path))
    if complete is not None:
        path.with_name(complete).replace(path)
        return status.count
    mark = None if release is None else release.mark()

    def finish(name: str) -> None:
        store.complete_handover(collection, name)

    before = finish if release is None else None
    with Writer(path, collection.agreement.layout, mark, before=before) as writer:
        for table in store.submissions(fingerprint):
            writer.add(table)
            progress(writer.rows, status.count)
    return writer.rows
