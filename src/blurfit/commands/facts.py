"""Agreements, moments and models for scripts: what `--json` prints of them."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from blurfit.agreement.conditions import premise_in_words
from blurfit.agreement.promises import caveats_of
from blurfit.agreement.radius import records_worth

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.arrays import FloatArray
    from blurfit.model.moments import PublishedMoments
    from blurfit.model.published import PublishedModel


def agreement_facts(agreement: "Agreement") -> dict[str, Any]:
    """An agreement's facts for scripts."""
    caveats = caveats_of(agreement)
    return {
        "fingerprint": agreement.fingerprint,
        "mechanism": agreement.mechanism,
        "epsilon": None if caveats else agreement.epsilon,
        "delta": None if caveats else agreement.delta,
        "caveats": list(caveats),
        "neighbours": agreement.calibration.model.neighbours,
        "quorum": agreement.quorum,
        "trust": agreement.trust,
        "admission": agreement.admission,
        "database_noise": agreement.database_noise,
        "condition": f"Nothing is promised. {' '.join(caveats)}"
        if caveats
        else premise_in_words(agreement),
        "liar_records": _finite(records_worth(agreement)),
        "proofs": agreement.proofs,
        "numbers": agreement.width,
        "bytes": (agreement.share_layout("masked") if agreement.proofs else agreement.layout).size,
        "local_epsilon": None if caveats else agreement.calibration.local.epsilon,
        "local_delta": None if caveats else agreement.calibration.local.delta,
        "public_rows": agreement.public_rows,
        "signing_keys": list(agreement.signing_keys),
    }


def moments_facts(moments: "PublishedMoments") -> dict[str, Any]:
    """A release's facts and its correlations, where it has any, for scripts; what the noise
    drowns is null.
    """
    found = moments.correlations() if moments.has_all_products else None
    told = found and {
        "columns": list(found.names),
        "correlations": _rows(found.values),
        "standard_errors": _rows(found.standard_errors),
    }
    return {
        "fingerprint": moments.fingerprint,
        "count": moments.count,
        **moments.guarantee.facts(),
        "admission": moments.admission,
        "targets": list(moments.agreement.targets),
        **(told or {}),
    }


def model_facts(model: "PublishedModel") -> dict[str, Any]:
    """A model's facts for scripts: what predicts, and what is known about each coefficient."""
    found: dict[str, Any] = {
        "fingerprint": model.fingerprint,
        "count": model.count,
        "target": model.target,
        "features": list(model.features),
        **model.guarantee.facts(),
        "admission": model.admission,
        "method": model.method,
        "refusal": model.refusal,
        "doubt": model.doubt,
        "outputs": {},
    }
    for place, output in enumerate(model.outputs):
        facts: dict[str, Any] = {"predicting": model.coefficients_of(output).by_name()}
        if model.inference:
            inference = model.inference_of(output)
            facts["r_squared"] = inference.r_squared
            variance = inference.residual_variance
            facts["residual_deviation"] = None if variance is None else math.sqrt(variance)
            facts["estimates"] = [asdict(one) for one in model.estimates(output=output)]
            facts["liars"] = dict(model.liars[place]) if model.liars else None
        found["outputs"][output] = facts
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _rows(values: "FloatArray") -> list[list[float | None]]:
    return [[None if math.isnan(v) else v for v in row] for row in values.tolist()]
