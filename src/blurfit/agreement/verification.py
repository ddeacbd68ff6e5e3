"""A contributor's check of an agreement: that everything it states follows.

How far records of the schema reach, what the noise guarantees, the grid from its budget, and that
the parts of the contract belong together. Nothing that the document says of itself is believed, and
nothing is compared for equality with what this machine computes: what is stated has to be enough
(`blurfit.theory.guarantees`).
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from blurfit.agreement.checks import refuse_narrow_bounds, refuse_unless_blurrable
from blurfit.agreement.contracts import largest_scale
from blurfit.agreement.databases import refuse_unless_shareable, require_two
from blurfit.agreement.grid import MOST_RATIO, enlarged
from blurfit.agreement.term_rules import require_proofs, require_rules
from blurfit.agreement.terms import ADMISSIONS
from blurfit.errors import InfeasibleError, NotCertifiedError
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.moments import MomentCalibration
from blurfit.validate import one_of

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement  # which imports this module


@lru_cache(maxsize=256)
def require_kept(agreement: "Agreement") -> None:
    """Refuse a contract whose noise keeps less than it promises, or that no reader could use.

    One that was found to keep it is not looked at again: equal fingerprints are equal texts.
    """
    shared = bool(agreement.databases)
    one_of(ADMISSIONS, admission=agreement.admission)
    require_rules(agreement)
    if agreement.sends != "everything" and (agreement.weights is None or agreement.wave):
        raise NotCertifiedError("Expected sends='everything' with 'input' and with waves.")
    proofs = require_proofs(agreement.proofs, databases=agreement.databases)
    if agreement.wave is not None:
        agreement.wave.verify()
        if agreement.honest > agreement.quorum:
            raise NotCertifiedError(
                f"Expected noise for at most the {agreement.quorum} people that the wave waits "
                f"for, and it is sized for {agreement.honest} honest ones."
            )
    calibration = agreement.calibration
    if isinstance(calibration, InputCalibration):
        size = _require_input(agreement, calibration)
    else:
        size = _require_moment(agreement, calibration)
    agreement.grid.verify(calibration, size=size, shared=shared, proofs=proofs)
    refuse_unless_blurrable(agreement.parts)
    if agreement.database_noise:
        refuse_unless_drawable(agreement)
    if shared:
        require_two(agreement.databases)
        assert isinstance(calibration, MomentCalibration)  # `_require_input` refuses databases
        scale = largest_scale(agreement.form)
        refuse_unless_shareable(calibration, agreement.grid, scale, proofs=proofs)
    if proofs:
        _ = agreement.proving  # is refused where it could prove nothing


def refuse_unless_drawable(agreement: "Agreement") -> None:
    """Refuse database noise that cannot be drawn exactly, and any at all with `input`."""
    if agreement.mechanism != "moment":
        raise NotCertifiedError("Expected no database_noise with 'input': its sums are not shown.")
    if agreement.database_ratios.max() > MOST_RATIO:
        raise InfeasibleError(
            f"Expected the database's noise to have at most {MOST_RATIO:g} steps, and it has "
            f"{agreement.database_ratios.max():.4g}: choose a less extreme promise, or a smaller "
            "quorum."
        )


def _require_input(agreement: "Agreement", calibration: InputCalibration) -> int:
    """The paper's q and p: records of the schema reach no further than the noise is made for."""
    if agreement.weights is not None or agreement.wave is not None or agreement.objective is None:
        raise NotCertifiedError("Expected an objective and no weights with 'input'.")
    if agreement.databases:
        raise NotCertifiedError("Expected no databases with 'input': only what adds can be shared.")
    agreement.objective.verify(agreement.schema)
    refuse_narrow_bounds(agreement.schema, calibration, agreement.loss)
    calibration.verify(penalised=agreement.objective.penalised)
    return agreement.schema.dimension


def _require_moment(agreement: "Agreement", calibration: MomentCalibration) -> int:
    """Products of columns, or a later wave's map: their reach is computed from the form."""
    weights = agreement.weights
    if agreement.objective is not None or (weights is None) != agreement.is_later_wave:
        raise NotCertifiedError(
            "Expected weights and no objective with 'moment', or a later wave's map."
        )
    if weights is not None:
        weights.verify()
    reach = agreement.form.reach(calibration.model.neighbours)
    calibration.verify(enlarged(reach, proofs=agreement.proofs))
    return agreement.form.size
