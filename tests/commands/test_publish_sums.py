"""`blurfit publish` where products with the target alone were sent: sums, and what to do next."""

import json

import numpy as np

from blurfit.contributor.client import Client
from blurfit.contributor.perturb import perturb_table
from blurfit.model.moments import PublishedMoments

PEOPLE = {"age": np.linspace(0, 100, 30), "income": np.linspace(0, 1000, 30)}


def test_the_sums_are_published_and_written(blurfit, service, propose, as_administrator) -> None:
    agreement = propose(sends="targets", public_rows="00" * 32)
    agreement.save(blurfit.folder / "agreement.json")
    assert blurfit("open", "agreement.json", *as_administrator).returncode == 0
    with Client(service.url) as client:
        client.submit(perturb_table(agreement, PEOPLE))
    done = blurfit("publish", "agreement.json", *as_administrator)
    assert done.returncode == 0, done.stderr
    assert "Published the sums of 30 contributions, and wrote moments.json." in done.stdout
    assert "blurfit fit moments.json --public FILE" in done.stdout
    moments = PublishedMoments.load(blurfit.folder / "moments.json")
    again = blurfit("publish", "agreement.json", *as_administrator, "--moments", "b.json", "--json")
    assert json.loads(again.stdout) == {"count": 30, "moments": "b.json"}
    assert PublishedMoments.load(blurfit.folder / "b.json").to_json() == moments.to_json()
