"""The registry's entry has its fields, and the numbers of the agreement."""

import yaml

from blurfit.agreement.agreement import Agreement
from blurfit.model.statement import as_yaml
from blurfit.schema.schema import Numeric, Schema
from support.published import published

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))


def test_yaml_has_the_registrys_fields() -> None:
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20_000)
    entry = yaml.safe_load(as_yaml(published(agreement, 25_000)))["deployment"]
    assert entry["product"]["name"] == "Model of income"
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert entry["dp_flavor"]["name"] == "Approximate DP"
    assert set(entry) == {
        "product",
        "dp_flavor",
        "privacy_loss",
        "model",
        "accounting",
        "implementation",
    }
