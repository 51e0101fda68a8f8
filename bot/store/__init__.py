"""Baseline snapshots kept between runs: a local directory or a data branch, behind one Protocol."""
