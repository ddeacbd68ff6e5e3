"""From blurred sums to weights: mathematics alone, no SQL and no HTTP."""
