"""One table, three dresses."""

import pytest

from blurfit import Binary, Numeric, Schema
from blurfit.model.summary import number, probability
from support.joint_release import release

MOMENTS = release(20_000)


def test_the_table_has_every_coefficient_and_says_what_it_promises() -> None:
    text = str(MOMENTS.fit("income ~ age + C(region)").summary(0.9))
    for word in ("age", "region=west", "90 % interval", "of it privacy", "ε = 1, δ = 1e-06"):
        assert word in text
    assert "each record, were it replaced by any other" in text
    assert "20,000" in text
    assert "R²" in text


def test_html_and_markdown_say_the_same_and_take_no_orders_from_names() -> None:
    schema = Schema(
        [Numeric("<b>age</b>", 0, 100), Binary("![x](http://example.org/x.png)")],
        Numeric("a|b", 0, 1),
    )
    from blurfit import Agreement
    from blurfit.learning.sums import Totals
    from blurfit.model.release import moments_of

    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=100)
    moments = moments_of(agreement, Totals(100, [0.0] * agreement.width, agreement.fingerprint))
    summary = moments.fit().summary()
    assert "<b>" not in summary.to_html()
    assert "![x](" not in summary.to_markdown()
    assert "\\!\\[x\\]" in summary.to_markdown()


def test_each_class_has_its_section() -> None:
    text = str(MOMENTS.fit("region ~ income").summary())
    assert [f"region = {level}" in text for level in ("north", "south", "west")] == [True] * 3


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1086.34, 52.1, "1,086"),
        (-0.00123456, 0.00021, "-0.00123"),
        (0.0, None, "0"),
        (123456.0, 2500.0, "123,500"),
        (1e-9, None, "1.00e-09"),
        (1.0e-6, 8.3e-8, "1.00e-06"),  # and its error 8.30e-08: one form for both
        (float("inf"), None, "inf"),
        (-0.001, 20.0, "0"),
    ],
)
def test_numbers_have_the_digits_that_their_error_leaves(value, error, text) -> None:
    assert number(value, error) == text


def test_p_values_stop_at_a_thousandth() -> None:
    assert (probability(0.0001), probability(0.0314)) == ("< 0.001", "0.031")
