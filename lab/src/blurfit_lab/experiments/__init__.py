"""Experiments, each one command of `blurfit-lab`.

    reproduce    the paper's figures and claims: cohort ─ windows ─► cells ─► CSV ─► plots ─► page
    rivals       head to head with every rival, family by family, and the pages that tell it
    everywhere   public defaults, rivals and a private mean on many populations
    coverage     95 % intervals against a population's own best model
    public       what public rows of the features are worth
    tables       whether intervals of tables and effects hold; groups and histories ask it of theirs
    errata       where the paper's proofs do not hold, in numbers

`lines` has what they share: cells, results that are kept, paired comparisons, and tables.

Everything draws from a seed of its own, so that the order of the work, the number of workers and a
killed run in between change nothing.
"""
