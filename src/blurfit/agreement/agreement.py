"""The contract that all parties share before anything is collected.

Its canonical JSON (RFC 8785) has a SHA-256 fingerprint that every message carries, so nobody can be
asked for one thing and used for another. `verify` evaluates every promise again from the noise: a
contributor need not trust the database that sent the agreement.

**Changing the format.** `version` is part of the fingerprint. A reader refuses versions that it
does not know; a field is never given a new meaning, nor removed, without a new version. Version 2
has two more fields, `trust` and `databases`, and is written where trust is split; everything else
is version 1.
"""

import hashlib
import hmac
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import rfc8785

from blurfit.agreement.databases import (
    TRUSTS,
    Database,
    Trust,
    databases_of,
    refuse_unless_shareable,
    require_two,
)
from blurfit.agreement.grid import DISCRETE_SHARE, LATTICE_SHARE, ROUNDING, Grid
from blurfit.errors import (
    BlurfitError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
)
from blurfit.messages.shares import Part, ShareLayout
from blurfit.messages.submissions import Layout
from blurfit.schema.schema import Schema
from blurfit.theory.calibrate import calibrate
from blurfit.theory.calibration import (
    MECHANISMS,
    InputCalibration,
    Mechanism,
    MomentCalibration,
    Rule,
    calibration_from_dict,
)
from blurfit.theory.losses import Approximation, LogisticLoss, SquaredLoss
from blurfit.theory.setting import Neighbours
from blurfit.validate import finite, inside_unit_interval, nonnegative, one_of, positive, whole

FORMAT, VERSION, SPLIT_VERSION = "blurfit-agreement", 1, 2
LossName = Literal["squared", "logistic"]
LOSSES: tuple[LossName, ...] = ("squared", "logistic")


@dataclass(frozen=True)
class Agreement:
    """Who asks for what, how it is blurred, and what is promised.

    The promise to the model's subjects is `calibration.model`, the one to a contributor
    `calibration.local`; the public facts (quorum, bounds, weight bound, neighbours) are in
    `calibration.setting`. Make one with `Agreement.propose`.

    `databases` are the two between which trust is split, in the order of first and second; there
    are none if one database collects everything.
    """

    schema: Schema
    loss_name: LossName
    approximation: Approximation
    l1: float
    l2: float
    calibration: InputCalibration | MomentCalibration
    grid: Grid
    databases: tuple[Database, ...] = ()

    @classmethod
    def propose(
        cls,
        schema: Schema,
        *,
        epsilon: float,
        delta: float,
        quorum: int,
        loss: LossName | None = None,
        approximation: Approximation = "taylor",
        mechanism: Mechanism = "moment",
        rule: Rule = "certified",
        neighbours: Neighbours = "replace",
        weight_bound: float | None = None,
        l1: float = 0.0,
        l2: float = 0.0,
        split: float | None = None,
        balance: float | None = None,
        local_epsilon: float | None = None,
        local_delta: float | None = None,
        local_share: float | None = None,
        debias: bool = True,
        trust: Trust = "one",
        databases: Sequence[Database | tuple[str, str]] | None = None,
    ) -> "Agreement":
        """Calibrate noise for a schema and a promise, and write the contract.

        The loss follows from the target (squared for a number, logistic for a label). `l1` and `l2`
        are the regulariser l1·‖w‖₁ + ½l2·‖w‖², fixed beforehand. The rest is as in
        `blurfit.calibrate`; mechanism="input" needs a `weight_bound`.

        trust="split" shares every submission between two `databases`, each a name and an address:
        then neither of them alone learns more than the model's users do. It needs "moment".
        """
        if not isinstance(schema, Schema):
            raise InvalidValueError(
                f"Expected a Schema, and got {type(schema).__name__}. From a file: "
                "schema, loss = Schema.from_toml(path)."
            )
        positive(epsilon=epsilon)
        inside_unit_interval(delta=delta)
        whole(quorum=quorum)
        name: LossName = loss or ("logistic" if schema.is_label else "squared")
        one_of(LOSSES, loss=name)
        nonnegative(l1=l1, l2=l2)
        one_of(MECHANISMS, mechanism=mechanism)
        one_of(TRUSTS, trust=trust)
        shared_by = databases_of(databases, trust)
        _refuse_unless_fitting(name, schema)
        if local_delta is None and local_epsilon is None:
            local_delta = delta
        plain = _plain(
            weight_bound=weight_bound,
            split=split,
            balance=balance,
            local_epsilon=local_epsilon,
            local_delta=local_delta,
            local_share=local_share,
        )
        function = _loss(name, approximation, plain["weight_bound"])
        calibration = calibrate(
            float(epsilon) * (1 - LATTICE_SHARE[mechanism]),
            float(delta) * (1 - DISCRETE_SHARE),
            dimension=schema.dimension,
            quorum=operator.index(quorum),
            q_bound=function.q_bound * (1 + ROUNDING),
            p_bound=function.p_bound * (1 + ROUNDING),
            weight_bound=plain["weight_bound"],
            mechanism=mechanism,
            rule=rule,
            neighbours=neighbours,
            parallel=function.parallel,
            split=plain["split"],
            balance=plain["balance"],
            local_epsilon=plain["local_epsilon"],
            local_delta=plain["local_delta"],
            local_share=plain["local_share"],
            debias=debias,
        )
        grid = Grid.of(calibration, split=bool(shared_by))
        if shared_by:
            refuse_unless_shareable(calibration, grid)
        return cls(schema, name, approximation, float(l1), float(l2), calibration, grid, shared_by)

    @property
    def mechanism(self) -> Mechanism:
        """What is blurred: "moment" (qqᵀ and p) or "input" (q and p)."""
        return self.calibration.mechanism

    @property
    def trust(self) -> Trust:
        """Whether "one" database gets whole submissions, or they are "split" between two."""
        return "split" if self.databases else "one"

    @property
    def dimension(self) -> int:
        """d, the number of weights."""
        return self.calibration.setting.dimension

    @property
    def quorum(self) -> int:
        """The least number of honest records; no model below it."""
        return self.calibration.setting.quorum

    @property
    def epsilon(self) -> float:
        """ε of the published model, what is kept back for weights on a lattice included."""
        kept_back = LATTICE_SHARE[self.mechanism]
        return float(f"{self.calibration.model.epsilon / (1 - kept_back):.12g}")

    @property
    def delta(self) -> float:
        """δ of the published model, what is kept back for discrete noise included."""
        return float(f"{self.calibration.model.delta / (1 - DISCRETE_SHARE):.12g}")

    @cached_property
    def loss(self) -> SquaredLoss | LogisticLoss:
        """The loss that turns an encoded record into q and p."""
        return _loss(self.loss_name, self.approximation, self.calibration.setting.weight_bound)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(rfc8785.dumps(self.to_dict())).hexdigest()

    @cached_property
    def layout(self) -> Layout:
        """The bytes of a submission under this agreement."""
        return Layout(self.fingerprint, self.mechanism, self.dimension)

    def share_layout(self, part: Part) -> ShareLayout:
        """The bytes of one of the two shares of a submission, where trust is split."""
        if not self.databases:
            raise InvalidValueError(
                "Expected an agreement with trust='split': under this one submissions are whole."
            )
        return ShareLayout(self.fingerprint, self.mechanism, self.dimension, part)

    def verify(self, fingerprint: str | None = None, *, allow_unproved: bool = False) -> None:
        """Refuse a contract whose noise keeps less than it promises, or another than was expected.

        Everything that is stated is computed again: the dimension and the bounds from schema and
        loss, the guarantees from the noise, the grid from its budget. What the paper's own rule
        promises (rule="published") does not follow from its noise, so it is refused too, unless
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
        one_of(LOSSES, loss=self.loss_name)
        one_of(get_args(Approximation), approximation=self.approximation)
        nonnegative(l1=self.l1, l2=self.l2)
        _refuse_unless_fitting(self.loss_name, self.schema)
        setting, loss = self.calibration.setting, self.loss
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
        if isinstance(self.calibration, MomentCalibration):
            ratio = loss.p_bound / loss.q_bound
            if self.calibration.parallel and not (
                loss.parallel and ratio <= setting.p_bound / setting.q_bound * (1 + 1e-12)
            ):
                raise NotCertifiedError(
                    "Expected parallel=False: p is not a bounded multiple of q for this loss."
                )
        self.calibration.verify()
        self.grid.verify(self.calibration, split=bool(self.databases))
        if self.databases:
            require_two(self.databases)
            refuse_unless_shareable(self.calibration, self.grid)

    def to_dict(self) -> dict[str, Any]:
        """The contract as plain values, without its fingerprint."""
        shared: dict[str, Any] = {}
        if self.databases:
            shared = {"trust": self.trust, "databases": [asdict(one) for one in self.databases]}
        return shared | {
            "format": FORMAT,
            "version": SPLIT_VERSION if self.databases else VERSION,
            "schema": self.schema.to_dict(),
            "loss": {"name": self.loss_name, "approximation": self.approximation},
            "regulariser": {"l1": self.l1, "l2": self.l2},
            "calibration": self.calibration.to_dict(),
            "grid": asdict(self.grid),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Agreement":
        """The inverse of `to_dict`. Nothing is trusted: call `verify`."""
        known, version = (repr(VERSION), repr(SPLIT_VERSION)), repr(document.get("version"))
        if document.get("format") != FORMAT or version not in known:
            raise InvalidValueError(
                f"Expected format={FORMAT!r}, version={VERSION} or {SPLIT_VERSION}, and got "
                f"format={document.get('format')!r}, version={document.get('version')!r}. "
                "Is this an agreement, and of this version of blurfit?"
            )
        expected = {"format", "version", "schema", "loss", "regulariser", "calibration", "grid"}
        if version == repr(SPLIT_VERSION):
            expected |= {"trust", "databases"}
        if set(document) != expected:
            raise InvalidValueError(
                f"Expected the fields {sorted(expected)}, and got {sorted(document)}."
            )
        try:
            regulariser, loss = document["regulariser"], document["loss"]
            agreement = cls(
                schema=Schema.from_dict(document["schema"]),
                loss_name=loss["name"],
                approximation=loss["approximation"],
                l1=regulariser["l1"],
                l2=regulariser["l2"],
                calibration=calibration_from_dict(document["calibration"]),
                grid=Grid(**document["grid"]),
                databases=_databases(document),
            )
            rfc8785.dumps(agreement.to_dict())  # only plain, finite values have a fingerprint
        except BlurfitError:
            raise
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidValueError(
                f"Expected an agreement as blurfit writes it: {error!r}."
            ) from error
        return agreement

    def to_json(self) -> str:
        """The file that is handed round: the contract and its fingerprint, canonical."""
        document = self.to_dict() | {"fingerprint": self.fingerprint}
        return rfc8785.dumps(document).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Agreement":
        """Read what `to_json` wrote; refuses a text whose fingerprint is not its own."""
        try:
            document = json.loads(text, parse_constant=_refuse_constant)
        except (RecursionError, ValueError) as error:
            raise InvalidValueError(f"Expected an agreement in JSON: {error}.") from error
        if not isinstance(document, dict):
            raise InvalidValueError("Expected an agreement in JSON: an object with named fields.")
        stated = document.pop("fingerprint", None)
        agreement = cls.from_dict(document)
        if not isinstance(stated, str) or not _alike(stated, agreement.fingerprint):
            raise InvalidValueError(
                f"Expected fingerprint={stated!r} to be {agreement.fingerprint!r}: the text was "
                "changed after it was written. Ask for the agreement again."
            )
        return agreement

    def save(self, path: str | Path) -> None:
        """Write the agreement to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path, *, allow_unproved: bool = False) -> "Agreement":
        """Read an agreement from a file, and verify it."""
        agreement = cls.from_json(Path(path).read_bytes())
        agreement.verify(allow_unproved=allow_unproved)
        return agreement


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


def _databases(document: Mapping[str, Any]) -> tuple[Database, ...]:
    """Those of a document: two in version 2, none in version 1."""
    if document["version"] == VERSION:
        return ()
    one_of(("split",), trust=document["trust"])
    found = tuple(Database(**one) for one in document["databases"])
    require_two(found)
    return found


def _refuse_unless_fitting(name: LossName, schema: Schema) -> None:
    if (name == "logistic") != schema.is_label:
        raise InfeasibleError(
            f"Expected loss={name!r} to fit the target {schema.target.name!r}: 'logistic' learns a "
            "label (binary, or a number with `above`), 'squared' a number."
        )


def _loss(
    name: LossName, approximation: Approximation, weight_bound: float | None
) -> SquaredLoss | LogisticLoss:
    """Encoded records lie in the unit ball, encoded targets in [−1, 1]."""
    if name == "squared":
        return SquaredLoss(feature_bound=1.0, target_bound=1.0)
    return LogisticLoss(1.0, approximation, weight_bound)


def _plain(**numbers: float | None) -> dict[str, float | None]:
    """Python's own floats, of which alone a canonical text can be made."""
    given = {name: value for name, value in numbers.items() if value is not None}
    finite(**given)
    return {name: None if value is None else float(value) for name, value in numbers.items()}


def _refuse_constant(name: str) -> float:
    raise InvalidValueError(f"Expected finite numbers, and got {name}.")
