import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.estimators.base import FitGuarantee
from blurfit.model.model import PublishedModel
from blurfit.schema.schema import Binary, Numeric, Schema


def model(**terms) -> PublishedModel:
    schema = Schema([Numeric("a", 0, 1)], Binary("b"))
    settings = {"epsilon": 1.0, "delta": 1e-6, "quorum": 100, **terms}
    agreement, weights = Agreement.propose(schema, **settings), np.zeros((1, 2))
    return PublishedModel(agreement, "b", ("a",), weights, 100, "by hand", held=True)


def test_words() -> None:
    kept = FitGuarantee.of(model())
    assert (kept.epsilon, kept.delta, kept.neighbours, kept.private) == (1.0, 1e-6, "replace", True)
    assert "replacing one row by any other" in kept.statement
    assert "epsilon=1, delta=1e-06" in kept.statement
    assert "100 rows" in kept.statement
    assert "NOT" not in kept.statement
    assert "split" not in kept.statement
    assert "They saw every record, before any noise: nothing is promised against them" in (
        kept.statement
    )
    kept = FitGuarantee.of(model(neighbours="zero-out"))
    assert kept.neighbours == "zero-out"
    assert "leaving one row out" in kept.statement
    assert "Further models of `moments_` are free" in FitGuarantee.of(model()).statement
