"""Provenance are written and read, and made-up people are called so."""

from blurfit_lab.experiments.runner import Provenance


def test_facts(tmp_path) -> None:
    assert Provenance.read(tmp_path) == Provenance()
    facts = Provenance("ACS", synthetic=False, rows=7, trials=2, workers=1).took("fig1a", 1.26, 2.5)
    facts.write(tmp_path)
    assert Provenance.read(tmp_path) == facts
    assert facts.seconds == {"fig1a": 1.3}
    assert facts.computing == {"fig1a": 2.5}
    assert facts.title == "ACS"
    assert "SYNTHETIC" in Provenance("made up").title
