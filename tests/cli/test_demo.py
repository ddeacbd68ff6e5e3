import json

from blurfit import PublishedModel


def test_the_example(blurfit) -> None:
    result = blurfit("demo", "--contributors", "2000", "--out", "demo", "--json")
    assert result.returncode == 0, result.stderr
    played = {"contributors": 2000, "databases": 2, "waves": False, "out": "demo"}
    assert json.loads(result.stdout) == played
    assert "Both databases serve the same model" in " ".join(result.stderr.split())
    assert (blurfit.folder / "demo" / "demo.png").stat().st_size > 10_000
    model = PublishedModel.load(blurfit.folder / "demo" / "model.json")
    assert (model.count, model.agreement.trust) == (2000, "shared")


def test_too_few_people_are_refused(blurfit) -> None:
    assert blurfit("demo", "--contributors", "10").returncode == 2
