"""What is typed wrongly is said in words, with exit code 2, and nothing is written."""

import numpy as np
import pytest

from blurfit import protocol as tokens
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb_table
from blurfit.schema.imports import to_toml
from blurfit.schema.schema import Numeric, Schema
from blurfit_server.store.store import Store
from support.command import Blurfit
from support.joint_release import release
from support.surveys import schema_text

PROMISE = "--epsilon 1 --delta 1e-6"
AGREED = f"{PROMISE} --quorum 5000"
MOMENT = "--quorum 32768 --constant 0.5"
TWO = (("one", "https://one.example"), ("two", "https://two.example"))
BOTH = " ".join(f"--database {name} {url}" for name, url in TWO)
AT = "--admin-token-file token.txt --out out.txt"
FIT = "fit moments.json --out m.json"
NOWHERE = "http://127.0.0.1:1"
NO_DOCUMENT = "to be an agreement, a plan, a model or moments"
NOT_ALL = ("", "{", "[]", "3", '{"format": "other"}', "\xff", '{"format": []}')
SURVEY = schema_text()
WAVES = to_toml(
    Schema([Numeric("age", 18, 90)], Numeric("income", 0, 100_000).above(45_000))
) + "\n[terms]\nepsilon = 1\ndelta = 1e-6\nquorum = 600\n"  # fmt: skip
TEXTS = {
    "schema.toml": SURVEY,
    "broken.toml": "[[features]",
    "unbounded.toml": SURVEY.replace("upper = 100\n", ""),
    "misspelt.toml": f"{SURVEY}[terms]\nepsilom = 1\n",
    "table.toml": f"{SURVEY}[schema]\nquorum = 100\n",
    "number.toml": f"terms = 3\n{SURVEY}",
    "waves.toml": WAVES,
    "broken.json": "{",
    "people.csv": "age,income\n1,2\n",
    "old.csv": "name,age\nsomeone,1\nsomeone,old\n",
    "none.csv": "name\nsomeone\n",
    "theirs.txt": "one\nother\n",
    "pairs.txt": "one,two\nother,more\n",
    "token.txt": tokens.new_token(),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory, propose) -> Blurfit:
    """A folder with a file of each kind."""
    folder = tmp_path_factory.mktemp("refusals")
    texts = TEXTS | {f"strange{number}.json": text for number, text in enumerate(NOT_ALL)}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="latin-1")
        (folder / name).chmod(0o600)
    agreement = propose()
    agreement.save(folder / "agreement.json")
    propose(databases=TWO).save(folder / "two.json")
    terms = {"epsilon": 1, "delta": 1e-6, "quorum": 600}
    Plan.propose(agreement.schema, waves=2, **terms).save(folder / "plan.json")
    release().save(folder / "moments.json")
    with Store() as store:
        everyone = {"age": np.linspace(0, 100, 50), "income": np.linspace(0, 1000, 50)}
        store.add(agreement, perturb_table(agreement, everyone))
        store.publish(agreement).save(folder / "model.json")
    return Blurfit(folder)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (f"agree broken.toml {AGREED}", "broken.toml"),
        (f"agree unbounded.toml {AGREED}", "upper"),
        (f"agree schema.toml {PROMISE} --quorum 0", "quorum"),
        ("agree schema.toml --epsilon 1", "Expected --delta, --quorum: type it, or write it"),
        (f"agree misspelt.toml {AGREED}", "got ['epsilom']"),
        (f"agree table.toml {AGREED}", "Unknown key 'schema'"),
        (f"agree number.toml {AGREED}", "to be a table"),
        (f"agree schema.toml {AGREED} --database A https://a.example", "Expected two databases"),
        (f"agree schema.toml {AGREED} --weight age 1", "Expected weights for each of"),
        (f"agree agreement.json {AGREED}", "is an agreement already"),
        ("agree waves.toml --waves many", "expected auto or a number from 1 to 9"),
        ("agree waves.toml --waves 0", "expected auto or a number from 1 to 9"),
        ("agree waves.toml --counts", "Expected --waves with --counts"),
        (f"agree waves.toml --waves 2 --proofs {BOTH}", "no proofs with waves"),
        ("init .", "nothing is overwritten"),
        (f"calibrate --epsilon -1 --delta 1e-6 {MOMENT}", "Expected epsilon=-1.0 > 0."),
        (f"calibrate --epsilon 1 --delta 2 {MOMENT}", "Expected delta=2.0 strictly between 0 and"),
        (f"calibrate {PROMISE} --local-epsilon 1 {MOMENT}", "Give local_delta=1e-6, say."),
        (f"calibrate {PROMISE} --quorum 5", "Missing option '--constant'"),
        (f"guarantee {MOMENT}", "Missing option '--sigma'"),
        (f"guarantee {MOMENT} --sigma 1", "Expected one of --epsilon and --delta"),
        (f"guarantee {MOMENT} --sigma 1 {PROMISE}", "Expected one of --epsilon and"),
        (f"guarantee {MOMENT} --sigma -1 --delta 1e-6", "Expected sigma=-1.0 > 0."),
        ("serve --port 0 --store sqlite:///nowhere/collection.db", "nowhere"),
        ("serve --port 0 --store mysql://here/there", "mysql"),
        ("serve --port 0 --requests-per-second -1", "-1.0 is not in the range x>=0"),
        ("serve --port 70000", "port"),
        ("serve --port 0 --tls-certificate nowhere.pem", "'nowhere.pem' does not exist"),
        ("restore", "Expected the FILE of a backup"),
        ("restore --moved --original-lost", "cannot be combined"),
        ("restore model.json --in-place", "Expected the FILE of a backup"),
        ("restore model.json --store postgresql://x/y", "use --in-place"),
        (f"status nowhere.json --to {NOWHERE}", "'nowhere.json' does not exist"),
        (f"status broken.json --to {NOWHERE}", "Expected an agreement or a plan in JSON"),
        ("status agreement.json --to 127.0.0.1:1", "Expected '127.0.0.1:1' to be the address"),
        ("status agreement.json --to http://127.0.0.1:port", "http://127.0.0.1:port"),
        ("status agreement.json", "Missing option '--to'"),
        *(
            (f"invite {file} --to https://{to}.example {AT} {typed}", words)
            for to, typed, several in (
                ("third", "--count 2 --both token.txt", "one of the agreement's two databases"),
                ("third", "--count 2 --join theirs.txt", "one of the agreement's two databases"),
                ("one", "--count 3 --join theirs.txt", "to begin with the line that"),
                ("two", "--count 2 --join pairs.txt", "to begin with the line that"),
            )
            for file, words in (("two.json", several), ("agreement.json", "only one database"))
        ),
        ("contribute agreement.json people.csv", "either --to SERVICE or --out FILE"),
        ("contribute agreement.json people.csv --out a.csv", ".parquet or .arrow"),
        (
            "contribute agreement.json people.csv --out a.parquet --invitations people.csv",
            "no --invitations",
        ),
        ("learn agreement.json people.csv --scheduler tcp://x:1", "--engine dask"),
        ("learn agreement.json people.csv", "Parquet or Arrow file"),
        ("learn agreement.json nothing*", "a pattern that some match"),
        (f"learn agreement.json {NOWHERE}/a.parquet", "Cannot open"),
        ("export agreement.json --store sqlite:///x.db --out a.parquet", "Nothing"),
        ("token --store sqlite:///x.db --name x", "--right and --out"),
        ("predict model.json old.csv --out p.csv", "a value of 'age' which is not a number"),
        ("predict model.json none.csv --out p.csv", "Expected the columns age"),
        ("predict model.json people.csv --json", "Expected --out besides --json"),
        ("predict people.csv people.csv", "Expected"),
        ("table moments.json shoes", "one of the columns"),
        ("table moments.json income age", "declare bands"),
        ("table moments.json income --quantile 0.5", "declare Bands"),
        ("table moments.json --quantile 0.5", "a QUESTION"),
        (f"{FIT} 'income ~ log(age)'", "It needs the records themselves"),
        (f"{FIT} 'income ~ age:married'", "not in the release: it has products of two columns"),
        (f"{FIT} 'income ~ height'", "'height'"),
        (f"{FIT} 'income ~ age' --ridge -1", "ridge=-1.0"),
        ("fit model.json", "Is this a release of moments"),
        *((f"show strange{number}.json", NO_DOCUMENT) for number in range(len(NOT_ALL))),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(world, typed, words) -> None:
    before = contents(world)
    refused = world.refused(typed, says=words)
    assert "floating point" not in refused.stderr  # which has nothing to do with it
    assert contents(world) == before


def contents(world: Blurfit) -> dict[str, bytes]:
    """But stores, which are made where there is none as soon as one is named."""
    files = [path for path in world.folder.iterdir() if ".db" not in path.name]
    return {path.name: path.read_bytes() for path in files}
