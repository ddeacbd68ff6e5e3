"""Commands that are long enough for a module of their own; `blurfit.cli` registers them."""
