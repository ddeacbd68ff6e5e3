"""The contract that all parties share before anything is collected.

**Documents.** The text of an agreement or a plan is canonical (RFC 8785), so one document has one
text and one SHA-256, the fingerprint that every message carries: nobody can be asked for one thing
and used for another. `to_dict` leaves the fingerprint out, `to_document` carries it, and reading
refuses a text whose fingerprint is not its own, or that writes the same values differently: others
could take them for something else.

**Verifying.** A contributor need not trust the database that sent the agreement: `verify` finds
that everything it states follows: how far records of the schema reach, what the noise guarantees,
the grid from its budget, and that the parts of the contract belong together. Nothing is compared
for equality with what this machine computes: what is stated has to be enough
(`blurfit.theory.moments`).
"""

import hashlib
import hmac
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from blurfit.agreement.mechanisms import (
    Lot,
    Stated,
    Wave,
    WaveDocument,
    contract,
    exact_numbers,
    form_of,
    number_runs,
    require_enough,
)
from blurfit.agreement.numbers import (
    DISCRETE_SHARE,
    LEAST_RATIO,
    MOST_RATIO,
    NumberRun,
    Proving,
    PublicWeights,
    multiplied,
    promised_in_all,
)
from blurfit.agreement.statement import as_html, plot
from blurfit.agreement.terms import (
    Admission,
    Database,
    Factors,
    LaterTerms,
    Terms,
    Trust,
    require_rules,
    require_together,
)
from blurfit.data import FloatArray, IntArray, canonical, read_json
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.messages.submissions import Layout, ShareKind, ShareLayout
from blurfit.schema.columns import Question, TimeToEvent
from blurfit.schema.schema import Schema
from blurfit.theory.forms import Form
from blurfit.theory.maps import WaveMap
from blurfit.theory.moments import MomentCalibration, at_most
from blurfit.theory.planning import StageKind

_WHOLE_BEYOND = re.compile(rb"[:\[,]-?[0-9]{16,}[,\]}]")  # may also be found within a text


class Fingerprinted(ABC):
    """A document with a fingerprint; a subclass says what its fields are, and reads them."""

    CALLED: ClassVar[str]  # in errors: "an agreement"
    STATED: ClassVar[Mapping[str, Any]]  # what every text of this kind says of itself
    DOCUMENT: ClassVar[type[Struct]]  # its fields

    @abstractmethod
    def document(self) -> Struct:
        """Return the document, without its fingerprint."""

    @classmethod
    @abstractmethod
    def _read(cls, document: Any) -> Self:
        """Read a `DOCUMENT`; whatever is wrong with its values may be raised."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain values, without its fingerprint."""
        found: dict[str, Any] = plain(self.document())
        return found

    @cached_property
    def _canonical(self) -> bytes:
        """The document in canonical JSON, without its fingerprint; neither ever changes."""
        text = canonical(self.to_dict())
        if _WHOLE_BEYOND.search(text):
            json.loads(text, parse_int=_refuse_beyond)  # also floats that are written as such
        return text

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(self._canonical).hexdigest()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def require_fingerprint(self, expected: str | None) -> None:
        """Refuse to be another document than the one that is expected, if one is."""
        if expected is not None and not alike(expected, self.fingerprint):
            raise NotCertifiedError(
                "Expected {called} with fingerprint {expected}, but this one has "
                "{fingerprint}: it is not the one that you were invited to.",
                called=self.CALLED,
                expected=expected,
                fingerprint=self.fingerprint,
            )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote. What it promises is not trusted: an agreement has `verify`."""
        if not isinstance(document, Mapping):
            raise InvalidValueError(
                "Expected {called}: an object with named fields.", called=cls.CALLED
            )
        stated = {name: document.get(name) for name in cls.STATED}
        if _words(stated) != _words(cls.STATED):
            raise InvalidValueError(
                "Expected {words}, and got {words_2}. Is this {called}, "
                "and of this version of blurfit?",
                words=_words(cls.STATED),
                words_2=_words(stated),
                called=cls.CALLED,
            )
        try:
            msgspec.convert(document, cls.DOCUMENT)  # each value is of its type, as it is written
            found = _made_of(cls, canonical(dict(document)))
            assert isinstance(found, cls)
        except BlurfitError:
            raise
        except (
            *(ArithmeticError, AttributeError, KeyError, TypeError, ValueError),
            msgspec.ValidationError,
        ) as error:
            why = error if isinstance(error, msgspec.ValidationError) else repr(error)
            raise InvalidValueError(
                "Expected {called} as blurfit writes it: {why}.", called=cls.CALLED, why=why
            ) from error
        return found

    def to_document(self) -> dict[str, Any]:
        """Return plain values with the fingerprint, as in the canonical text, where 10.0 is 10: so
        whatever carries the document has the same bytes, wherever it was made.
        """
        canonical: dict[str, Any] = json.loads(self._canonical)
        return canonical | {"fingerprint": self.fingerprint}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """Read what `to_document` wrote; refuse a document whose fingerprint is not its own."""
        if not isinstance(document, dict):
            raise InvalidValueError(
                "Expected {called} in JSON: an object with named fields.", called=cls.CALLED
            )
        fields = dict(document)
        stated = fields.pop("fingerprint", None)
        found = cls.from_dict(fields)
        if not isinstance(stated, str) or not alike(stated, found.fingerprint):
            raise InvalidValueError(
                "Expected fingerprint={stated!r} to be {found_fingerprint!r}: the text was "
                "changed after it was written. Ask for {called} again.",
                stated=stated,
                found_fingerprint=found.fingerprint,
                called=cls.CALLED,
            )
        return found

    def to_json(self) -> str:
        """Return the file that is handed round: the document and its fingerprint, canonical."""
        return canonical(self.to_document()).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote; a text that was read lately is not read again."""
        found = _found_in(cls, text)
        assert isinstance(found, cls)
        return found

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it from a file."""
        return cls.from_json(Path(path).read_bytes())


@lru_cache(maxsize=64)
def _made_of(kind: type[Fingerprinted], text: bytes) -> Fingerprinted:
    """Return what a canonical text says: in whatever carries it, it is understood once."""
    found = kind._read(msgspec.convert(read_json(text), kind.DOCUMENT))
    # only plain, finite values have a fingerprint, and one fingerprint has one text
    if found._canonical != text:
        raise InvalidValueError(
            "Expected {called} as blurfit writes it, and this one writes the same values "
            "differently: other readers could take them for something else.",
            called=kind.CALLED,
        )
    return found


@lru_cache(maxsize=64)
def _found_in(kind: type[Fingerprinted], text: str | bytes) -> Fingerprinted:
    """Return what a text says; errors are not remembered."""
    try:
        document = read_json(text)
    except ValueError as error:
        raise InvalidValueError(
            "Expected {called} in JSON: {error}.", called=kind.CALLED, error=error
        ) from error
    return kind.from_document(document)


def plain(value: Any) -> Any:
    """Return a document as plain values; what has its default is left out."""
    if isinstance(value, Struct):
        return {
            one.encode_name: plain(found)
            for one in _fields(type(value))
            if (found := getattr(value, one.name)) != one.default
        }
    return [plain(one) for one in value] if isinstance(value, tuple) else value


_fields = cache(structs.fields)


def alike(stated: object, fingerprint: str) -> bool:
    """Return whether two texts are one fingerprint; any text may be asked about."""
    if not isinstance(stated, str):
        raise InvalidValueError(
            "Expected fingerprint={stated!r} to be a text of 64 hexadecimal digits.", stated=stated
        )
    return hmac.compare_digest(stated.encode(errors="surrogatepass"), fingerprint.encode())


def _refuse_beyond(digits: str) -> None:
    if abs(int(digits)) >= 2**53:
        raise InvalidValueError(
            "Expected every whole number to be below 2**53 = 9007199254740992, and got {digits}: "
            "readers differ in what they make of larger ones. Choose larger units.",
            digits=digits,
        )


def _words(stated: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in stated.items())


Fingerprint = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class AgreementDocument(LaterTerms, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agreement as it is written; the fingerprint is that of all other fields."""

    format: Literal["blurfit-agreement"]
    version: Literal[1]
    fingerprint: Fingerprint | UnsetType = UNSET
    schema: dict[str, Any]
    weights: dict[str, float] | None
    calibration: dict[str, Any]
    step: float
    databases: tuple[Database, ...]
    wave: WaveDocument | None


@dataclass(frozen=True, eq=False)
class Agreement(Fingerprinted):
    """Who asks for what, how it is blurred, and what is promised.

    The promise to the people in what is published is `calibration.model`, the one about a single
    submission `calibration.local`. Make one with `Agreement.propose`.

    `weights` are the public weights of the columns. `databases` are the two between which trust is
    shared, first and second; there are none if one database collects everything. `wave` is its
    place in a plan, if there is one: a later wave has a map instead of weights. All else is as in
    `blurfit.agreement.terms.Terms`, which describes it.
    """

    CALLED = "an agreement"
    release: ClassVar = "by hand"
    STATED: ClassVar = {"format": "blurfit-agreement", "version": 1}
    DOCUMENT = AgreementDocument

    schema: Schema
    calibration: MomentCalibration
    step: float  # of all numbers that are sent, a power of two
    weights: PublicWeights | None = None
    databases: tuple[Database, ...] = ()
    wave: Wave | None = None
    admission: Admission = "invited"
    database_noise: bool = False
    proofs: bool = False
    groups: str | None = None
    overlap: float = 0.0
    weighting: str | None = None
    factors: Factors = ()
    signing_keys: tuple[str, ...] = ()
    diaries: bool = False

    @classmethod
    def propose(cls, schema: Schema, terms: Terms | None = None, **choices: Any) -> "Agreement":
        """Calibrate noise for a schema and a promise, and write the contract.

        Give `Terms`, or its fields as keywords, such as epsilon=1, delta=1e-6, quorum=5000.
        """
        if not isinstance(schema, Schema):
            raise InvalidValueError(
                "Expected a Schema, and got {name}. From a file: schema = Schema.from_toml(path).",
                name=type(schema).__name__,
            )
        chosen = Terms.of(**choices) if terms is None else terms
        if chosen.colluders:
            raise InvalidValueError(
                "Expected no colluders={colluders!r} without waves: quorum is the number "
                "of honest people already, and more may be waited for.",
                colluders=chosen.colluders,
            )
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
        stated: Stated | None = None,
    ) -> "Agreement":
        """Return the agreement of a wave: weights, noise and step of the first are `stated` by its
        plan; a later one has its map, for which noise is calibrated.
        """
        require_together(terms, waves=True)
        found = cls(**contract(schema, terms, wave, stated))
        refuse_unless_blurrable(found.parts)
        return found

    def __repr__(self) -> str:
        promised = f"epsilon={at_most(self.epsilon, 6)}, delta={at_most(self.delta, 6)}"
        return (
            f"<Agreement {self.fingerprint[:12]}: {self.schema.target.name!r} by "
            f"{len(self.schema.features)} columns, {promised}, "
            f"quorum={self.quorum:,}>"
        )

    def _repr_html_(self) -> str:
        return as_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw how well one answer could be told from another: `blurfit.agreement.statement`."""
        return plot(self, ax)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Those whose columns are multiplied with each other, the target's last."""
        return multiplied(self.schema, self)

    @property
    def targets(self) -> Sequence[str]:
        """What may be predicted: any of the schema's targets whose products are sent."""
        sent = {one.name for one in self.questions}
        return tuple(name for name in self.schema.targets if name in sent)

    @property
    def sums_alone(self) -> bool:
        """Whether a release of one wave is sums of exits, of which hazards are asked."""
        return isinstance(self.schema.target, TimeToEvent)

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
        """ε of what is published."""
        return promised_in_all(self.calibration.model.epsilon, 0.0)

    @property
    def delta(self) -> float:
        """δ of what is published, what is kept back for discrete noise included."""
        return promised_in_all(self.calibration.model.delta, DISCRETE_SHARE)

    @property
    def mu(self) -> float:
        """The exact Gaussian privacy of what is published."""
        return self.calibration.mu

    @property
    def database_draws(self) -> int:
        """How many databases add noise of their own to what is published."""
        return max(1, len(self.databases)) if self.database_noise else 0

    @property
    def database_ratios(self) -> FloatArray:
        """How many steps the deviation of a database's noise has: that of a whole honest quorum."""
        (part,) = self.parts
        return np.asarray(part.deviations / part.step * math.sqrt(self.honest))

    @property
    def once(self) -> str:
        """The fingerprint, of the plan if there is one, under which a person takes part once."""
        return self.fingerprint if self.wave is None else self.wave.plan

    @property
    def is_later_wave(self) -> bool:
        """Whether it follows the release of another wave, and so has a map."""
        return self.wave is not None and self.wave.chart is not None

    @cached_property
    def form(self) -> Form:
        """How a record becomes the numbers that are sent."""
        return form_of(self.schema, self.weights, self.wave, self)

    # ---- the course of one wave: see `blurfit.agreement.plan.Agreed`

    def __len__(self) -> int:
        return 1

    @property
    def quorums(self) -> tuple[int, ...]:
        """Its own quorum."""
        return (self.quorum,)

    @property
    def kinds(self) -> tuple[StageKind, ...]:
        """What the one wave of a course sends: products, or what a later wave's map makes."""
        return ("joint" if self.wave is None else self.wave.kind,)

    @property
    def lot(self) -> Lot:
        """Its plan's, if it is a wave of one; else everybody is in the only group."""
        return Lot(self.fingerprint, self.quorums) if self.wave is None else self.wave.lot

    def first(self) -> "Agreement":
        """Return itself."""
        return self

    def following(self, follows: tuple[str, ...], chart: WaveMap) -> "Agreement":  # noqa: ARG002
        """Refuse: there is no other wave."""
        raise InvalidValueError("Expected no further wave: this agreement is the only one.")

    def require(self, agreement: "Agreement") -> None:
        """Refuse any other agreement."""
        if agreement.fingerprint != self.fingerprint:
            raise NotCertifiedError(
                "Expected the agreement {fingerprint}, and got {agreement_fingerprint}. Send "
                "nothing under it.",
                fingerprint=self.fingerprint,
                agreement_fingerprint=agreement.fingerprint,
            )

    # ---- what is sent

    @cached_property
    def parts(self) -> tuple[NumberRun, ...]:
        """The numbers that a contributor sends, in runs that share a grid."""
        return number_runs(self)

    @property
    def width(self) -> int:
        """How many numbers a contributor sends."""
        return int(self.parts[-1].numbers.stop)

    def exact(self, records: Any, people: IntArray | None = None) -> FloatArray:
        """Return what a record would send without any noise: (width,), or (n, width).

        `people` says whose row is whose, by numbers from 0 on: then it is what each person would
        send, in that order.
        """
        return exact_numbers(self, records, people)

    @cached_property
    def layout(self) -> Layout:
        """The bytes of a submission under this agreement."""
        return Layout(self.fingerprint, self.width)

    def share_layout(self, part: ShareKind) -> ShareLayout:
        """Return the bytes of one of the two shares of a submission, where trust is shared."""
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

    def verify(self, fingerprint: str | None = None) -> None:
        """Refuse a contract whose noise keeps less than it promises, or that is not the expected
        one.

        Each check is an inequality with room for rounding, so that one machine never refuses what
        another has made.
        """
        self.require_fingerprint(fingerprint)
        try:
            require_kept(self)
        except BlurfitError:
            raise
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise InvalidValueError(
                "Expected numbers and words as blurfit writes them: {error}. Do not send anything "
                "under this agreement.",
                error=error,
            ) from error

    # ---- files

    def document(self) -> AgreementDocument:
        """Return the contract's document, without its fingerprint."""
        return AgreementDocument(
            **self.STATED,
            schema=self.schema.to_dict(),
            weights=None if self.weights is None else self.weights.to_dict(self.questions),
            calibration=self.calibration.to_dict(),
            step=self.step,
            databases=self.databases,
            wave=None if self.wave is None else self.wave.document(),
            **LaterTerms.of(self),
        )

    @classmethod
    def _read(cls, document: AgreementDocument) -> Self:
        schema, weights = Schema.from_dict(document.schema), document.weights
        return cls(
            schema=schema,
            calibration=MomentCalibration.from_dict(document.calibration),
            step=document.step,
            weights=None
            if weights is None
            else PublicWeights.from_dict(weights, multiplied(schema, document)),
            databases=document.databases,
            wave=None if document.wave is None else Wave.read(document.wave),
            **LaterTerms.of(document),
        )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an agreement from a file, and verify it."""
        agreement = super().load(path)
        agreement.verify()
        return agreement


@lru_cache(maxsize=256)
def require_kept(agreement: "Agreement") -> None:
    """Refuse a contract whose noise keeps less than it promises, or that no reader could use.

    One that was found to keep it is not looked at again: equal fingerprints are equal texts.
    """
    require_rules(agreement, waves=agreement.wave is not None)
    if agreement.wave is not None:
        agreement.wave.verify()
        if agreement.honest > agreement.quorum:
            raise NotCertifiedError(
                "Expected noise for at most the {quorum} people that the wave waits "
                "for, and it is sized for {honest} honest ones.",
                quorum=agreement.quorum,
                honest=agreement.honest,
            )
    require_enough(agreement)
    refuse_unless_blurrable(agreement.parts)
    if agreement.database_noise and agreement.database_ratios.max() > MOST_RATIO:
        raise InfeasibleError(
            "Expected the database's noise to have at most {most_ratio:g} steps, and it has "
            "{max:.4g}: choose a less extreme promise, or a smaller "
            "quorum.",
            most_ratio=MOST_RATIO,
            max=agreement.database_ratios.max(),
        )
    if agreement.proofs:
        _ = agreement.proving  # is refused where it could prove nothing


def refuse_unless_blurrable(parts: tuple[NumberRun, ...]) -> None:
    """Refuse numbers or noise of more steps than can be drawn and added exactly, before any record
    is read: whether one can be sent must not depend on its answers.
    """
    for part in parts:
        if not part.bound < 2.0**51 * part.step:
            raise InfeasibleError(
                "Expected numbers of fewer than 2**51 steps, and one may have "
                "{bound:.4g}: the noise is too small for numbers of this size. "
                "Choose a smaller epsilon, or a smaller quorum.",
                bound=part.bound / part.step,
            )
        ratios = part.deviations / part.step
        if not (ratios.min() >= LEAST_RATIO and ratios.max() <= MOST_RATIO):
            raise InfeasibleError(
                "Expected noise between {least_ratio:g} and {most_ratio:g} steps, and got "
                "{min:.4g} to {max:.4g}: nobody could draw it exactly. Choose "
                "a less extreme promise.",
                least_ratio=LEAST_RATIO,
                most_ratio=MOST_RATIO,
                min=ratios.min(),
                max=ratios.max(),
            )
