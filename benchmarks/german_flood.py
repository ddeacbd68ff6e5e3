"""What one stranger who reads German takes from everyone else: a refusal is rendered on the loop.

`python benchmarks/german_flood.py`, a minute: the real service on SQLite, 32 people who send one
submission after another, and one address that asks for a path of 3.9 kB again and again, made of
the German catalogue's own templates, on 4 and on 64 connections, in English (the control) and in
German. What counts is people's throughput during the German flood in relation to the English one.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import click
from faults import GOAL_RATIO, PROMISE, SCHEMA, Attack, Finding, Scene, opened
from measure import table
from served import Served
from strangers import Target

from blurfit import Agreement
from blurfit_server.service.answers import catalogue

_LONGEST = 3900  # bytes of a path


def worst_path() -> str:
    """A path of the catalogue's own sentences, as long as the service reads one."""
    words = quote(" ".join(catalogue("de")))
    return f"/{words[: words.rindex('%', 0, _LONGEST)]}"


@click.command()
@click.option("--seconds", default=2.0, show_default=True, help="Length of a window.")
@click.option("--rounds", default=3, show_default=True, help="Windows of each kind.")
def main(seconds: float, rounds: int) -> None:
    """Flood in English and in German, and print people's submissions a second."""
    findings: list[Finding] = []
    agreement = Agreement.propose(SCHEMA, **PROMISE)
    floods = [(connections, one) for connections in (4, 64) for one in ("en", "de")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Served(f"sqlite:///{folder / 'store.db'}", folder) as service:
            opened(service, agreement)
            scene = Scene(service, agreement, seconds, rounds, findings)
            target = Target(service.port, worst_path())
            with scene.with_people():
                for network, (connections, language) in enumerate(floods, start=3):
                    asking = replace(target, network=network, language=language)
                    name = f"{connections} connections, {language}"
                    scene.attacked(Attack(name, "reading", asking, connections))
    rows, missed = [], False
    for number, finding in enumerate(findings):
        of_control = finding.ratio / findings[number - number % 2].ratio
        missed |= of_control < GOAL_RATIO
        quiet, during = (sorted(one)[len(one) // 2] for one in (finding.quiet, finding.during))
        rows.append([finding.attack, f"{quiet:,.0f}", f"{during:,.0f}", f"{of_control:.2f}"])
    table("people's submissions a second", ("flood", "without", "during", "of English"), rows)
    if missed:
        raise SystemExit(f"A flood in German leaves less than {GOAL_RATIO:g} of the control's.")


if __name__ == "__main__":
    main()
