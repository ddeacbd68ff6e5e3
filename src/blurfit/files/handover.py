"""A closed collection as a file of submissions, from which others can learn with more of the kind.

What belongs to the collection's one release goes along:

| collection | its file |
| --- | --- |
| still collecting | is refused: whoever came in between two exports could be told |
| published | says which model; for `input`, files allow that one alone |
| `input`, closed, not published | and from then on never: its model will come from files |
| `moment` | whatever its state: further models of blurred sums are free |
"""

from collections.abc import Callable
from pathlib import Path

from blurfit.errors import NotPublishedError
from blurfit.files.receipt import mark
from blurfit.messages.submission_files import Writer
from blurfit.model.published import PublishedModel
from blurfit.store.store import Store


def export(
    store: Store, fingerprint: str, path: Path, progress: Callable[[int, int], object] | None = None
) -> int:
    """Write a closed collection to a .parquet or .arrow file; how many rows there are."""
    status = store.status(fingerprint)
    if status.state != "collecting" and not status.count:
        raise NotPublishedError(f"Nobody has contributed under {fingerprint}.")
    model = store.hand_over(fingerprint)
    released = None if model is None else mark(PublishedModel.from_json(model))
    agreement = store.collection(fingerprint).agreement
    with Writer(path, agreement.layout, released) as writer:
        for table in store.submissions(fingerprint):
            writer.add(table)
            if progress is not None:
                progress(writer.rows, status.count)
    return writer.rows
