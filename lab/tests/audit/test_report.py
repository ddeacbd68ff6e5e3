"""What the audit says, to people: words must not promise more than the numbers."""

from rich.console import Console, RenderableType

from blurfit_lab.audit.agreements import Lie
from blurfit_lab.audit.examination import Finding
from blurfit_lab.audit.report import proofs_in_words, report, verdict


def words(what: RenderableType, width: int) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(what)
    return " ".join(capture.get().split())


KEPT = Finding("sums", "opposite records", "linear", 1000, 1.0, 1e-6, 0.4, 0.9, 0.95)
BROKEN = Finding("model", "zero and extreme", "quadratic", 1000, 1.0, 1e-6, 2.5)


def test_verdicts_say_no_more_than_was_found() -> None:
    assert "reached 90% of it (sums, opposite records)" in verdict([KEPT])
    assert "proves nothing" in verdict([KEPT])
    assert "BROKEN: the model has ε of at least 2.5 where 1 is promised" in verdict([KEPT, BROKEN])


def test_eighty_columns_break_no_word() -> None:
    seen = Finding(
        "submission", "beside a colluder's noise", "known direction", 9, 5.2141, 1e-6, 1.234, 2.345
    )
    told = words(report([seen, KEPT, BROKEN], 0.999), width=80).replace("│", " ").split()
    wanted = "submission: beside colluder's noise known direction counted Gaussian exact ratio"
    assert set(wanted.split()) <= set(told)


def test_lies_about_proofs_in_words() -> None:
    honest, lie = Lie("nothing", 64, 0), Lie("a long vector", 64, 0)
    assert "1 ways to lie, 64 tries, none accepted" in proofs_in_words([honest, lie])
    assert "a long vector (3 of 64)" in proofs_in_words([honest, Lie("a long vector", 64, 3)])
    assert "5 of 64 honest ones" in proofs_in_words([Lie("nothing", 64, 5), lie])
