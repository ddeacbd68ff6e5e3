"""The database: sums what it receives and solves for the model; nobody has to trust it."""
