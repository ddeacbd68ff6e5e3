"""What columns are called where people read: by their titles and labels, or else by their names."""

from blurfit.schema.columns import Binary, Categorical, Label, Numeric, Question
from blurfit.schema.schema import Schema


def title_of(one: Question, language: str | None = None) -> str:
    """What a question is called in a table."""
    title = one.wording.title
    return one.name if title is None else title.in_language(language)


def asked_in_words(one: Question, language: str | None = None) -> str:
    """A question and its public range, in brackets: "Age (18 to 90 years)"."""
    if isinstance(one, Categorical):
        what = " | ".join(one.wording.label(level, language) for level in one.levels)
    elif isinstance(one, Label):
        what = f"above {one.threshold:,g}{_unit(one, language)}"
    elif isinstance(one, Numeric):
        what = f"{one.lower:,g} to {one.upper:,g}{_unit(one, language)}"
    else:
        what = " or ".join(one.wording.label(answer, language) for answer in ("yes", "no"))
    return f"{title_of(one, language)} ({what}{', or not said' if one.optional else ''})"


def titles(schema: Schema, language: str | None = None) -> dict[str, str]:
    """The encoded columns' names, and what each is called: "region=n" is "Region: in the north".

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


def _unit(one: Numeric | Label | Binary, language: str | None) -> str:
    unit = one.wording.unit
    return "" if unit is None else f" {unit.in_language(language)}"
