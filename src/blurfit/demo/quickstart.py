"""`blurfit quickstart`: a running service whose collection fills up before your eyes.

Generated people send blurred records over HTTP to a service on this machine, slowly enough to
watch. At the quorum the model is published. Anyone at the browser may take part. Nothing here is
real data, and nothing is kept afterwards.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.demo.stage import DELTA, EPSILON, bar, running_service
from blurfit.model.model import PublishedModel
from blurfit.schema.schema import Schema

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
        ended: is set to stop.
        opened: is called with the address of each page when there is something to see on it.
    """
    people = len(next(iter(crowd.values())))
    agreement = Agreement.propose(
        schema, epsilon=EPSILON, delta=DELTA, quorum=people, admission="anyone"
    )
    with running_service("this machine") as service, service.administer() as database:
        database.open(agreement)
        url, mark = service.url, agreement.fingerprint
        places = Places(
            f"{url}/collections/{mark}", f"{url}/c/{mark}", f"{url}/m/{mark}", f"{url}/admin"
        )
        _say(console, places, service.token, people)
        opened(places.collection)
        with bar(console) as progress, Client(url) as client:
            task = progress.add_task("People send what they blurred", total=people)
            size = -(-people // ARRIVALS)
            for start in range(0, people, size):
                batch = {name: some[start : start + size] for name, some in crowd.items()}
                client.submit(perturb_table(agreement, batch))
                progress.advance(task, min(size, people - start))
                if ended.wait(seconds / ARRIVALS):
                    return
        _read(console, database.publish(agreement), places)
        opened(places.model)
        ended.wait()


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
