"""The error to expect, before anything is collected."""

DRAWS = 64  # collections that are simulated for each case
TOLERANCE = 0.05  # how near to no privacy counts as near enough
