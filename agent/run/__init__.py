"""Runs: the runner and its executor, the run folder, resume, limits, oracles, and runs of other machines."""
