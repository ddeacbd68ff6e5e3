"""Demonstrations: generated people agree, blur, send and get a model. Nothing here is real data.

`blurfit demo` is one play for two databases or one, in one wave or in several. `blurfit quickstart`
runs two databases, each a process of its own, whose survey fills up slowly enough to watch: nothing
is closed or published before whoever is at the browser says so, and nothing is kept afterwards.
"""

import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from blurfit import protocol
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb_table, share
from blurfit.contributor.client import PAUSE, Client
from blurfit.data import FloatArray
from blurfit.errors import BlurfitError, NotCertifiedError, ServiceError, optional
from blurfit.messages.submissions import Role
from blurfit.model.model import PublishedModel
from blurfit.model.statement import as_markdown
from blurfit.protocol import RemoteDatabase
from blurfit.randomness import new_groups
from blurfit.schema.columns import Numeric
from blurfit.schema.schema import Schema, Units, units, values
from blurfit.simulation import Census, make_census
from blurfit_server.service.app import Limits, Service, in_a_thread
from blurfit_server.store.store import Store

EPSILON, DELTA = 1.0, 1e-6
CONTRIBUTORS, QUORUM, HELD_OUT = 50_000, 40_000, 10_000
BATCH = 2_500
ARRIVALS = 120  # steps in which the collection of `quickstart` fills
NAMES = "Statistics Office", "University"
Agreed = Agreement | Plan


@dataclass(frozen=True)
class Running:
    """A service on this machine: who runs it, where it is, and its administrator's token."""

    name: str
    url: str
    token: str

    def administer(self) -> RemoteDatabase:
        """Return the service as its administrator sees it."""
        return RemoteDatabase(self.url, token=self.token)


@contextmanager
def running(*names: str) -> Iterator[list[Running]]:
    """Run services in threads, at free ports, which share a secret; their stores do not stay."""
    secret, found = protocol.new_token(), []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for place, name in enumerate(names):
            store = stack.enter_context(Store(folder / f"{place}.db"))
            store.appoint(protocol.hashed(token := protocol.new_token()))
            service = Service(store, Limits(requests_per_second=0), peer_token=secret)
            found.append(Running(name, stack.enter_context(in_a_thread(service)), token))
        yield found


@contextmanager
def running_apart(*names: str) -> Iterator[list[Running]]:
    """Run `blurfit serve` for each name, in a process of its own; their stores do not stay."""
    found, started = [], []
    with tempfile.TemporaryDirectory() as place:
        folder, secret = Path(place), Path(place) / "peer.txt"
        protocol.write_token(secret, protocol.new_token())
        try:
            for number, name in enumerate(names):
                token = folder / f"token{number}.txt"
                options = {
                    "store": f"sqlite:///{folder / str(number)}.db",
                    "port": "0",
                    "admin-token-file": token,
                    "peer-token-file": secret,
                    "requests-per-second": "0",
                }
                typed = (str(word) for key, one in options.items() for word in (f"--{key}", one))
                log = folder / f"{number}.log"
                with log.open("w") as errors:
                    process = subprocess.Popen(
                        [sys.executable, "-m", "blurfit", "serve", *typed],
                        stdout=subprocess.PIPE,
                        stderr=errors,
                        text=True,
                        start_new_session=True,  # Ctrl-C is for this process, which ends the others
                    )
                started.append(process)
                assert process.stdout is not None
                greeting = re.match(r"Serving at (\S+)", process.stdout.readline())
                if greeting is None:
                    raise ServiceError(f"The service of {name} did not start: {log.read_text()}")
                found.append(Running(name, greeting[1], protocol.read_token(token)))
            yield found
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.communicate()


def open_at(agreed: Agreed, services: Sequence[Running]) -> None:
    """Let each administrator open it, in the role that it names their database for."""
    roles: tuple[Role, ...] = ("first", "second") if len(services) > 1 else ("whole",)
    for service, role in zip(services, roles, strict=True):
        with service.administer() as database:
            database.open(agreed, role=role)


def published_by(agreed: Agreed, services: Sequence[Running]) -> PublishedModel:
    """Publish: of two, the second closes what has no waves, the first publishes for both."""
    first, *others = (service.administer() for service in services)
    for other in others:
        if isinstance(agreed, Agreement):
            other.close_collection(agreed)
    model = first.publish(agreed)
    if any(other.model(agreed).to_json() != model.to_json() for other in others):
        raise NotCertifiedError("Expected the same model from both databases.")
    for database in (first, *others):
        database.close()
    return model


def main(
    out: Path,
    contributors: int = CONTRIBUTORS,
    console: Console | None = None,
    *,
    two_databases: bool = True,
    waves: bool = False,
) -> None:
    """Play contributors, databases and a model's user, and show what each of them sees."""
    console = console or Console()
    people = make_census(contributors + HELD_OUT, seed=2026)
    inside, outside = people.head(contributors), people.take(HELD_OUT, start=contributors)
    schema = inside.label_schema if waves else inside.schema
    sent: list[FloatArray] = []
    out.mkdir(parents=True, exist_ok=True)
    with running(*NAMES[: 1 + two_databases]) as services:
        # Everyone is played here, so nobody is invited, and nobody lies: proofs would take minutes
        # to make on one machine. In earnest, keep the defaults.
        agreed = _proposed(schema, contributors, services, waves=waves)
        console.print(_introduction(inside, agreed, services))
        model = _collect(console, agreed, inside, services, sent)
        agreed.save(out / ("plan.json" if waves else "agreement.json"))
    if two_databases:
        console.print(
            f"Both databases serve the same model, from {model.count:,} people. Neither has seen a "
            "record.\n"
        )
    mine = "two databases" if two_databases else "in waves" if waves else "one database"
    models, whole = {mine: model}, list[FloatArray]()
    if two_databases or waves:
        other = _proposed(schema, contributors, waves=waves and two_databases)
        with running(NAMES[0]) as services:
            name = "one database" if two_databases else "in one wave"
            models[name] = _collect(console, other, inside, services, whole)
    console.print(_compared(schema, inside, outside, models), "")
    console.print(str(model.summary()), markup=False, highlight=False, soft_wrap=True)
    console.print("", Markdown(as_markdown(model)), "")
    if not waves:
        weights = _weights(schema, inside, models)
        console.print(_coefficients(schema, weights), "")
        predicted = model.predict({name: column[0] for name, column in outside.table.items()})
        console.print(f"The model's user predicts for one more person: {predicted:,.0f}.")
        try:
            optional("matplotlib").use("Agg")
        except BlurfitError as error:
            console.print(f"No picture was drawn. {error}")
        else:
            drawn = (
                _plot_shares(inside, whole + sent)
                if two_databases
                else _plot_models(schema, weights, model)
            )
            drawn.savefig(out / "demo.png", dpi=120)
    model.save(out / "model.json")
    console.print(f"Wrote {', '.join(str(one) for one in sorted(out.iterdir()))}.")


def _proposed(
    schema: Schema, contributors: int, services: Sequence[Running] = (), *, waves: bool
) -> Agreed:
    terms: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "admission": "anyone"}
    if len(services) > 1:
        terms["databases"] = [(one.name, one.url) for one in services]
    if waves:
        return Plan.propose(schema, waves="auto", quorum=contributors, **terms)
    return Agreement.propose(schema, quorum=min(QUORUM, contributors), proofs=False, **terms)


def _introduction(people: Census, agreed: Agreed, services: Sequence[Running]) -> str:
    questions = len(agreed.schema.features)
    told = f"[bold]{len(people):,} people of a {people.name}[/bold] answer {questions} questions. "
    if isinstance(agreed, Plan):
        each = ", ".join(f"{one:,}" for one in agreed.quorums)
        told += f"Each is asked once, in {len(agreed)} waves of at least {each}. "
    if len(services) > 1:
        places = " and ".join(f"{one.name} ({one.url})" for one in services)
        told += f"They share what they send between {places}. "
    return (
        f"{told}Everything that is ever published shall be ({EPSILON:g}, {DELTA:g})-differentially "
        "private, and nobody hands over a record.\n"
    )


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=console)


def _collect(
    console: Console,
    agreed: Agreed,
    people: Census,
    services: Sequence[Running],
    sent: list[FloatArray],
) -> PublishedModel:
    """Open, blur and send in batches, as devices would one by one, and publish.

    `sent` gets the last number of each person that each of the databases has.
    """
    open_at(agreed, services)
    seen: list[Any] = []
    url = None if agreed.databases else services[0].url
    with Client.of(agreed, url) as client, _bar(console) as progress:
        task = progress.add_task("", total=len(people))
        for number, batch in _batches(agreed, people):
            under = _open_wave(client, agreed, number)
            kind = "" if under.wave is None else f"wave {number}: "
            progress.update(task, description=f"{kind}blur and send")
            if agreed.databases:
                shared = share(under, batch.table)
                client.submit(shared)
                seen.append([shared.first.words[:, -1], shared.second.words[:, -1]])
            else:
                blurred = perturb_table(under, batch.table)
                client.submit(blurred)
                seen.append([blurred.numbers[:, -1]])
            progress.advance(task, len(batch))
    if isinstance(agreed, Agreement):
        sent += [np.concatenate(one).astype(float) for one in zip(*seen, strict=True)]
    return published_by(agreed, services)


def _batches(agreed: Agreed, people: Census) -> Iterator[tuple[int, Census]]:
    """Yield people, wave by wave, as their own coins have fallen: the wave, and some of them."""
    waves = len(agreed) if isinstance(agreed, Plan) else 1
    groups = new_groups(agreed.lot, len(people)) if isinstance(agreed, Plan) else 1
    for number in range(1, waves + 1):
        members = people.where(np.broadcast_to(groups == number, len(people)))
        for start in range(0, len(members), BATCH):
            yield number, members.take(min(BATCH, len(members) - start), start=start)


def _open_wave(client: Client, agreed: Agreed, number: int) -> Agreement:
    """Return the wave of a number, checked to follow, once every database has it open."""
    found = client.current(agreed)
    while found.wave is not None and found.wave.number < number:
        client.pause(PAUSE)
        found = client.current(agreed)
    return found


def _compared(
    schema: Schema, inside: Census, outside: Census, models: Mapping[str, PublishedModel]
) -> Table:
    """Compare the models with no privacy and with no model, on people who took no part."""
    title, v = "People who took no part", values(schema, outside.table)
    x, truth = v[:, :-1], v[:, -1]
    if not schema.is_label:
        table = Table("model", "error", "over no privacy", title=title)
        weights = _weights(schema, inside, models) | {"always the mean": np.array([truth.mean()])}
        errors = {
            name: float(np.sqrt(np.mean((w[0] + x[:, : len(w) - 1] @ w[1:] - truth) ** 2)))
            for name, w in weights.items()
        }
        for name, error in errors.items():
            told = error / _units(schema).scale
            table.add_row(name, f"{told:,.0f}", f"{error / errors['no privacy']:.3f}")
        return table
    table = Table("model", "right", "log loss", title=title)
    seen, rich = values(schema, inside.table), truth > 0
    fitted = optional("sklearn.linear_model").LogisticRegression(C=np.inf, max_iter=1000)
    fitted.fit(seen[:, :-1], seen[:, -1] > 0)
    chances = {"no privacy": fitted.predict_proba(x)[:, 1]}
    chances |= {name: one.predict_proba(outside.table)[:, -1] for name, one in models.items()}
    chances["always the same"] = np.full(len(rich), rich.mean())
    for name, chance in chances.items():
        p = np.clip(chance, 1e-9, 1 - 1e-9)
        loss = float(-np.mean(np.where(rich, np.log(p), np.log1p(-p))))
        table.add_row(name, f"{np.mean((p > 0.5) == rich):.2%}", f"{loss:.4f}")
    return table


def _weights(
    schema: Schema, people: Census, models: Mapping[str, PublishedModel]
) -> dict[str, FloatArray]:
    """Return the weights of (1, v): by least squares on the records themselves, and of models."""
    v = values(schema, people.table)
    exact, *_ = np.linalg.lstsq(np.column_stack([np.ones(len(v)), v[:, :-1]]), v[:, -1], rcond=None)
    return {"no privacy": exact} | {name: one.weights[0] for name, one in models.items()}


def _units(schema: Schema) -> Units:
    return units(schema, schema.target.name, schema.default_predictors(schema.target.name))


def _coefficients(schema: Schema, weights: Mapping[str, FloatArray]) -> Table:
    """Show several models side by side, in the units of the target."""
    table = Table("coefficient", title="What each answer adds to the income", title_justify="left")
    for name in weights:
        table.add_column(name, justify="right")
    told = _units(schema)
    found = np.array([told.apply(w) for w in weights.values()])
    for name, row in zip(told.names, found.T, strict=True):
        table.add_row(name, *(f"{value:,.0f}" for value in row))
    return table


def _plot_models(schema: Schema, weights: Mapping[str, FloatArray], model: PublishedModel) -> Any:
    """Draw coefficients, in thousands over each answer's whole range, with the model's errors."""
    told = _units(schema)
    widths = {one.name: one.width for one in schema.features if isinstance(one, Numeric)}
    scale = np.array([widths.get(name, 1.0) for name in told.names[1:]]) / 1000
    figure, axis = optional("matplotlib.pyplot").subplots(figsize=(9, 6), layout="constrained")
    for index, (label, w) in enumerate(weights.items()):
        places, reach = np.arange(len(scale)) + 0.25 * (index - 1), None
        if model.inference and w is model.weights[0]:
            reach = scale * [1.96 * one.standard_error for one in model.estimates()[1:]]
        axis.barh(places, scale * told.apply(w)[1:], height=0.24, label=label, xerr=reach)
    axis.set_yticks(range(len(scale)), told.names[1:])
    axis.invert_yaxis()
    axis.set_xlabel("effect of the answer's whole range on income, thousands (95 % intervals)")
    axis.set_title(f"Synthetic, {model.count:,} people, ε = {EPSILON:g}, δ = {DELTA:g}")
    figure.legend(loc="outside lower center", ncols=len(weights))
    return figure


def _plot_shares(people: Census, sent: Sequence[FloatArray]) -> Any:
    """Draw one of the numbers that people send, of the poorer and of the richer half: as one
    database has it, and as each of two has it.
    """
    income = np.asarray(people.table[people.schema.target.name], dtype=np.float64)
    rich = income > np.median(income)
    figure, axes = optional("matplotlib.pyplot").subplots(
        1, 3, figsize=(12, 3.8), layout="constrained"
    )
    titles = ("one database: a blurred number", f"{NAMES[0]}: share", f"{NAMES[1]}: seed")
    for axis, title, seen in zip(axes, titles, sent, strict=True):
        bins = np.linspace(seen.min(), seen.max(), 41)
        for label, who in (("lower half of incomes", ~rich), ("upper half", rich)):
            each = np.full(np.count_nonzero(who), 100 / np.count_nonzero(who))
            axis.hist(seen[who], bins=bins, weights=each, alpha=0.55, label=label)
        axis.set(title=title, xlabel="the number", ylabel="% of each half")
    if sent[0][rich].mean() < sent[0][~rich].mean():
        axes[0].invert_xaxis()  # so that higher incomes lie to the right
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.suptitle("What a database holds of the same people, by income (synthetic)")
    return figure


def quickstart(
    schema: Schema,
    crowd: Mapping[str, Any],
    seconds: float,
    *,
    console: Console,
    publish: threading.Event,
    ended: threading.Event,
    opened: Callable[[str], object],
) -> None:
    """Serve, let the crowd come within some seconds, publish when told to, and go on serving until
    `ended` is set. `opened` gets the address of each page when there is something to see on it.
    """
    people = len(next(iter(crowd.values())))
    with running_apart(*NAMES) as services:
        agreement = Agreement.propose(
            schema,
            epsilon=EPSILON,
            delta=DELTA,
            quorum=people,
            admission="anyone",
            databases=[(one.name, one.url) for one in services],
        )
        open_at(agreement, services)
        first, fingerprint = services[0], agreement.fingerprint
        join = f"{first.url}/c/{fingerprint}"
        lines = [
            f"[bold]{people:,} generated people answer a survey, and so can you.[/bold]",
            "Each answer is split between two databases, neither of which can read it:",
            *(f"  {one.name:<19}{one.url}" for one in services),
            "",
            f"  take part          {join}",
            f"  watch it fill      {first.url}/collections/{fingerprint}",
            f"  administer it      {first.url}/admin",
            f"  with the token     {first.token}",
            "Everything runs on this machine, and is gone when you press Ctrl-C.\n",
        ]
        console.print("\n".join(lines), highlight=False, soft_wrap=True)
        opened(join)
        _arrive(console, agreement, crowd, seconds, ended)
        console.print(
            f"All of them have come. Take part at {join}, if you like; nothing closes before you "
            "say so.\n[bold]Press Enter here to close the survey and publish its model.[/bold]",
            highlight=False,
            soft_wrap=True,
        )
        with first.administer() as database:
            while not (ended.is_set() or publish.wait(0.5)):
                if database.status(agreement)["state"] not in ("collecting", "paused"):
                    break  # closed on the page for administrators
        if ended.is_set():
            return
        console.print("The databases check everybody's proof, and add up ...", highlight=False)
        model = published_by(agreement, services)
        console.print(str(model.summary()), markup=False, highlight=False, soft_wrap=True)
        page = f"{first.url}/m/{fingerprint}"
        told = f"\nThe model's page: {page}\nCtrl-C ends the quickstart."
        console.print(told, highlight=False, soft_wrap=True)
        opened(page)
        ended.wait()


def _arrive(
    console: Console,
    agreement: Agreement,
    crowd: Mapping[str, Any],
    seconds: float,
    ended: threading.Event,
) -> None:
    """Let people come, each with a share for each database and a proof, until all have or `ended`
    is set.
    """
    people = len(next(iter(crowd.values())))
    size = -(-people // ARRIVALS)
    with _bar(console) as progress, Client.of(agreement) as client:
        task = progress.add_task("People send what they blurred", total=people)
        for start in range(0, people, size):
            batch = {name: some[start : start + size] for name, some in crowd.items()}
            client.submit(share(agreement, batch))
            progress.advance(task, min(size, people - start))
            if ended.wait(seconds / ARRIVALS):
                return
