"""The operating system's bits, and exact noise: what contributors and databases draw from."""
