"""Columns as a file describes them: each a table of keys and values, refused with its place."""

from dataclasses import replace
from typing import Any

from blurfit import validate
from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Binary, Categorical, Feature, Label, Numeric
from blurfit.schema.content import WORDING_KEYS, wording_from
from blurfit.schema.numeric import Outside
from blurfit.schema.table import refuse_keys


def column_from_dict(where: str, entry: Any, outside: Outside = "clip") -> Feature | Label:
    """The column that an entry of a file describes; errors say `where` it stands.

    `outside` is for a numeric column that does not say.
    """
    try:
        refuse_keys(entry, ("name", "kind"), None)
        where = f"{where} ({entry['name']!r})"
        validate.one_of(("numeric", "binary", "categorical"), kind=entry["kind"])
        name, more, words = entry["name"], ("optional", *WORDING_KEYS), wording_from(entry)
        optional = entry.get("optional", False)
        if entry["kind"] == "binary":
            refuse_keys(entry, ("name", "kind"), more)
            return Binary(name, optional, words)
        if entry["kind"] == "categorical":
            refuse_keys(entry, ("name", "kind", "levels"), more)
            return Categorical(name, entry["levels"], optional, words)
        refuse_keys(entry, ("name", "kind", "lower", "upper"), ("outside", "above", *more))
        bounds = entry["lower"], entry["upper"]
        outside = entry.get("outside", outside)
        if "above" not in entry:
            return Numeric(name, *bounds, outside, optional, words)
        label = Numeric(name, *bounds, outside, optional).above(entry["above"])
        return replace(label, wording=words)
    except InvalidValueError as error:
        raise InvalidValueError(f"{where}: {error}") from error
