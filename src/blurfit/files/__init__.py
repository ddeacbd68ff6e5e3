"""Learn from files of submissions, on one machine or many."""
