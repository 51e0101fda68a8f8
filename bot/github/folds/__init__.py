"""Fold audits of runs on GitHub."""
