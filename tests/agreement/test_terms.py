"""One list of terms, the same wherever it is read."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from blurfit import Agreement, Binary, Categorical, InvalidValueError, Numeric, Schema, perturb
from blurfit.agreement.mechanisms import Wave
from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import (
    LATER_TERMS,
    LEAST_DELTA,
    MOST_EPSILON_BEHIND_NOISE,
    TERMS,
    Database,
    Terms,
    require_together,
)
from blurfit.errors import BlurfitError, InfeasibleError
from blurfit.messages.signing import Signer, new_key
from blurfit.schema.columns import TimeToEvent

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 50}


def test_the_agreement_follows_from_schema_and_terms_and_no_other_names() -> None:
    chosen = PROMISE | {"neighbours": "zero-out", "constant": 0.5}
    terms = Terms(**chosen)
    assert Agreement.propose(SCHEMA, terms) == Agreement.propose(SCHEMA, **chosen)
    assert Terms.of(**chosen) == terms
    with pytest.raises(AttributeError):
        terms.epsilon = 2.0
    with pytest.raises(InvalidValueError, match=r"among epsilon, .*epsilom"):
        Agreement.propose(SCHEMA, **PROMISE, epsilom=1)
    with pytest.raises(InvalidValueError, match="delta"):
        Agreement.propose(SCHEMA, epsilon=1)


def test_json_gives_the_same_terms_and_refuses_others() -> None:
    terms = Terms(**PROMISE, constant=0.5)
    assert msgspec.json.decode(msgspec.json.encode(terms), type=Terms) == terms
    for wrong in (b'{"epsilon": 1, "delta": 0.1}', b'{"epsilon": 1, "delta": 2, "quorum": 5}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=Terms)
    with pytest.raises(msgspec.ValidationError, match="unknown field `alpha`"):
        msgspec.json.decode(b'{"epsilon": 1, "delta": 0.1, "quorum": 5, "alpha": 1}', type=Terms)


def test_every_term_has_words_for_people() -> None:
    schema = msgspec.json.schema(Terms)["$defs"]["Terms"]
    assert tuple(schema["properties"]) == TERMS
    assert all(one["description"].strip() for one in schema["properties"].values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(({"epsilon": 0}, "epsilon"), ({"epsilon": -1.0}, "epsilon"), ({"delta": 0.0}, "delta")),
        *(({"delta": 1.0}, "delta"), ({"delta": 1e-31}, "delta=1e-31"), ({"quorum": 0}, "quorum")),
        *(({"quorum": 2**53 + 1}, "quorum"), ({"quorum": 2.5}, "quorum")),
        ({"neighbours": "other"}, "neighbours"),
        ({"constant": float("inf")}, "constant"),
        ({"local_epsilon": float("nan")}, "local_epsilon"),
        ({"database_noise": 1}, "database_noise=1"),
        ({"database_noise": True, "epsilon": 501.0}, r"epsilon=501\.0"),
    ],
)
def test_impossible_terms_are_refused(wrong, message) -> None:
    for made in (Terms.of, Terms):
        with pytest.raises(InvalidValueError, match=message):
            made(**PROMISE | wrong)


def test_there_is_a_signing_key_for_each_database_or_none() -> None:
    one, other = (Signer(new_key()).key for _ in range(2))
    two = (("Office", "https://a.example"), ("University", "https://b.example"))
    signed = Agreement.propose(SCHEMA, **PROMISE, signing_keys=[one])
    plain = Agreement.propose(SCHEMA, **PROMISE)
    assert signed.to_dict() == plain.to_dict() | {"signing_keys": [one]}
    assert Agreement.from_json(signed.to_json()) == signed
    assert Terms.of(**PROMISE, databases=two, signing_keys=(one, other)).signing_keys == (
        one,
        other,
    )
    for databases, keys in (
        ((), (one, other)),
        (two, (one,)),
        (two, (one, one)),
        ((), ("00" * 32,)),
        ((), ("key",)),
    ):
        with pytest.raises(InvalidValueError, match="signing"):
            Terms.of(**PROMISE, databases=databases, signing_keys=keys)
    for wrong in ([], [one, other], ["00" * 32], one, None, 0, "", {}):
        with pytest.raises(InvalidValueError):
            Agreement.from_dict(plain.to_dict() | {"signing_keys": wrong}).verify()


def test_a_default_is_not_written_in_agreements_and_plans() -> None:
    plain, said = (
        Agreement.propose(SCHEMA, **PROMISE, **more) for more in ({}, {"admission": "invited"})
    )
    assert not set(LATER_TERMS) & set(plain.to_dict())
    assert said.fingerprint == plain.fingerprint
    anyone = Agreement.propose(SCHEMA, **PROMISE, admission="anyone")
    assert anyone.to_dict() == plain.to_dict() | {"admission": "anyone"}
    assert anyone.fingerprint != plain.fingerprint
    assert Agreement.from_json(anyone.to_json()) == anyone
    plain, anyone = (
        Plan.propose(SCHEMA, waves=2, **PROMISE, admission=who) for who in ("invited", "anyone")
    )
    assert anyone.to_dict() == plain.to_dict() | {"admission": "anyone"}
    assert Plan.from_json(anyone.to_json()) == anyone
    assert (plain.first().admission, anyone.first().admission) == ("invited", "anyone")
    with pytest.raises(InvalidValueError):
        Plan.from_dict(plain.to_dict() | {"admission": "invited"})


@pytest.mark.parametrize("value", ["invited", "nobody", None, 1])
def test_a_default_that_is_written_out_and_what_nobody_knows_are_refused(value) -> None:
    document = Agreement.propose(SCHEMA, **PROMISE).to_dict() | {"admission": value}
    with pytest.raises(InvalidValueError):
        Agreement.from_dict(document).verify()
    with pytest.raises(InvalidValueError, match=r"field|admission|differently"):
        Agreement.from_dict(document | {"more": 1})


# ---- each rule refuses what it is about, and names the value
LARGER = {"epsilon": 1.0, "delta": 1e-6, "quorum": 5000}
ADULTS = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 200_000))
TWO = (Database("A", "https://a.example"), Database("B", "https://b.example"))


def test_what_is_in_order_passes_and_goes_together() -> None:
    Terms(**PROMISE | {"delta": LEAST_DELTA})
    Terms(**PROMISE | {"epsilon": MOST_EPSILON_BEHIND_NOISE, "database_noise": True})
    Terms(**PROMISE | {"epsilon": 10 * MOST_EPSILON_BEHIND_NOISE})
    # Noise of the databases with waves, at one database and at two.
    for databases in ((), TWO):
        choices = {"databases": databases, "database_noise": True}
        plan = Plan.propose(ADULTS, waves=2, admission="anyone", **LARGER, **choices)
        again = Plan.from_json(plan.to_json())
        assert again.first().weights == Plan.propose(ADULTS, waves=2, **LARGER).first().weights
        again.verify()


@pytest.mark.parametrize(
    ("choices", "waves", "reason"),
    [
        ({"proofs": True}, False, "how long a submission is"),
        ({"proofs": True, "databases": TWO}, True, "one wave alone, so far"),
    ],
)
def test_what_cannot_be_had_together_is_refused_with_its_reason(choices, waves, reason) -> None:
    with pytest.raises(InfeasibleError, match=reason):
        (Plan if waves else Agreement).propose(ADULTS, **LARGER | choices)


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ({"groups": "region"}, "no groups"),
        ({"weighting": "region", "factors": {"n": 1.0, "s": 0.5}}, "no weighting"),
        ({"databases": TWO, "proofs": True}, "no proofs"),
    ],
)
def test_what_a_time_to_an_event_excludes_is_refused(choices, reason) -> None:
    asked = [Numeric("age", 18, 80), Categorical("region", ["n", "s"])]
    exits = Schema(asked, TimeToEvent("months", "left", horizon=12))
    with pytest.raises(InfeasibleError, match=f"{reason} with a time to an event"):
        Agreement.propose(exits, **LARGER | choices)
    plain = Agreement.propose(exits, **LARGER)
    for name, value in choices.items():
        if name in ("groups", "weighting", "proofs"):
            with pytest.raises(BlurfitError):
                replace(plain, **{name: value}).verify()


STAYS = Schema(
    [Numeric("age", 20, 60), Binary("remote")], TimeToEvent("months", "left", horizon=12, bands=4)
)


def test_a_time_to_an_event_takes_one_wave() -> None:
    with pytest.raises(InvalidValueError, match="is a time to an event: collect it in one wave"):
        Plan.propose(STAYS, **LARGER)
    alone = Agreement.propose(STAYS, **LARGER)
    wave = Wave("0" * 64, 1, (LARGER["quorum"],))
    with pytest.raises(InfeasibleError, match="one wave for a time to an event"):
        replace(alone, wave=wave).verify()


def test_a_service_takes_one_exit_of_a_person_and_files_take_several_spells() -> None:
    require_together(Agreement.propose(STAYS, **LARGER), served=True)
    spells = Agreement.propose(STAYS, **LARGER, diaries=True)
    with pytest.raises(InfeasibleError, match="no diaries with a time to an event"):
        require_together(spells, served=True)
    rows = {"age": [33, 35], "remote": [1, 0], "months": [4.5, 2.0], "left": [True, False]}
    sent = np.asarray(perturb(spells, rows).numbers)
    deviation = spells.calibration.noise / np.sqrt(spells.form.counts)
    assert (np.abs(sent - spells.exact(rows).mean(axis=0)) < 8 * deviation).all()
