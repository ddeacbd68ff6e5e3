"""Sphinx builds these pages; warnings are errors (`make check`)."""

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

from blurfit import __version__

project = "blurfit"
author = "The blurfit authors"
copyright = "2026, the blurfit authors"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
html_math_renderer = "mathml"
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks carry what they showed; tests run them
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "blurfit"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
suppress_warnings = ["myst.header"]
default_role = "code"


def _docstring_to_rest(_app, _what, _name, _object, _options, lines: list[str]) -> None:
    """Docstrings are written to be read in code: Markdown tables, |x| for absolute values."""
    rest: list[str] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if not (text.startswith("|") and text.endswith("|")):
            rest.append(line.replace("|", r"\|"))
            continue
        if not lines[number - 1].strip().startswith("|"):
            rest += ["", ".. list-table::", "   :header-rows: 1", ""]
        if set(text) <= set("|- :"):
            continue
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        rest += [f"   {'*' if k == 0 else ' '} - {cell}" for k, cell in enumerate(cells)]
    lines[:] = rest


def _write_mathml(writer, node) -> None:
    """Write a formula as MathML, which browsers render without a script or a network."""
    is_block = node.tagname == "math_block"
    try:
        formula = tex2mathml(node.astext(), as_block=is_block)
    except MathError as error:
        logging.getLogger(__name__).warning("formula: %s: %s", error, node.astext(), location=node)
        formula = ""
    writer.body.append(f"<div>{formula}</div>" if is_block else formula)
    raise SkipNode


def setup(app) -> None:
    app.add_html_math_renderer("mathml", (_write_mathml, None), (_write_mathml, None))
    app.connect("autodoc-process-docstring", _docstring_to_rest)
