"""Options come before the proposal, and the proposal before defaults."""

from blurfit import Binary, Numeric, Schema
from blurfit.cli.agree import ProposalFile
from blurfit.cli.forecast import Asked, sweep_asked_for

SCHEMA = Schema([Numeric("age", 0, 100), Binary("married")], Numeric("income", 0, 100))
NOTHING = Asked()


def proposal(**terms) -> ProposalFile:
    return ProposalFile(SCHEMA, terms)


def test_what_is_typed_comes_first() -> None:
    planned = proposal(epsilon=2.0, quorum=5, mechanism="input", delta=1e-7)
    found = sweep_asked_for(planned, NOTHING)
    assert found["epsilons"] == (2.0,)
    assert found["mechanisms"] == ("input",)
    assert found["terms"] == {"delta": 1e-7}
    found = sweep_asked_for(planned, Asked(epsilon=(0.5,), mechanism="moment", delta=1e-9))
    assert found["epsilons"] == (0.5,)
    assert found["mechanisms"] == ("moment",)
    assert found["terms"] == {"delta": 1e-9}
    assert sweep_asked_for(proposal(), NOTHING)["mechanisms"] == ("moment", "input")


def test_a_local_delta_counts_only_with_a_target() -> None:
    assert sweep_asked_for(proposal(local_delta=1e-6), NOTHING)["terms"] == {}
    found = sweep_asked_for(proposal(local_delta=1e-6, local_epsilon=8.0), NOTHING)
    assert found["local_epsilons"] == (None, 8.0)
    assert found["terms"] == {"local_delta": 1e-6}
