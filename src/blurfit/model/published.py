"""What leaves the database: weights, what they mean in the user's units, and what they promise.

A published model carries its agreement, so whoever has the file can predict from raw records and
can compute again what was promised to whom.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from blurfit.agreement.agreement import Agreement
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.schema.schema import Coefficients
from blurfit.theory.losses import LogisticLoss
from blurfit.theory.setting import ModelGuarantee
from blurfit.validate import finite, inside_unit_interval, whole

FloatArray = npt.NDArray[np.float64]
FORMAT, VERSION = "blurfit-model", 1


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """How far the weights may be from what the same people would have given without privacy.

    `covariance` is that of the privacy noise in the weights, `sampling` that of who happened to
    take part (an upper bound, because the spread of the targets is not collected), `bias` how much
    the ridge may have shrunk each weight.
    """

    covariance: FloatArray
    sampling: FloatArray
    bias: FloatArray


@dataclass(frozen=True, eq=False)
class Estimate:
    """One coefficient in the user's units, with its standard error and an interval."""

    name: str
    value: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class PublishedModel:
    """A model, once and for all: its weights on the encoded columns, and everything about them."""

    agreement: Agreement
    weights: FloatArray
    count: int
    ridge: float
    uncertainty: Uncertainty | None
    software: str
    caveat: str | None = None  # why the promise does not hold for this model, where it does not

    def __post_init__(self) -> None:
        whole(count=self.count)
        finite(ridge=self.ridge)
        if self.count < self.agreement.quorum:
            raise InvalidValueError(
                f"Expected count={self.count} of at least the quorum {self.agreement.quorum}: no "
                "model is published below it."
            )
        weights = np.array(self.weights, dtype=np.float64)
        if weights.shape != (self.agreement.dimension,) or not np.isfinite(weights).all():
            raise InvalidValueError(
                f"Expected weights to be {self.agreement.dimension} finite numbers, one for each "
                f"encoded column, and got shape {weights.shape}."
            )
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    @property
    def fingerprint(self) -> str:
        """Of the agreement that the model was learned under."""
        return self.agreement.fingerprint

    @cached_property
    def guarantee(self) -> ModelGuarantee:
        """What is promised to everyone in it: the agreement's (ε, δ), whatever the count."""
        model, agreement = self.agreement.calibration.model, self.agreement
        proved = model.proved and self.caveat is None
        return ModelGuarantee(
            agreement.epsilon, agreement.delta, model.neighbours, model.releases, proved
        )

    @cached_property
    def coefficients(self) -> Coefficients:
        """The weights in the user's own units: see `Schema.coefficients`."""
        return self.agreement.schema.coefficients(self.weights)

    def estimates(self, level: float = 0.95, *, sampling: bool = True) -> list[Estimate]:
        """Each coefficient in the user's units with its standard error and a two-sided interval.

        The noise is known, additive and unbiased, so to first order the weights err by H⁻¹(r − Ew)
        − ridge·H⁻¹w, H = A + ridge·I: normal, of a covariance that the noise scales give, plus a
        shrinkage that is added to the interval on both sides. With `sampling` the interval is for
        the population that the contributors are a sample of, else for the contributors themselves.
        A model from `input` has none: its sums may be used for the weights alone.
        """
        inside_unit_interval(level=level)
        if self.uncertainty is None:
            raise InfeasibleError(
                "This model has no standard errors. For mechanism='input' they would be a second "
                "release; for 'moment' they are known inside the weight bound, and without l1."
            )
        matrix, offset = self.agreement.schema.user_units_matrix()
        covariance = self.uncertainty.covariance + (self.uncertainty.sampling if sampling else 0.0)
        values = matrix @ self.weights + offset
        errors = np.sqrt(np.einsum("ij,jk,ik->i", matrix, covariance, matrix))
        reach = float(ndtri((1 + level) / 2)) * errors + np.abs(matrix @ self.uncertainty.bias)
        names = ["(intercept)", *self.coefficients.effects]
        return [
            Estimate(name, float(value), float(error), float(value - half), float(value + half))
            for name, value, error, half in zip(names, values, errors, reach, strict=True)
        ]

    def predict(self, records: Any) -> npt.NDArray[Any]:
        """For a number: its prediction in the target's units. For a label: whether it is likely."""
        score = self.agreement.schema.predict(self.weights, records)
        return score > 0 if self.agreement.schema.is_label else score

    def decision_function(self, records: Any) -> FloatArray:
        """w·x on the encoded records: for a label its sign decides."""
        encoded = self.agreement.schema.encode_features(records)
        return np.asarray(encoded @ self.weights)

    def predict_proba(self, records: Any) -> FloatArray:
        """P(label is false), P(label is true), by the best linear predictor: ½ + c·(w·x), cut to
        [0, 1].

        The quadratic a + ½cz² − yz/2 is least squares in disguise: its minimiser is 1/(2c) times
        the least-squares fit of y = ±1, whose value estimates E[y|x] = 2P − 1. So P = ½ + c·z is
        calibrated as far as a linear function can be; the logistic curve of z, which one might
        expect, is not.
        """
        loss = self.agreement.loss
        if not isinstance(loss, LogisticLoss):
            raise InfeasibleError(
                "Probabilities are for labels; this model predicts a number. Use predict."
            )
        likely = np.clip(0.5 + loss.parabola.curvature * self.decision_function(records), 0.0, 1.0)
        return np.stack([1 - likely, likely], axis=-1)

    def to_sklearn(self) -> Any:
        """A fitted scikit-learn pipeline on raw records: see `blurfit.model.export`."""
        from blurfit.model.export import to_sklearn

        return to_sklearn(self)

    def to_onnx(self) -> bytes:
        """An ONNX graph on raw records: see `blurfit.model.export`."""
        from blurfit.model.export import to_onnx

        return to_onnx(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, the agreement included, as plain values."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "software": self.software,
            "caveat": self.caveat,
            "fingerprint": self.fingerprint,
            "count": self.count,
            "weights": dict(zip(self.agreement.schema.columns, self.weights.tolist(), strict=True)),
            "ridge": self.ridge,
            "coefficients": {
                "(intercept)": self.coefficients.intercept,
                **self.coefficients.effects,
            },
            "agreement": json.loads(self.agreement.to_json()),
            "uncertainty": None,
        }
        if self.uncertainty is not None:
            document["uncertainty"] = {
                name: getattr(self.uncertainty, name).tolist()
                for name in ("covariance", "sampling", "bias")
            }
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "PublishedModel":
        """The inverse of `to_dict`; the agreement inside is verified."""
        if not isinstance(document, dict):
            raise InvalidValueError("Expected a model in JSON: an object with named fields.")
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise InvalidValueError(
                f"Expected format={FORMAT!r}, version={VERSION}, and got "
                f"format={document.get('format')!r}, version={document.get('version')!r}. "
                "Is this a model, and of this version of blurfit?"
            )
        try:
            agreement = Agreement.from_json(json.dumps(document["agreement"]))
            agreement.verify(str(document["fingerprint"]), allow_unproved=True)  # it says so
            spread = document["uncertainty"]
            return cls(
                agreement=agreement,
                weights=np.array([document["weights"][name] for name in agreement.schema.columns]),
                count=document["count"],
                ridge=document["ridge"],
                uncertainty=None if spread is None else _uncertainty(spread, agreement.dimension),
                software=str(document["software"]),
                caveat=document["caveat"],
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise InvalidValueError(f"Expected a model as blurfit writes it: {error!r}.") from error

    def to_json(self) -> str:
        """The model as a file; the same model gives the same bytes."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> "PublishedModel":
        """Read what `to_json` wrote."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise InvalidValueError(f"Expected a model in JSON: {error}.") from error
        return cls.from_dict(document)

    def save(self, path: str | Path) -> None:
        """Write the model to a file."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "PublishedModel":
        """Read a model from a file."""
        return cls.from_json(Path(path).read_bytes())


def _uncertainty(spread: Mapping[str, Any], dimension: int) -> Uncertainty:
    parts = {name: np.array(value, dtype=np.float64) for name, value in spread.items()}
    found = Uncertainty(**parts)
    shapes = (found.covariance.shape, found.sampling.shape, found.bias.shape)
    if shapes != ((dimension, dimension), (dimension, dimension), (dimension,)):
        raise InvalidValueError(
            f"Expected the uncertainty of {dimension} weights, and got shapes {shapes}."
        )
    return found


def software() -> str:
    """The name and version that a model is stamped with."""
    return f"blurfit {version('blurfit')}"


def first_order_uncertainty(
    inverse: FloatArray,
    weights: FloatArray,
    *,
    noise_m: float,
    noise_p: float,
    ridge: float,
    residual_gram: FloatArray,
) -> Uncertainty:
    """Covariances of w = H⁻¹c from E and r: Cov(r − Ew) = τ²σ²I + σ²(‖w‖²I + wwᵀ)/2, between two
    H⁻¹.

    `noise_m` and `noise_p` are σ and τσ of all N records together; `residual_gram` bounds the
    covariance of the sum of the records' gradients.
    """
    isotropic = noise_p**2 + noise_m**2 * float(weights @ weights) / 2
    gradient = isotropic * np.eye(len(weights))
    gradient += noise_m**2 / 2 * np.outer(weights, weights)
    return Uncertainty(
        covariance=inverse @ gradient @ inverse,
        sampling=inverse @ residual_gram @ inverse,
        bias=np.abs(ridge) * (inverse @ weights),
    )
