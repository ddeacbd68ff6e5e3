"""Sphinx builds the laboratory's pages as it builds the product's."""

import runpy
from pathlib import Path

_product = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "conf.py"))
globals().update({name: value for name, value in _product.items() if not name.startswith("__")})

project = html_title = "blurfit-lab"
