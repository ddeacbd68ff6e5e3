"""The paper's experiments and what goes beyond them: config → CSV → plot → page.

    population ─ windows ─► cells ─ workers ─► journal ─► CSV ─► figures ─► docs/experiments.md

A cell is what one worker computes at once: some trials of one experiment at one n. Each cell draws
from its own seed, so that the order of the work, the number of workers and a killed run in between
change nothing: the CSV is the same to the last byte.
"""
