"""What runs on a contributor's own machine: fetch, verify, blur exactly, send once."""

import numpy as np

from blurfit.contributor.client import Client


def main(url: str, fingerprint: str, seed: int, count: int) -> None:
    """So many people, one after the other."""
    generator = np.random.default_rng(seed)
    with Client(url) as client:
        agreement = client.agreement(fingerprint)
        for _ in range(count):
            age, married = generator.uniform(18, 80), int(generator.integers(0, 2))
            record = {"age": age, "married": married, "sex": generator.choice(["f", "m"])}
            record["income"] = 20_000 + 900 * age + 10_000 * married
            receipt = client.contribute(agreement, record)
            assert len(receipt.identifier) == 32
