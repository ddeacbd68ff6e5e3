"""“Prefer not to say”: how a question that need not be answered becomes columns.

A feature with `optional = true` has one column more, 1 for whoever does not say:

| kind | said | not said |
| --- | --- | --- |
| numeric, binary | (z, 0), z in [−1, 1] | (0, 1) |
| categorical, K levels | one 1 among the first K, 0 | 0 …, 1: one more level |

**The promise stays.** Of a question's columns either all but the last may differ from 0, or the
last alone: so Σz² ≤ 1, as for a question that must be answered. The bounds ‖x‖ ≤ 1 (`schema`) and
‖u‖² ≤ ρ² = Σω², one ω² for each question (`theory.joint_form`), hold as they are, and so do all
sensitivities that are proved from them. Neither the bounds nor the number of columns, nor who is
counted, depends on what anybody answers: somebody who does not say is a record like any other, and
her silence is blurred as an answer would be. (To leave her out would let the number of contributors
reveal that she was silent.)

**The model stays right.** It has one coefficient more, for not having said. A number that was not
said stands at the middle of its bounds, a yes/no between the two; whatever it is that the silent
have in common, beyond that, is in their own coefficient and biases no other. As the product of a
question's columns with its last one is 0 for everybody, it is not sent.

A target must be answered: there is nothing to learn from the silent about what they do not say.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.arrays import AnyArray, FloatArray
from blurfit.schema.table import missing

NOT_SAID = "(not said)"


def unsaid_columns(name: str, optional: bool) -> tuple[str, ...]:
    """The name of the column that is 1 for whoever does not say, where that is allowed."""
    return (f"{name}={NOT_SAID}",) if optional else ()


def is_unsaid(column: str) -> bool:
    """Whether a column is that of not saying."""
    return column.endswith(f"={NOT_SAID}")


def scaled_or_unsaid(
    values: AnyArray, scale: Callable[[AnyArray], FloatArray], stand_in: Any
) -> FloatArray:
    """(n, 2): what `scale` makes of the answers beside 0, and (0, 1) where there is none."""
    silent = missing(values)
    found = np.zeros((len(values), 2))
    found[:, 0] = np.where(silent, 0.0, scale(filled(values, silent, stand_in)))
    found[:, 1] = silent
    return found


def filled(values: AnyArray, silent: npt.NDArray[np.bool_], stand_in: Any) -> AnyArray:
    """The values, with something valid where nothing was said: rows keep their numbers."""
    if not silent.any():
        return values
    found = values.copy() if values.dtype.kind in "fO" else values.astype(object)
    found[silent] = stand_in
    return found


def unscaled_or_unsaid(
    z: FloatArray, unscale: Callable[[FloatArray], AnyArray], unsaid: Any
) -> AnyArray:
    """The inverse of `scaled_or_unsaid`: `unsaid` where the last column says so."""
    found = np.asarray(unscale(z[..., 0]))
    if isinstance(unsaid, float):
        return np.where(z[..., 1] > 0.5, unsaid, found)
    return np.where(z[..., 1] > 0.5, unsaid, found.astype(object))
