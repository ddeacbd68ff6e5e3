"""Publish the sums of a collection that has no model of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from blurfit.commands.common import answer

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement


def publish_sums(database: Any, agreement: "Agreement", place: Path, *, as_json: bool) -> None:
    """Publish products with the target, from which a model follows beside public rows."""
    from blurfit.model.moments import WITHOUT_PUBLIC_ROWS

    moments = database.publish_sums(agreement)
    moments.save(place)
    words = (
        f"Published the sums of {moments.count:,} contributions, and wrote {place}. "
        f"{WITHOUT_PUBLIC_ROWS}"
    )
    answer({"count": moments.count, "moments": str(place)}, words, as_json=as_json)
