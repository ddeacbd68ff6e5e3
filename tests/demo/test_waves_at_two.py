from blurfit.agreement.plan import Plan
from blurfit.demo import two_databases, waves_at_two
from blurfit.model.model import PublishedModel


def test_two_databases_go_from_wave_to_wave_to_one_curve(capsys, tmp_path) -> None:
    waves_at_two.main(tmp_path, contributors=2000)
    told = " ".join(capsys.readouterr().out.split())
    for words in ("synthetic", "Neither has seen a record", "waves, two databases", "no privacy"):
        assert words in told
    plan = Plan.load(tmp_path / "plan.json")
    assert len(plan) > 1
    model = PublishedModel.load(tmp_path / "waves-model.json")
    assert (model.count, model.link) == (2000, "logistic")
    assert tuple(one.count for one in model.waves) == plan.quorums
    assert [one.name for one in model.agreement.databases] == list(two_databases.NAMES)
