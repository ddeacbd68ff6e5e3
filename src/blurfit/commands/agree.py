"""`blurfit agree`: from a schema and a promise to the contract that everyone shares."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.agreement.terms import TERMS
from blurfit.commands.common import EXISTING_FILE, answer, as_json, next_step, out_file
from blurfit.commands.public import digest_of, public_option
from blurfit.commands.term_options import given, term_options
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.forecast.choices import PublicForecast

NEEDED = ("epsilon", "delta", "quorum")
FEWEST_ROWS = 200  # public ones, of which half are read: fewer than a hundred are refused


def _waves(_context: object, _option: object, word: str | None) -> int | str | None:
    if word is None or word == "auto":
        return word
    if not word.isdecimal() or not 1 <= int(word) <= 9:
        raise click.BadParameter(f"expected auto or a number from 1 to 9, and got {word!r}.")
    return int(word)


@click.command(
    epilog="Example: blurfit agree schema.toml --epsilon 1 --delta 1e-6 --quorum 5000 "
    "--out agreement.json"
)
@click.argument("schema", type=EXISTING_FILE)
@out_file("Where the agreement is written.", default=Path("agreement.json"), show_default=True)
@term_options(*(name for name in TERMS if name != "public_rows"))
@public_option(
    "Public rows of the features (.csv, .parquet), not the contributors' own: the agreement names "
    "the file by its SHA-256, and the target gets the weight that suits them. (moment)"
)
@click.option(
    "--waves",
    metavar="auto|N",
    callback=_waves,
    help="Ask people in waves, each of which builds on what the earlier ones taught: as many as "
    "help, or at most N. Writes a plan, and the agreement of its first wave. (moment)",
)
@click.option(
    "--database-key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="With two databases: the public key to which the shares for each are sealed, as `blurfit "
    "serve --share-key-file` prints it. Give it twice, in the order of --database.",
)
@click.option("--counts", is_flag=True, help="With --waves: the target is a count.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path, writable=True),
    default=Path("plan.json"),
    show_default=True,
    help="Where the plan of --waves is written.",
)
@as_json
def agree(
    schema: Path,
    out: Path,
    public: Path | None,
    waves: Any,
    counts: bool,
    keys: tuple[str, ...],
    plan_file: Path,
    as_json: bool,
    **typed: Any,
) -> None:
    """Write the agreement for a SCHEMA: what is asked, how it is blurred, what is promised.

    SCHEMA is a TOML file with the columns and their public bounds (`blurfit init` writes one).
    Whatever its table [terms] says need not be typed. With --local-epsilon alone, --delta is also
    the δ of a single submission.
    """
    from rich.console import Console

    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.plan import Plan
    from blurfit.commands.facts import agreement_facts
    from blurfit.commands.presentation import agreement_report, doubts
    from blurfit.commands.proposals import read_proposal
    from blurfit.commands.public_report import public_answer
    from blurfit.commands.waves import plan_facts, plan_in_words

    proposal = read_proposal(schema)
    if proposal.agreement is not None:
        raise InvalidValueError(
            f"Expected a schema (.toml), and {str(schema)!r} is an agreement already."
        )
    terms = proposal.terms | given(typed)
    if public is not None:
        terms["public_rows"] = digest_of(public, proposal.schema)
    if keys:
        pairs = terms.get("databases", ())
        if len(keys) != len(pairs):
            raise InvalidValueError(
                "Expected a --database-key for each --database, in their order."
            )
        terms["databases"] = [(*pair, key) for pair, key in zip(pairs, keys, strict=True)]
    if missing := [f"--{name}" for name in NEEDED if name not in terms]:
        raise InvalidValueError(
            f"Expected {', '.join(missing)}: type it, or write it under [terms] in {schema}."
        )
    if "local_epsilon" in terms:
        terms.setdefault("local_delta", terms["delta"])
    if waves is None:
        if counts:
            raise InvalidValueError("Expected --waves with --counts.")
        agreement, planned, told = Agreement.propose(proposal.schema, **terms), {}, ""
    else:
        course = Plan.propose(proposal.schema, waves=waves, counts=counts, **terms)
        agreement, planned = course.first(), {"plan": str(plan_file), **plan_facts(course)}
        told = f"\n{plan_in_words(course)}\nWrote {plan_file}, fingerprint {course.fingerprint}."
        course.save(plan_file)
    agreement.save(out)
    found = doubts(agreement)
    worth = _worth(agreement, public, terms) if public is not None and waves is None else None
    if not as_json:
        Console().print(agreement_report(agreement))
    for doubt in found:
        click.echo(f"Warning: {doubt}", err=True)
    if worth is not None:
        planned["public_rows_worth"] = worth.to_dict()
        told = f"{told}\n{public_answer(worth, worth.cases[0])}"
    answer(
        {"agreement": str(out), **planned, **agreement_facts(agreement), "warnings": found},
        f"Wrote {out}, fingerprint {agreement.fingerprint}.{told}",
        as_json=as_json,
    )
    collects = f"`blurfit serve` and `blurfit open {plan_file}` collect" if waves else ""
    elsewhere = (
        "each of the two databases opens it: `--as first` and `--as second`."
        if agreement.databases
        else f"or `blurfit contribute {out} TABLE --out FILE` blurs into a file."
    )
    next_step(
        f"`blurfit forecast {out}` says what error to expect; "
        f"{collects or '`blurfit serve` collects'}, {elsewhere}",
        quiet=as_json,
    )


def _worth(agreement: "Agreement", public: Path, terms: dict[str, Any]) -> "PublicForecast | None":
    """What the public rows are worth at the quorum; nothing where there are too few to tell."""
    from blurfit.commands.public import encoded_public
    from blurfit.forecast.choices import forecast_beside, people_and_rows

    schema = agreement.schema
    rows = encoded_public(public, schema)
    if len(rows) < FEWEST_ROWS:
        return None
    people, kept = people_and_rows(schema, rows)
    rest = {name: value for name, value in terms.items() if name not in ("epsilon", "quorum")}
    return forecast_beside(
        schema,
        people,
        kept,
        contributors=[agreement.quorum],
        epsilons=[terms["epsilon"]],
        local_epsilons=[rest.pop("local_epsilon", None)],
        terms=rest,
    )
