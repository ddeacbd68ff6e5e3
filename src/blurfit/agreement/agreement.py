"""The contract that all parties share before anything is collected.

Its canonical JSON (RFC 8785) has a SHA-256 fingerprint that every message carries, so nobody can be
asked for one thing and used for another. `verify` finds every promise kept by the noise as it is
stated: a contributor need not trust the database that sent the agreement.

**Changing the format.** `version` is part of the fingerprint. A reader refuses versions that it
does not know; a field is never given a new meaning, nor removed, without a new version.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from blurfit.agreement.checks import promised_in_all, refuse_unless_blurrable, refuse_unless_proved
from blurfit.agreement.contracts import form_of, input_contract, moment_contract
from blurfit.agreement.databases import Database, Trust
from blurfit.agreement.fingerprinted import Fingerprinted
from blurfit.agreement.grid import DISCRETE_SHARE, LATTICE_SHARE, Grid
from blurfit.agreement.lot import Lot
from blurfit.agreement.numbers import (
    Form,
    NumberRun,
    Objective,
    PublicWeights,
    input_parts,
    moment_parts,
)
from blurfit.agreement.promises import caveats_of
from blurfit.agreement.proving import Proving
from blurfit.agreement.terms import (
    LATER_TERMS,
    Admission,
    Mechanism,
    Sends,
    Terms,
    later_read,
    later_written,
)
from blurfit.agreement.verification import require_kept
from blurfit.agreement.wave import Wave
from blurfit.arrays import FloatArray
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.messages.shares import ShareLayout, SharePart
from blurfit.messages.submissions import Layout
from blurfit.schema.schema import Schema
from blurfit.schema.vectors import values
from blurfit.theory.guarantees import at_most
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.losses import LogisticLoss, SquaredLoss
from blurfit.theory.maps import Announced
from blurfit.theory.moments import MomentCalibration
from blurfit.theory.planning import StageKind

Kind = StageKind | Literal["input"]  # what a wave sends


@dataclass(frozen=True, eq=False)
class Agreement(Fingerprinted):
    """Who asks for what, how it is blurred, and what is promised.

    The promise to the people in what is published is `calibration.model`, the one about a single
    submission `calibration.local`. Make one with `Agreement.propose`.

    `weights` are the public weights of the columns (moment), `objective` what the one model
    minimises (input): an agreement has one of them. `databases` are the two between which trust is
    shared, in the order of first and second; there are none if one database collects everything.
    `wave` is its place in a plan, if there is one: a later wave has a map instead of weights.
    `public_rows` is the SHA-256 of a public file of rows with the same features, if models are to
    be read beside one; they are assumed to be public, and not to be the contributors' own.
    `admission` says who may take part, on which the promise depends
    (`blurfit.agreement.conditions`); `database_noise` whether the database, or each of the two,
    adds noise of its own (`blurfit.theory.moments`); `proofs` whether contributors prove to
    the two databases that what they send is short.
    `sends` says whether products of all columns are sent, or only "targets": those with the target.
    `signing_keys` are those of the service, or of each of the two, by which receipts and what is
    published are signed (`blurfit.messages.signing`).
    """

    CALLED = "an agreement"
    release: ClassVar = "by hand"
    STATED: ClassVar = {"format": "blurfit-agreement", "version": 1}
    FIELDS = frozenset(
        {
            "schema",
            "mechanism",
            "weights",
            "objective",
            "calibration",
            "grid",
            "databases",
            "wave",
            "public_rows",
        }
    )
    OPTIONAL = frozenset(LATER_TERMS)

    schema: Schema
    calibration: InputCalibration | MomentCalibration
    grid: Grid
    weights: PublicWeights | None = None
    objective: Objective | None = None
    databases: tuple[Database, ...] = ()
    wave: Wave | None = None
    public_rows: str | None = None
    admission: Admission = "invited"
    database_noise: bool = False
    proofs: bool = False
    sends: Sends = "everything"
    signing_keys: tuple[str, ...] = ()

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
        if chosen.colluders:
            raise InvalidValueError(
                f"Expected no colluders={chosen.colluders!r} without waves: quorum is the number "
                "of honest people already, and more may be waited for."
            )
        contract = input_contract if chosen.mechanism == "input" else moment_contract
        found = cls(**contract(schema, chosen))
        refuse_unless_blurrable(found.parts)
        if found.proofs:
            Proving.of(found, proposed=True)  # is refused where it could prove nothing
        return found

    @classmethod
    def propose_wave(
        cls,
        schema: Schema,
        terms: Terms,
        wave: Wave,
        stated: tuple[PublicWeights, MomentCalibration, Grid] | None = None,
    ) -> "Agreement":
        """The agreement of a wave: weights, noise and grid of the first are `stated` by its plan; a
        later one has its map, for which noise is calibrated.
        """
        found = cls(**moment_contract(schema, terms, wave, stated))
        refuse_unless_blurrable(found.parts)
        return found

    def __repr__(self) -> str:
        promised = f"epsilon={at_most(self.epsilon, 6)}, delta={at_most(self.delta, 6)}"
        if caveats_of(self):
            promised = "nothing is promised"
        return (
            f"<Agreement {self.fingerprint[:12]}: {self.schema.target.name!r} by "
            f"{len(self.schema.features)} columns, {self.mechanism}, {promised}, "
            f"quorum={self.quorum:,}>"
        )

    def _repr_html_(self) -> str:
        from blurfit.agreement.notebook_view import as_html

        return as_html(self)

    def plot(self, ax: Any = None) -> Any:
        """How well one answer could be told from another: see `blurfit.agreement.notebook_view`."""
        from blurfit.agreement.notebook_view import plot

        return plot(self, ax)

    @property
    def mechanism(self) -> Mechanism:
        """What is blurred: "moment" (products of all columns) or "input" (q and p)."""
        return self.calibration.mechanism

    @property
    def targets(self) -> Sequence[str]:
        """What may be predicted: any of the schema's targets, where all products are sent."""
        return self.schema.targets if self.sends == "everything" else (self.schema.target.name,)

    @property
    def trust(self) -> Trust:
        """Whether "one" database gets whole submissions, or they are "shared" between two."""
        return "shared" if self.databases else "one"

    @property
    def quorum(self) -> int:
        """How many must have contributed: nothing is published below it."""
        return self.honest if self.wave is None else self.wave.quorum

    @property
    def honest(self) -> int:
        """How many of them must be honest: as many as the noise is sized for."""
        return self.calibration.quorum

    @property
    def epsilon(self) -> float:
        """ε of what is published, what is kept back for weights on a lattice included."""
        return promised_in_all(self.calibration.model.epsilon, LATTICE_SHARE[self.mechanism])

    @property
    def delta(self) -> float:
        """δ of what is published, what is kept back for discrete noise included."""
        return promised_in_all(self.calibration.model.delta, DISCRETE_SHARE)

    @property
    def database_draws(self) -> int:
        """How many databases add noise of their own to what is published."""
        return max(1, len(self.databases)) if self.database_noise else 0

    @property
    def database_ratios(self) -> FloatArray:
        """How many steps the deviation of a database's noise has, on each number: that of a whole
        quorum of honest contributors.
        """
        (part,) = self.parts
        return np.asarray(part.deviations / part.step * math.sqrt(self.honest))

    @property
    def once(self) -> str:
        """The name under which a person takes part once: the plan's fingerprint, or the
        agreement's.
        """
        return self.fingerprint if self.wave is None else self.wave.plan

    @property
    def is_later_wave(self) -> bool:
        """Whether it follows the release of another wave, and so has a map."""
        return self.wave is not None and self.wave.chart is not None

    @cached_property
    def form(self) -> Form:
        """How a record becomes the numbers that are sent, for `moment`."""
        if self.mechanism == "input":
            raise InfeasibleError("mechanism='input' sends q and p, and has no joint form.")
        return form_of(self.schema, self.weights, self.wave, self.sends)

    @cached_property
    def loss(self) -> SquaredLoss | LogisticLoss:
        """The loss that turns an encoded record into q and p, for `input`."""
        if self.objective is None or not isinstance(self.calibration, InputCalibration):
            raise InfeasibleError("mechanism='moment' has no loss: models are chosen afterwards.")
        return self.objective.function(self.calibration.setting.weight_bound)

    # ---- the course of one wave: see `blurfit.agreement.plan.Agreed`

    def __len__(self) -> int:
        return 1

    @property
    def quorums(self) -> tuple[int, ...]:
        """Its own quorum."""
        return (self.quorum,)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What it sends: q and p of `input`, all products, or what a later wave's map makes."""
        if self.mechanism == "input":
            return ("input",)
        return ("joint" if self.wave is None else self.wave.kind,)

    @property
    def lot(self) -> Lot:
        """Its plan's, if it is a wave of one; else everybody is in the only group."""
        return Lot(self.fingerprint, self.quorums) if self.wave is None else self.wave.lot

    def first(self) -> "Agreement":
        """Return itself."""
        return self

    def following(self, follows: tuple[str, ...], chart: Announced) -> "Agreement":  # noqa: ARG002
        """Refuse: there is no other wave."""
        raise InvalidValueError("Expected no further wave: this agreement is the only one.")

    def require(self, agreement: "Agreement") -> None:
        """Refuse any other agreement."""
        if agreement.fingerprint != self.fingerprint:
            raise NotCertifiedError(
                f"Expected the agreement {self.fingerprint}, and got {agreement.fingerprint}. Send "
                "nothing under it."
            )

    # ---- what is sent

    @cached_property
    def parts(self) -> tuple[NumberRun, ...]:
        """The numbers that a contributor sends, in runs that share a grid."""
        if isinstance(self.calibration, InputCalibration):
            return input_parts(self.calibration, self.grid)
        return moment_parts(self.calibration, self.grid, self.form, proofs=self.proofs)

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
                "Expected an agreement with two databases: this one does not share submissions."
            )
        if self.proofs:
            return ShareLayout(self.fingerprint, self.width, part, *self.proving.widths)
        return ShareLayout(self.fingerprint, self.width, part)

    @cached_property
    def proving(self) -> Proving:
        """How submissions are proved to be short, where they are."""
        return Proving.of(self)

    # ---- checking

    def verify(self, fingerprint: str | None = None, *, allow_unproved: bool = False) -> None:
        """Refuse a contract whose noise keeps less than it promises, or that is not the expected
        one.

        Everything that is stated is checked against what follows: how far records of this schema
        reach, the guarantees from the noise, the grid from its budget. Each check is an inequality
        with room for rounding (`blurfit.theory.guarantees`), so that one machine never refuses what
        another has made. What the paper's own rule promises (rule="published") does not follow from
        its noise, so it is refused too, unless `allow_unproved`: for experiments, and to read what
        says that it is not proved.
        """
        self.require_fingerprint(fingerprint)
        try:
            require_kept(self)
        except BlurfitError:
            raise
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise InvalidValueError(
                f"Expected numbers and words as blurfit writes them: {error}. Do not send anything "
                "under this agreement."
            ) from error
        if isinstance(self.calibration, InputCalibration) and not allow_unproved:
            refuse_unless_proved(self.calibration)

    # ---- files

    def to_dict(self) -> dict[str, Any]:
        """The contract as plain values, without its fingerprint."""
        return {
            **self.STATED,
            "schema": self.schema.to_dict(),
            "mechanism": self.mechanism,
            "weights": None if self.weights is None else self.weights.to_dict(self.schema),
            "objective": None if self.objective is None else asdict(self.objective),
            "calibration": self.calibration.to_dict(),
            "grid": asdict(self.grid),
            "databases": [one.to_dict() for one in self.databases],
            "wave": None if self.wave is None else self.wave.to_dict(),
            "public_rows": self.public_rows,
            **later_written(self),
        }

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        schema = Schema.from_dict(document["schema"])
        weights, objective, wave = (document[name] for name in ("weights", "objective", "wave"))
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
            wave=None if wave is None else Wave.from_dict(wave),
            public_rows=document["public_rows"],
            **later_read(document),
        )
        if found.mechanism != document["mechanism"]:
            raise InvalidValueError(
                f"Expected mechanism={document['mechanism']!r} to be {found.mechanism!r}, as its "
                "calibration says."
            )
        return found

    @classmethod
    def load(cls, path: str | Path, *, allow_unproved: bool = False) -> Self:
        """Read an agreement from a file, and verify it."""
        agreement = super().load(path)
        agreement.verify(allow_unproved=allow_unproved)
        return agreement
