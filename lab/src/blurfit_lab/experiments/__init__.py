"""Experiments, each one command of `blurfit-lab`.

`lines` has what they share: cells, results that are kept, paired comparisons, and tables.
Everything draws from a seed of its own, so that the order of the work, the number of workers and a
killed run in between change nothing.
"""
