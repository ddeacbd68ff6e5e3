"""`python -m blurfit`: the command line, where the command itself is not on the path."""

from blurfit.cli import main

main(prog_name="blurfit")
