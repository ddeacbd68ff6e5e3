"""Tables in notebooks, whatever somebody has called things."""

from blurfit.notebook import html_table


def test_names_are_text_and_nothing_else() -> None:
    text = html_table(["<script>"], [["a & b"], ["<img src=x>"]], caption="<i>")
    assert "<script>" not in text
    assert "<img" not in text
    assert "<caption>&lt;i&gt;</caption>" in text
    assert text.count("<tr>") == 3
    assert "<caption>" not in html_table(["a"], [])
