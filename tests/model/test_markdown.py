"""Names in Markdown mean nothing to Markdown."""

import pytest
from markdown_it import MarkdownIt

from blurfit.model.summary import plain


@pytest.mark.parametrize(
    "name",
    ["*a*", "[a](http://b.c)", "![x](y)", "<b>", "`a`", "# a", "1. a", "www.example.org", "a\n\nb"],
)
def test_a_name_stays_a_name(name: str) -> None:
    (paragraph,) = [one for one in MarkdownIt().parse(f"x {plain(name)}") if one.children]
    assert {one.type for one in paragraph.children} <= {"text", "text_special"}
    shown = "".join(one.content for one in paragraph.children)
    assert shown == "x " + " ".join(name.split())
