"""What a record is made of: columns with public bounds, which put every record into the unit ball.

In a file, for `Schema.from_toml`:

    intercept = true     # if left out
    outside = "clip"     # if left out; or "refuse". A numeric column may have its own
    [[features]]
    name = "age"
    kind = "numeric"     # numeric (lower, upper), binary, categorical (levels)
    lower = 0
    upper = 100
    optional = true      # people may prefer not to say; if left out, they may not
    [[features]]
    name = "curve(age)"  # what is computed from answers: `blurfit.schema.derived`
    kind = "curve"       # bands (edges), curve (knots), poly (degree), condition, cross, product
    of = "age"           # two questions for the last two; asked in [[sources]], if only for this
    knots = [0, 30, 60, 100]
    [target]
    name = "income"
    kind = "numeric"     # numeric, binary, categorical, or exit (time, horizon, bands)
    lower = 0
    upper = 200000       # above = 37000 makes it a label

`blurfit.schema.columns` has what people read (title, questions, labels …). A table [terms] beside
it is for `blurfit agree` and `blurfit forecast`.

**Units.** With columns v = a·x + b of the user's values x, and v_y = a_y·y + b_y, a model
v_y = θ₀ + Σ θⱼvⱼ says y = (θ₀ + Σ θⱼbⱼ − b_y)/a_y + Σ (θⱼaⱼ/a_y)·xⱼ, an affine map of θ. Columns
that are sums of others are left out, each level compared with a reference (`independent`);
predictions stay the same. `docs/theory/records.md` has the proofs. Tested by `tests/schema`.
"""

import math
import os
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, one_of
from blurfit.schema import derived
from blurfit.schema.columns import (
    NO,
    NO_ONE,
    OUTSIDE,
    YES,
    About,
    Binary,
    Categorical,
    Feature,
    Label,
    Numeric,
    OnlyIf,
    Question,
    TimeToEvent,
    assign,
    column_from_dict,
    is_unsaid,
    seen_as,
)
from blurfit.schema.table import Table, listed, read, refuse_keys
from blurfit.theory.forms import ColumnKind, JointColumn, JointForm
from blurfit.theory.planning import Kind

__all__ = ["Binary", "Categorical", "Coefficients", "Encoded", "Label", "Numeric", "Schema"]

INTERCEPT = "(intercept)"


class Encoded(NamedTuple):
    """Records as the losses take them: x (n, d) and y (n,), or (d,) and () for one record."""

    features: FloatArray
    target: FloatArray


@dataclass(frozen=True)
class Coefficients:
    """intercept + Σ effect·value: the prediction, or for a label the log-odds, in the user's units.

    A numeric column's effect is that of one unit of it, a binary column's that of a 1, and
    `effects["sex=f"]` is what the level f adds.
    """

    intercept: float
    effects: dict[str, float]

    def by_name(self) -> dict[str, float]:
        """Return all of them, the intercept first."""
        return {INTERCEPT: self.intercept, **self.effects}


@dataclass(frozen=True)
class Schema:
    """x = z/√m with each feature's ‖z‖² ≤ 1 and m features (the intercept is one): so ‖x‖ ≤ 1.

    z is what `blurfit.schema.columns` makes of each feature, and 1 for the intercept, in the
    last column. A numeric target is scaled in the same way to y in [−1, 1]; a label (a binary
    target, or a numeric one `above` a threshold) is y = ±1. All of this follows from the schema
    alone, whatever the data are.

    `targets` are the columns that may be predicted from joint moments: all that everybody answers,
    unless you say which. `sources` are asked only for what is derived from them, and are no columns
    themselves. `predictors` are the features of the model that is learned where nobody writes a
    formula, and in waves: all that are asked or derived from a source, unless you say which.
    `records` are, here and below, what `blurfit.schema.table.read` takes.

    >>> schema = Schema(
    ...     features=[Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])],
    ...     target=Numeric("income", 0, 200_000),
    ... )
    >>> schema.columns
    ('age', 'married', 'sex=f', 'sex=m', '(intercept)')
    >>> encoded = schema.encode({"age": 25, "married": True, "sex": "f", "income": 50_000})
    >>> encoded.features.round(3).tolist(), encoded.target.tolist()
    ([-0.25, 0.5, 0.5, 0.0, 0.5], -0.5)
    """

    features: Sequence[Feature]
    target: Question
    intercept: bool = True
    targets: Sequence[str] = ()
    about: About = field(default=NO_ONE, repr=False)
    sources: Sequence[Feature] = ()
    predictors: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.features, Sequence) or not self.features:
            raise InvalidValueError(
                "Expected features={features!r} to be a list of at least one column.",
                features=self.features,
            )
        assign(self, features=tuple(self.features), sources=tuple(self.sources))
        for feature in (*self.sources, *self.features):
            _refuse_unless_kind(Feature, "feature", feature, "a label can only be the target")
            if isinstance(feature, TimeToEvent):
                raise InvalidValueError(
                    "Expected {feature_name!r} to be the target.", feature_name=feature.name
                )
        if isinstance(self.target, TimeToEvent):
            assign(self, features=_with_exit(self.features, self.target))
        assign(self, features=tuple(map(self._bound, self.features)))
        used = {name for one in self.features for name in one.of}
        if unused := [one.name for one in self.sources if one.of or one.name not in used]:
            raise InvalidValueError(
                "Expected sources={listed} to be questions that features are derived from.",
                listed=listed(unused),
            )
        _refuse_unless_kind(Question, "target", self.target, "state its public bounds or levels")
        if self.target.of:
            raise InvalidValueError(
                "Expected the target {target_name!r} to be asked: put derived columns among "
                "the features. Any of them can be predicted from the release.",
                target_name=self.target.name,
            )
        if not isinstance(self.intercept, bool):
            raise InvalidValueError(
                "Expected intercept={intercept!r} to be True or False.", intercept=self.intercept
            )
        for part in ("targets", "predictors"):
            names: Any = getattr(self, part)
            if not isinstance(names, Collection) or not all(isinstance(one, str) for one in names):
                raise InvalidValueError(
                    "Expected {part}={names!r} to be a list of columns.", part=part, names=names
                )
        all_names = [one.name for one in self.questions]
        unsaid = {one.name for one in self.questions if one.optional}
        several = {  # what cannot be predicted: neither one column, nor classes
            one.name
            for one in self.features
            if len(one.columns) > 1 and isinstance(one, derived.Curve | derived.Product)
        }
        no_target = unsaid | several
        if isinstance(self.target, TimeToEvent):
            no_target = set(all_names) - {self.target.name}
        targets = tuple(self.targets) or tuple(name for name in all_names if name not in no_target)
        if told := sorted(unsaid & {self.target.name, *targets}):
            raise InvalidValueError(
                "Expected {listed} to be answered by everybody, because it is to be "
                "predicted: leave `optional` out, or take it out of `targets`.",
                listed=listed(told),
            )
        if self.target.name not in targets or not set(targets) <= set(all_names) - several:
            raise InvalidValueError(
                "Expected targets={targets!r} to be columns of the schema, the target "
                "{target_name!r} among them: they say what may be predicted.",
                targets=self.targets,
                target_name=self.target.name,
            )
        assign(self, targets=targets, predictors=tuple(self.predictors))
        fitting = {one.name for one in self.features if self.target.name not in one.of}
        if wrong := [name for name in self.predictors if name not in fitting]:
            raise InvalidValueError(
                "Expected predictors={listed} to be features, and not derived from the "
                "target {target_name!r}.",
                listed=listed(wrong),
                target_name=self.target.name,
            )
        named = [INTERCEPT, *all_names, *(one.name for one in self.sources)]
        names = Counter(map(seen_as, named))  # two that look alike are one to people
        encoded = self.questions if isinstance(self.target, Categorical) else self.features
        called = [INTERCEPT, *(column for one in encoded for column in one.columns)]
        columns = Counter(map(seen_as, called))
        if repeated := [name for name, count in (names | columns).items() if count > 1]:
            raise InvalidValueError(
                "Expected each name once among features, their levels, target and {intercept!r}, "
                "and got {listed} twice; rename one of them.",
                intercept=INTERCEPT,
                listed=listed(repeated),
            )
        for place, one in enumerate(self.asked):
            if one.wording.only_if is not None:
                _refuse_unless_comparable(one, one.wording.only_if, self.asked[:place])

    @property
    def questions(self) -> tuple[Question, ...]:
        """What a record answers: the features in their order, then the target."""
        return (*self.features, self.target)

    @property
    def plain(self) -> tuple[Question, ...]:
        """What a dot means in a formula: all that is asked, or derived from a source alone."""
        alone = {one.name for one in self.sources}
        return tuple(one for one in self.questions if not one.of or alone & set(one.of))

    @property
    def asked(self) -> tuple[Question, ...]:
        """What people are asked: all questions but those that are derived from others' answers."""
        return (*self.sources, *(one for one in self.questions if not one.of))

    def default_predictors(self, target: str) -> tuple[str, ...]:
        """Name the features of a model of this target that nobody writes a formula for."""
        if self.predictors and target == self.target.name:
            return tuple(self.predictors)
        apart = {target}
        if isinstance(self.target, TimeToEvent):  # whose time is no feature
            apart.add(self.target.time)
        every = [one for one in self.plain if target not in one.of]
        return tuple(one.name for one in every if one.name not in apart)

    def _bound(self, one: Any) -> Any:
        """Return a feature, a derived one only if everybody answers what it is derived from."""
        if not one.of:
            return one
        known = {each.name: each for each in self.asked}
        absent = [name for name in one.of if name not in known or known[name].optional]
        if absent:
            raise InvalidValueError(
                "Expected {name!r} to be derived from questions that everybody answers, and "
                "{listed} is none.",
                name=one.name,
                listed=listed(absent),
            )
        return one.bound([known[name] for name in one.of])

    def read(
        self, records: Any, wanted: Iterable[Question] | None = None, names: Any = None
    ) -> Table:
        """Read the answers to some questions, or to all, and compute those that are derived."""
        chosen = self.questions if wanted is None else tuple(wanted)
        needed = dict.fromkeys(name for one in chosen for name in (one.of or (one.name,)))
        table = read(records, list(needed), names)
        for one in chosen:
            if one.of:
                sources = [self.question(name) for name in one.of]
                given = [table.columns[name] for name in one.of]
                table.columns[one.name] = one.derive(sources, given)
        return table

    def question(self, name: str) -> Question:
        """Return the question of that name."""
        if name in self._by_name:
            return self._by_name[name]
        raise InvalidValueError(
            "Expected {name!r} to be one of the columns {listed}.",
            name=name,
            listed=listed(q.name for q in self.questions),
        )

    @cached_property
    def _by_name(self) -> Mapping[str, Question]:
        return MappingProxyType({one.name: one for one in (*self.questions, *self.sources)})

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # nothing that is kept

    def asked_for(self, features: Collection[str]) -> tuple[Question, ...]:
        """Return the questions that have to be answered for some features."""
        names = {name for one in map(self.question, features) for name in (one.of or (one.name,))}
        return tuple(one for one in self.asked if one.name in names)

    def columns_of(self, names: Iterable[str]) -> list[str]:
        """Name the columns that some questions become, one after the other."""
        return [column for name in names for column in self.question(name).columns]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The name of each column of x: "age", "married", "sex=f", "sex=m", "(intercept)"."""
        of_features = (column for feature in self.features for column in feature.columns)
        return (*of_features, *([INTERCEPT] if self.intercept else []))

    @property
    def dimension(self) -> int:
        """The number of columns of x, and of weights: d."""
        return len(self.columns)

    @property
    def is_label(self) -> bool:
        """Whether the target is y = ±1, to be classified."""
        return not isinstance(self.target, Numeric | Categorical)

    def encode(self, records: Any, names: Sequence[str] | None = None) -> Encoded:
        """Return x and y of each record."""
        table = self.read(records, None, names)
        x, y = self._x(table), self.target.scale(table.columns[self.target.name])
        return Encoded(x, y.reshape(()) if table.single else y)

    def to_dict(self) -> dict[str, Any]:
        """Write it as in the file, in plain words, numbers and lists; see `from_dict`."""
        return {
            "features": [feature.to_dict() for feature in self.features],
            "target": self.target.to_dict(),
            "intercept": self.intercept,
            "targets": list(self.targets),
            **({"sources": [one.to_dict() for one in self.sources]} if self.sources else {}),
            **({"predictors": list(self.predictors)} if self.predictors else {}),
            **self.about.to_dict(),
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "Schema":
        """Read what `to_dict` wrote, or what stands in a file (without its terms)."""
        allowed = ("intercept", "outside", "targets", "sources", "predictors", *About.TEXTS)
        refuse_keys(description, ("features", "target"), allowed)
        outside = description.get("outside", "clip")
        one_of(OUTSIDE, outside=outside)
        read: dict[str, Any] = {
            key: description[key]
            for key in ("intercept", "targets", "predictors")
            if key in description
        }
        for part in ("features", "sources"):
            entries = description.get(part, [])
            if not isinstance(entries, list):
                raise InvalidValueError(
                    "Expected {part}={entries!r} to be a list of tables.",
                    part=part,
                    entries=entries,
                )
            places = (f"{part}[{i}]" for i in range(len(entries)))
            each = zip(places, entries, strict=True)
            read[part] = [_feature_from_dict(where, entry, outside) for where, entry in each]
        target: Any = column_from_dict("target", description["target"], outside)
        return cls(target=target, about=About.of(description), **read)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> "Schema":
        """Read the schema in a file, whatever terms stand beside it."""
        try:
            description = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            description.pop("terms", None)
            return cls.from_dict(description)
        except (OSError, ValueError) as error:  # no such file, not UTF-8, not TOML, no schema
            raise InvalidValueError("{path}: {error}", path=path, error=error) from error

    @cached_property
    def scale(self) -> float:
        """s = (1 − (m + 4)·2⁻⁵³)/√m, which x is scaled by: so ‖x‖ ≤ 1, however it is computed
        (`docs/theory/records.md`).
        """
        m = len(self.features) + self.intercept
        return (1 - (m + 4) * 2.0**-53) / math.sqrt(m)

    def _x(self, table: Table) -> FloatArray:
        x = np.ones((table.rows, self.dimension))
        _fill(x, table, self.features)
        x *= self.scale
        return x[0] if table.single else x


def values(schema: Schema, records: Any, names: Sequence[str] | None = None) -> FloatArray:
    """Return the columns v of some questions (all of them, if none are named): (n, k), or (k,) for
    one record. |v| ≤ 1 to the last bit (`schema.columns`).
    """
    chosen = schema.questions if names is None else [schema.question(name) for name in names]
    if not chosen:  # of a model without features only the number of records matters
        first = next(iter(records.values()), ()) if isinstance(records, Mapping) else records
        return np.zeros((len(first), 0) if np.ndim(first) else 0)
    table = schema.read(records, chosen)
    found = np.empty((table.rows, sum(len(one.columns) for one in chosen)))
    _fill(found, table, chosen)
    return found[0] if table.single else found


def _fill(into: FloatArray, table: Table, questions: Sequence[Question]) -> None:
    """Write the columns of some questions side by side: the one code of a record."""
    at = 0
    for one in questions:
        width = len(one.columns)
        z = one.scale(table.columns[one.name])
        into[:, at : at + width] = z.reshape(table.rows, width)
        at += width


def kind_of(one: Question) -> Kind:
    """Return what public weights are chosen by: a number, a sign, or how many levels there are."""
    if isinstance(one, Categorical):
        return len(one.columns)
    if one.optional:
        return 3  # low, high and not said: two coefficients, as of three levels
    return "numeric" if isinstance(one, Numeric) else "sign"


def joint_form(
    asked: Sequence[Question], constant: float, weights: Sequence[float], *, counted: bool = True
) -> JointForm:
    """Return the form of the answers to some questions, with a public weight for each; `counted`
    as in `JointForm`.
    """
    if len(weights) != len(asked):
        raise InvalidValueError(
            "Expected {asked_count} weights, one for each of {listed}, and got {weights_count}.",
            asked_count=len(asked),
            listed=listed(q.name for q in asked),
            weights_count=len(weights),
        )
    columns: list[JointColumn] = []
    for one, weight in zip(asked, weights, strict=True):
        group = one.name if len(one.columns) > 1 or isinstance(one, Categorical) else None
        # of an optional yes/no, which may be 0, the sign is a number
        kind: ColumnKind = "numeric" if isinstance(one, Numeric) or one.optional else "sign"
        if isinstance(one, Categorical):
            kind = "hat" if isinstance(one, derived.Curve) else "level"
        for name in one.columns:
            own: ColumnKind = "level" if is_unsaid(name) and one.optional else kind
            columns.append(JointColumn(name, weight, own, group))
    return JointForm(constant, tuple(columns), counted=counted)


def _feature_from_dict(where: str, entry: Any, outside: Any) -> Any:
    kinds = tuple(derived.KINDS)  # what is asked for may be unhashable
    if not isinstance(entry, Mapping) or entry.get("kind") not in kinds:
        return column_from_dict(where, entry, outside)
    try:
        return derived.derived_from_dict(entry)
    except (InvalidValueError, TypeError) as error:
        raise InvalidValueError(
            "{where} ({entry!r}): {error}", where=where, entry=entry.get("name"), error=error
        ) from error


def _with_exit(features: Sequence[Any], target: TimeToEvent) -> tuple[Any, ...]:
    found = [one for one in features if one.name == target.time]
    if not found:
        return (*features, target.exit)
    (time,) = found
    if replace(time, wording=target.exit.wording) != target.exit or any(
        {target.time, target.name} & set(one.of) for one in features
    ):
        raise InvalidValueError(
            "Expected {time!r} to be the time from 0 to horizon={horizon!r} with "
            'outside="refuse", and nothing to be derived from it: it is a part of the target.',
            time=target.time,
            horizon=target.horizon,
        )
    return tuple(features)


def _refuse_unless_kind(kinds: Any, role: str, column: Any, hint: str) -> None:
    if not isinstance(column, kinds):
        names = ", ".join(kind.__name__ for kind in get_args(kinds))
        raise InvalidValueError(
            "Expected {role} {column!r} to be one of {names}; {hint}.",
            role=role,
            column=column,
            names=names,
            hint=hint,
        )


def title_of(one: Question, language: str | None = None) -> str:
    """Return what a question is called in a table: its title, or else its name."""
    title = one.wording.title
    return one.name if title is None else title.in_language(language)


def asked_in_words(one: Question, language: str | None = None) -> str:
    """Return a question with its public range in brackets: "Age (18 to 90 years)"."""
    if isinstance(one, Categorical):
        what = " | ".join(one.wording.label(level, language) for level in one.levels)
    elif isinstance(one, Label):
        what = f"above {one.threshold:,g}{_unit_of(one, language)}"
    elif isinstance(one, Numeric):
        what = f"{one.lower:,g} to {one.upper:,g}{_unit_of(one, language)}"
    else:
        what = " or ".join(one.wording.label(answer, language) for answer in ("yes", "no"))
    return f"{title_of(one, language)} ({what}{', or not said' if one.optional else ''})"


def titles(schema: Schema, language: str | None = None) -> dict[str, str]:
    """Return what each encoded column is called: "region=n" is "Region: in the north".

    Columns without any wording keep their names.
    """
    found: dict[str, str] = {}
    for one in schema.questions:
        title = title_of(one, language)
        for column in one.columns:
            if column == one.name:
                found[column] = title
                if isinstance(one, Numeric) and one.wording.unit is not None:
                    found[column] = f"{title} ({one.wording.unit.in_language(language)})"
                continue
            level = column.removeprefix(f"{one.name}=")
            label = one.wording.label(level, language)
            is_plain = (title, label) == (one.name, level)
            found[column] = column if is_plain else f"{title}: {label.strip('()')}"
    return found


def _unit_of(one: Numeric | Label | Binary, language: str | None) -> str:
    unit = one.wording.unit
    return "" if unit is None else f" {unit.in_language(language)}"


def _refuse_unless_comparable(one: Question, only: OnlyIf, before: Sequence[Question]) -> None:
    """Refuse a question that is asked of some, unless an earlier answer tells of whom."""
    source = next((each for each in before if each.name == only.name), None)
    if source is None or not one.optional:
        raise InvalidValueError(
            "Expected only_if={only!r} of {name!r} to name an earlier question, and "
            "{name!r} to be optional: whoever is not asked does not say.",
            only=str(only),
            name=one.name,
        )
    if isinstance(source, Numeric | Label):
        try:
            right = math.isfinite(float(only.value))
        except ValueError:
            right = False
    else:
        answers = source.levels if isinstance(source, Categorical) else (YES, NO)
        right = only.how in ("=", "!=") and only.value in answers
    if not right:
        raise InvalidValueError(
            "Expected only_if={only!r} of {name!r} to compare {only_name!r} with an "
            "answer to it: with = or != one of its levels, yes or no; a number with any.",
            only=str(only),
            name=one.name,
            only_name=only.name,
        )


# ---- coefficients in the user's units


@dataclass(frozen=True, eq=False)
class Units:
    """From coefficients of (1, v), a level's column for each level, to the user's units.

    `matrix` and `offset` are the affine map of the module's docstring, contrasts included; `names`
    are those of its rows, and `places` their own columns of (1, v). `columns` are those that
    predictions are made with: all, reference levels too, but for those that repeat others in
    another way, whose weights are 0.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    matrix: FloatArray
    offset: FloatArray
    scale: float  # a_y: one unit of v_y is 1/a_y of the target's
    columns: tuple[str, ...]
    fitted: tuple[int, ...]  # the places of the constant and of these

    def apply(self, coefficients: FloatArray) -> FloatArray:
        """Return the coefficients in the user's units."""
        found: FloatArray = self.matrix @ coefficients + self.offset
        return found

    def spread(self, weights: FloatArray, hidden: Collection[str] = ()) -> FloatArray:
        """Return weights of the constant and `columns` as weights of all columns.

        Args:
            weights: In the order of `columns`, but for those that are hidden.
            hidden: The columns that have no weight of their own: their coefficients are 0, as if
                people had given the reference level. A hidden reference level has the weight 0.
        """
        found = np.zeros(self.matrix.shape[1])
        names = (INTERCEPT, *self.columns)
        seen = [at for at, name in zip(self.fitted, names, strict=True) if name not in hidden]
        found[seen] = weights
        rows = [row for row, name in enumerate(self.names) if name in hidden]
        if rows:
            own = [self.places[row] for row in rows]
            found[own] = -np.linalg.solve(self.matrix[np.ix_(rows, own)], self.matrix[rows] @ found)
        return found

    def rows(self, v: FloatArray) -> FloatArray:
        """Return what the coefficients of `names` multiply for people with these columns (n, k)."""
        kept = np.column_stack([np.ones(len(v)), v])[:, list(self.places)]
        square = self.scale * self.matrix[:, list(self.places)]
        return np.asarray(np.linalg.solve(square.T, kept.T).T)

    def without(self, names: Collection[str]) -> "Units":
        """Return the map to all coefficients but these."""
        rows = [row for row, name in enumerate(self.names) if name not in names]
        return replace(
            self,
            names=tuple(self.names[row] for row in rows),
            places=tuple(self.places[row] for row in rows),
            matrix=self.matrix[rows],
            offset=self.offset[rows],
        )


def units(
    schema: Schema,
    target: str,
    features: Sequence[str],
    *,
    references: Mapping[str, str] | None = None,
    log_odds: bool = False,
) -> Units:
    """Return the map for a model of one target by some features, the same for all of its classes.

    `references` are the levels that others are compared with (default: each categorical's first);
    `log_odds` says that the model tells a label's log-odds, which have no unit.
    """
    slope, constant = (1.0, 0.0) if log_odds else schema.question(target).affines[0]
    names = [INTERCEPT, *schema.columns_of(features)]
    matrix, left_out, repeats = independent(schema, features, references)
    in_units, at = np.eye(len(names)), 1
    for one in map(schema.question, features):
        own = slice(at, at + len(one.columns))
        slopes, constants = zip(*one.affines, strict=True)
        in_units[own, own] *= slopes
        in_units[0, own] += constants
        at = own.stop
    places = [place for place in range(len(names)) if place not in left_out]
    offset = np.zeros(len(places))
    offset[0] = -constant / slope
    told = tuple(names[place] for place in places)
    fitted = tuple(place for place in range(len(names)) if place not in repeats)
    columns = tuple(names[place] for place in fitted[1:])
    whole = (in_units @ matrix)[places] / slope
    return Units(told, tuple(places), whole, offset, slope, columns, fitted)


def independent(
    schema: Schema, features: Sequence[str], references: Mapping[str, str] | None = None
) -> tuple[FloatArray, set[int], set[int]]:
    """Return how each column of (1, v) is made of those that do not follow from others, a column of
    the matrix for each; the places of those that do; and of these all but reference levels. Of a
    yes/no in pairs the reference is no.
    """
    chosen = dict(references or {})
    asked = sorted(map(schema.question, features), key=lambda one: bool(one.of))
    if unknown := set(chosen) - {one.name for one in asked if isinstance(one, Categorical)}:
        raise InvalidValueError(
            "Expected reference levels for categorical features only, and got {listed}.",
            listed=listed(unknown),
        )
    found = _Elimination(schema, features, chosen)
    for one in asked:
        beside = [schema.question(name) for name in one.of if name in features]
        if isinstance(one, derived.Cross) and beside:
            found.pairs(one, beside)
        elif isinstance(one, Categorical):
            found.levels(one, beside)
        elif isinstance(one, derived.Product):
            found.product(one, beside)
        elif isinstance(one, derived.Condition) and one.level is not None and beside:
            found.leave(found.places[one.name], 2 * found.has(beside[0], one.level) - found.one)
    return found.matrix, found.left_out, found.left_out - found.bases


class _Elimination:
    """Leaves columns out one after the other, each told as a sum of those that stay."""

    def __init__(
        self, schema: Schema, features: Sequence[str], references: Mapping[str, str]
    ) -> None:
        self.schema, self.references = schema, references
        self.places = {name: at for at, name in enumerate(schema.columns_of(features), start=1)}
        self.matrix, self.left_out = np.eye(1 + len(self.places)), set[int]()
        self.bases = set[int]()

    @property
    def one(self) -> FloatArray:
        """The constant."""
        return self.matrix[:, 0]

    def leave(self, place: int, expression: FloatArray) -> None:
        """Leave a column out, which is this sum of others."""
        self.matrix[:, place] = expression
        self.left_out.add(place)

    def reference(self, one: Question) -> str:
        """Return the level that others are compared with."""
        if not isinstance(one, Categorical):
            return "no"
        level = self.references.get(one.name, one.levels[0])
        if f"{one.name}={level}" not in one.columns:
            raise InvalidValueError(
                "Expected the reference level {level!r} of {name!r} to be one of {listed}.",
                level=level,
                name=one.name,
                listed=listed(one.levels),
            )
        return level

    def has(self, one: Question, level: str) -> FloatArray:
        """Tell whether a question is answered by a level, 0 or 1, as a sum of columns."""
        if isinstance(one, Categorical):
            return self.matrix[:, self.places[f"{one.name}={level}"]]
        sign = 1 if level == "yes" else -1
        return (self.one + sign * self.matrix[:, self.places[one.name]]) / 2

    def rest(self, whole: FloatArray, own: Iterable[int], place: int) -> FloatArray:
        """Return what the others leave of their sum to one of them."""
        others = [at for at in own if at != place]
        return np.asarray(whole - self.matrix[:, others].sum(axis=1))

    def levels(self, one: Categorical, beside: Sequence[Question]) -> None:
        """Leave the reference level out: all sum to 1. Of a curve beside its own number, whose line
        it contains, another knot as well.
        """
        own = [self.places[name] for name in one.columns]
        base = self.places[f"{one.name}={self.reference(one)}"]
        if isinstance(one, derived.Curve) and beside and one.contains(beside[0]):
            end = own[-1] if base != own[-1] else own[0]
            z = np.asarray(beside[0].scale(np.array(one.knots)))
            middle = float(z[own.index(base)])
            line = self.matrix[:, self.places[beside[0].name]] - middle * self.one
            for at, far in zip(own, z - middle, strict=True):
                if at not in (base, end):
                    line = line - far * self.matrix[:, at]
            self.leave(end, line / (z[own.index(end)] - middle))
        self.leave(base, self.rest(self.one, own, base))
        self.bases.add(base)

    def product(self, one: derived.Product, beside: Sequence[Question]) -> None:
        """Tell a product in the units of its questions, if both are there; and leave the reference
        level's slope out if the number itself is there, as all of them sum to it.
        """
        own = [self.places[name] for name in one.columns]
        sources = [self.schema.question(name) for name in one.of]
        whole = len(beside) == len(set(one.of)) == 2
        if not one.levels:
            if whole:
                (a, b), (c, d) = (each.affines[0] for each in sources)
                first, last = (self.matrix[:, self.places[each.name]] for each in sources)
                self.matrix[:, own[0]] *= a * c
                self.matrix[:, own[0]] += d * first + b * last - b * d * self.one
            return
        choice = next(each for each in sources if isinstance(each, Categorical))
        number = next(each for each in sources if each is not choice)
        if whole:
            slope, constant = number.affines[0]
            for place, level in zip(own, one.levels, strict=True):
                self.matrix[:, place] *= slope
                self.matrix[:, place] += constant * self.has(choice, level)
        if number in beside:
            base = own[one.levels.index(self.reference(choice))]
            total = self.matrix[:, self.places[number.name]]
            self.leave(base, self.rest(total, own, base))

    def pairs(self, one: derived.Cross, beside: Sequence[Question]) -> None:
        """Leave out each pair with the reference level of a question that is there itself: the
        pairs with one level of the other question sum to that level.
        """
        first, last = sources = [self.schema.question(name) for name in one.of]
        levels = [list(derived.levels_of(each)) for each in sources]
        own = np.reshape(
            [self.places[name] for name in one.columns], [len(each) for each in levels]
        )
        i, j = (each.index(self.reference(by)) for each, by in zip(levels, sources, strict=True))
        rows, columns = range(len(levels[0])), range(len(levels[1]))
        if last in beside:  # its reference comes last, when all else of its row is known
            for column in sorted(columns, key=lambda at: at == j):
                if first in beside and column == j:
                    continue
                whole = self.has(last, levels[1][column])
                self.leave(own[i, column], self.rest(whole, own[:, column], own[i, column]))
        if first in beside:
            for row in sorted(rows, key=lambda at: at == i):
                whole = self.has(first, levels[0][row])
                self.leave(own[row, j], self.rest(whole, own[row], own[row, j]))
