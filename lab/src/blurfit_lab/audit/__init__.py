"""What an attacker can tell from what is released: lower bounds of ε, with confidence."""

TRIALS, CONFIDENCE = 4000, 0.999  # models learned of each neighbour; of each lower bound
PAIRS = ("target", "features", "middle", "scale")  # of tables, which an estimator is to tell apart
