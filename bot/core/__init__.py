"""Pure values and functions: metrics, plans, snapshots, deltas, verdicts.

No files, clock, environment or network.
"""
