"""The contract that all parties share before anything is collected.

Its canonical JSON (RFC 8785) has a SHA-256 fingerprint that every message carries, so nobody can be
asked for one thing and used for another. `verify` evaluates every promise again from the noise: a
contributor need not trust the database that sent the agreement.

**Changing the format.** `version` is part of the fingerprint. A reader refuses versions that it
does not know; a field is never given a new meaning, nor removed, without a new version.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import rfc8785

from blurfit.agreement.databases import Database, Trust, refuse_unless_shareable, require_two
from blurfit.agreement.grid import (
    DISCRETE_SHARE,
    LATTICE_SHARE,
    ROUNDING,
    Grid,
    enlarged,
)
from blurfit.agreement.numbers import Objective, Part, PublicWeights, input_parts, moment_parts
from blurfit.agreement.terms import Mechanism, Terms
from blurfit.arrays import FloatArray
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.messages.layout import Layout
from blurfit.messages.shares import Part as SharePart
from blurfit.messages.shares import ShareLayout
from blurfit.schema.joint import joint_form, values
from blurfit.schema.schema import Categorical, Schema
from blurfit.theory.calibrate import calibrate
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.joint_form import JointForm
from blurfit.theory.losses import LogisticLoss, SquaredLoss
from blurfit.theory.moment_calibration import MomentCalibration, calibrate_moment

FORMAT, VERSION = "blurfit-agreement", 1
_FIELDS = {
    "format",
    "version",
    "schema",
    "mechanism",
    "weights",
    "objective",
    "calibration",
    "grid",
    "databases",
}


@dataclass(frozen=True)
class Agreement:
    """Who asks for what, how it is blurred, and what is promised.

    The promise to the people in what is published is `calibration.model`, the one about a single
    submission `calibration.local`. Make one with `Agreement.propose`.

    `weights` are the public weights of the columns (moment), `objective` what the one model
    minimises (input): an agreement has one of them. `databases` are the two between which trust is
    shared, in the order of first and second; there are none if one database collects everything.
    """

    schema: Schema
    calibration: InputCalibration | MomentCalibration
    grid: Grid
    weights: PublicWeights | None = None
    objective: Objective | None = None
    databases: tuple[Database, ...] = ()

    @classmethod
    def propose(cls, schema: Schema, terms: Terms | None = None, **choices: Any) -> "Agreement":
        """Calibrate noise for a schema and a promise, and write the contract.

        What may be chosen is in `blurfit.agreement.terms.Terms`: give one, or its fields as
        keywords, such as epsilon=1, delta=1e-6, quorum=5000.
        """
        if not isinstance(schema, Schema):
            raise InvalidValueError(
                f"Expected a Schema, and got {type(schema).__name__}. From a file: "
                "schema = Schema.from_toml(path)."
            )
        chosen = Terms.of(**choices) if terms is None else terms
        if chosen.mechanism == "input":
            return _propose_input(schema, chosen)
        return _propose_moment(schema, chosen)

    def __repr__(self) -> str:
        return (
            f"<Agreement {self.fingerprint[:12]}: {self.schema.target.name!r} by "
            f"{len(self.schema.features)} columns, {self.mechanism}, epsilon={self.epsilon:g}, "
            f"delta={self.delta:g}, quorum={self.quorum:,}>"
        )

    @property
    def mechanism(self) -> Mechanism:
        """What is blurred: "moment" (products of all columns) or "input" (q and p)."""
        return self.calibration.mechanism

    @property
    def trust(self) -> Trust:
        """Whether "one" database gets whole submissions, or they are "shared" between two."""
        return "shared" if self.databases else "one"

    @property
    def quorum(self) -> int:
        """The least number of honest records; nothing is published below it."""
        return self.calibration.quorum

    @property
    def epsilon(self) -> float:
        """ε of what is published, what is kept back for weights on a lattice included."""
        kept_back = LATTICE_SHARE[self.mechanism]
        return float(f"{self.calibration.model.epsilon / (1 - kept_back):.12g}")

    @property
    def delta(self) -> float:
        """δ of what is published, what is kept back for discrete noise included."""
        return float(f"{self.calibration.model.delta / (1 - DISCRETE_SHARE):.12g}")

    @cached_property
    def form(self) -> JointForm:
        """How a record becomes the vector whose products are sent, for `moment`."""
        if self.weights is None:
            raise InfeasibleError("mechanism='input' sends q and p, and has no joint form.")
        return joint_form(self.schema, self.weights.constant, self.weights.columns)

    @cached_property
    def loss(self) -> SquaredLoss | LogisticLoss:
        """The loss that turns an encoded record into q and p, for `input`."""
        if self.objective is None or not isinstance(self.calibration, InputCalibration):
            raise InfeasibleError("mechanism='moment' has no loss: models are chosen afterwards.")
        return self.objective.function(self.calibration.setting.weight_bound)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(rfc8785.dumps(self.to_dict())).hexdigest()

    # ---- what is sent

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The numbers that a contributor sends, in runs that share a grid."""
        if isinstance(self.calibration, InputCalibration):
            return input_parts(self.calibration, self.grid)
        return moment_parts(self.calibration, self.grid, self.form)

    @property
    def width(self) -> int:
        """How many numbers a contributor sends."""
        return int(self.parts[-1].numbers.stop)

    def exact(self, records: Any) -> FloatArray:
        """The numbers that a record would send without any noise: (width,), or (n, width)."""
        if isinstance(self.calibration, InputCalibration):
            q, p, _ = self.loss.terms(*self.schema.encode(records))
            return np.concatenate([q, p], axis=-1)
        return self.form.products(values(self.schema, records))

    @cached_property
    def layout(self) -> Layout:
        """The bytes of a submission under this agreement."""
        return Layout(self.fingerprint, self.width)

    def share_layout(self, part: SharePart) -> ShareLayout:
        """The bytes of one of the two shares of a submission, where trust is shared."""
        if not self.databases:
            raise InvalidValueError(
                "Expected an agreement with two databases: under this one submissions are whole."
            )
        return ShareLayout(self.fingerprint, self.width, part)

    # ---- checking

    def verify(self, fingerprint: str | None = None, *, allow_unproved: bool = False) -> None:
        """Refuse a contract whose noise keeps less than it promises, or another than was expected.

        Everything that is stated is computed again: how far records of this schema reach, the
        guarantees from the noise, the grid from its budget. What the paper's own rule promises
        (rule="published") does not follow from its noise, so it is refused too, unless
        `allow_unproved`: for experiments, and to read what says that it is not proved.
        """
        if fingerprint is not None and not _alike(fingerprint, self.fingerprint):
            raise NotCertifiedError(
                f"Expected an agreement with fingerprint {fingerprint}, but this one has "
                f"{self.fingerprint}: it is not the one that you were invited to."
            )
        try:
            self._verify()
        except BlurfitError:
            raise
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise InvalidValueError(
                f"Expected numbers and words as blurfit writes them: {error}. Do not send anything "
                "under this agreement."
            ) from error
        if isinstance(self.calibration, InputCalibration) and not allow_unproved:
            _refuse_unless_proved(self.calibration)

    def _verify(self) -> None:
        shared = bool(self.databases)
        if isinstance(self.calibration, InputCalibration):
            if self.weights is not None or self.objective is None:
                raise NotCertifiedError("Expected an objective and no weights with 'input'.")
            self.objective.verify(self.schema)
            self._verify_bounds(self.calibration)
            self.calibration.verify()
            size = self.schema.dimension
        else:
            if self.weights is None or self.objective is not None:
                raise NotCertifiedError("Expected weights and no objective with 'moment'.")
            self.weights.verify()
            reach = self.form.reach(self.calibration.model.neighbours)
            self.calibration.verify(enlarged(reach))
            size = self.form.size
        self.grid.verify(self.calibration, size=size, shared=shared)
        if shared:
            require_two(self.databases)
            refuse_unless_shareable(self.calibration, self.grid)

    def _verify_bounds(self, calibration: InputCalibration) -> None:
        setting, loss = calibration.setting, self.loss
        if self.schema.dimension != setting.dimension:
            raise NotCertifiedError(
                f"Expected dimension={setting.dimension} to be {self.schema.dimension}, the "
                "number of columns that the schema encodes."
            )
        for name, stated, needed in (
            ("q_bound", setting.q_bound, loss.q_bound),
            ("p_bound", setting.p_bound, loss.p_bound),
        ):
            if stated < needed * (1 + ROUNDING) * (1 - 1e-12):
                raise NotCertifiedError(
                    f"Expected {name}={stated!r} of at least {needed * (1 + ROUNDING)!r}, which "
                    "records of this schema reach: the noise is calibrated for less."
                )

    # ---- files

    def to_dict(self) -> dict[str, Any]:
        """The contract as plain values, without its fingerprint."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "schema": self.schema.to_dict(),
            "mechanism": self.mechanism,
            "weights": None if self.weights is None else self.weights.to_dict(self.schema),
            "objective": None if self.objective is None else asdict(self.objective),
            "calibration": self.calibration.to_dict(),
            "grid": asdict(self.grid),
            "databases": [asdict(one) for one in self.databases],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Agreement":
        """The inverse of `to_dict`. Nothing is trusted: call `verify`."""
        stated = document.get("format"), repr(document.get("version"))
        if stated != (FORMAT, repr(VERSION)):
            raise InvalidValueError(
                f"Expected format={FORMAT!r}, version={VERSION}, and got "
                f"format={document.get('format')!r}, version={document.get('version')!r}. "
                "Is this an agreement, and of this version of blurfit?"
            )
        if set(document) != _FIELDS:
            raise InvalidValueError(
                f"Expected the fields {sorted(_FIELDS)}, and got {sorted(document)}."
            )
        try:
            agreement = cls._read(document)
            rfc8785.dumps(agreement.to_dict())  # only plain, finite values have a fingerprint
        except BlurfitError:
            raise
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidValueError(
                f"Expected an agreement as blurfit writes it: {error!r}."
            ) from error
        return agreement

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        schema = Schema.from_dict(document["schema"])
        weights, objective = document["weights"], document["objective"]
        kind: type[InputCalibration] | type[MomentCalibration] = (
            InputCalibration if document["mechanism"] == "input" else MomentCalibration
        )
        found = cls(
            schema=schema,
            calibration=kind.from_dict(document["calibration"]),
            grid=Grid(**document["grid"]),
            weights=None if weights is None else PublicWeights.from_dict(weights, schema),
            objective=None if objective is None else Objective(**objective),
            databases=tuple(Database(**one) for one in document["databases"]),
        )
        if found.mechanism != document["mechanism"]:
            raise InvalidValueError(
                f"Expected mechanism={document['mechanism']!r} to be {found.mechanism!r}, as its "
                "calibration says."
            )
        return found

    def to_document(self) -> dict[str, Any]:
        """The contract as plain values, with its fingerprint: for what carries an agreement.

        The values are those of the canonical text, where 10.0 is 10: so whatever carries the
        agreement has the same bytes, whether it was made here or read from a file.
        """
        canonical: dict[str, Any] = json.loads(rfc8785.dumps(self.to_dict()))
        return canonical | {"fingerprint": self.fingerprint}

    @classmethod
    def from_document(cls, document: Any) -> "Agreement":
        """The inverse of `to_document`; refuses a contract whose fingerprint is not its own."""
        if not isinstance(document, dict):
            raise InvalidValueError("Expected an agreement in JSON: an object with named fields.")
        contract = dict(document)
        stated = contract.pop("fingerprint", None)
        agreement = cls.from_dict(contract)
        if not isinstance(stated, str) or not _alike(stated, agreement.fingerprint):
            raise InvalidValueError(
                f"Expected fingerprint={stated!r} to be {agreement.fingerprint!r}: the text was "
                "changed after it was written. Ask for the agreement again."
            )
        return agreement

    def to_json(self) -> str:
        """The file that is handed round: the contract and its fingerprint, canonical."""
        return rfc8785.dumps(self.to_document()).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Agreement":
        """Read what `to_json` wrote; refuses a text whose fingerprint is not its own."""
        try:
            document = json.loads(text, parse_constant=_refuse_constant)
        except (RecursionError, ValueError) as error:
            raise InvalidValueError(f"Expected an agreement in JSON: {error}.") from error
        return cls.from_document(document)

    def save(self, path: str | Path) -> None:
        """Write the agreement to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path, *, allow_unproved: bool = False) -> "Agreement":
        """Read an agreement from a file, and verify it."""
        agreement = cls.from_json(Path(path).read_bytes())
        agreement.verify(allow_unproved=allow_unproved)
        return agreement


def _propose_moment(schema: Schema, terms: Terms) -> Agreement:
    promise = terms.epsilon, terms.delta * (1 - DISCRETE_SHARE)
    weights = PublicWeights.chosen(schema, terms, promise)
    form = joint_form(schema, weights.constant, weights.columns)
    calibration = calibrate_moment(
        *promise,
        reach=enlarged(form.reach(terms.neighbours)),
        quorum=terms.quorum,
        neighbours=terms.neighbours,
        local_epsilon=terms.local_epsilon,
        local_delta=_local_delta(terms),
    )
    grid = Grid.of(calibration, size=form.size, shared=bool(terms.databases))
    if terms.databases:
        refuse_unless_shareable(calibration, grid)
    return Agreement(schema, calibration, grid, weights=weights, databases=terms.databases)


def _propose_input(schema: Schema, terms: Terms) -> Agreement:
    if isinstance(schema.target, Categorical):
        raise InfeasibleError(
            f"Expected a number or a label as the target with mechanism='input', and "
            f"{schema.target.name!r} has classes: use mechanism='moment', or one label for each."
        )
    if terms.databases:
        raise InfeasibleError(
            "Expected mechanism='moment' with two databases: only what adds can be shared."
        )
    objective = Objective(
        terms.loss or ("logistic" if schema.is_label else "squared"),
        terms.approximation,
        float(terms.l1),
        float(terms.l2),
    )
    objective.verify(schema)
    function = objective.function(terms.weight_bound)
    calibration = calibrate(
        float(terms.epsilon) * (1 - LATTICE_SHARE["input"]),
        float(terms.delta) * (1 - DISCRETE_SHARE),
        dimension=schema.dimension,
        quorum=terms.quorum,
        q_bound=function.q_bound * (1 + ROUNDING),
        p_bound=function.p_bound * (1 + ROUNDING),
        weight_bound=terms.weight_bound,
        rule=terms.rule,
        neighbours=terms.neighbours,
        split=terms.split,
        local_epsilon=terms.local_epsilon,
        local_delta=_local_delta(terms),
        local_share=terms.local_share,
        debias=terms.debias,
    )
    grid = Grid.of(calibration, size=schema.dimension)
    return Agreement(schema, calibration, grid, objective=objective)


def _local_delta(terms: Terms) -> float | None:
    """The agreement's own δ for what is said of a submission, unless there is a target for it."""
    if terms.local_delta is None and terms.local_epsilon is None:
        return terms.delta
    return terms.local_delta


def _alike(stated: str, fingerprint: str) -> bool:
    """Whether two texts are one fingerprint; any text may be asked about."""
    if not isinstance(stated, str):
        raise InvalidValueError(
            f"Expected fingerprint={stated!r} to be a text of 64 hexadecimal digits."
        )
    return hmac.compare_digest(stated.encode(errors="surrogatepass"), fingerprint.encode())


def _refuse_unless_proved(calibration: InputCalibration) -> None:
    promised, kept = calibration.model, calibration.kept
    if not promised.proved:
        raise NotCertifiedError(
            f"Expected rule='certified', and got rule={calibration.rule!r}: epsilon="
            f"{promised.epsilon:g} is what the paper states of this noise, and epsilon="
            f"{kept.epsilon:.4g} is what is proved of it. Send nothing of real people under this "
            "agreement; allow_unproved=True is for experiments."
        )


def _refuse_constant(name: str) -> float:
    raise InvalidValueError(f"Expected finite numbers, and got {name}.")
