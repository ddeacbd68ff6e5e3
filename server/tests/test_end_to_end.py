"""All three parties as processes of their own: 450 contributors, a service, a model's user."""

import json
from pathlib import Path

import numpy as np
import pytest

from blurfit import Agreement, Binary, Categorical, Numeric, PublishedModel, Schema
from server_support import contributor
from server_support.serving import Serving
from support import processes

CONTRIBUTORS, PROCESSES = 450, 3


def blurfit(folder: Path, *arguments: str) -> str:
    done = processes.run(arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.statistical
def test_hundreds_of_contributors(tmp_path) -> None:
    schema = Schema(
        features=[Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])],
        target=Numeric("income", 0, 200_000),
    )
    agreement = Agreement.propose(
        schema, epsilon=40, delta=1e-6, quorum=CONTRIBUTORS, admission="anyone"
    )
    agreement.save(tmp_path / "agreement.json")
    service = Serving("sqlite:///collection.db".replace("///", f"///{tmp_path}/"), tmp_path)
    service.start()
    try:
        to = ["--to", service.url]
        administrator = ["--admin-token-file", str(service.token_file)]
        blurfit(tmp_path, "open", "agreement.json", *to, *administrator)
        to_send = service.url, agreement.fingerprint
        contributors = [
            processes.start(contributor.main, *to_send, seed, CONTRIBUTORS // PROCESSES)
            for seed in range(PROCESSES)
        ]
        assert [one.wait(900) for one in contributors] == [0] * PROCESSES
        status = json.loads(blurfit(tmp_path, "status", "agreement.json", *to, "--json"))
        assert (status["count"], status["state"]) == (CONTRIBUTORS, "collecting")
        blurfit(tmp_path, "publish", "agreement.json", *to, *administrator, "--out", "model.json")
    finally:
        service.stop()
    (tmp_path / "people.csv").write_text("age,married,sex\n20,0,f\n70,1,m\n")
    blurfit(tmp_path, "predict", "model.json", "people.csv", "--out", "predictions.csv")
    young, old = np.loadtxt(tmp_path / "predictions.csv", skiprows=1)
    assert young == pytest.approx(38_000, abs=10_000)  # blurred: ten deviations of the noise
    assert old == pytest.approx(93_000, abs=10_000)
    model = PublishedModel.load(tmp_path / "model.json")
    assert model.count == CONTRIBUTORS
    assert "(40, 1e-06)-differentially private" in blurfit(tmp_path, "statement", "model.json")
