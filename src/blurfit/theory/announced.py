"""The maps that a wave can announce, read from an agreement, and the form of each."""

from collections.abc import Mapping
from typing import Any

from blurfit.errors import InvalidValueError, one_of
from blurfit.theory.forms import GaugeForm, WaveForm
from blurfit.theory.hazards import HazardForm, HazardMap
from blurfit.theory.maps import (
    GaugeMap,
    LogisticNewton,
    NewtonMap,
    PoissonNewton,
    ResidualMap,
    WaveMap,
    Whitening,
)

Announced = WaveMap | GaugeMap | HazardMap
_COMMON = {"kind", "mean", "whitening", "coefficients", "intercept"}
_NEWTON = {"constant", "radius", "robust", "balance"}
_OWN = {
    "residual": {"radius", "scale", "bound", "weights", "robust", "stride"},
    "gauge": {"scale", "features", "errors", "joint"},
    "logistic": _NEWTON,
    "poisson": {*_NEWTON, "count_bound", "curvature_bound", "gradient_bound"},
    "hazard": {"bands", "events", "radius"},
}


def map_from_dict(entry: Mapping[str, Any]) -> Announced:
    """Read the map of an agreement, and check it before any record is read."""
    if not isinstance(entry, Mapping):
        raise InvalidValueError(f"Expected a map to be a dict, got {type(entry).__name__}.")
    kind = entry.get("kind")
    one_of(tuple(_OWN), kind=kind)
    expected = _COMMON | _OWN[str(kind)]
    if set(entry) != expected:
        raise InvalidValueError(
            f"Expected a {kind} map to have {sorted(expected)}, got {sorted(entry)}."
        )
    if kind == "hazard":
        return HazardMap.from_dict(entry)
    whitening = Whitening.from_dict(entry)
    if kind == "residual":
        weights = entry["weights"]
        if not isinstance(weights, list) or len(weights) != 3:
            raise InvalidValueError(f"Expected weights={weights!r} to be [c, a, b].")
        c, a, b = weights
        reach = entry["radius"], entry["scale"], entry["bound"]
        return ResidualMap(whitening, *reach, c, a, b, entry["robust"], entry["stride"])
    if kind == "gauge":
        ends = entry["features"], entry["errors"]
        return GaugeMap(whitening, entry["scale"], *ends, entry["joint"])
    loss: LogisticNewton | PoissonNewton
    if kind == "logistic":
        loss = LogisticNewton(entry["balance"])
    else:
        count, curvature, gradient = (
            entry[f"{one}_bound"] for one in ("count", "curvature", "gradient")
        )
        loss = PoissonNewton(count, curvature, gradient, entry["balance"])
    return NewtonMap(whitening, loss, entry["constant"], entry["radius"], entry["robust"])


def wave_form(
    chart: Announced, columns: tuple[str, ...], kept: tuple[int, ...], time: int | None = None
) -> WaveForm:
    """Return the form of a map; `time` is the column of a time until an event, if there is one."""
    if isinstance(chart, HazardMap):
        if time is None:
            raise InvalidValueError("Expected a time to an event as the target of a hazard map.")
        return HazardForm(chart, columns, kept, time)
    if isinstance(chart, GaugeMap):
        return GaugeForm(chart, columns, kept)  # type: ignore[arg-type]
    return WaveForm(chart, columns, kept)
