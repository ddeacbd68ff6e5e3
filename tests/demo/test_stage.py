from blurfit.agreement.agreement import Agreement
from blurfit.demo.stage import HELD_OUT, people_of, running_service


def test_a_service_is_there_for_its_administrator() -> None:
    inside, outside = people_of(1000)
    assert (len(inside), len(outside)) == (1000, HELD_OUT)
    agreement = Agreement.propose(inside.schema, epsilon=1, delta=1e-6, quorum=1000)
    with running_service("here") as here, here.administer() as database:
        database.open(agreement)
        assert database.status(agreement)["state"] == "collecting"
