"""Audit folds: merge near-duplicate executables, and measure the saving."""
