import numpy as np

from blurfit.demo import two_databases
from blurfit.model.model import PublishedModel


def test_two_databases_and_one_model(capsys, tmp_path) -> None:
    two_databases.main(tmp_path, contributors=3000)
    told = " ".join(capsys.readouterr().out.split())
    for words in ("synthetic", "one database", "two databases", "Either of the two databases"):
        assert words in told
    assert (tmp_path / "two-databases.png").stat().st_size > 10_000
    model = PublishedModel.load(tmp_path / "two-databases-model.json")
    assert model.count == 3000
    assert [one.name for one in model.agreement.databases] == list(two_databases.NAMES)
    assert np.isfinite(model.weights).all()
