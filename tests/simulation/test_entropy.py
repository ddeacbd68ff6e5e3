import numpy as np
import pytest
from randomgen import ChaCha
from scipy.stats import kstest

from blurfit import InvalidValueError
from blurfit.randomness import bits
from blurfit.simulation.sampler import generator_for, operating_system_generator


def test_each_call_has_a_key_of_its_own() -> None:
    first, second = (operating_system_generator().random(4).tolist() for _ in range(2))
    assert first != second


def test_the_key_is_the_operating_systems_and_cryptographic(monkeypatch) -> None:
    monkeypatch.setattr(bits, "octets", lambda count: (7).to_bytes(count))
    generator = operating_system_generator()
    assert generator.random() == np.random.Generator(ChaCha(key=7, rounds=20)).random()
    assert kstest(generator.standard_normal(5000), "norm").pvalue > 1e-4  # the key is fixed here


def test_numpys_global_seed_has_no_say() -> None:
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        drawn.append(generator_for(None).random())
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("make", [lambda: 3, lambda: np.random.RandomState(3), np.int64])
def test_seeds_repeat(make) -> None:
    seed = make if make is not np.int64 else lambda: np.int64(3)
    assert generator_for(seed()).random() == generator_for(seed()).random()


def test_a_generator_is_taken_as_it_is() -> None:
    generator = np.random.default_rng(1)
    assert generator_for(generator) is generator


@pytest.mark.parametrize("bad", [-1, "seed", 1.5])
def test_what_is_no_seed_is_refused(bad) -> None:
    with pytest.raises(InvalidValueError, match=r"random_state=.* whole number >= 0"):
        generator_for(bad)
