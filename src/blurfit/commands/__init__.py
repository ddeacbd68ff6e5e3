"""What can be typed after `blurfit`, one module for each of those who type it."""
