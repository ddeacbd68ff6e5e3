"""Learning: the mathematics that turns blurred sums into models; no storage and no network."""
