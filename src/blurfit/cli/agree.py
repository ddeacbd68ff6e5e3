"""From a schema and a promise to the contract that everyone shares: `blurfit agree` and `next`.

A proposal is a schema's file (see `blurfit.schema.schema`) with what is proposed beside it, all of
it optional:

    [terms]
    epsilon = 1.0        # any of `blurfit.agreement.terms`
    delta = 1e-6
    quorum = 5000

Terms are options, too, whose names, types, defaults and help come from `Terms`. An option that is
not given is None, so that what is typed comes before what a file says, and a file before the
defaults.
"""

import json
import shlex
import sys
import tomllib
from collections.abc import Collection
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import click
import msgspec

import blurfit as bf
from blurfit.agreement.terms import TERMS, Terms, require_together
from blurfit.cli import _common as common
from blurfit.cli._common import Answer, ExistingFile, NewFile, Out, Together, command
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.wording import Message

if TYPE_CHECKING:
    from blurfit.schema.imports import Imported


@dataclass(frozen=True)
class ProposalFile:
    """A schema, and what is proposed for its agreement; or an agreement that is made already."""

    schema: "bf.Schema"
    terms: dict[str, Any] = field(default_factory=dict)
    agreement: "bf.Agreement | None" = None


def read_proposal(path: Path) -> ProposalFile:
    """Read an agreement from .json and verify it, or read a proposal from .toml."""
    if path.suffix == ".json":
        agreement = bf.Agreement.load(path)
        return ProposalFile(agreement.schema, agreement=agreement)
    schema = bf.Schema.from_toml(path)
    terms = tomllib.loads(path.read_text(encoding="utf-8")).get("terms", {})
    if not isinstance(terms, dict):
        raise InvalidValueError(f"{path}: Expected terms={terms!r} to be a table, [terms].")
    unknown = sorted(set(terms) - set(TERMS))
    if unknown:
        raise InvalidValueError(
            f"{path}: Expected terms to be among {', '.join(sorted(TERMS))}, and got {unknown}."
        )
    return ProposalFile(schema, terms)


# Terms that hold several things, each typed with an option of its own.
_SEVERAL = {
    "databases": ("--database", (str, str), "NAME URL", " Use it twice."),
    "signing_keys": ("--signing-key", str, "KEY", " Then use it twice."),
    "weights": ("--weight", (str, float), "NAME VALUE", " Give it for every column."),
    "factors": ("--factor", (str, float), "LEVEL VALUE", " Give it for every level."),
}


def term_options(*names: str, required: Collection[str] = ()) -> list[click.Option]:
    """Return an option for each of some terms, such as --weight-bound for `weight_bound`."""
    hints = get_type_hints(Terms, include_extras=True)
    fields = {field.name: field for field in msgspec.structs.fields(Terms)}
    return [_option(name, hints[name], fields[name], name in required) for name in names]


def given(typed: dict[str, Any]) -> dict[str, Any]:
    """Return the terms among what was typed, as `Terms` has them."""
    found = {name: value for name, value in typed.items() if value not in (None, ())}
    if "weights" in found:
        found["weights"] = dict(found["weights"])
    return found


def _option(name: str, hint: Any, field: Any, required: bool) -> click.Option:
    kind, *details = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    said = next((one.description for one in details if isinstance(one, msgspec.Meta)), None) or ""
    settings: dict[str, Any] = {"help": said, "required": required}
    flag = f"--{name.replace('_', '-')}"
    if name in _SEVERAL:
        flag, several, metavar, how = _SEVERAL[name]
        settings |= {"type": several, "metavar": metavar, "multiple": True, "help": said + how}
    elif name == "admission":  # of which nothing typed means the other choice
        flag, settings["flag_value"], settings["default"] = "--anyone", "anyone", None
        settings["help"] = (
            "Let anyone take part, without invitations: then nobody can tell how many of the "
            "submissions are honest people's, whom the promise needs."
        )
    else:
        settings["type"] = _type(kind)
        if settings["type"] is bool:
            flag, settings["default"] = f"{flag}/--no-{flag[2:]}", None  # else click takes False
        default = None if field.required else field.default
        if default not in (None, 0.0) and not isinstance(default, bool):
            settings["help"] += f"  [default: {default}]"
    return click.Option([flag, name], **settings)


def _type(kind: Any) -> Any:
    """Return the type that click checks: a number, or one of some words."""
    if get_origin(kind) is UnionType or NoneType in get_args(kind):
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    return click.Choice(get_args(kind)) if get_origin(kind) is Literal else kind


NEEDED = ("epsilon", "delta", "quorum")


def _waves(_context: object, _option: object, word: str | None) -> int | str | None:
    if word is None or word == "auto":
        return word
    if not word.isdecimal() or not 1 <= int(word) <= 9:
        raise click.BadParameter(f"expected auto or a number from 1 to 9, and got {word!r}.")
    return int(word)


@command("agree", "schema.toml --epsilon 1 --delta 1e-6 --quorum 5000 --out agreement.json")
def agree(
    schema: ExistingFile,
    *,
    out: Out = Path("agreement.json"),
    typed: Annotated[dict[str, Any], Together(term_options(*TERMS))],
    waves: Annotated[Any | None, _waves],
    database_key: tuple[str, ...],
    counts: bool,
    plan: NewFile = Path("plan.json"),
) -> Answer:
    """Write the agreement for a SCHEMA: what is asked, how it is blurred, what is promised.

    SCHEMA is a TOML file with the columns and their public bounds (`blurfit init` writes one).
    Whatever its table [terms] says need not be typed. With --local-epsilon alone, --delta is also
    the δ of a single submission.

    Options:
        out: Where the agreement is written.
        waves (auto|N): Ask people in waves, each of which builds on what the earlier ones taught:
            as many as help, or at most N. Writes a plan, and the agreement of its first wave.
        database_key (KEY): With two databases: the public key to which the shares for each are
            sealed, as `blurfit serve --share-key-file` prints it. Use it twice, in the order of
            --database.
        counts: With --waves: the target is a count.
        plan: Where the plan of --waves is written.
    """
    from blurfit.cli import _reports as reports

    proposal = read_proposal(schema)
    if proposal.agreement is not None:
        raise InvalidValueError(
            f"Expected a schema (.toml), and {str(schema)!r} is an agreement already."
        )
    terms = proposal.terms | given(typed)
    if database_key:
        pairs = terms.get("databases", ())
        if len(database_key) != len(pairs):
            raise InvalidValueError(
                "Expected a --database-key for each --database, in their order."
            )
        terms["databases"] = [(*pair, key) for pair, key in zip(pairs, database_key, strict=True)]
    if missing := [f"--{name}" for name in NEEDED if name not in terms]:
        raise InvalidValueError(
            f"Expected {', '.join(missing)}: type it, or write it under [terms] in {schema}."
        )
    if "local_epsilon" in terms:
        terms.setdefault("local_delta", terms["delta"])
    if counts and waves is None:
        raise InvalidValueError("Expected --waves with --counts.")
    facts: dict[str, Any] = {"agreement": str(out)}
    told = []
    if waves is None:
        agreement = bf.Agreement.propose(proposal.schema, **terms)
    else:
        planned = bf.Plan.propose(proposal.schema, waves=waves, counts=counts, **terms)
        planned.save(plan)
        agreement = planned.first()
        facts |= {"plan": str(plan), **reports.plan_facts(planned)}
        told = [reports.plan_in_words(planned), f"Wrote {plan}, fingerprint {planned.fingerprint}."]
    agreement.save(out)
    doubts = reports.doubts(agreement)
    for doubt in doubts:
        click.echo(f"Warning: {doubt}", err=True)
    facts |= reports.agreement_facts(agreement) | {"warnings": doubts}
    wrote = f"Wrote {out}, fingerprint {agreement.fingerprint}."
    try:
        require_together(agreement, served=True)
        collects = f"and `blurfit open {plan}` collect" if waves else "collects"
        collects = f"`blurfit serve` {collects}, or "
    except (InfeasibleError, InvalidValueError):  # for files alone
        collects = ""
    elsewhere = f"`blurfit contribute {out} TABLE --out FILE` blurs into a file."
    if agreement.databases:
        elsewhere = "each of the two databases opens it: `--as first` and `--as second`."
        collects = collects.removesuffix("or ")
    step = f"`blurfit forecast {out}` says what error to expect; {collects}{elsewhere}"
    return Answer(facts, [reports.agreement_report(agreement), wrote, *told], step)


@command("next", "plan.json release1.json --out agreement2.json")
def next_wave(
    plan: ExistingFile,
    releases: tuple[ExistingFile, ...] = (),
    *,
    out: Out = Path("agreement.json"),
) -> Answer:
    """Write the agreement of a PLAN's next wave, which follows from the RELEASES so far.

    Give the published moments of all earlier waves, in order; none for the first wave. Whoever
    collects runs this and hands the file on; all others check it (`blurfit contribute --plan`).

    Options:
        out: Where the agreement is written.
    """
    from blurfit.cli import _reports as reports

    agreed = bf.Plan.load(plan)
    agreement = common.course_of(agreed, releases).next_agreement()
    agreement.save(out)
    number = len(releases) + 1
    shown = "".join(f" --release {one}" for one in releases)
    return Answer(
        {"agreement": str(out), "wave": number, **reports.agreement_facts(agreement)},
        f"Wrote {out}, wave {number} of {len(agreed)}, for {agreement.quorum:,} people; "
        f"fingerprint {agreement.fingerprint}.",
        f"`blurfit contribute {out} TABLE --out FILE --plan {plan}{shown}`.",
    )


# ---- an example to begin with


PEOPLE, SEED = 20_000, 2026

EXAMPLE = files("blurfit.cli").joinpath("survey/schema.toml")


@command("init", "survey")
def init(
    folder: Annotated[Path, click.Path(file_okay=False, path_type=Path)],
    *,
    from_: ExistingFile | None,
    target: str | None,
    bounds: tuple[tuple[str, float, float], ...],
    levels: tuple[tuple[str, str], ...],
    encoding: str = "utf-8-sig",
) -> Answer:
    """Write an example survey into a FOLDER: a schema to adapt, and people to try it with.

    The people are generated, so that you can try every command. With --from, the schema is that of
    an existing survey or table, and no people are generated. Of a table, bounds are asked for: they
    must be known before anyone answers, so they are never taken from the data.

    Options:
        from_: What exists already: a table of people (.csv, .xlsx, .parquet), an XLSForm (.xlsx), a
            Table Schema or a Data Package (.json).
        target: With --from: the question to predict.
        bounds (NAME LOWEST HIGHEST): With --from: what a number can be, known beforehand.
        levels (NAME A,B,…): With --from a table: all choices that a question has.
        encoding: With --from a table: the encoding of a CSV file, such as cp1252.
    """
    schema, people = folder / "schema.toml", folder / "people.csv"
    written = (schema, people) if from_ is None else (schema,)
    if taken := [str(path) for path in written if path.exists()]:
        raise InvalidValueError(
            f"Expected a folder without {' and '.join(taken)}: nothing is overwritten. Name "
            "another folder."
        )
    if from_ is not None:
        known = {name: (low, high) for name, low, high in bounds}
        return _from_existing(schema, from_, target, known, dict(levels), encoding)
    if target is not None:
        raise InvalidValueError("Expected --from FILE with --target.")
    folder.mkdir(parents=True, exist_ok=True)
    schema.write_bytes(EXAMPLE.read_bytes())
    with people.open("w", newline="", encoding="utf-8") as stream:
        table = made_up_people(PEOPLE, SEED)
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        common.write_csv(stream, [table, *rows])
    return Answer(
        {"schema": str(schema), "people": str(people), "rows": PEOPLE},
        f"Wrote {schema}, and {people} with {PEOPLE:,} people who do not exist.",
        f"`cd {folder}`, then `blurfit agree schema.toml`.",
    )


_PROPOSED = """
[terms]                 # what `blurfit agree` promises, unless you type something else
epsilon = 1.0           # the smaller, the stronger; 1 is usual
delta = 1e-6            # the chance that the promise fails; far below one in the quorum
quorum = 10000          # nothing is published from fewer honest people
# Two databases that different people run: neither can read an answer. Without this line, one
# database collects, and everybody has to trust whoever runs it.
# databases = [["Office", "https://office.example"], ["University", "https://university.example"]]
"""


def _from_existing(
    schema: Path,
    source: Path,
    target: str | None,
    bounds: dict[str, tuple[float, float]],
    levels: dict[str, str],
    encoding: str,
) -> Answer:
    from blurfit.schema.imports import from_table_schema, to_toml
    from blurfit.schema.xlsforms import from_xlsform, is_xlsform

    kind = source.suffix.lower()
    is_form = kind in (".xlsx", ".xlsm") and is_xlsform(source)
    if levels and (is_form or kind == ".json"):
        raise InvalidValueError(
            f"`--levels` cannot be combined with {source.name!r}, which says which choices it has."
        )
    if is_form:
        found = from_xlsform(source, target, bounds=bounds)
    elif kind == ".json":
        try:
            document = json.loads(source.read_bytes())
        except ValueError as error:
            raise InvalidValueError(
                f"Expected {str(source)!r} to be a Table Schema in JSON: {error}."
            ) from error
        found = from_table_schema(document, target, bounds)
    else:
        found = _from_table(source, target, bounds, levels, encoding)
    schema.parent.mkdir(parents=True, exist_ok=True)
    head = f"# From {source.name}. Check every bound: it must be known before anyone answers.\n\n"
    schema.write_text(f"{head}{to_toml(found.schema)}\n{_PROPOSED}", encoding="utf-8")
    asked = len(found.schema.features) + 1
    words = "".join(f"\n{note}" for note in found.notes)
    return Answer(
        {"schema": str(schema), "questions": asked, "notes": list(found.notes)},
        f"Wrote {schema}, with {asked} questions from {source.name}.{words}",
        f"check {schema}, then `blurfit agree {schema}`.",
    )


_LEFT_OUT = {
    "text": "which is text.",
    "identifier": "whose numbers name people. With --bounds it is a number.",
    "date": "which has dates. Ask for years instead, as a number.",
}


def _from_table(
    source: Path,
    target: str | None,
    bounds: dict[str, tuple[float, float]],
    levels: dict[str, str],
    encoding: str,
) -> "Imported":
    """Propose a question for each column; what must be public is typed, or asked for."""
    from blurfit.schema.columns import About
    from blurfit.schema.imports import SurveyReader, TableGlance

    glance = TableGlance.at(source, encoding)
    reading = SurveyReader(f"The table {source.name!r}", bounds=dict(bounds))
    talks = sys.stdin.isatty()
    if talks:
        click.echo(
            f"What you are shown of {source.name} is private. Bounds and choices become public: "
            "give what is known before anyone answers. Enter alone leaves a column out.",
            err=True,
        )
    flags: list[str] = []  # that are missing
    for name, kind in glance.kinds.items():
        unsaid = name in glance.gaps and name != target
        typed = shlex.quote(name)
        if kind in _LEFT_OUT and name not in (*bounds, *levels, target):
            why = _LEFT_OUT[kind]
            reading.notes.append(Message("Left out: {name!r}, {why}", name=name, why=why))
            continue
        if kind == "yes or no":
            reading.columns.append(bf.Binary(name, unsaid))
        elif kind in ("number", "identifier", "date") or name in bounds:
            found = reading.bounds.pop(name, None) or (_ask_bounds(name) if talks else None)
            if found is not None:
                reading.columns.append(bf.Numeric(name, *found, optional=unsaid))
            elif not talks:
                flags.append(f"--bounds {typed} LOWEST HIGHEST")
        elif kind == "choice" or name in levels:
            words = levels.get(name) or (_ask_levels(name, glance.choices[name]) if talks else "")
            choices = [word.strip() for word in words.split(",") if word.strip()]
            if choices:
                reading.columns.append(bf.Categorical(name, choices, unsaid))
            elif not talks:
                flags.append(f"--levels {typed} A,B,…")
    if flags:
        lines = " \\\n".join(f"    {flag}" for flag in flags)
        raise InvalidValueError(
            f"The table {source.name!r} does not say what anyone could answer. Add what is known "
            f"before anyone answers, and remove columns that nobody is asked:\n{lines}\nNothing "
            "was written."
        )
    names = [one.name for one in reading.columns]
    if target is None and talks and names:
        target = click.prompt("Which column is to be predicted", type=click.Choice(names), err=True)
    return reading.finish(About(), target)


def _ask_bounds(name: str) -> tuple[float, float] | None:
    """Ask until two numbers are typed, or nothing."""
    while True:
        words = click.prompt(
            f"{name}: lowest and highest value that anyone could have, such as 0 120",
            default="",
            show_default=False,
            err=True,
        ).split()
        if not words:
            return None
        try:
            lower, upper = map(float, words)
        except ValueError:
            click.echo("Two numbers, please, with a space between them.", err=True)
            continue
        if lower < upper:
            return lower, upper
        click.echo("The first must be less than the second.", err=True)


def _ask_levels(name: str, found: list[str]) -> str:
    told = f"{name}: all choices that there are, with commas ({', '.join(found)} occur)"
    return str(click.prompt(told, default="", show_default=False, err=True))


def made_up_people(count: int, seed: int) -> dict[str, Any]:
    """Generate people, with the columns of the example's schema."""
    import numpy as np

    from blurfit.simulation import draw_population

    drawn = draw_population(count, seed)
    marital = np.where(
        drawn["is_married"] == 1, "married", np.where(drawn["is_single"] == 1, "single", "formerly")
    )
    return {
        "age": drawn["age"],
        "education": drawn["education"],
        "marital": marital,
        "owns_home": drawn["owns_dwelling"],
        "income": drawn["annual_income"],
    }
