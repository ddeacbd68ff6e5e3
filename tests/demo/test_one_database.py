from blurfit.demo import one_database
from blurfit.model.model import PublishedModel


def test_demo_plays_all_three_parties(capsys, tmp_path) -> None:
    one_database.main(tmp_path, contributors=4000)
    told = " ".join(capsys.readouterr().out.split())
    assert "synthetic" in told
    for column in ("no privacy", "moment", "input", "always the mean"):
        assert column in told
    assert "Privacy statement" in told
    assert "annual_income ~ age" in told, "the summary of the model"
    assert (tmp_path / "demo.png").stat().st_size > 10_000
    model = PublishedModel.load(tmp_path / "model.json")
    assert model.count == 4000
