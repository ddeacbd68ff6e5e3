"""Surveys that were made elsewhere, as they are read: questions, notes, and what is lacking.

Nothing is guessed. A number needs public bounds and a choice needs its levels; where a file does
not say them, the refusal names each question that lacks something, all of them at once.
"""

from dataclasses import dataclass, field, replace

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Feature
from blurfit.schema.content import About
from blurfit.schema.schema import Schema
from blurfit.schema.table import listed


@dataclass(frozen=True)
class Imported:
    """A schema, and what somebody should know about how it came about."""

    schema: Schema
    notes: tuple[str, ...]


@dataclass
class SurveyReader:
    """Questions as they are read from a file."""

    source: str
    columns: list[Feature] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lacks(self, name: str, what: str) -> None:
        """Remember what a question lacks."""
        self.lacking.append(f"{name!r} {what}")

    def finish(self, about: About, target: str | None) -> Imported:
        """The schema, with one of the questions as its target; or all that is lacking."""
        if self.lacking:
            raise InvalidValueError(
                f"{self.source} cannot be imported as it is: {'; '.join(self.lacking)}. Nothing "
                "was written."
            )
        names = [one.name for one in self.columns]
        if target is None or target not in names:
            raise InvalidValueError(
                f"Expected target={target!r} to be one of the questions {listed(names)} of "
                f"{self.source}: which one is to be predicted?"
            )
        features = [one for one in self.columns if one.name != target]
        aim = next(one for one in self.columns if one.name == target)
        notes = list(self.notes)
        if aim.optional:
            aim = replace(aim, optional=False)
            notes.append(f"{target!r} is to be predicted, so everybody answers it.")
        if unsaid := [one.name for one in features if one.optional]:
            notes.append(f"May be left unsaid: {listed(unsaid)}.")
        return Imported(Schema(features, aim, about=about), tuple(notes))
