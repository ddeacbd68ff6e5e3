"""A closed collection as a file of submissions, from which others can learn with more of the kind.

What belongs to the collection's one release goes along (`blurfit.model.release`):

| collection | its file |
| --- | --- |
| still collecting | is refused: whoever came in between two exports could be told |
| published | carries the release's mark: files allow that very release, and no other |
| closed, not published | takes the release over: the store never publishes, nor exports elsewhere |
| of shares | is refused: they mean nothing without the other database |
"""

from pathlib import Path

from blurfit.errors import NotPublishedError
from blurfit.messages.submission_writer import Writer
from blurfit.progress import Progress, silent
from blurfit.store import publication
from blurfit.store.store import Store


def export(store: Store, fingerprint: str, path: Path, progress: Progress = silent) -> int:
    """Write a closed collection to a .parquet or .arrow file; how many rows there are."""
    status, collection = store.status(fingerprint), store.collection(fingerprint)
    if status.state != "collecting" and not status.count:
        raise NotPublishedError(f"Nobody has contributed under {fingerprint}.")
    release = store.write(publication.hand_over, collection, str(path.resolve()))
    mark = None if release is None else release.mark()
    with Writer(path, collection.agreement.layout, mark) as writer:
        for table in store.submissions(fingerprint):
            writer.add(table)
            progress(writer.rows, status.count)
    return writer.rows
