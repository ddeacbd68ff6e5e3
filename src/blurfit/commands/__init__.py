"""The commands of `blurfit`, one module for each of those who type them."""
