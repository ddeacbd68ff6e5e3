"""`blurfit quickstart`: a running service whose collection fills before one's eyes.

Generated people send blurred records over HTTP to a service on this machine, at a pace that one can
watch. At the quorum the model is published. Whoever sits at the browser may take part. Nothing here
is real data, and nothing is kept when it ends.
"""

import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.client import Client
from blurfit.contributor.perturb import perturb_table
from blurfit.model.published import PublishedModel
from blurfit.protocol import tokens
from blurfit.schema.schema import Schema
from blurfit.service.app import Limits, Service
from blurfit.service.remote import RemoteDatabase
from blurfit.service.serving import in_a_thread
from blurfit.store.store import Store

EPSILON, DELTA = 1.0, 1e-6
ARRIVALS = 120  # in as many steps the collection fills


@dataclass(frozen=True)
class Places:
    """Where to look."""

    collection: str
    contribute: str
    model: str
    administration: str


def main(
    schema: Schema,
    crowd: Mapping[str, Any],
    seconds: float,
    *,
    console: Console,
    ended: threading.Event,
    opened: Callable[[str], object],
) -> None:
    """Serve, let people come, publish, and go on serving until `ended` is set.

    Args:
        schema: what they are asked.
        crowd: what those answer who come by themselves; as many are the quorum.
        seconds: how long that takes.
        console: where the addresses are printed.
        ended: set by whoever wants to stop.
        opened: is called with the address of each page when there is something to see on it.
    """
    people = len(next(iter(crowd.values())))
    agreement = Agreement.propose(
        schema, epsilon=EPSILON, delta=DELTA, quorum=people, admission="anyone"
    )
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "quickstart.db") as store:
        token = tokens.new_token()
        store.appoint(tokens.hashed(token))
        with in_a_thread(Service(store, Limits(requests_per_second=0))) as url:
            places = _open(url, token, agreement)
            _say(console, places, token, people)
            opened(places.collection)
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            with Progress(*columns, console=console) as progress, Client(url) as client:
                task = progress.add_task("People send what they blurred", total=people)
                size = -(-people // ARRIVALS)
                for start in range(0, people, size):
                    batch = {name: some[start : start + size] for name, some in crowd.items()}
                    client.submit(perturb_table(agreement, batch))
                    progress.advance(task, min(size, people - start))
                    if ended.wait(seconds / ARRIVALS):
                        return
            with RemoteDatabase(url, token=token) as database:
                model = database.publish(agreement)
            _read(console, model, places)
            opened(places.model)
            ended.wait()


def _open(url: str, token: str, agreement: Agreement) -> Places:
    with RemoteDatabase(url, token=token) as database:
        database.open(agreement)
    mark = agreement.fingerprint
    return Places(f"{url}/collections/{mark}", f"{url}/c/{mark}", f"{url}/m/{mark}", f"{url}/admin")


def _say(console: Console, places: Places, token: str, people: int) -> None:
    lines = [
        f"[bold]{people:,} people who do not exist answer a survey, and you may join them.[/bold]",
        f"  watch it fill      {places.collection}",
        f"  take part          {places.contribute}",
        f"  administer it      {places.administration}",
        f"  with the token     {token}",
        "Everything runs on this machine, and is gone when you press Ctrl-C.\n",
    ]
    console.print("\n".join(lines), highlight=False, soft_wrap=True)


def _read(console: Console, model: PublishedModel, places: Places) -> None:
    console.print(str(model.summary()), markup=False, highlight=False, soft_wrap=True)
    read = f"\nThe model's page: {places.model}\nCtrl-C ends the quickstart."
    console.print(read, highlight=False, soft_wrap=True)
