"""Names that somebody chose, in Markdown that others read."""

import re

# All of ASCII's punctuation, but for what stands in numbers; a point in a word could make a link.
_MARKS = re.compile(r"[!-+/:-@\[-`{-~]|(?<=[^\W\d])\.")


def plain(text: str) -> str:
    r"""Text as one line in which Markdown finds nothing to interpret.

    >>> print(plain("-1,234.5 ![x](www.example.org)"))
    -1,234.5 \!\[x\]\(www\.example\.org\)
    """
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
