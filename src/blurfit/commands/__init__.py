"""Commands that are a page of their own: each module holds one, and `blurfit.cli` registers it."""
