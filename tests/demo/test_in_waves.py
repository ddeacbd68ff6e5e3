from blurfit.agreement.plan import Plan
from blurfit.demo import in_waves
from blurfit.model.model import PublishedModel


def test_everyone_is_asked_once_and_the_model_is_a_curve(capsys, tmp_path) -> None:
    in_waves.main(tmp_path, contributors=6000)
    told = " ".join(capsys.readouterr().out.split())
    assert "synthetic" in told
    for row in ("no privacy", "in waves", "in one wave", "always the same"):
        assert row in told
    plan = Plan.load(tmp_path / "plan.json")
    assert len(plan) > 1
    model = PublishedModel.load(tmp_path / "waves-model.json")
    assert (model.count, model.link) == (6000, "logistic")
    assert tuple(one.count for one in model.waves) == plan.quorums
