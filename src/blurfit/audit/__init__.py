"""What an attacker can tell from what is released: lower bounds of ε, with confidence."""

TRIALS, CONFIDENCE = 4000, 0.999  # models learned of each neighbour, and of each lower bound
